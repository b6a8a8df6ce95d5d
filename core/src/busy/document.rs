//! The arithmetic of the document "Throttling on Busy Responses", reproduced exactly: every second
//! the limit recovers by a factor or by a constant, and every busy response of that second halves
//! it.
//!
//! `docs/busy.md` describes the effect in practice. `dthrottle simulate busy` prints the tables of
//! the document.

use super::meter::SECOND;

/// The limit of a client that has received no busy response, and the highest limit.
pub const NO_LIMIT: f64 = 9_999_999.0;
/// Busy responses of one second beyond this number do not count.
const MAX_HALVINGS: u32 = 20;
/// After this many seconds, any limit counts as recovered.
const MAX_SECONDS: u64 = 4096;

/// How the limit recovers each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recover {
    /// Adds the limit multiplied by this factor: 3 makes the limit four times as high.
    Rate(f64),
    /// Adds this many requests per second.
    Value(f64),
}

impl Recover {
    /// Returns the limit of the second that follows a second with this limit and this number of
    /// busy responses.
    pub fn next(self, limit: f64, busy: u64) -> f64 {
        let recovered = match self {
            Recover::Rate(rate) => limit + rate * limit,
            Recover::Value(value) => limit + value,
        };
        // Dividing by a power of two is exact.
        let halvings = busy.min(MAX_HALVINGS.into()) as i32;
        (recovered / 2_f64.powi(halvings)).min(NO_LIMIT)
    }
}

/// The limit of one second, and the number of busy responses in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SecondState {
    pub(crate) limit: f64,
    second: u64,
    busy: u8,
}

const BUSY_BITS: u32 = 8;

impl SecondState {
    /// The state before any busy response.
    fn new(second: u64) -> SecondState {
        SecondState { limit: NO_LIMIT, second, busy: 0 }
    }

    /// Reads a stored state. Zero means that none was stored.
    pub(crate) fn from_bits(bits: u128, now: u64, floor: f64) -> SecondState {
        let (limit, rest) = (f64::from_bits((bits >> 64) as u64), bits as u64);
        if bits == 0 || limit.is_nan() {
            return SecondState::new(now / SECOND);
        }
        let limit = limit.clamp(floor, NO_LIMIT);
        SecondState { limit, second: rest >> BUSY_BITS, busy: rest as u8 }
    }

    pub(crate) fn to_bits(self) -> u128 {
        let rest = self.second << BUSY_BITS | u64::from(self.busy);
        u128::from(self.limit.to_bits()) << 64 | u128::from(rest)
    }

    /// Returns the state of the current second. If time went back by at most a second, the state
    /// does not change; if it went back further, the limit recovers from now on.
    pub(crate) fn at(self, now: u64, recover: Recover, floor: f64) -> SecondState {
        let second = now / SECOND;
        let Some(passed) = second.checked_sub(self.second) else {
            return if self.is_ahead(now) { SecondState { second, ..self } } else { self };
        };
        let mut next = self;
        for _ in 0..passed.min(MAX_SECONDS) {
            if next.limit >= NO_LIMIT && next.busy == 0 {
                break;
            }
            let limit = recover.next(next.limit, next.busy.into()).max(floor);
            next = SecondState { limit, busy: 0, ..next };
        }
        if passed > MAX_SECONDS {
            next = SecondState::new(second);
        }
        SecondState { second, ..next }
    }

    /// Returns true if the state was stored before the clock was set back.
    pub(crate) fn is_ahead(self, now: u64) -> bool {
        self.second > now / SECOND + 1
    }

    pub(crate) fn with_busy(self) -> SecondState {
        SecondState { busy: self.busy.saturating_add(1), ..self }
    }

    /// Returns the nanoseconds until the first second in which a request may be sent.
    pub(crate) fn wait(self, now: u64, recover: Recover, floor: f64) -> u64 {
        let mut next = self;
        let mut seconds = 0;
        while seconds < MAX_SECONDS {
            let limit = recover.next(next.limit, next.busy.into()).max(floor);
            next = SecondState { limit, busy: 0, ..next };
            seconds += 1;
            if limit >= 1.0 {
                break;
            }
        }
        (seconds - 1) * SECOND + (SECOND - now % SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_read_as_it_was_written() {
        let second = SecondState { limit: 38.5, second: 1 << 40, busy: 7 };
        assert_eq!(SecondState::from_bits(second.to_bits(), 0, 0.0), second);
        let fresh = SecondState::from_bits(0, 5 * SECOND, 0.0);
        assert_eq!((fresh.limit, fresh.second), (NO_LIMIT, 5));
    }

    #[test]
    fn any_stored_bits_give_a_limit_between_the_floor_and_no_limit() {
        for bits in [f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY, 0.0] {
            let bits = u128::from(bits.to_bits()) << 64 | 0xff;
            let second = SecondState::from_bits(bits, 0, 0.5);
            assert!((0.5..=NO_LIMIT).contains(&second.limit), "{second:?}");
            let later = second.at(u64::MAX, Recover::Rate(3.0), 0.5);
            assert_eq!(later.limit, NO_LIMIT);
        }
    }

    #[test]
    fn after_time_went_back_the_limit_stays_and_then_recovers() {
        let recover = Recover::Rate(3.0);
        let low = SecondState { limit: 2.0, second: 1000, busy: 0 };
        assert_eq!(low.at(999 * SECOND, recover, 1.0), low);
        let moved = low.at(5 * SECOND, recover, 1.0);
        assert_eq!((moved.limit, moved.second), (2.0, 5));
        assert_eq!(moved.at(6 * SECOND, recover, 1.0).limit, 8.0);
    }

    #[test]
    fn the_wait_ends_in_the_first_second_with_a_limit_of_at_least_one() {
        let second = SecondState { limit: 0.1, second: 7, busy: 0 };
        let now = 7 * SECOND + SECOND / 4;
        let wait = second.wait(now, Recover::Rate(3.0), 0.0001);
        assert_eq!(wait, SECOND + SECOND * 3 / 4);
        let later = second.at(now + wait, Recover::Rate(3.0), 0.0001);
        assert_eq!(later.limit, 1.6);
    }
}
