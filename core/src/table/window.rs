//! Which reports of one origin have been applied: all up to the top, except those missing. The
//! table stores this for every origin (`origins.rs`); the exchange decides by it.
//!
//! Reports are numbered from 1 without holes. A report covers a range of numbers: one when it is
//! new, several when it is a repair that sums them up.

/// One life of a node's exchange: whose reports they are, and which numbers they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The node: the same for all processes of a table, as long as the table is there.
    pub node: u64,
    /// Later lives have greater numbers.
    pub incarnation: u64,
}

/// Ranges, first and last number, in order, apart from each other.
pub type Ranges = Vec<(u64, u64)>;

/// No origin ever gets there: whatever claims a greater number is not a report.
pub(crate) const LAST_NUMBER: u64 = 1 << 62;
/// The most holes that are kept: what is older counts as applied and is never charged.
const MAX_MISSING_RANGES: usize = 1024;

/// The reports of one origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    top: u64,
    missing: Ranges,
}

/// What to do with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStatus {
    /// All of it is new.
    New,
    /// All of it was applied before.
    Applied,
    /// Some of it was applied before: it cannot be applied, and what is missing has to be asked
    /// for.
    PartlyApplied,
}

impl Window {
    /// Everything up to `top` counts as applied, except the ranges given, which are in order and
    /// apart.
    pub fn new(top: u64, missing: Ranges) -> Window {
        let mut window = Window { top, missing };
        window.forget_oldest();
        window
    }

    /// The greatest number seen or heard of.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// What has not been applied below the top.
    pub fn missing(&self) -> &[(u64, u64)] {
        &self.missing
    }

    /// Whether a report is new.
    pub fn status(&self, first: u64, last: u64) -> ReportStatus {
        if first > self.top {
            return ReportStatus::New;
        }
        let hole = self.missing.iter().find(|(_, end)| *end >= first);
        match hole {
            // Reaching above the top is fine when everything below it is missing, too.
            Some((start, end)) if *start <= first && (last <= *end || *end == self.top) => {
                ReportStatus::New
            }
            Some((start, _)) if *start <= last => ReportStatus::PartlyApplied,
            _ if last > self.top => ReportStatus::PartlyApplied,
            _ => ReportStatus::Applied,
        }
    }

    /// Notes a report as applied.
    pub fn mark(&mut self, first: u64, last: u64) {
        if first > self.top {
            self.extend_to(first - 1);
        } else {
            self.fill(first, last.min(self.top));
        }
        self.top = self.top.max(last);
    }

    /// Notes that there are reports up to a number.
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

    /// Notes that somebody's buckets, which were taken over, have all that this window has.
    pub fn fast_forward(&mut self, other: &Window) {
        let before = std::mem::replace(self, other.clone());
        if before.top <= self.top {
            // What is missing there was applied here all the same if it was not missing here.
            let missing = std::mem::take(&mut self.missing);
            self.missing = intersection(&missing, &before.missing_up_to(self.top));
        } else {
            let missing = intersection(&self.missing_up_to(before.top), &before.missing);
            *self = Window { top: before.top, missing };
        }
    }

    /// What is missing up to a number that may be above the top.
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

/// What is in both.
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
    fn in_order_leaves_no_holes() {
        let mut window = Window::default();
        for number in 1..100 {
            assert_eq!(window.status(number, number), ReportStatus::New);
            window.mark(number, number);
            assert_eq!(window.status(number, number), ReportStatus::Applied);
        }
        assert_eq!(window, Window::new(99, vec![]));
    }

    #[test]
    fn holes_are_seen_and_filled() {
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
        assert_eq!(window.status(7, 12), ReportStatus::New, "all of it is new, above the top too");
        assert_eq!(window.status(4, 12), ReportStatus::PartlyApplied);
        window.mark(7, 12);
        assert_eq!(window.missing(), [(1, 1), (4, 4), (6, 6)]);
        assert_eq!(window.top(), 12);
    }

    /// Against a plain set of numbers, in many orders.
    #[test]
    fn a_window_is_a_set() {
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
    fn taken_over_windows_fill_holes() {
        let mut window = Window::new(10, vec![(2, 3), (7, 8)]);
        window.fast_forward(&Window::new(12, vec![(3, 3), (5, 5), (8, 9), (11, 11)]));
        assert_eq!(window, Window::new(12, vec![(3, 3), (8, 8), (11, 11)]));
        let mut window = Window::new(12, vec![(3, 3), (12, 12)]);
        window.fast_forward(&Window::new(10, vec![(2, 3)]));
        assert_eq!(window, Window::new(12, vec![(3, 3), (12, 12)]));
    }

    #[test]
    fn too_many_holes_are_given_up() {
        let mut window = Window::default();
        (1..=5000).for_each(|n| window.mark(n * 2, n * 2));
        assert_eq!(window.missing().len(), MAX_MISSING_RANGES);
        assert_eq!(window.status(1, 1), ReportStatus::Applied);
        assert_eq!(window.status(9999, 9999), ReportStatus::New);
    }
}
