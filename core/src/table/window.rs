//! The reports of one origin that have been applied: all up to the top, except the missing ranges.
//! The table stores a window for every origin (`origins.rs`), and the exchange consults it.
//!
//! Reports are numbered from 1 without gaps. A new report covers one number. A repair that sums up
//! several reports covers a range.

/// A node and the incarnation of its exchange, which numbers its reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The ID of the node. All processes of a table share it for the lifetime of the table.
    pub node: u64,
    /// The incarnation of the exchange. Later incarnations have greater numbers.
    pub incarnation: u64,
}

/// Ranges of report numbers, as (first, last), in order, not adjacent.
pub type Ranges = Vec<(u64, u64)>;

/// The greatest report number. A datagram that claims a greater number is malformed.
pub(crate) const LAST_NUMBER: u64 = 1 << 62;
/// The most missing ranges that a window keeps. Older ones count as applied and are never charged.
const MAX_MISSING_RANGES: usize = 1024;

/// The reports of one origin that have been applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    top: u64,
    missing: Ranges,
}

/// Whether a report may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStatus {
    /// No part of it was applied before.
    New,
    /// All of it was applied before.
    Applied,
    /// Part of it was applied before. It cannot be applied, so the missing part must be requested.
    PartlyApplied,
}

impl Window {
    /// Creates a window in which everything up to `top` is applied except `missing`. The ranges
    /// must be in order and not adjacent.
    pub fn new(top: u64, missing: Ranges) -> Window {
        let mut window = Window { top, missing };
        window.forget_oldest();
        window
    }

    /// The greatest known report number.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The ranges up to the top that have not been applied.
    pub fn missing(&self) -> &[(u64, u64)] {
        &self.missing
    }

    /// Compares a report with the applied ones.
    pub fn status(&self, first: u64, last: u64) -> ReportStatus {
        if first > self.top {
            return ReportStatus::New;
        }
        let hole = self.missing.iter().find(|(_, end)| *end >= first);
        match hole {
            // A report may reach above the top if everything below the top that it covers is
            // missing.
            Some((start, end)) if *start <= first && (last <= *end || *end == self.top) => {
                ReportStatus::New
            }
            Some((start, _)) if *start <= last => ReportStatus::PartlyApplied,
            _ if last > self.top => ReportStatus::PartlyApplied,
            _ => ReportStatus::Applied,
        }
    }

    /// Marks a report as applied.
    pub fn mark(&mut self, first: u64, last: u64) {
        if first > self.top {
            self.extend_to(first - 1);
        } else {
            self.fill(first, last.min(self.top));
        }
        self.top = self.top.max(last);
    }

    /// Raises the top, because the origin is known to have sent reports up to this number.
    pub fn extend_to(&mut self, top: u64) {
        if top <= self.top {
            return;
        }
        match self.missing.last_mut() {
            Some((_, end)) if *end == self.top => *end = top,
            _ => self.missing.push((self.top + 1, top)),
        }
        self.top = top;
        self.forget_oldest();
    }

    /// Merges the window that belongs to buckets which were copied from a peer: everything applied
    /// there is now applied here.
    pub fn fast_forward(&mut self, other: &Window) {
        let before = std::mem::replace(self, other.clone());
        if before.top <= self.top {
            // Reports that are missing there but were applied here are not missing.
            let missing = std::mem::take(&mut self.missing);
            self.missing = intersection(&missing, &before.missing_up_to(self.top));
        } else {
            let missing = intersection(&self.missing_up_to(before.top), &before.missing);
            *self = Window { top: before.top, missing };
        }
    }

    /// The missing ranges up to `top`, which may be above the window's own top.
    fn missing_up_to(&self, top: u64) -> Ranges {
        let mut window = self.clone();
        window.extend_to(top);
        window.missing
    }

    fn fill(&mut self, first: u64, last: u64) {
        let mut left = Ranges::with_capacity(self.missing.len() + 1);
        for (start, end) in self.missing.drain(..) {
            if end < first || start > last {
                left.push((start, end));
                continue;
            }
            if start < first {
                left.push((start, first - 1));
            }
            if end > last {
                left.push((last + 1, end));
            }
        }
        self.missing = left;
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let excess = self.missing.len().saturating_sub(MAX_MISSING_RANGES);
        self.missing.drain(..excess);
    }
}

