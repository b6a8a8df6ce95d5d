//! The times of the exchange, in nanoseconds.

/// How often the table is searched for hits to report. Eager reports leave at the next tick.
pub(super) const TICK: u64 = 10 * MILLI;
pub(super) const MILLI: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MILLI;

/// Interval of digests, delay measurements and other periodic work.
pub(super) const HOUSEKEEPING: u64 = SECOND;
/// How long a starting node waits for a snapshot.
pub(super) const WARM_START_TIMEOUT: u64 = 500 * MILLI;
/// How long a starting node waits before it requests a snapshot from another peer.
pub(super) const WARM_START_RETRY: u64 = 150 * MILLI;
/// How long a challenge is valid.
pub(super) const CHALLENGE_LIFETIME: u64 = 5 * SECOND;
/// The shortest time between two challenges to a sender that has not answered one.
pub(super) const CHALLENGE_INTERVAL: u64 = 100 * MILLI;
/// The shortest time between two answers to greetings of such a sender.
pub(super) const ANSWER_INTERVAL: u64 = 20 * MILLI;
/// How often a starting node greets the addresses at which no member is known.
pub(super) const GREET_INTERVAL: u64 = 100 * MILLI;
/// How long a snapshot is reused for further requests.
pub(super) const SNAPSHOT_LIFETIME: u64 = 100 * MILLI;
/// The shortest time between two searches for the rules of other processes.
pub(super) const RULE_REFRESH_INTERVAL: u64 = 100 * MILLI;
/// How long a gap may last before it is repaired, because reports may arrive out of order.
pub(super) const REORDER_WAIT: u64 = 2 * MILLI;
/// Missing reports are requested again after this and a round trip, then after twice as long, and
/// so on up to `MAX_REQUEST_RETRY`.
pub(super) const REQUEST_RETRY: u64 = 10 * MILLI;
pub(super) const MAX_REQUEST_RETRY: u64 = SECOND;
/// When a node without new reports announces the number of its last report: otherwise peers could
/// not notice that the last report was lost. Each time is counted from the previous one.
pub(super) const TOP_ANNOUNCEMENTS: [u64; 3] = [50 * MILLI, 150 * MILLI, 350 * MILLI];
/// The smallest and the greatest tolerance for network delay.
pub(super) const MIN_SLACK: u64 = 3 * MILLI;
pub(super) const MAX_SLACK: u64 = 2 * SECOND;
/// The greatest one-way delay that the first round trip to a peer may yield. Each later sample may
/// be at most twice the delay so far plus `MAX_DELAY_STEP`.
pub(super) const MAX_FIRST_DELAY: u64 = 250 * MILLI;
pub(super) const MAX_DELAY_STEP: u64 = 5 * MILLI;
/// When a payload is sent for the second time, in case the first datagram was lost.
pub(super) const PAYLOAD_REPEAT: u64 = 50 * MILLI;
/// How often the whole table is searched for hits that a killed process left unmarked.
pub(super) const SWEEP_INTERVAL: u64 = 10 * SECOND;
/// A silent peer is forgotten after this and the retention time.
pub(super) const FORGET_AFTER: u64 = 60 * SECOND;
/// Hits are late from this age on, unless the rule's period or fill time gives another value.
const LATE_AFTER: u64 = 500 * MILLI;

const MIN_PERIOD: u64 = 5 * MILLI;

/// Returns how often a rule is reported: a tenth of the time in which a bucket fills, limited to
/// `MIN_PERIOD` and `longest`.
pub(crate) fn rule_period(fill_ns: u64, longest: u64) -> u64 {
    (fill_ns / 10).clamp(MIN_PERIOD, longest.max(MIN_PERIOD))
}

/// Returns the age from which hits of a rule are late. Once a bucket has had time to fill again,
/// its hits matter only to tags that are at their limit. Hits are never late before three periods.
pub(super) fn late_after(period: u64, fill_ns: u64) -> u64 {
    LATE_AFTER.min(fill_ns).max(3 * period)
}

/// Returns the class of an age. Hits of one class may share a section of a report, which has the
/// age of the oldest.
pub(super) fn age_class(age: u64) -> u64 {
    match age / TICK {
        ticks @ 0..16 => ticks,
        ticks => 16 + u64::from(ticks.ilog2()),
    }
}
