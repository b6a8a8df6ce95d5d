//! The wire format against `tests/vectors/protocol.json`, which another program generated: every
//! datagram is parsed to its meaning and written to the same bytes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::disallowed_methods, reason = "tests may call the operating system")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use dthrottle::internals::busy::{BusyEntry, parse_busy, write_busy};
use dthrottle::internals::cluster::wire::{
    DatagramKind, DropCause, Envelope, Hello, Keys, Report, ReportEntry, ReportWriter, Secrets,
    Section, Snapshot, SnapshotWriter, parse_digest, parse_gaps, parse_payload, write_digest,
    write_gaps, write_payload,
};
use dthrottle::internals::cluster::{Origin, Ranges, Window};
use serde_json::{Value as Json, json};

fn vectors() -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/protocol.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json[key].as_array().expect(key)
}

fn number(json: &Json, key: &str) -> u64 {
    json[key].as_u64().expect(key)
}

fn bytes(hex: &Json) -> Vec<u8> {
    let hex = hex.as_str().expect("hex");
    let pairs = (0..hex.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn keys(json: &Json) -> Keys {
    let cluster = json["cluster"].as_str().unwrap();
    let secret = bytes(&json["secret_hex"]);
    let packet_keys: Vec<_> = list(json, "packet_keys_hex").iter().map(bytes).collect();
    match (json["sealed"].as_bool().unwrap(), secret.is_empty()) {
        (false, _) => Keys::unsealed(cluster),
        (true, true) => Keys::new(&Secrets::Open { cluster }),
        (true, false) => {
            Keys::new(&Secrets::Shared { cluster, secret: &secret, packet_keys: &packet_keys })
        }
    }
}

fn all_keys(vectors: &Json) -> BTreeMap<&str, Keys> {
    list(vectors, "keys").iter().map(|each| (each["name"].as_str().unwrap(), keys(each))).collect()
}

const KINDS: [(&str, DatagramKind); 10] = [
    ("report", DatagramKind::Report),
    ("gap", DatagramKind::Gap),
    ("gone", DatagramKind::Gone),
    ("digest", DatagramKind::Digest),
    ("snapshot_request", DatagramKind::SnapshotRequest),
    ("snapshot", DatagramKind::Snapshot),
    ("swim", DatagramKind::Swim),
    ("hello", DatagramKind::Hello),
    ("leave", DatagramKind::Leave),
    ("payload", DatagramKind::Payload),
];

fn envelope(json: &Json) -> Envelope {
    let kind = KINDS.into_iter().find(|(name, _)| json["kind"] == *name).expect("a kind").1;
    let flags = number(json, "flags").try_into().unwrap();
    Envelope { kind, flags, sender: origin(json), packet: number(json, "packet") }
}

fn origin(json: &Json) -> Origin {
    Origin { node: number(json, "node"), incarnation: number(json, "incarnation") }
}

fn ranges(json: &Json, key: &str) -> Ranges {
    list(json, key)
        .iter()
        .map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()))
        .collect()
}

/// Writes a body from its meaning.
fn write(kind: DatagramKind, content: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    match kind {
        DatagramKind::Report => return write_report(content),
        DatagramKind::Snapshot => return write_snapshot(content),
        DatagramKind::Gap | DatagramKind::Gone => {
            let of = |each| (origin(each), ranges(each, "ranges"));
            let list: Vec<_> = list(content, "origins").iter().map(of).collect();
            assert_eq!(write_gaps(&list, &mut out), list.len());
        }
        DatagramKind::Digest => {
            let of = |each| (origin(each), number(each, "top"));
            let list: Vec<_> = list(content, "origins").iter().map(of).collect();
            assert_eq!(write_digest(&list, &mut out), list.len());
        }
        DatagramKind::Hello => {
            let [challenge, echo, top, rules, slack_us, slack_age_us] =
                ["challenge", "echo", "top", "rules", "slack_us", "slack_age_us"]
                    .map(|key| number(content, key));
            let address: SocketAddr = content["address"].as_str().unwrap().parse().unwrap();
            let address = address.into();
            Hello { challenge, echo, top, rules, slack_us, slack_age_us, address }.write(&mut out);
        }
        DatagramKind::Payload => {
            let of = |each| BusyEntry {
                service: number(each, "service"),
                answers: number(each, "answers").try_into().unwrap(),
                age_us: number(each, "age_us"),
                pause_us: number(each, "pause_us"),
            };
            let entries: Vec<_> = list(content, "entries").iter().map(of).collect();
            let busy = write_busy(&entries);
            write_payload(number(content, "number"), number(content, "age_us"), &busy, &mut out);
        }
        DatagramKind::Swim => out = bytes(&content["bytes_hex"]),
        DatagramKind::SnapshotRequest | DatagramKind::Leave => {}
    }
    out
}

