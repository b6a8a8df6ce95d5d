//! The tolerance for network delay, which is the same on all nodes of a cluster.
//!
//! Checks tolerate more where reports take longer. If each node used only its own measurements, the
//! node with the longest delay would have the largest tolerance and would admit most of the
//! requests. So every node announces the longest delay that it knows, its own or another node's,
//! and all nodes use that value. An announcement carries the age of the measurement and expires
//! after a lease.

use super::pace::{MAX_SLACK, MIN_SLACK, SECOND};

/// A value expires if no node measures it again within this time.
const LEASE: u64 = 30 * SECOND;
/// Values are rounded to this many steps per power of two.
const STEPS: u64 = 8;

/// The longest round trip in the cluster that this node knows, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slack {
    ns: u64,
    measured_at: u64,
}

impl Slack {
    /// The slack in nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        self.ns
    }

    /// Records a one-way delay to the farthest peer that this node measured.
    pub(super) fn record_measurement(&mut self, now: u64, delay: u64) {
        let expired = now.saturating_sub(self.measured_at) > LEASE;
        let own = rounded(delay.saturating_mul(2));
        if own >= self.ns || expired {
            *self = Slack { ns: own, measured_at: now };
        }
    }

    /// Records the value `slack_us` that a peer announced: some node measured it `age_us` before
    /// the announcement was sent, and the announcement was sent `delay` ago. Zero means no value.
    /// Returns true if the slack has changed.
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

    /// Returns the value to announce and its age, both in microseconds.
    pub(super) fn announcement(&self, now: u64) -> (u64, u64) {
        (self.ns / 1000, now.saturating_sub(self.measured_at) / 1000)
    }
}

/// Rounds a round trip up to one of a few values, so that small differences between measurements do
/// not make nodes differ. The result is at most an eighth greater than the round trip.
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
    fn the_slack_is_the_longest_delay_of_any_node() {
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
        // The announcement renews the lease, from the time of the measurement.
        slack.record_announcement(LEASE, 80_000, 1_000_000, 0);
        slack.record_measurement(LEASE + LEASE - SECOND, MILLI);
        assert_eq!(slack.ns(), high);
        slack.record_measurement(LEASE + LEASE + SECOND, MILLI);
        assert_eq!(slack.ns(), MIN_SLACK);
    }

    /// Otherwise two nodes would keep a value alive by announcing it to each other.
    #[test]
    fn announcing_a_value_does_not_renew_its_lease() {
        let (mut one, mut two) = (Slack::default(), Slack::default());
        one.record_announcement(SECOND, 1_000_000, 0, 0);
        // Each announcement takes this long and is answered immediately.
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
    fn an_announcement_above_the_maximum_counts_as_the_maximum() {
        let mut slack = Slack::default();
        slack.record_announcement(SECOND, u64::MAX, 0, 0);
        assert_eq!(slack.ns(), MAX_SLACK);
        let mut slack = Slack::default();
        slack.record_announcement(SECOND, 80_000, u64::MAX, 0);
        assert_eq!(slack.ns(), 0, "the lease is over");
    }
}
