use super::*;

fn origin(node: u64) -> Origin {
    Origin { node, incarnation: node << 30 | 1 }
}

fn bucket(n: u64) -> (u64, u64) {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xff, n * n)
}

fn listed(snapshot: &Snapshot<'_>) -> Vec<(u64, Vec<(u64, u64)>)> {
    snapshot.sections().map(|(rule, buckets)| (rule, buckets.collect())).collect()
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    let mut writer = SnapshotWriter::new();
    assert!(writer.is_empty());
    let windows = [
        (origin(1), Window::new(9, vec![(2, 3), (9, 9)])),
        (origin(2), Window::new(0, vec![])),
        (origin(3), Window::new(u64::MAX, vec![(1, u64::MAX)])),
    ];
    for (origin, window) in &windows {
        assert!(writer.push_window(*origin, window));
    }
    let list: Vec<_> =
        [7, 8, 7].map(|rule| (rule, [0, 1, 11, 12, 1 << 30].map(bucket).to_vec())).into();
    for (rule, buckets) in &list {
        assert!(buckets.iter().all(|(tag, used)| writer.push(*rule, *tag, *used)));
    }
    assert!(!writer.is_empty());
    assert!(!writer.push_window(origin(4), &Window::default()), "windows must precede buckets");
    writer.finish(0, 1);
    let body = writer.finish(3, 9).to_vec();
    let snapshot = Snapshot::parse(&body).unwrap();
    assert_eq!((snapshot.part, snapshot.parts), (3, 9));
    assert_eq!(snapshot.windows().collect::<Vec<_>>(), windows);
    assert_eq!(listed(&snapshot), list);
    for len in 0..body.len() {
        assert!(Snapshot::parse(&body[..len]).is_err(), "{len} bytes");
    }
    let longer = [&body[..], &[1; 5]].concat();
    assert_eq!(listed(&Snapshot::parse(&longer).unwrap()), list);
}

#[test]
fn the_body_has_the_documented_layout() {
    let mut writer = SnapshotWriter::new();
    assert!(
        writer.push_window(Origin { node: 1, incarnation: 2 }, &Window::new(300, vec![(4, 6)]))
    );
    assert!(writer.push(5, 0x1112_1314_1516_1700, 200));
    let expected = [
        &[0, 1, 0, 2, 1][..],
        &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0xac, 2, 1, 4, 2],
        &[1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1],
        &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0xc8, 1],
    ];
    assert_eq!(writer.finish(1, 2), expected.concat());
}

#[test]
fn an_empty_snapshot_is_valid() {
    let snapshot = SnapshotWriter::new().finish(0, 1).to_vec();
    assert_eq!(snapshot, [0, 0, 0, 1, 0, 0]);
    let snapshot = Snapshot::parse(&snapshot).unwrap();
    assert_eq!((snapshot.windows().count(), snapshot.sections().count()), (0, 0));
}

#[test]
fn a_long_snapshot_is_split_over_several_parts() {
    for holes in [0_u64, 1, 5, 100] {
        let missing: Vec<_> = (1..=holes).map(|n| (n * 1000, n * 1000 + 500)).collect();
        let windows: Vec<_> =
            (0..90).map(|n| (origin(n), Window::new(1 << 40, missing.clone()))).collect();
        let buckets: Vec<_> = (0..900_u64).map(|n| (n / 70 % 3, bucket(n))).collect();
        let mut writer = SnapshotWriter::new();
        let mut bodies = Vec::new();
        let mut next_part = |writer: &mut SnapshotWriter| {
            bodies.push(writer.finish(0, 1).to_vec());
            writer.clear();
        };
        for (origin, window) in &windows {
            if !writer.push_window(*origin, window) {
                next_part(&mut writer);
                assert!(writer.push_window(*origin, window));
            }
        }
        for (rule, (tag, used)) in &buckets {
            if !writer.push(*rule, *tag, *used) {
                next_part(&mut writer);
                assert!(writer.push(*rule, *tag, *used));
            }
        }
        next_part(&mut writer);
        assert!(bodies.iter().all(|body| body.len() <= MAX_BODY));
        let parsed: Vec<_> = bodies.iter().map(|body| Snapshot::parse(body).unwrap()).collect();
        assert_eq!(parsed.iter().flat_map(Snapshot::windows).collect::<Vec<_>>(), windows);
        let seen = parsed.iter().flat_map(listed);
        let seen = seen.flat_map(|(rule, list)| list.into_iter().map(move |one| (rule, one)));
        assert_eq!(seen.collect::<Vec<_>>(), buckets);
    }
}

#[test]
fn a_window_with_too_many_gaps_keeps_only_the_latest_gaps() {
    let missing: Vec<_> = (1..=1024).map(|n| (n << 20, n << 20 | 1)).collect();
    let window = Window::new(1 << 40, missing.clone());
    let mut writer = SnapshotWriter::new();
    assert!(writer.push_window(origin(1), &window));
    assert!(!writer.push_window(origin(2), &window));
    let body = writer.finish(0, 1);
    assert!((MAX_BODY - 8..=MAX_BODY).contains(&body.len()));
    let (_, seen) = Snapshot::parse(body).unwrap().windows().next().unwrap();
    assert!(seen.missing().len() > 100 && missing.ends_with(seen.missing()));
}

#[test]
fn values_out_of_range_are_malformed() {
    let body = |part: u16, parts: u16, hole: (u64, u64), used: u64| {
        let mut body = [part.to_be_bytes(), parts.to_be_bytes()].concat();
        body.push(1);
        put_origin(&mut body, origin(1));
        put_varint(&mut body, 9);
        put_ranges(&mut body, &[hole]);
        body.extend([&[1][..], &7_u64.to_be_bytes(), &1_u16.to_be_bytes()].concat());
        put_entry(&mut body, 1 << 8, used);
        body
    };
    let parsed = |body: &[u8]| Snapshot::parse(body).map(|_| ());
    assert_eq!(parsed(&body(0, 1, (1, 9), MAX_USED)), Ok(()));
    assert_eq!(parsed(&body(0, 0, (1, 9), 1)), Err(DropCause::Malformed));
    assert_eq!(parsed(&body(2, 2, (1, 9), 1)), Err(DropCause::Malformed));
    assert_eq!(parsed(&body(0, 1, (1, 10), 1)), Err(DropCause::Malformed));
    assert_eq!(parsed(&body(0, 1, (1, 9), MAX_USED + 1)), Err(DropCause::Malformed));
}
