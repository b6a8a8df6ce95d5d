//! Arbitrary bytes as a datagram and as a body. Nothing panics, and everything that is parsed is
//! written back to the same bytes. The fuzz target `datagram` uses this file.

use std::sync::LazyLock;

use dthrottle::internals::busy::{MAX_ENTRIES, parse_busy, write_busy};
use dthrottle::internals::cluster::wire::{
    DatagramKind, Envelope, Hello, Keys, MAX_BODY, Report, ReportWriter, Secrets, Snapshot,
    SnapshotWriter, parse_digest, parse_gaps, parse_payload, write_digest, write_gaps,
    write_payload,
};

/// The sealed keys are `shared` of the vectors.
static KEYS: LazyLock<[Keys; 2]> = LazyLock::new(|| {
    let secret = b"correct horse battery staple";
    let shared = Secrets::Shared { cluster: "web", secret, packet_keys: &[] };
    [Keys::new(&shared), Keys::unsealed("web")]
});

/// Tries bytes as a sealed or unsealed datagram, and as a body after its kind and flags.
pub(crate) fn try_all(bytes: &[u8]) {
    for keys in KEYS.iter() {
        try_datagram(keys, bytes);
    }
    if let Some((kind, flags, body)) = as_body(bytes) {
        try_body(kind, flags, body);
    }
}

/// Interprets bytes as a kind, flags and a body.
pub(crate) fn as_body(bytes: &[u8]) -> Option<(DatagramKind, u8, &[u8])> {
    let (&[kind, flags], body) = bytes.split_first_chunk()?;
    let kind = DatagramKind::ALL[usize::from(kind.wrapping_sub(1)) % DatagramKind::ALL.len()];
    (body.len() <= MAX_BODY).then_some((kind, flags, body))
}

fn try_datagram(keys: &Keys, bytes: &[u8]) {
    let mut datagram = bytes.to_vec();
    if let Ok((envelope, body)) = keys.open(&mut datagram) {
        let mut again = Vec::new();
        keys.seal(&envelope, body, &mut again);
        assert_eq!(again, bytes);
        try_body(envelope.kind, envelope.flags, body);
    }
}

/// The kind, flags and body of a datagram of the vectors.
pub(crate) fn opened(bytes: &mut [u8]) -> Option<Vec<u8>> {
    KEYS.iter().find_map(|keys| {
        let (envelope, body) = keys.open(bytes).ok()?;
        Some([&[envelope.kind as u8, envelope.flags], body].concat())
    })
}

/// Opens and parses a datagram, and nothing else.
pub(crate) fn read_only(bytes: &mut [u8]) {
    if let Some((kind, flags, body)) = as_body(bytes) {
        is_valid(kind, flags, body);
    }
    for keys in KEYS.iter() {
        if let Ok((Envelope { kind, flags, .. }, body)) = keys.open(bytes) {
            is_valid(kind, flags, body);
        }
    }
}

/// Returns true if a body is valid for its kind.
pub(crate) fn is_valid(kind: DatagramKind, flags: u8, body: &[u8]) -> bool {
    match kind {
        DatagramKind::Report => Report::parse(body, flags).is_ok(),
        DatagramKind::Gap | DatagramKind::Gone => parse_gaps(body).is_ok(),
        DatagramKind::Digest => parse_digest(body).is_ok(),
        DatagramKind::Snapshot => Snapshot::parse(body).map(|all| all.windows().count()).is_ok(),
        DatagramKind::Hello => Hello::parse(body).is_ok(),
        DatagramKind::Payload => {
            parse_payload(body).is_ok_and(|(.., busy)| parse_busy(busy).is_some())
        }
        DatagramKind::Swim | DatagramKind::SnapshotRequest | DatagramKind::Leave => true,
    }
}

