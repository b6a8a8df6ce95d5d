//! Recent reports of this node and of its peers, stored so that they can be sent again.

use std::collections::{BTreeMap, VecDeque};

use super::Origin;

/// Estimated memory of a stored report besides its body, in bytes.
const OVERHEAD: usize = 128;

/// Reports in order of arrival, limited by age and by total bytes.
pub(super) struct History {
    reports: BTreeMap<(Origin, u64), StoredReport>,
    order: VecDeque<(u64, (Origin, u64))>,
    bytes: usize,
    max_bytes: usize,
}

pub(super) struct StoredReport {
    /// The last number that it covers.
    pub(super) last: u64,
    /// The time at which the ages in the body were correct, in nanoseconds.
    pub(super) at: u64,
    /// The flags of the envelope that it arrived with.
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

    /// Removes reports older than `before`, and the oldest reports while the total size is too
    /// large.
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

    /// Returns the reports of an origin that lie completely within a range, with their first
    /// numbers.
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
    fn the_history_is_limited_by_age_and_bytes() {
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
        assert_eq!(history.bytes, 5000, "a report that is inserted again counts once");
        history.insert(2000, origin, 11, stored(11, 1));
        assert_eq!(numbers(&history), [9, 10, 11]);
    }

    #[test]
    fn in_range_returns_only_reports_completely_within_the_range() {
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
