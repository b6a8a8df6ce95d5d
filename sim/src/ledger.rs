//! The shadow ledger: what every node says it charged, kept apart from the engine's own windows.
//! A number charged twice is a fault, whatever the engine thinks of it.

use std::collections::{BTreeMap, HashMap};

/// One life of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Life {
    /// The node.
    pub node: u64,
    /// Which of its lives.
    pub incarnation: u64,
}

/// Ranges of numbers, first to last, none touching another.
type Ranges = BTreeMap<u64, u64>;

/// What each life of each node charged of every other.
#[derive(Default)]
pub struct Ledger {
    charged: HashMap<(Life, Life), Ranges>,
    faults: Vec<String>,
    entries: u64,
}

impl Ledger {
    /// `by` charged the reports `first` to `last` of `of`.
    pub fn charge(&mut self, by: Life, of: Life, first: u64, last: u64) {
        self.entries += 1;
        if by.node == of.node && by.incarnation == of.incarnation {
            self.faults.push(format!("{by:?} charged reports {first} to {last} of its own"));
        }
        if first > last || first == 0 {
            self.faults.push(format!("{by:?} charged reports {first} to {last} of {of:?}"));
            return;
        }
        let ranges = self.charged.entry((by, of)).or_default();
        let before = ranges.range(..=last).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, end)| end >= first) {
            self.faults.push(format!("{by:?} charged reports {first} to {last} of {of:?} again"));
            return;
        }
        insert(ranges, first, last);
    }

    /// What is wrong.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// How often something was charged.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

/// Adds a range that overlaps with none, and joins it to its neighbours.
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

    const A: Life = Life { node: 1, incarnation: 1 };
    const B: Life = Life { node: 2, incarnation: 1 };

    #[test]
    fn each_number_once() {
        let mut ledger = Ledger::default();
        for (first, last) in [(1, 1), (5, 9), (2, 3), (4, 4), (10, 12)] {
            ledger.charge(A, B, first, last);
        }
        assert!(ledger.faults().is_empty(), "{:?}", ledger.faults());
        assert_eq!(ledger.charged[&(A, B)], Ranges::from([(1, 12)]));
        ledger.charge(B, A, 3, 3);
        ledger.charge(A, Life { incarnation: 2, ..B }, 3, 3);
        assert!(ledger.faults().is_empty(), "{:?}", ledger.faults());
    }

    #[test]
    fn twice_is_a_fault() {
        for (first, last) in [(5, 5), (4, 5), (9, 12), (1, 20), (6, 7)] {
            let mut ledger = Ledger::default();
            ledger.charge(A, B, 5, 9);
            ledger.charge(A, B, first, last);
            assert_eq!(ledger.faults().len(), 1, "{first} {last}");
        }
        let mut ledger = Ledger::default();
        ledger.charge(A, A, 1, 1);
        assert_eq!(ledger.faults().len(), 1);
    }
}