fn try_body(kind: DatagramKind, flags: u8, body: &[u8]) {
    let mut out = Vec::new();
    match kind {
        DatagramKind::Report => try_report(flags, body),
        DatagramKind::Snapshot => try_snapshot(body),
        DatagramKind::Gap | DatagramKind::Gone => {
            let Ok(list) = parse_gaps(body) else { return };
            assert_eq!(write_gaps(&list, &mut out), list.len());
            assert!(is_beginning(&out, body));
        }
        DatagramKind::Digest => {
            let Ok(list) = parse_digest(body) else { return };
            assert_eq!(write_digest(&list, &mut out), list.len());
            assert!(is_beginning(&out, body));
        }
        DatagramKind::Hello => {
            let Ok(hello) = Hello::parse(body) else { return };
            hello.write(&mut out);
            // The slack may be missing. It is zero then.
            assert!(is_beginning(&out, body) || out == [body, &[0, 0]].concat());
        }
        DatagramKind::Payload => {
            let Ok((number, age_us, payload)) = parse_payload(body) else { return };
            write_payload(number, age_us, payload, &mut out);
            assert_eq!(out, body);
            let Some(entries) = parse_busy(payload) else { return };
            assert!(entries.len() > MAX_ENTRIES || payload.starts_with(&write_busy(&entries)));
        }
        DatagramKind::Swim | DatagramKind::SnapshotRequest | DatagramKind::Leave => {}
    }
}

/// Every number has one encoding, so writing reproduces what was read. More bytes may follow.
fn is_beginning(written: &[u8], body: &[u8]) -> bool {
    written.len() <= MAX_BODY && body.starts_with(written)
}

/// A hostile sender may fill a body more than our writer does, so the writer may stop early. Empty
/// sections and repeated section heads are not reproduced, but all entries are.
fn try_report(flags: u8, body: &[u8]) {
    let Ok(report) = Report::parse(body, flags) else { return };
    assert!(report.first >= 1 && report.last >= report.first);
    let entries = |report: &Report<'_>| {
        let sections = report.sections();
        let all = sections.flat_map(|(head, entries)| {
            let left = entries.len();
            assert_eq!(entries.clone().count(), left, "the count equals the number of entries");
            entries.map(move |entry| (head, entry))
        });
        all.collect::<Vec<_>>()
    };
    let before = entries(&report);
    assert!(before.len() <= body.len() / 8);
    let mut writer = ReportWriter::new();
    writer.clear(report.origin);
    let fitting = before.iter().take_while(|(head, entry)| writer.push(head, *entry)).count();
    assert!(
        fitting == before.len() || body.len() > MAX_BODY / 2,
        "the writer refused an entry too early"
    );
    let flags = writer.flags();
    let again = writer.finish(report.first, report.last, false);
    assert!(again.len() <= MAX_BODY);
    let again = Report::parse(again, flags).expect("a written body is valid");
    assert_eq!((again.origin, again.first, again.last), (report.origin, report.first, report.last));
    assert_eq!(entries(&again), before[..fitting]);
}

fn try_snapshot(body: &[u8]) {
    let Ok(snapshot) = Snapshot::parse(body) else { return };
    let buckets = |snapshot: &Snapshot<'_>| {
        let all = snapshot.sections().flat_map(|(rule, buckets)| buckets.map(move |b| (rule, b)));
        all.collect::<Vec<_>>()
    };
    let (windows, before) = (snapshot.windows().collect::<Vec<_>>(), buckets(&snapshot));
    let mut writer = SnapshotWriter::new();
    for (origin, window) in &windows {
        assert!(window.missing().last().is_none_or(|(_, last)| *last <= window.top()));
        assert!(writer.push_window(*origin, window), "a window from a body fits into a body");
    }
    assert!(before.iter().all(|(rule, (tag, used))| writer.push(*rule, *tag, *used)));
    let again = writer.finish(snapshot.part, snapshot.parts).to_vec();
    assert!(again.len() <= body.len());
    let again = Snapshot::parse(&again).expect("a written body is valid");
    assert_eq!(again.windows().collect::<Vec<_>>(), windows);
    assert_eq!(buckets(&again), before);
}
