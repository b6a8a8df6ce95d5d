use super::*;

const ENVELOPE_1: Envelope = Envelope {
    kind: DatagramKind::Hello,
    flags: 0x81,
    sender: Origin { node: 0x0102_0304_0506_0708, incarnation: 0x1112_1314_1516_1718 },
    packet: 0x2122_2324_2526_2728,
};

fn shared(secret: &str, packet_keys: &[&str]) -> Keys {
    let packet_keys: Vec<_> = packet_keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    Keys::new(&Secrets::Shared {
        cluster: "web",
        secret: secret.as_bytes(),
        packet_keys: &packet_keys,
    })
}

fn seal(keys: &Keys, body: &[u8]) -> Vec<u8> {
    let mut out = vec![1, 2, 3];
    keys.seal(&ENVELOPE_1, body, &mut out);
    out
}

fn opened(keys: &Keys, datagram: &[u8]) -> Result<(Envelope, Vec<u8>), DropCause> {
    let mut datagram = datagram.to_vec();
    keys.open(&mut datagram).map(|(envelope, body)| (envelope, body.to_vec()))
}

fn all() -> [Keys; 4] {
    let open = Keys::new(&Secrets::Open { cluster: "web" });
    [shared("s", &[]), shared("s", &["one", "two"]), open, Keys::unsealed("web")]
}

#[test]
fn a_sealed_datagram_can_be_opened() {
    for keys in all() {
        for len in [0, 1, 100, MAX_BODY] {
            let body: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let datagram = seal(&keys, &body);
            assert_eq!(datagram.len(), len + 48);
            assert_eq!(opened(&keys, &datagram), Ok((ENVELOPE_1, body)));
        }
    }
}

#[test]
fn the_envelope_has_the_documented_layout() {
    let keys = shared("s", &[]);
    let datagram = seal(&keys, b"body");
    assert_eq!(datagram[..5], [b'd', b'T', 1, 8, 0x81]);
    assert_eq!(datagram[6..8], Sha256::digest(b"web")[..2]);
    let numbers: Vec<u8> = [0x01..=0x08, 0x11..=0x18, 0x21..=0x28].into_iter().flatten().collect();
    assert_eq!(datagram[8..32], numbers);
}

#[test]
fn a_sealed_datagram_with_any_bit_changed_is_dropped() {
    let keys = shared("s", &["one"]);
    let body = [0; 40];
    let datagram = seal(&keys, &body);
    assert!(datagram[32..].windows(4).all(|bytes| bytes != [0; 4]));
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let cause = match bit / 8 {
            0 | 1 => DropCause::Magic,
            2 => DropCause::Version,
            5 => DropCause::Key,
            6 | 7 => DropCause::Cluster,
            _ => DropCause::Auth,
        };
        let before = changed.clone();
        assert_eq!(keys.open(&mut changed), Err(cause), "bit {bit}");
        assert_eq!(changed, before, "a dropped datagram is not changed");
    }
}

#[test]
fn datagrams_of_impossible_length_are_dropped() {
    let keys = shared("s", &[]);
    let datagram = seal(&keys, b"");
    for len in 0..48 {
        assert_eq!(opened(&keys, &datagram[..len]), Err(DropCause::Short));
    }
    assert_eq!(opened(&keys, &[0; 48]), Err(DropCause::Magic));
    assert_eq!(opened(&keys, &[0; MAX_DATAGRAM]), Err(DropCause::Magic));
    assert_eq!(opened(&keys, &[0; MAX_DATAGRAM + 1]), Err(DropCause::Long));
}

#[test]
fn an_unknown_kind_has_another_cause_than_a_forged_datagram() {
    let keys = Keys::unsealed("web");
    let mut datagram = seal(&keys, b"body");
    datagram[3] = 11;
    assert_eq!(opened(&keys, &datagram), Err(DropCause::Kind));
    datagram[47] = 1;
    assert_eq!(opened(&keys, &datagram), Err(DropCause::Auth));
}

#[test]
fn datagrams_of_other_clusters_or_secrets_are_dropped() {
    let datagram = seal(&shared("s", &[]), b"body");
    let elsewhere = Keys::new(&Secrets::Shared { cluster: "mail", secret: b"s", packet_keys: &[] });
    assert_eq!(opened(&elsewhere, &datagram), Err(DropCause::Cluster));
    for keys in &all()[1..] {
        assert!(matches!(opened(keys, &datagram), Err(DropCause::Key | DropCause::Auth)));
    }
    let unsealed = seal(&Keys::unsealed("web"), b"body");
    for keys in &all()[..3] {
        assert!(matches!(opened(keys, &unsealed), Err(DropCause::Key | DropCause::Auth)));
    }
}

/// The three steps of a rotation. Nodes differ by at most one step.
#[test]
fn datagrams_can_be_opened_in_every_step_of_a_key_rotation() {
    let steps: [&[&str]; 4] = [&["old"], &["old", "new"], &["new", "old"], &["new"]];
    for pair in steps.windows(2) {
        for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let datagram = seal(&shared("s", from), b"body");
            assert!(opened(&shared("s", to), &datagram).is_ok(), "{from:?} to {to:?}");
        }
    }
    let datagram = seal(&shared("s", &["new", "old"]), b"body");
    assert!(
        opened(&shared("s", &["old"]), &datagram).is_err(),
        "datagrams are sealed with the first key"
    );
    assert_eq!(shared("s", &[]).fingerprint_key(), shared("s", &["new"]).fingerprint_key());
}

#[test]
fn two_packet_keys_with_the_same_id_are_both_tried() {
    let id = |key: &str| PacketKey::new(derive(key.as_bytes(), "packet key", "web")).id;
    let twin = (0..10_000).map(|n| n.to_string()).find(|key| id(key) == id("one")).unwrap();
    let datagram = seal(&shared("s", &[&twin]), b"body");
    assert_eq!(opened(&shared("s", &["one"]), &datagram), Err(DropCause::Auth));
    assert!(opened(&shared("s", &["one", &twin]), &datagram).is_ok());
}

#[test]
fn the_fingerprint_key_depends_on_secret_and_cluster_name() {
    let key = |cluster, secret: &str| {
        let secret = secret.as_bytes();
        Keys::new(&Secrets::Shared { cluster, secret, packet_keys: &[] }).fingerprint_key()
    };
    let keys = [key("web", "s"), key("web", "t"), key("mail", "s"), key("we", "bs")];
    for (n, one) in keys.iter().enumerate() {
        assert!(keys[n + 1..].iter().all(|other| one != other));
    }
}

#[test]
fn debug_output_contains_no_secrets() {
    let secrets = Secrets::Shared { cluster: "web", secret: b"hunter2", packet_keys: &[] };
    assert_eq!(format!("{secrets:?} {:?}", Keys::new(&secrets)), "Secrets { .. } Keys { .. }");
}
