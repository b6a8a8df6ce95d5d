//! The tolerance for delays that all nodes of a cluster share.
//!
//! Checks are more tolerant where reports take longer. If each node went by the delays that it sees
//! itself, the node with the longest delay would be the most tolerant and would admit first. So
//! every node announces the longest delay that it knows of, its own or another node's, and all use
//! the same value. An announcement carries its age and expires after a lease.

use super::pace::{MAX_SLACK, MIN_SLACK, SECOND};

/// A value that nobody has measured again for this long no longer counts.
const LEASE: u64 = 30 * SECOND;
/// Steps between a value and twice that value.
const STEPS: u64 = 8;

/// The longest round trip in the cluster, as far as this node knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slack {
    ns: u64,
    measured_at: u64,
}

impl Slack {
    /// Nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        self.ns
    }

    /// This node sees a one-way delay of `delay` to its farthest peer.
    pub(super) fn record_measurement(&mut self, now: u64, delay: u64) {
        let expired = now.saturating_sub(self.measured_at) > LEASE;
        let own = rounded(delay.saturating_mul(2));
        if own >= self.ns || expired {
            *self = Slack { ns: own, measured_at: now };
        }
    }

    /// A peer announces a value that some node had measured `age_us` before the announcement was
    /// sent, `delay` ago. Zero is no value. Returns whether the slack is another one now.
    pub(super) fn record_announcement(
        &mut self,
        now: u64,
        slack_us: u64,
        age_us: u64,
        delay: u64,
    ) -> bool {
        let ns = rounded(slack_us.saturating_mul(1000));
        let age = age_us.saturating_mul(1000).saturating_add(delay);
        let measured_at = now.saturating_sub(age);
        if slack_us == 0 || age > LEASE {
            return false;
        }
        if ns == self.ns {
            self.measured_at = self.measured_at.max(measured_at);
        }
        let is_longer = ns > self.ns;
        if is_longer {
            *self = Slack { ns, measured_at };
        }
        is_longer
    }

    /// What to announce: the value and its age, in microseconds.
    pub(super) fn announcement(&self, now: u64) -> (u64, u64) {
        (self.ns / 1000, now.saturating_sub(self.measured_at) / 1000)
    }
}

/// The slack for a round trip: rounded up to one of a few values, so that small changes of the
/// longest delay do not make nodes differ. At most an eighth more than the round trip.
pub fn rounded(round_trip: u64) -> u64 {
    let ns = round_trip.clamp(MIN_SLACK, MAX_SLACK);
    let base = MIN_SLACK << (ns / MIN_SLACK).ilog2();
    ns.next_multiple_of(base / STEPS).min(MAX_SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::pace::MILLI;

    #[test]
    fn rounding_adds_at_most_an_eighth_and_is_stable() {
        for ns in (0..3 * SECOND).step_by(777_777) {
            let rounded = super::rounded(ns);
            let exact = ns.clamp(MIN_SLACK, MAX_SLACK);
            assert!(rounded >= exact && rounded <= exact + exact / 8, "{ns}");
            assert_eq!(super::rounded(rounded), rounded, "{ns}");
            assert_eq!(super::rounded(rounded / 1000 * 1000), rounded, "{ns} on the wire");
        }
    }

    #[test]
    fn the_longest_delay_of_any_node_wins() {
        let (mut near, mut far) = (Slack::default(), Slack::default());
        near.record_measurement(SECOND, MILLI);
        far.record_measurement(5 * SECOND, 40 * MILLI);
        assert!(near.ns() < far.ns());
        let (slack, age) = far.announcement(5 * SECOND);
        assert!(
            near.record_announcement(SECOND, slack, age, 0)
                && !near.record_announcement(SECOND, slack, age, 0)
        );
        assert_eq!(near.ns(), far.ns());
        near.record_measurement(2 * SECOND, MILLI);
        assert_eq!(near.ns(), far.ns(), "a shorter delay of its own does not lower it");
    }

    #[test]
    fn a_value_expires_unless_some_node_measures_it_again() {
        let mut slack = Slack::default();
        slack.record_measurement(SECOND, MILLI);
        slack.record_announcement(2 * SECOND, 80_000, 1_000_000, 0);
        let high = slack.ns();
        slack.record_measurement(SECOND + LEASE, MILLI);
        assert_eq!(slack.ns(), high);
        // Announced again: the lease begins anew, at the time of the measurement.
        slack.record_announcement(LEASE, 80_000, 1_000_000, 0);
        slack.record_measurement(LEASE + LEASE - SECOND, MILLI);
        assert_eq!(slack.ns(), high);
        slack.record_measurement(LEASE + LEASE + SECOND, MILLI);
        assert_eq!(slack.ns(), MIN_SLACK);
    }

    /// Nodes that pass a value on to each other must not keep it alive for ever.
    #[test]
    fn passing_a_value_on_does_not_renew_it() {
        let (mut one, mut two) = (Slack::default(), Slack::default());
        one.record_announcement(SECOND, 1_000_000, 0, 0);
        // Each announcement is under way for so long, and is answered at once.
        let delay = 200 * MILLI;
        for now in (SECOND..LEASE + 2 * SECOND).step_by(delay as usize) {
            let (slack, age) = one.announcement(now);
            two.record_announcement(now + delay, slack, age, delay);
            two.record_measurement(now + delay, MILLI);
            one.record_measurement(now + delay, MILLI);
            std::mem::swap(&mut one, &mut two);
        }
        assert_eq!((one.ns(), two.ns()), (MIN_SLACK, MIN_SLACK));
    }

    #[test]
    fn an_announcement_is_never_believed_beyond_the_limit() {
        let mut slack = Slack::default();
        slack.record_announcement(SECOND, u64::MAX, 0, 0);
        assert_eq!(slack.ns(), MAX_SLACK);
        let mut slack = Slack::default();
        slack.record_announcement(SECOND, 80_000, u64::MAX, 0);
        assert_eq!(slack.ns(), 0, "long expired");
    }
}
