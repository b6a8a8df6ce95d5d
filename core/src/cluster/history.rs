//! Reports that may be asked for again: this node's own and those of others, for a while.

use std::collections::{BTreeMap, VecDeque};

use super::Origin;

/// What a report costs beside its bytes.
const OVERHEAD: usize = 128;

/// Reports, in the order in which they came.
pub(super) struct History {
    reports: BTreeMap<(Origin, u64), StoredReport>,
    order: VecDeque<(u64, (Origin, u64))>,
    bytes: usize,
    max_bytes: usize,
}

/// A report.
pub(super) struct StoredReport {
    pub(super) last: u64,
    /// When the ages in it were true.
    pub(super) at: u64,
    /// The body, and the flags it came with.
    pub(super) flags: u8,
    pub(super) body: Box<[u8]>,
}

impl History {
    pub(super) fn new(max_bytes: usize) -> History {
        History { reports: BTreeMap::new(), order: VecDeque::new(), bytes: 0, max_bytes }
    }

    pub(super) fn insert(&mut self, now: u64, origin: Origin, first: u64, report: StoredReport) {
        let key = (origin, first);
        self.bytes += report.body.len() + OVERHEAD;
        if let Some(before) = self.reports.insert(key, report) {
            self.bytes -= before.body.len() + OVERHEAD;
        } else {
            self.order.push_back((now, key));
        }
        self.expire(0);
    }

    /// Forgets what is older than a time, and the oldest of what is too much.
    pub(super) fn expire(&mut self, before: u64) {
        while let Some((at, key)) = self.order.front()
            && (*at < before || self.bytes > self.max_bytes)
        {
            if let Some(report) = self.reports.remove(key) {
                self.bytes -= report.body.len() + OVERHEAD;
            }
            self.order.pop_front();
        }
    }

    /// The reports of an origin that lie wholly in a range, by their first number.
    pub(super) fn in_range(
        &self,
        origin: Origin,
        (first, last): (u64, u64),
    ) -> impl Iterator<Item = (u64, &StoredReport)> {
        let range = (origin, first)..=(origin, last.max(first));
        let found = self.reports.range(range).filter(move |(_, stored)| stored.last <= last);
        found.map(|((_, first), stored)| (*first, stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(last: u64, bytes: usize) -> StoredReport {
        StoredReport { last, at: 0, flags: 0, body: vec![0; bytes].into() }
    }

    #[test]
    fn time_and_bytes_bound_it() {
        let mut history = History::new(usize::MAX);
        let origin = Origin { node: 1, incarnation: 1 };
        (1..=10).for_each(|n| history.insert(n * 100, origin, n, stored(n, 872)));
        let numbers = |history: &History| -> Vec<u64> {
            history.in_range(origin, (1, 99)).map(|(first, _)| first).collect()
        };
        history.expire(301);
        assert_eq!(numbers(&history), (4..=10).collect::<Vec<_>>());
        history.max_bytes = 3000;
        history.expire(301);
        assert_eq!(numbers(&history), [8, 9, 10]);
        history.max_bytes = 5000;
        history.insert(2000, origin, 9, stored(9, 2872));
        assert_eq!(history.bytes, 5000, "the same report again counts once");
        history.insert(2000, origin, 11, stored(11, 1));
        assert_eq!(numbers(&history), [9, 10, 11]);
    }

    #[test]
    fn only_whole_reports_are_found() {
        let mut history = History::new(usize::MAX);
        let origin = Origin { node: 1, incarnation: 1 };
        let other = Origin { node: 1, incarnation: 2 };
        history.insert(0, origin, 3, stored(5, 1));
        history.insert(0, origin, 6, stored(6, 1));
        history.insert(0, other, 4, stored(4, 1));
        let find = |range| history.in_range(origin, range).map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(find((3, 6)), [3, 6]);
        assert_eq!(find((3, 4)), [] as [u64; 0]);
        assert_eq!(find((4, 6)), [6]);
        assert_eq!(find((7, 6)), [] as [u64; 0]);
    }
}