fn write_report(content: &Json) -> Vec<u8> {
    let mut writer = ReportWriter::new();
    let relayed = content["origin"].is_object().then(|| origin(&content["origin"]));
    writer.clear(relayed);
    assert_eq!(writer.flags(), u8::from(relayed.is_some()));
    for each in list(content, "sections") {
        let [rule, quantum, age_us] = ["rule", "quantum", "age_us"].map(|key| number(each, key));
        for entry in list(each, "entries") {
            let fingerprint = entry[0].as_u64().unwrap();
            let hits = entry[1].as_u64().unwrap();
            let saturated = entry[2].as_bool().unwrap();
            let entry = ReportEntry { fingerprint, hits, saturated };
            assert!(writer.push(&Section { rule, quantum, age_us }, entry));
        }
    }
    let padded = content["padded"].as_bool().unwrap();
    writer.finish(number(content, "first"), number(content, "last"), padded).to_vec()
}

fn write_snapshot(content: &Json) -> Vec<u8> {
    let mut writer = SnapshotWriter::new();
    for each in list(content, "windows") {
        let window = Window::new(number(each, "top"), ranges(each, "missing"));
        assert!(writer.push_window(origin(each), &window));
    }
    for each in list(content, "sections") {
        for entry in list(each, "entries") {
            let (tag, used) = (entry[0].as_u64().unwrap(), entry[1].as_u64().unwrap());
            assert!(writer.push(number(each, "rule"), tag, used));
        }
    }
    let [part, parts] = ["part", "parts"].map(|key| number(content, key).try_into().unwrap());
    writer.finish(part, parts).to_vec()
}

