//! Finding, claiming, replacing and evicting slots.

use super::*;

#[test]
fn a_bucket_is_found_by_its_fingerprint() {
    let test = TestTable::new(4, 10);
    for tag in [0, 1 << 10, u64::MAX, at_home(2, 4, 0)] {
        assert_eq!(test.used(tag, SECOND), 0);
        test.charge(tag, SECOND, 3).unwrap();
        assert_eq!(test.used(tag, SECOND), 3);
        test.charge(tag, SECOND, 4).unwrap();
        assert_eq!(test.used(tag, SECOND), 7);
        assert_eq!(test.used(tag, 3 * SECOND), 5, "two seconds later");
    }
    assert_eq!(test.table.live(SECOND), 4);
    assert_eq!(test.table.live(8 * SECOND), 0, "all buckets are full again");
    assert_eq!(test.table.slots(), 16);
}

#[test]
fn update_at_home_changes_only_buckets_in_their_home_line() {
    let test = TestTable::new(2, 10);
    let tags: Vec<u64> = (0..4).map(|n| at_home(0, 2, n)).collect();
    let add = |key, ticks| {
        let step = |tat| BucketUpdate { tat: tat + ticks, hits: 0, answer: tat };
        test.table.update_at_home(key, &test.scale, SECOND, step)
    };
    assert_eq!(add(test.key(tags[0]), 1), None, "the tag has no bucket");
    tags.iter().for_each(|tag| test.charge(*tag, SECOND, 1).unwrap());
    let tat = test.table.read(test.key(tags[0]), &test.scale, SECOND);
    assert_eq!(add(test.key(tags[0]), 1), Some(tat));
    assert_eq!(test.table.read(test.key(tags[0]), &test.scale, SECOND), tat + 1);
    assert_eq!(add(test.key(tags[0]), 0), None, "the step changes nothing");
    let overtaken = |tat| {
        add(test.key(tags[0]), 1);
        BucketUpdate { tat: tat + 5, hits: 0, answer: () }
    };
    assert_eq!(test.table.update_at_home(test.key(tags[0]), &test.scale, SECOND, overtaken), None);
    assert_eq!(
        test.table.read(test.key(tags[0]), &test.scale, SECOND),
        tat + 2,
        "the overtaken step changed nothing"
    );
    assert_eq!(add(test.key(tags[3]), 1), None, "the bucket is in the second line");
    let other = Key { rule: test.rule + 1, ..test.key(tags[0]) };
    assert_eq!(add(other, 1), None, "the key names another rule");
    assert!(test.table.was_never_exchanged());
    test.table.set_exchanged(SECOND);
    assert!(!test.table.was_never_exchanged(), "an exchanged table has peers to report to");
}

#[test]
fn an_update_that_leaves_the_bucket_full_claims_no_slot() {
    let test = TestTable::new(2, 10);
    let step = |tat| BucketUpdate { tat, hits: 0, answer: tat };
    assert_eq!(test.table.update(test.key(7), &test.scale, SECOND, Some(SECOND), step), Some(0));
    assert_eq!((test.taken(0), test.taken(1)), (0, 0));
}

/// A late report may create a bucket that is already full again. It takes a free slot but evicts
/// nothing.
#[test]
fn a_full_bucket_evicts_no_other_bucket() {
    let test = TestTable::new(2, 10);
    let now = 10 * SECOND;
    let tag = |n| at_home(0, 2, n);
    let charge_late = |n| {
        let step =
            |tat| BucketUpdate { tat: test.scale.charge(tat, SECOND, 2), hits: 0, answer: () };
        test.table.update(test.key(tag(n)), &test.scale, now, Some(now), step).unwrap();
        test.table.read(test.key(tag(n)), &test.scale, now)
    };
    (0..7).for_each(|n| test.charge(tag(n), now, 5).unwrap());
    assert_eq!(
        charge_late(7),
        test.scale.ticks(3 * SECOND),
        "the full bucket took the last free slot"
    );
    test.charge(tag(8), now, 1).unwrap();
    assert_eq!(charge_late(9), 0, "no slot for a full bucket");
    assert_eq!((test.table.live(now), test.table.evicted.get()), (8, 0));
}

/// The fourth tag of a line is displaced, so that the line keeps a free slot for one more.
#[test]
fn tags_that_do_not_fit_their_home_line_use_their_second_line() {
    let test = TestTable::new(2, 10);
    let tags: Vec<u64> = (0..8).map(|n| at_home(0, 2, n)).collect();
    for (i, tag) in tags.iter().enumerate() {
        test.charge(*tag, SECOND, i as u64 + 1).unwrap();
        if i == 3 {
            assert_eq!((test.taken(0), test.taken(1)), (3, 1));
        }
    }
    let expected: Vec<(u64, i64)> = tags.iter().copied().zip(1..).collect();
    assert_eq!(test.all_used(SECOND), expected);
    for (tag, used) in expected {
        assert_eq!(test.used(tag, SECOND), used);
        test.charge(tag, SECOND, 1).unwrap();
        assert_eq!(test.used(tag, SECOND), used + 1, "charged in its own slot");
    }
    assert_eq!((test.table.live(SECOND), test.table.evicted.get()), (8, 0));
}

