use super::*;

const SECTION_1: Section = Section { rule: 0xa2a2_ec50_0d5e_9027, quantum: 1, age_us: 100_000 };
const OTHER: Origin = Origin { node: 7, incarnation: 1 << 60 };

fn entry(n: u64) -> ReportEntry {
    let fingerprint = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xff;
    ReportEntry { fingerprint, hits: n, saturated: n.is_multiple_of(3) }
}

fn listed(report: &Report<'_>) -> Vec<(Section, Vec<ReportEntry>)> {
    report.sections().map(|(section, entries)| (section, entries.collect())).collect()
}

#[test]
fn a_report_is_read_as_it_was_written() {
    let mut writer = ReportWriter::new();
    let coarse = Section { quantum: MAX_QUANTUM, age_us: MAX_AGE_US, ..SECTION_1 };
    let sections = [SECTION_1, coarse, Section { rule: 0, ..SECTION_1 }, SECTION_1];
    let list: Vec<(Section, Vec<ReportEntry>)> = sections
        .into_iter()
        .map(|section| (section, [1, 63, 64, 300, MAX_HITS].map(entry).to_vec()))
        .collect();
    for relayed in [None, Some(OTHER)] {
        for padded in [false, true] {
            writer.clear(relayed);
            assert!(writer.is_empty());
            for (section, entries) in &list {
                assert!(entries.iter().all(|entry| writer.push(section, *entry)));
            }
            assert!(!writer.is_empty());
            let flags = writer.flags();
            let body = writer.finish(5, 9, padded);
            assert_eq!(body.len() == MAX_BODY, padded);
            let report = Report::parse(body, flags | 0xf0).unwrap();
            assert_eq!((report.origin, report.first, report.last), (relayed, 5, 9));
            assert_eq!(listed(&report), list);
            assert!(report.sections().all(|(_, entries)| entries.len() == 5));
        }
    }
}

#[test]
fn the_body_has_the_documented_layout() {
    let mut writer = ReportWriter::new();
    let section = Section { rule: 0x0102_0304_0506_0708, quantum: 300, age_us: 5 };
    let fingerprint = 0x1112_1314_1516_1700;
    assert!(writer.push(&section, ReportEntry { fingerprint, hits: 3, saturated: true }));
    assert!(writer.push(&section, ReportEntry { fingerprint, hits: 64, saturated: false }));
    let expected = [
        &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 1][..],
        &[1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 0xac, 2, 5],
        &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 7],
        &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x80, 1],
    ];
    assert_eq!(writer.finish(9, 11, false), expected.concat());
}

/// A body that accepts no more entries is full except for less than one entry. Another node could
/// send it, at the greatest age.
#[test]
fn a_full_body_holds_all_accepted_entries_and_can_be_relayed() {
    for (relayed, step) in [(None, 1), (None, 1 << 20), (Some(OTHER), 77)] {
        for per_section in [1, 3, 1000] {
            let mut writer = ReportWriter::new();
            writer.clear(relayed);
            let mut list: Vec<(Section, Vec<ReportEntry>)> = Vec::new();
            for n in 0.. {
                let section = Section { age_us: n / per_section, ..SECTION_1 };
                let entry = entry(n % 200 * step + 1);
                let before = writer.clone();
                if !writer.push(&section, entry) {
                    assert_eq!(writer.body, before.body, "push changed the body");
                    break;
                }
                match list.last_mut() {
                    Some((last, entries)) if *last == section => entries.push(entry),
                    _ => list.push((section, vec![entry])),
                }
            }
            let (flags, spare) = (writer.flags(), writer.spare);
            let body = writer.finish(1, 1, false);
            assert!((MAX_BODY - 35..=MAX_BODY).contains(&(body.len() + spare)), "{}", body.len());
            assert_eq!(listed(&Report::parse(body, flags).unwrap()), list);
            writer.clear(Some(OTHER));
            for (n, (section, entries)) in list.iter().enumerate() {
                let late = Section { age_us: MAX_AGE_US - n as u64, ..*section };
                assert!(entries.iter().all(|entry| writer.push(&late, *entry)));
            }
            writer.finish(1, 1, true);
            assert!(!writer.push(&SECTION_1, entry(1)), "a padded body is full");
        }
    }
}

#[test]
fn a_report_without_entries_is_valid() {
    let mut writer = ReportWriter::new();
    let none = ReportEntry { hits: 0, ..entry(5) };
    assert!(writer.push(&SECTION_1, none));
    assert!(writer.is_empty());
    let report = Report::parse(writer.finish(u64::MAX, u64::MAX, false), 0).unwrap();
    assert_eq!(report.sections().count(), 0);
    assert_eq!(report.last, u64::MAX);
}

#[test]
fn a_truncated_report_is_malformed() {
    let mut writer = ReportWriter::new();
    writer.clear(Some(OTHER));
    for n in [1, 64, 1 << 30] {
        assert!(writer.push(&SECTION_1, entry(n)));
        assert!(writer.push(&Section { age_us: n, ..SECTION_1 }, entry(n)));
    }
    let body = writer.finish(1, 1, false).to_vec();
    for len in 0..body.len() {
        assert!(Report::parse(&body[..len], RELAYED).is_err(), "{len} bytes");
    }
    let longer = [&body[..], &[0xff; 3]].concat();
    let report = Report::parse(&longer, RELAYED).unwrap();
    assert_eq!(listed(&report), listed(&Report::parse(&body, RELAYED).unwrap()));
}

#[test]
fn values_out_of_range_are_malformed() {
    let body = |first: u64, span: u32, quantum: u64, age_us: u64, value: u64| {
        let mut body = [&first.to_be_bytes()[..], &span.to_be_bytes(), &[1]].concat();
        body.extend([&7_u64.to_be_bytes()[..], &1_u16.to_be_bytes()].concat());
        put_varint(&mut body, quantum);
        put_varint(&mut body, age_us);
        put_entry(&mut body, 1 << 8, value);
        body
    };
    let good = [
        (1, 0, 1, 0, 2),
        (1, u32::MAX, MAX_QUANTUM, MAX_AGE_US, MAX_HITS << 1 | 1),
        (u64::MAX - 5, 5, 1, 0, 2),
    ];
    let bad = [
        (0, 1, 1, 0, 2),
        (u64::MAX - 5, 6, 1, 0, 2),
        (1, 0, 0, 0, 2),
        (1, 0, MAX_QUANTUM + 1, 0, 2),
        (1, 0, 1, MAX_AGE_US + 1, 2),
        (1, 0, 1, 0, 0),
        (1, 0, 1, 0, 1),
        (1, 0, 1, 0, (MAX_HITS + 1) << 1),
    ];
    for (list, malformed) in [(&good[..], false), (&bad, true)] {
        for &(first, span, quantum, age_us, value) in list {
            let body = body(first, span, quantum, age_us, value);
            let parsed = Report::parse(&body, 0).map(|_| ());
            assert_eq!(parsed == Err(DropCause::Malformed), malformed, "{list:?}");
        }
    }
}

#[test]
fn a_report_has_at_most_255_sections() {
    // A writer's sections are too large for 256 of them to fit, so the count is set directly.
    let mut writer = ReportWriter::new();
    writer.sections = u8::MAX;
    assert!(!writer.push(&SECTION_1, entry(1)));
    assert_eq!(writer.body.len(), HEAD);
}
