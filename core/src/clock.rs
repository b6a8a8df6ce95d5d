//! Where the time comes from: the system, or a hand that moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::local::{LOCAL, Local};

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
    /// The time since the machine started, suspend included.
    #[cfg(feature = "os")]
    System,
    /// A clock moved by hand.
    Manual(ManualClock),
}

impl Clock {
    /// Nanoseconds since the clock's zero.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        LOCAL.with(|local| self.now_ns_by(local))
    }

    /// The same, in a thread that knows its own.
    #[cfg_attr(
        not(feature = "os"),
        expect(unused_variables, reason = "only the system's needs it")
    )]
    #[inline]
    pub(crate) fn now_ns_by(&self, local: &Local) -> u64 {
        match self {
            #[cfg(feature = "os")]
            Clock::System => crate::os::clock::now_ns_by(local),
            Clock::Manual(clock) => clock.now_ns(),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Clock {
        Clock::Manual(clock)
    }
}
