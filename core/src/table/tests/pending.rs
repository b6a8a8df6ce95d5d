//! Pending hits: counting and draining.

use std::sync::atomic::Ordering;

use super::*;

/// Eight tags of one home line, which fill two lines.
fn tags() -> Vec<u64> {
    (0..8).map(|n| at_home(0, 2, n)).collect()
}

/// A table whose eight slots all have a pending hit.
fn full_of_hits() -> TestTable {
    let test = TestTable::new(2, 10);
    test.table.set_exchanged(SECOND);
    tags().iter().for_each(|tag| test.charge(*tag, SECOND, 1).unwrap());
    test
}

#[test]
fn a_table_that_is_not_exchanged_counts_no_hits() {
    let test = TestTable::new(2, 10);
    test.charge(7, SECOND, 3).unwrap();
    assert_eq!(test.drain(true), []);
    test.table.set_exchanged(2 * SECOND);
    test.charge(7, 17 * SECOND, 3).unwrap();
    assert_eq!(test.drain(true), [], "no process has exchanged for 15 seconds");
    assert_eq!(test.table.unreported.get(), 0);
}

#[test]
fn every_hit_is_drained_once() {
    let test = full_of_hits();
    test.charge(tags()[5], SECOND, 4).unwrap();
    let mut expected: Vec<(u64, u64)> = tags().iter().map(|tag| (*tag, 1)).collect();
    expected[5].1 = 5;
    assert_eq!(test.drain(false), expected);
    assert_eq!(
        test.table.region.dirty()[0].load(Ordering::Relaxed),
        0,
        "draining clears the dirty bits"
    );
    assert_eq!((test.drain(false), test.drain(true)), (vec![], vec![]));
    test.charge(tags()[6], SECOND, 2).unwrap();
    assert_eq!(test.drain(false), [(tags()[6], 2)]);
    assert_eq!(test.used(tags()[5], SECOND), 5, "draining does not change the TAT");
}

#[test]
fn every_line_has_its_own_dirty_bit() {
    let lines = 130;
    let test = TestTable::new(lines, 10);
    test.table.set_exchanged(SECOND);
    for line in [0, 1, 63, 64, 127, 128, 129] {
        let tag = at_home(line, lines, 1);
        test.charge(tag, SECOND, 2).unwrap();
        assert_eq!(test.drain(false), [(tag, 2)], "line {line}");
    }
}

#[test]
fn hits_that_are_not_due_stay_pending() {
    let test = full_of_hits();
    let late = tags()[2];
    let mut out = Vec::new();
    let due =
        |bucket: &crate::table::walk::Bucket| bucket.key.fingerprint != late && bucket.hits == 1;
    test.table.drain(false, due, |bucket| out.push(bucket.key));
    assert_eq!(out.len(), 7);
    assert!(out.iter().all(|key| key.rule == test.rule));
    assert_eq!(test.drain(false), [(late, 1)]);
}

/// A process that is killed between the swap of a slot and the bit of its line leaves an unmarked
/// line.
#[test]
fn hits_in_an_unmarked_line_are_found_by_the_next_hit_or_a_full_drain() {
    let unmarked = || {
        let test = full_of_hits();
        test.table.region.dirty()[0].store(0, Ordering::Relaxed);
        assert_eq!(test.drain(false), []);
        test
    };
    assert_eq!(unmarked().drain(true).len(), 8, "a full drain finds them");
    let test = unmarked();
    test.charge(tags()[0], SECOND, 1).unwrap();
    assert_eq!(test.drain(false).len(), test.taken(0), "the next hit of the line finds them");
}

#[test]
fn a_slot_with_pending_hits_is_not_replaced_while_the_table_is_exchanged() {
    let test = full_of_hits();
    let another = test.key(at_home(1, 2, 1));
    let step =
        |tat| BucketUpdate { tat: test.scale.charge(tat, 15 * SECOND, 1), hits: 1, answer: () };
    let update = |evict| test.table.update(another, &test.scale, 15 * SECOND, evict, step);
    assert_eq!(update(None), None, "all buckets are full, but their hits are pending");
    assert_eq!(test.used(another.fingerprint, 15 * SECOND), 0);
    assert_eq!(test.drain(false).len(), 8);
    update(None).unwrap();
    assert_eq!((test.table.evicted.get(), test.table.unreported.get()), (0, 0));
}

/// Unreported hits cost less than a forgotten debt.
#[test]
fn a_flood_of_tags_with_pending_hits_does_not_evict_a_tag_in_debt() {
    let test = TestTable::new(2, 10);
    test.table.set_exchanged(SECOND);
    let debtor = at_home(0, 2, 0);
    test.charge(debtor, SECOND, 25).unwrap();
    assert_eq!(test.drain(false), [(debtor, 25)]);
    (1..=100).for_each(|n| test.charge(at_home(n as usize % 2, 2, n), SECOND, 1).unwrap());
    assert_eq!(test.used(debtor, SECOND), 25);
    assert_eq!((test.table.evicted.get(), test.table.unreported.get()), (93, 93));
}

#[test]
fn a_slot_with_pending_hits_is_replaced_when_the_exchange_has_ended() {
    let test = full_of_hits();
    let another = at_home(1, 2, 1);
    test.charge(another, 16 * SECOND, 1).unwrap();
    assert_eq!((test.table.evicted.get(), test.table.unreported.get()), (0, 1));
    assert_eq!(test.drain(false).len(), 7);
}

#[test]
fn pending_hits_saturate_and_the_rest_counts_as_unreported() {
    let test = TestTable::new(2, 10);
    test.table.set_exchanged(SECOND);
    test.charge(7, SECOND, MAX_PENDING - 1).unwrap();
    assert_eq!(test.table.unreported.get(), 0);
    test.charge(7, SECOND, 5).unwrap();
    assert_eq!(test.table.unreported.get(), 4);
    assert_eq!(test.drain(false), [(0, MAX_PENDING)]);
    test.charge(8 << 20, SECOND, MAX_PENDING + 3).unwrap();
    assert_eq!(test.table.unreported.get(), 7, "hits of a new bucket saturate too");
    assert_eq!(test.drain(false), [(8 << 20, MAX_PENDING)]);
}

#[test]
fn refunded_hits_are_not_reported() {
    let test = full_of_hits();
    let back = |tag, hits| {
        let step = |tat| BucketUpdate { tat, hits, answer: () };
        test.table.update(test.key(tag), &test.scale, SECOND, Some(SECOND), step).unwrap();
    };
    test.charge(tags()[1], SECOND, 4).unwrap();
    back(tags()[1], -2);
    back(tags()[0], -7);
    let drained = test.drain(false);
    assert_eq!((drained.len(), drained[0]), (7, (tags()[1], 3)));
    assert_eq!(test.table.unreported.get(), 0);
}

#[test]
fn the_hits_of_a_lost_claim_are_not_reported() {
    let test = TestTable::new(2, 100);
    test.table.set_exchanged(SECOND);
    let tag = at_home(0, 2, 0);
    test.charge(tag, SECOND, 3).unwrap();
    test.claim_late(tag, SECOND, 5);
    assert_eq!(test.drain(false), [(tag, 3)]);
}
