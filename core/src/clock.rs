//! The clock of a throttle: the system's, or one that the caller moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// A clock that stands still until the caller moves it, for tests and for hosts that provide the
/// time.
///
/// Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use dthrottle::{ManualClock, Rule, Throttle};
///
/// let clock = ManualClock::new();
/// let throttle = Throttle::builder().rule(Rule::per_second(1)).clock(clock.clone()).build()?;
/// assert!(throttle.allow("alice")?);
/// assert!(!throttle.allow("alice")?);
/// clock.advance(Duration::from_secs(1));
/// assert!(throttle.allow("alice")?);
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Creates a clock at time zero.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// The time since the clock's zero.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
    }

    /// Advances the clock. It stops at its greatest time, after 584 years.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: no other data is published with the time.
        self.0.update(Ordering::Relaxed, Ordering::Relaxed, |now| now.saturating_add(by));
    }

    /// Sets the clock to a time since its zero.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] if the time is earlier than the present one. The clock then stays as
    /// it is.
    pub fn set(&self, to: Duration) -> Result<()> {
        let to = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: as above.
        let before = self.0.fetch_max(to, Ordering::Relaxed);
        if before > to {
            let message = format!(
                "a clock must not be set back: expected at least {:?}, got {:?}",
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

/// Selects the clock of a throttle; see [`Builder::clock`](crate::Builder::clock).
#[derive(Clone, Debug)]
pub enum Clock {
    /// The time since the machine started, including suspended time. Without the feature `shared`,
    /// the time since the first reading in this process, without suspended time.
    /// `wasm32-unknown-unknown` has no system clock.
    System,
    /// A clock that the caller moves.
    Manual(ManualClock),
}

impl Clock {
    /// Returns an error if the platform has no such clock.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Clock::System if cfg!(target_os = "unknown") => {
                let message = "this platform has no system clock; pass a clock";
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

/// A table's zero is at most this long, 208 days, before the first reading of a manual clock, so
/// that earlier hits have valid times.
const BEFORE_NS: u64 = 1 << 54;
/// A table zero that the first reading of the clock will set.
pub(crate) const FIRST_READING: u64 = u64::MAX;

/// A clock, and the zero of a table on it.
///
/// A bucket has room for a few years of ticks, but a manual clock may count from any epoch. So the
/// first reading of a manual clock determines where the table's time begins.
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

    /// The clock itself, with its own zero.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The present time of the table in nanoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.table_ns(self.clock.now_ns())
    }

    /// Converts a time of the clock to table time. Times before the table's zero become 0.
    #[inline]
    pub(crate) fn table_ns(&self, ns: u64) -> u64 {
        // Relaxed: no other data is published with the zero.
        let zero_ns = self.zero_ns.load(Ordering::Relaxed);
        ns.checked_sub(zero_ns).unwrap_or_else(|| self.before_zero(ns))
    }

    #[cold]
    fn before_zero(&self, ns: u64) -> u64 {
        // Reads the clock, because `ns` may be a time that the caller gave.
        let first_ns = self.clock.now_ns().saturating_sub(BEFORE_NS);
        // Relaxed: as above. If another thread set the zero in the meantime, its value is used.
        let relaxed = Ordering::Relaxed;
        let set = self.zero_ns.compare_exchange(FIRST_READING, first_ns, relaxed, relaxed);
        ns.saturating_sub(set.map_or_else(|zero_ns| zero_ns, |_| first_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reading_of_a_manual_clock_sets_the_tables_zero() {
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
    fn times_before_the_tables_zero_become_zero() {
        let clock = TableClock::new(ManualClock::new().into(), 500);
        assert_eq!(
            [0, 499, 500, 501, u64::MAX].map(|ns| clock.table_ns(ns)),
            [0, 0, 0, 1, u64::MAX - 500]
        );
    }
}
