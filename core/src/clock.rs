//! Where the time comes from: the system, or a hand that moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// A clock that stands still until it is moved: for tests, and for hosts that give the time.
///
/// Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that stands at zero.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// The time since the clock's zero.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
    }

    /// Moves the clock on. It stops at its end, after 584 years.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: the time orders nothing but itself.
        self.0.update(Ordering::Relaxed, Ordering::Relaxed, |now| now.saturating_add(by));
    }

    /// Moves the clock on to a time since its zero. Time never runs backwards: an earlier time is
    /// an error.
    pub fn set(&self, to: Duration) -> Result<()> {
        let to = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: as above.
        let before = self.0.fetch_max(to, Ordering::Relaxed);
        if before > to {
            let message = format!(
                "a clock cannot be set back from {:?} to {:?}; make a new one instead",
                Duration::from_nanos(before),
                Duration::from_nanos(to)
            );
            return Err(Error::new(ErrorKind::Argument, message));
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The clock of a throttle.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The time since the machine started, suspend included; without the feature `shared`, since
    /// this process first asked, without suspends. `wasm32-unknown-unknown` has no such clock.
    System,
    /// A clock moved by hand.
    Manual(ManualClock),
}

impl Clock {
    /// Fails if there is no such clock.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Clock::System if cfg!(target_os = "unknown") => {
                let message = "no clock: give one, this platform has no system clock";
                Err(Error::new(ErrorKind::Argument, message))
            }
            _ => Ok(()),
        }
    }

    /// Nanoseconds since the clock's zero.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Clock::System => crate::os::clock::now_ns(),
            Clock::Manual(clock) => clock.now_ns(),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Clock {
        Clock::Manual(clock)
    }
}

/// A table's zero lies at most this long, 208 days, before the first reading of a manual clock, so
/// that older hits have a place in the table.
const BEFORE_NS: u64 = 1 << 54;
/// A table's zero that the first reading of the clock will set.
pub(crate) const FIRST_READING: u64 = u64::MAX;

/// A clock, and which of its times is the zero of a table.
///
/// A bucket has room for a few years of ticks, but a manual clock may count from any epoch. So its
/// first reading decides where the table's time begins.
#[derive(Debug)]
pub(crate) struct TableClock {
    clock: Clock,
    zero_ns: AtomicU64,
}

impl TableClock {
    /// `zero_ns` may be [`FIRST_READING`].
    pub(crate) fn new(clock: Clock, zero_ns: u64) -> TableClock {
        TableClock { clock, zero_ns: AtomicU64::new(zero_ns) }
    }

    /// The clock itself, which keeps its own zero.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The present time of the table in nanoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.table_ns(self.clock.now_ns())
    }

    /// A time of the clock as a time of the table. Times before the table's zero become zero.
    #[inline]
    pub(crate) fn table_ns(&self, ns: u64) -> u64 {
        // Relaxed: the zero orders nothing but itself.
        let zero_ns = self.zero_ns.load(Ordering::Relaxed);
        ns.checked_sub(zero_ns).unwrap_or_else(|| self.before_zero(ns))
    }

    #[cold]
    fn before_zero(&self, ns: u64) -> u64 {
        // Not from `ns`, which may be a time that the caller gave.
        let first_ns = self.clock.now_ns().saturating_sub(BEFORE_NS);
        // Relaxed: as above. Another thread may have set it meanwhile, a little later or earlier.
        let relaxed = Ordering::Relaxed;
        let set = self.zero_ns.compare_exchange(FIRST_READING, first_ns, relaxed, relaxed);
        ns.saturating_sub(set.map_or_else(|zero_ns| zero_ns, |_| first_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reading_of_a_manual_clock_sets_the_zero_of_the_table() {
        let year = 365 * 86_400 * 1_000_000_000;
        for (first, zero) in [(0, 0), (1000, 0), (56 * year, 56 * year - BEFORE_NS)] {
            let manual = ManualClock::new();
            let clock = TableClock::new(manual.clone().into(), FIRST_READING);
            manual.set(Duration::from_nanos(first)).unwrap();
            assert_eq!(clock.now(), first - zero);
            manual.advance(Duration::from_nanos(year));
            assert_eq!(clock.now(), first + year - zero, "the zero stays");
            assert_eq!(clock.clock().now_ns(), first + year, "the clock keeps its own zero");
        }
    }

    #[test]
    fn times_before_the_zero_of_the_table_are_zero() {
        let clock = TableClock::new(ManualClock::new().into(), 500);
        assert_eq!(
            [0, 499, 500, 501, u64::MAX].map(|ns| clock.table_ns(ns)),
            [0, 0, 0, 1, u64::MAX - 500]
        );
    }
}
