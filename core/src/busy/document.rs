//! The arithmetic of the document "Throttling on Busy Responses", to the digit: every second the
//! limit recovers by a factor or by a constant, and every busy answer of that second halves it.
//!
//! `docs/busy.md` says what becomes of it in practice. `dthrottle simulate busy` prints its tables.

use super::meter::SECOND;

/// The limit of who has seen no busy answer, and the highest there is.
pub const NO_LIMIT: f64 = 9_999_999.0;
/// More busy answers of one second do not count.
const MAX_HALVINGS: u32 = 20;
/// After so many seconds any limit has recovered that a factor can bring back.
const MAX_SECONDS: u64 = 4096;

/// How the limit recovers, every second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recover {
    /// By so many times itself: 3 makes it four times as high.
    Rate(f64),
    /// By so many requests a second.
    Value(f64),
}

impl Recover {
    /// The limit of the second after one with this limit and so many busy answers.
    pub fn next(self, limit: f64, busy: u64) -> f64 {
        let recovered = match self {
            Recover::Rate(rate) => limit + rate * limit,
            Recover::Value(value) => limit + value,
        };
        // A power of two: exact.
        let halvings = busy.min(MAX_HALVINGS.into()) as i32;
        (recovered / 2_f64.powi(halvings)).min(NO_LIMIT)
    }
}

/// The limit of a second, and the busy answers in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SecondState {
    pub(crate) limit: f64,
    second: u64,
    busy: u8,
}

const BUSY_BITS: u32 = 8;

impl SecondState {
    /// What it is without any busy answer.
    fn new(second: u64) -> SecondState {
        SecondState { limit: NO_LIMIT, second, busy: 0 }
    }

    /// As it was stored; zero: nothing was.
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

    /// The second that it is now. Where time goes back, it is still this one; where it goes back
    /// far, its limit begins to recover now.
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

    /// Whether it is left over from a clock that was set back.
    pub(crate) fn is_ahead(self, now: u64) -> bool {
        self.second > now / SECOND + 1
    }

    pub(crate) fn with_busy(self) -> SecondState {
        SecondState { busy: self.busy.saturating_add(1), ..self }
    }

    /// Nanoseconds until the first second in which a request may pass.
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
    fn nonsense_is_no_limit_or_between_floor_and_none() {
        for bits in [f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY, 0.0] {
            let bits = u128::from(bits.to_bits()) << 64 | 0xff;
            let second = SecondState::from_bits(bits, 0, 0.5);
            assert!((0.5..=NO_LIMIT).contains(&second.limit), "{second:?}");
            let later = second.at(u64::MAX, Recover::Rate(3.0), 0.5);
            assert_eq!(later.limit, NO_LIMIT);
        }
    }

    #[test]
    fn time_that_goes_back_keeps_the_limit_and_then_it_recovers() {
        let recover = Recover::Rate(3.0);
        let low = SecondState { limit: 2.0, second: 1000, busy: 0 };
        assert_eq!(low.at(999 * SECOND, recover, 1.0), low);
        let moved = low.at(5 * SECOND, recover, 1.0);
        assert_eq!((moved.limit, moved.second), (2.0, 5));
        assert_eq!(moved.at(6 * SECOND, recover, 1.0).limit, 8.0);
    }

    #[test]
    fn the_wait_ends_in_a_second_with_room() {
        let second = SecondState { limit: 0.1, second: 7, busy: 0 };
        let now = 7 * SECOND + SECOND / 4;
        let wait = second.wait(now, Recover::Rate(3.0), 0.0001);
        assert_eq!(wait, SECOND + SECOND * 3 / 4);
        let later = second.at(now + wait, Recover::Rate(3.0), 0.0001);
        assert_eq!(later.limit, 1.6);
    }
}
