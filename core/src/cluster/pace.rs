//! When what is reported: the times of the exchange, in nanoseconds.

/// How often the table is looked at: eager reports leave at the next look.
pub(super) const TICK: u64 = 10 * MILLI;
pub(super) const MILLI: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MILLI;

/// Digests, pings, and whatever else is done now and then.
pub(super) const HOUSEKEEPING: u64 = SECOND;
/// How long a node that starts waits for the buckets of another.
pub(super) const WARM_START_TIMEOUT: u64 = 500 * MILLI;
/// When the buckets of another are asked for again.
pub(super) const WARM_START_RETRY: u64 = 150 * MILLI;
/// A challenge that was not answered for so long is not answered any more.
pub(super) const CHALLENGE_LIFETIME: u64 = 5 * SECOND;
/// How often an unknown sender is challenged.
pub(super) const CHALLENGE_INTERVAL: u64 = 100 * MILLI;
/// How often greetings of an unknown sender are answered.
pub(super) const ANSWER_INTERVAL: u64 = 20 * MILLI;
/// How often a node that starts greets those that it has not met.
pub(super) const GREET_INTERVAL: u64 = 100 * MILLI;
/// A snapshot is given to all who ask for one within this time.
pub(super) const SNAPSHOT_LIFETIME: u64 = 100 * MILLI;
/// Rules of other processes are looked for at most so often when one is not known.
pub(super) const RULE_REFRESH_INTERVAL: u64 = 100 * MILLI;
/// Reports that come a little late are not missing yet.
pub(super) const REORDER_WAIT: u64 = 2 * MILLI;
/// What is missing is asked for again at first after this and a round trip, at last after that.
pub(super) const REQUEST_RETRY: u64 = 10 * MILLI;
pub(super) const MAX_REQUEST_RETRY: u64 = SECOND;
/// When a node that fell silent says how far its reports go: nobody could notice that the last one
/// was lost.
pub(super) const TOP_ANNOUNCEMENTS: [u64; 3] = [50 * MILLI, 150 * MILLI, 350 * MILLI];
/// Tolerance for delays that cannot be told from none, and at most.
pub(super) const MIN_SLACK: u64 = 3 * MILLI;
pub(super) const MAX_SLACK: u64 = 2 * SECOND;
/// The longest delay that is believed of the first round trip to a peer, and how much more than
/// twice the delay so far is believed of each further one.
pub(super) const MAX_FIRST_DELAY: u64 = 250 * MILLI;
pub(super) const MAX_DELAY_STEP: u64 = 5 * MILLI;
/// Payloads are sent once more after this, in case they were lost.
pub(super) const PAYLOAD_REPEAT: u64 = 50 * MILLI;
/// The whole table is searched for hits that a killed process left unmarked.
pub(super) const SWEEP_INTERVAL: u64 = 10 * SECOND;
/// A peer that was not heard of for so long, after the time of retention, is forgotten.
pub(super) const FORGET_AFTER: u64 = 60 * SECOND;
/// Hits are late from this age on, unless the rule says otherwise.
const LATE_AFTER: u64 = 500 * MILLI;

const MIN_PERIOD: u64 = 5 * MILLI;

/// How often a rule is reported: a tenth of the time in which a bucket fills, within bounds.
pub(crate) fn rule_period(fill_ns: u64, longest: u64) -> u64 {
    (fill_ns / 10).clamp(MIN_PERIOD, longest.max(MIN_PERIOD))
}

/// From which age on hits of a rule are late: when a bucket has filled again meanwhile they matter
/// only to tags that are at their limit. Never before three periods have passed.
pub(super) fn late_after(period: u64, fill_ns: u64) -> u64 {
    LATE_AFTER.min(fill_ns).max(3 * period)
}

/// Ages that may stand together in a report, under the oldest of them.
pub(super) fn age_class(age: u64) -> u64 {
    match age / TICK {
        ticks @ 0..16 => ticks,
        ticks => 16 + u64::from(ticks.ilog2()),
    }
}