/// Parses a body to its meaning.
fn read(kind: DatagramKind, flags: u8, body: &[u8]) -> Result<Json, DropCause> {
    Ok(match kind {
        DatagramKind::Report => {
            let report = Report::parse(body, flags)?;
            let sections = report.sections().map(|(head, entries)| {
                let entries: Vec<_> = entries
                    .map(|each| json!([each.fingerprint, each.hits, each.saturated]))
                    .collect();
                let Section { rule, quantum, age_us } = head;
                json!({"rule": rule, "quantum": quantum, "age_us": age_us, "entries": entries})
            });
            let sections: Vec<_> = sections.collect();
            let origin = report.origin.map_or(Json::Null, |origin| with(origin, &[]));
            json!({
                "origin": origin, "first": report.first, "last": report.last, "sections": sections,
            })
        }
        DatagramKind::Gap | DatagramKind::Gone => {
            let list = parse_gaps(body)?.into_iter();
            let list: Vec<_> =
                list.map(|(of, ranges)| with(of, &[("ranges", json!(ranges))])).collect();
            json!({ "origins": list })
        }
        DatagramKind::Digest => {
            let list = parse_digest(body)?.into_iter();
            let list: Vec<_> = list.map(|(of, top)| with(of, &[("top", json!(top))])).collect();
            json!({ "origins": list })
        }
        DatagramKind::Hello => {
            let Hello { challenge, echo, top, rules, slack_us, slack_age_us, address } =
                Hello::parse(body)?;
            json!({
                "challenge": challenge, "echo": echo, "top": top, "rules": rules,
                "slack_us": slack_us, "slack_age_us": slack_age_us,
                "address": address.socket_addr().unwrap().to_string(),
            })
        }
        DatagramKind::Snapshot => {
            let snapshot = Snapshot::parse(body)?;
            let windows = snapshot.windows().map(|(of, window)| {
                with(of, &[("top", json!(window.top())), ("missing", json!(window.missing()))])
            });
            let windows: Vec<_> = windows.collect();
            let sections = snapshot.sections().map(
                |(rule, buckets)| json!({"rule": rule, "entries": buckets.collect::<Vec<_>>()}),
            );
            let sections: Vec<_> = sections.collect();
            json!({
                "part": snapshot.part, "parts": snapshot.parts, "windows": windows,
                "sections": sections,
            })
        }
        DatagramKind::Payload => {
            let (number, age_us, payload) = parse_payload(body)?;
            let entries = parse_busy(payload).ok_or(DropCause::Malformed)?;
            let entries = entries.into_iter().map(|BusyEntry { service, answers, age_us, pause_us }| {
                json!({
                    "service": service, "answers": answers, "age_us": age_us, "pause_us": pause_us,
                })
            });
            json!({"number": number, "age_us": age_us, "entries": entries.collect::<Vec<_>>()})
        }
        DatagramKind::Swim => {
            json!({"bytes_hex": body.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
        }
        DatagramKind::SnapshotRequest | DatagramKind::Leave => json!({}),
    })
}

fn with(origin: Origin, more: &[(&str, Json)]) -> Json {
    let mut json = json!({"node": origin.node, "incarnation": origin.incarnation});
    for (key, value) in more {
        json[key] = value.clone();
    }
    json
}

/// Padding is not part of the meaning of a parsed body.
fn without_padding(content: &Json) -> Json {
    let mut content = content.clone();
    content.as_object_mut().unwrap().remove("padded");
    content
}

#[test]
fn keys_are_derived_as_in_the_vectors() {
    for each in list(&vectors(), "keys") {
        let keys = keys(each);
        let fingerprint_key = keys.fingerprint_key().map(u64::to_be_bytes).concat();
        assert_eq!(fingerprint_key, bytes(&each["fingerprint_key_hex"]), "{}", each["name"]);
        let sender = Origin::default();
        let mut datagram = Vec::new();
        let envelope = Envelope { kind: DatagramKind::Leave, flags: 0, sender, packet: 1 };
        keys.seal(&envelope, &[], &mut datagram);
        assert_eq!(u64::from(datagram[5]), number(each, "key_id"), "{}", each["name"]);
        assert_eq!(datagram[6..8], bytes(&each["cluster_id_hex"]), "{}", each["name"]);
    }
}

#[test]
fn datagrams_are_parsed_as_in_the_vectors() {
    let vectors = vectors();
    let keys = all_keys(&vectors);
    for each in [list(&vectors, "written"), list(&vectors, "later")].concat() {
        let mut datagram = bytes(&each["hex"]);
        let opened = keys[each["keys"].as_str().unwrap()].open(&mut datagram);
        let (opened, body) = opened.unwrap_or_else(|cause| panic!("{}: {cause:?}", each["name"]));
        assert_eq!(opened, envelope(&each), "{}", each["name"]);
        let content = read(opened.kind, opened.flags, body);
        assert_eq!(content, Ok(without_padding(&each["body"])), "{}", each["name"]);
    }
}

#[test]
fn datagrams_are_written_as_in_the_vectors() {
    let vectors = vectors();
    let keys = all_keys(&vectors);
    for each in list(&vectors, "written") {
        let envelope = envelope(each);
        let body = write(envelope.kind, &each["body"]);
        let mut datagram = Vec::new();
        keys[each["keys"].as_str().unwrap()].seal(&envelope, &body, &mut datagram);
        assert_eq!(datagram, bytes(&each["hex"]), "{}", each["name"]);
    }
}

#[test]
fn datagrams_are_dropped_for_the_cause_in_the_vectors() {
    let vectors = vectors();
    let keys = all_keys(&vectors);
    let mut causes = std::collections::BTreeSet::new();
    for each in list(&vectors, "dropped") {
        let mut datagram = bytes(&each["hex"]);
        let opened = keys[each["keys"].as_str().unwrap()].open(&mut datagram);
        let read = opened.and_then(|(envelope, body)| read(envelope.kind, envelope.flags, body));
        let cause = read.expect_err(&each["name"].to_string());
        assert_eq!(cause.name(), each["cause"], "{}", each["name"]);
        causes.insert(cause.index());
    }
    assert_eq!(causes.len(), DropCause::COUNT, "every cause has a vector");
}