/// In a table with many lines.
#[test]
fn tags_of_one_line_have_many_second_lines() {
    let lines = 16;
    let test = TestTable::new(lines, 10);
    let mut numbers = Numbers(1);
    let tags: Vec<u64> =
        (0..24).map(|_| at_home(5, lines, numbers.next() % (1 << 37) / lines as u64)).collect();
    tags.iter().for_each(|tag| test.charge(*tag, SECOND, 2).unwrap());
    assert!(tags.iter().all(|tag| test.used(*tag, SECOND) == 2));
    assert_eq!((test.table.live(SECOND), test.table.evicted.get()), (24, 0));
    assert!((0..lines).filter(|line| test.taken(*line) > 0).count() > 8);
}

/// Fills a large table with random fingerprints, and lists them.
#[test]
#[cfg_attr(miri, ignore = "too big; nothing in it is new to Miri")]
fn a_large_table_drains_whole_fingerprints() {
    let test = TestTable::new(MIN_SHARED_LINES, 10);
    test.table.set_exchanged(SECOND);
    let mut numbers = Numbers(2);
    let mut tags: Vec<u64> = (0..60_000).map(|_| numbers.next() >> 10 << 10).collect();
    tags.iter().for_each(|tag| test.charge(*tag, SECOND, 1).unwrap());
    tags.sort_unstable();
    let drained: Vec<u64> = test.drain(false).into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(drained, tags);
    assert_eq!(test.all_used(SECOND), tags.iter().map(|tag| (*tag, 1)).collect::<Vec<_>>());
}

/// Ten times more tags than slots, a few at a time. No call cleans the table.
#[test]
fn slots_of_full_buckets_are_reused() {
    let test = TestTable::new(8, 1);
    let mut numbers = Numbers(3);
    for wave in 1..=40 {
        let now = wave * SECOND;
        let tags: Vec<u64> = (0..8).map(|_| numbers.next()).collect();
        tags.iter().for_each(|tag| test.charge(*tag, now, 1).unwrap());
        assert!(tags.iter().all(|tag| test.used(*tag, now) == 1), "wave {wave}");
        assert_eq!(test.table.live(now), 8);
    }
    assert_eq!(test.table.evicted.get(), 0);
}

/// The tag that was full first may be gone. The others are more likely to return.
#[test]
fn the_bucket_that_was_full_first_is_replaced_first() {
    let test = TestTable::new(2, 10);
    let tag = |n| at_home(0, 2, n);
    for (n, at) in [(0, 3), (1, 1), (2, 2)] {
        test.charge(tag(n), at * SECOND, 1).unwrap();
    }
    let tat = |n| test.table.read(test.key(tag(n)), &test.scale, 9 * SECOND);
    test.charge(tag(3), 9 * SECOND, 1).unwrap();
    assert_eq!(test.taken(0), 4, "the empty slot is taken first");
    test.charge(tag(4), 9 * SECOND, 1).unwrap();
    assert!(tat(0) > 0 && tat(1) == 0 && tat(2) > 0);
    test.charge(tag(5), 9 * SECOND, 1).unwrap();
    assert!(tat(0) > 0 && tat(2) == 0);
    assert_eq!((test.taken(1), test.table.evicted.get()), (0, 0));
}

#[test]
fn a_full_table_evicts_the_bucket_with_the_lowest_cost() {
    let test = TestTable::new(2, 10);
    for cheapest in 0..8 {
        let test = TestTable::new(2, 10);
        let tag = |n| at_home(n as usize % 2, 2, n);
        for n in 0..8 {
            test.charge(tag(n), SECOND, if n == cheapest { 1 } else { 2 + n }).unwrap();
        }
        assert_eq!(test.table.evicted.get(), 0);
        test.charge(tag(8), SECOND, 5).unwrap();
        assert_eq!((test.used(tag(cheapest), SECOND), test.table.evicted.get()), (0, 1));
        let others = (0..8).filter(|n| *n != cheapest);
        others.for_each(|n| assert_eq!(test.used(tag(n), SECOND), 2 + n as i64));
        assert_eq!(test.used(tag(8), SECOND), 5);
    }
    assert_eq!(test.table.live(SECOND), 0);
}

