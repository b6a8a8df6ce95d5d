//! A ledger of the reports that each node says it charged, kept independently of the engine's own
//! windows. A report charged twice is an error, whatever the engine has recorded.

use std::collections::{BTreeMap, HashMap};

use crate::Ns;

/// One incarnation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId {
    /// The node number.
    pub node: u64,
    /// The incarnation.
    pub incarnation: u64,
}

/// Ranges of numbers, first to last, not adjacent to each other.
type Ranges = BTreeMap<u64, u64>;

/// A record of which reports each incarnation charged.
#[derive(Default)]
pub struct Ledger {
    /// The charged report numbers, by the incarnation that charged and the one that reported.
    charged: HashMap<(OriginId, OriginId), Ranges>,
    /// When each report was made, at the index of its number less one.
    made: HashMap<OriginId, Vec<Ns>>,
    slowest: Ns,
    errors: Vec<String>,
    entries: u64,
}

impl Ledger {
    /// Records that `of` sent the report with this number. Earlier numbers that were never sent
    /// were made when there were no receivers.
    pub fn report(&mut self, of: OriginId, number: u64, now: Ns) {
        let made = self.made.entry(of).or_default();
        if made.len() as u64 >= number {
            self.errors.push(format!("{of:?} made report {number} after {}", made.len()));
        } else {
            made.resize(number as usize, now);
        }
    }

    /// Records that `by` charged the reports `first` to `last` of `of`, which it could receive from
    /// `since` on.
    pub fn charge(
        &mut self,
        by: OriginId,
        of: OriginId,
        (first, last): (u64, u64),
        now: Ns,
        since: Ns,
    ) {
        self.entries += 1;
        let made = self.made.get(&of).map_or(&[][..], Vec::as_slice);
        match made.get(first.saturating_sub(1) as usize) {
            Some(at) if last <= made.len() as u64 => {
                self.slowest = self.slowest.max(now - since.max(*at));
            }
            _ => {
                self.errors.push(format!("{by:?} charged {first} to {last}, never made by {of:?}"));
            }
        }
        if by.node == of.node && by.incarnation == of.incarnation {
            self.errors.push(format!("{by:?} charged reports {first} to {last} of its own"));
        }
        if first > last || first == 0 {
            self.errors.push(format!("{by:?} charged reports {first} to {last} of {of:?}"));
            return;
        }
        let ranges = self.charged.entry((by, of)).or_default();
        let before = ranges.range(..=last).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, end)| end >= first) {
            self.errors.push(format!("{by:?} charged reports {first} to {last} of {of:?} again"));
            return;
        }
        insert(ranges, first, last);
    }

    /// Returns the errors found so far.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Returns the longest time from making a report to charging it.
    pub fn slowest(&self) -> Ns {
        self.slowest
    }

    /// Returns the number of charges.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

/// Adds a range that does not overlap with others, and merges it with adjacent ones.
fn insert(ranges: &mut Ranges, first: u64, last: u64) {
    let (mut start, mut end) = (first, last);
    if let Some((&a, &b)) = ranges.range(..first).next_back()
        && b + 1 == first
    {
        start = a;
    }
    if let Some(b) = ranges.remove(&(last + 1)) {
        end = b;
    }
    ranges.insert(start, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: OriginId = OriginId { node: 1, incarnation: 1 };
    const B: OriginId = OriginId { node: 2, incarnation: 1 };
    const LATER: OriginId = OriginId { node: 2, incarnation: 2 };

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for id in [A, B, LATER] {
            (1..=20).for_each(|number| ledger.report(id, number, number));
        }
        ledger
    }

    #[test]
    fn charging_each_report_once_is_no_error() {
        let mut ledger = ledger();
        for range in [(1, 1), (5, 9), (2, 3), (4, 4), (10, 12)] {
            ledger.charge(A, B, range, 30, 0);
        }
        assert_eq!(ledger.charged[&(A, B)], Ranges::from([(1, 12)]));
        ledger.charge(B, A, (3, 3), 30, 0);
        ledger.charge(A, LATER, (3, 3), 30, 0);
        assert!(ledger.errors().is_empty(), "{:?}", ledger.errors());
        assert_eq!(ledger.slowest(), 29);
    }

    #[test]
    fn charging_a_report_twice_is_an_error() {
        for range in [(5, 5), (4, 5), (9, 12), (1, 20), (6, 7)] {
            let mut ledger = ledger();
            ledger.charge(A, B, (5, 9), 30, 0);
            ledger.charge(A, B, range, 30, 0);
            assert_eq!(ledger.errors().len(), 1, "{range:?}");
        }
    }

    #[test]
    fn charging_own_or_unknown_reports_is_an_error() {
        for (of, range) in [(A, (1, 1)), (B, (20, 21)), (B, (5, 4)), (B, (0, 1))] {
            let mut ledger = ledger();
            ledger.charge(A, of, range, 30, 0);
            assert!(!ledger.errors().is_empty(), "{of:?} {range:?}");
        }
    }

    #[test]
    fn the_time_of_a_report_counts_from_when_it_could_arrive() {
        let mut ledger = ledger();
        ledger.charge(A, B, (10, 10), 15, 0);
        assert_eq!(ledger.slowest(), 5);
        ledger.charge(A, B, (1, 2), 30, 24);
        assert_eq!(ledger.slowest(), 6);
    }
}