/// The ranges that are in both lists.
fn intersection(a: &[(u64, u64)], b: &[(u64, u64)]) -> Ranges {
    let (mut i, mut j) = (0, 0);
    let mut both = Ranges::new();
    while let (Some(&(a_first, a_last)), Some(&(b_first, b_last))) = (a.get(i), b.get(j)) {
        let (first, last) = (a_first.max(b_first), a_last.min(b_last));
        if first <= last {
            both.push((first, last));
        }
        if a_last < b_last {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_in_order_leave_nothing_missing() {
        let mut window = Window::default();
        for number in 1..100 {
            assert_eq!(window.status(number, number), ReportStatus::New);
            window.mark(number, number);
            assert_eq!(window.status(number, number), ReportStatus::Applied);
        }
        assert_eq!(window, Window::new(99, vec![]));
    }

    #[test]
    fn missing_ranges_are_tracked_and_filled() {
        let mut window = Window::default();
        window.mark(5, 5);
        assert_eq!(window.missing(), [(1, 4)]);
        window.mark(2, 3);
        assert_eq!(window.missing(), [(1, 1), (4, 4)]);
        window.extend_to(9);
        assert_eq!(window.missing(), [(1, 1), (4, 4), (6, 9)]);
        window.extend_to(10);
        assert_eq!(window.missing(), [(1, 1), (4, 4), (6, 10)]);
        assert_eq!(window.status(3, 4), ReportStatus::PartlyApplied);
        assert_eq!(window.status(4, 5), ReportStatus::PartlyApplied);
        assert_eq!(window.status(2, 3), ReportStatus::Applied);
        assert_eq!(window.status(5, 5), ReportStatus::Applied);
        assert_eq!(window.status(7, 12), ReportStatus::New, "a new report may reach above the top");
        assert_eq!(window.status(4, 12), ReportStatus::PartlyApplied);
        window.mark(7, 12);
        assert_eq!(window.missing(), [(1, 1), (4, 4), (6, 6)]);
        assert_eq!(window.top(), 12);
    }

    /// Compares a window with a plain set of numbers, for random reports.
    #[test]
    fn a_window_agrees_with_a_set_of_numbers() {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let mut window = Window::default();
            let mut applied = std::collections::BTreeSet::new();
            for _ in 0..60 {
                let first = 1 + random(40);
                let last = first + random(4);
                let seen = (first..=last).filter(|n| applied.contains(n)).count() as u64;
                let status = match seen {
                    0 => ReportStatus::New,
                    all if all == last - first + 1 => ReportStatus::Applied,
                    _ => ReportStatus::PartlyApplied,
                };
                assert_eq!(window.status(first, last), status, "{window:?} {first}-{last}");
                if status == ReportStatus::New {
                    window.mark(first, last);
                    applied.extend(first..=last);
                }
            }
            let missing: Vec<u64> = window.missing().iter().flat_map(|(a, b)| *a..=*b).collect();
            let expected: Vec<u64> = (1..=window.top()).filter(|n| !applied.contains(n)).collect();
            assert_eq!(missing, expected);
        }
    }

    #[test]
    fn merging_a_window_fills_missing_ranges() {
        let mut window = Window::new(10, vec![(2, 3), (7, 8)]);
        window.fast_forward(&Window::new(12, vec![(3, 3), (5, 5), (8, 9), (11, 11)]));
        assert_eq!(window, Window::new(12, vec![(3, 3), (8, 8), (11, 11)]));
        let mut window = Window::new(12, vec![(3, 3), (12, 12)]);
        window.fast_forward(&Window::new(10, vec![(2, 3)]));
        assert_eq!(window, Window::new(12, vec![(3, 3), (12, 12)]));
    }

    #[test]
    fn the_oldest_missing_ranges_beyond_the_limit_are_forgotten() {
        let mut window = Window::default();
        (1..=5000).for_each(|n| window.mark(n * 2, n * 2));
        assert_eq!(window.missing().len(), MAX_MISSING_RANGES);
        assert_eq!(window.status(1, 1), ReportStatus::Applied);
        assert_eq!(window.status(9999, 9999), ReportStatus::New);
    }
}