/// A bucket is cheap to evict if it used a small share of its own burst.
#[test]
fn eviction_compares_buckets_by_the_used_share_of_their_burst() {
    let test = TestTable::new(2, 100);
    let small = per_second(2);
    let rule = test.table.rule_index(2, &small).unwrap();
    let tag = |n| at_home(0, 2, n);
    for n in 0..7 {
        let key = Key { fingerprint: tag(n), rule };
        let step = |tat| BucketUpdate { tat: small.charge(tat, SECOND, 1), hits: 0, answer: () };
        test.table.update(key, &small, SECOND, Some(SECOND), step).unwrap();
    }
    test.charge(tag(7), SECOND, 10).unwrap();
    test.charge(tag(8), SECOND, 90).unwrap();
    assert_eq!(test.used(tag(7), SECOND), 0, "ten units are only a tenth of its burst");
    assert_eq!((test.table.live(SECOND), test.table.evicted.get()), (8, 1));
}

#[test]
fn a_flood_of_new_tags_does_not_evict_a_tag_in_debt() {
    let test = TestTable::new(2, 10);
    let debtor = at_home(0, 2, 0);
    test.charge(debtor, SECOND, 25).unwrap();
    let flood = if cfg!(miri) { 50 } else { 5000 };
    for n in 1..=flood {
        test.charge(at_home(n as usize % 2, 2, n), SECOND, 1 + n % 10).unwrap();
        assert!(!test.take(debtor, SECOND));
    }
    assert_eq!(test.used(debtor, SECOND), 25);
    assert_eq!(test.table.evicted.get(), flood - 7);
}

/// The claim fails, and charges nothing.
#[test]
fn a_claim_is_lost_if_the_tag_already_has_a_bucket() {
    for crowd in 0..=7 {
        let test = TestTable::new(2, 100);
        (1..=crowd).for_each(|n| test.charge(at_home(0, 2, n), SECOND, 50).unwrap());
        let tag = at_home(0, 2, 0);
        test.charge(tag, SECOND, 3).unwrap();
        assert_eq!(test.claim_late(tag, SECOND, 5), Claim::Lost);
        assert_eq!(test.used(tag, SECOND), 3, "with {crowd} other tags");
        assert_eq!(test.table.live(SECOND), crowd as usize + 1);
        (1..=crowd).for_each(|n| assert_eq!(test.used(at_home(0, 2, n), SECOND), 50));
    }
}

/// The reservation is not a bucket. Its own tag and other tags take it over.
#[test]
fn the_reservation_of_a_killed_process_is_taken_over() {
    let test = TestTable::new(2, 100);
    let tag = |n| at_home(0, 2, n);
    let reserve = |n: u64, index: usize| {
        let Location { home, mark } = test.table.location(test.key(tag(n)));
        let cell = &test.table.region.lines()[home].0[index];
        assert!(cell.replace(Slot::EMPTY, Slot::reserved(mark, n)));
    };
    reserve(0, 2);
    reserve(1, 3);
    assert_eq!((test.used(tag(0), SECOND), test.table.live(SECOND)), (0, 0));
    test.charge(tag(0), SECOND, 3).unwrap();
    assert_eq!(
        (test.used(tag(0), SECOND), test.taken(0)),
        (3, 2),
        "its own reservation is taken over"
    );
    (2..=8).for_each(|n| test.charge(tag(n), SECOND, 5).unwrap());
    assert_eq!(
        (test.table.live(SECOND), test.table.evicted.get()),
        (8, 0),
        "the other tag's reservation is reused too"
    );
}

/// A slot whose claim gave up still counts as in use, so the home line still looks crowded.
#[test]
fn a_displaced_tag_is_found_after_claims_in_its_home_line_gave_up() {
    let test = TestTable::new(2, 100);
    let tag = |n| at_home(0, 2, n);
    (0..4).for_each(|n| test.charge(tag(n), SECOND, 5).unwrap());
    assert_eq!((test.taken(0), test.taken(1)), (3, 1), "the fourth tag is displaced");
    for cell in &test.table.region.lines()[0].0[..3] {
        assert!(cell.replace(cell.load(), cell.load().given_up()));
    }
    assert_eq!((test.used(tag(0), SECOND), test.used(tag(3), SECOND)), (0, 5));
}

#[test]
fn a_copy_in_a_bigger_table_has_every_bucket() {
    let small = TestTable::new(2, 10);
    small.table.set_exchanged(SECOND);
    let tags: Vec<u64> = (0..8).map(|n| at_home(0, 2, n)).collect();
    tags.iter().for_each(|tag| small.charge(*tag, SECOND, 4).unwrap());
    let big = TestTable { table: empty(64), ..TestTable::new(2, 10) };
    big.table.copy_from(&small.table, SECOND);
    assert_eq!(big.table.rule(big.rule), Some((1, big.scale)));
    assert_eq!(big.all_used(2 * SECOND), tags.iter().map(|tag| (*tag, 3)).collect::<Vec<_>>());
    assert_eq!(big.drain(false).len(), 8);
}
