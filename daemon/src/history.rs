//! Decisions per second over the last minutes.

use std::collections::VecDeque;

/// Five minutes.
const SECONDS: usize = 300;

#[derive(Default)]
pub(crate) struct History {
    last: Option<(u64, u64)>,
    seconds: VecDeque<(u64, u64)>,
}

impl History {
    /// Records the totals of allowed and refused checks. Called once a second.
    pub(crate) fn record(&mut self, allowed: u64, refused: u64) {
        if let Some((allowed_before, refused_before)) = self.last.replace((allowed, refused)) {
            if self.seconds.len() == SECONDS {
                self.seconds.pop_front();
            }
            let second =
                (allowed.saturating_sub(allowed_before), refused.saturating_sub(refused_before));
            self.seconds.push_back(second);
        }
    }

    /// The checks allowed and refused in each of the last seconds, the oldest first.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = (u64, u64)> {
        self.seconds.iter().copied()
    }

    /// The checks allowed and refused in the last second.
    pub(crate) fn latest(&self) -> (u64, u64) {
        self.seconds.back().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_the_increase_of_the_totals_and_old_seconds_are_dropped() {
        let mut history = History::default();
        history.record(10, 1);
        assert_eq!(history.latest(), (0, 0));
        history.record(15, 1);
        history.record(15, 8);
        assert_eq!(history.seconds().collect::<Vec<_>>(), [(5, 0), (0, 7)]);
        for _ in 0..1000 {
            history.record(15, 8);
        }
        assert_eq!((history.seconds().count(), history.latest()), (SECONDS, (0, 0)));
    }
}
