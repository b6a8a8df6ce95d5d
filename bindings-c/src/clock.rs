//! The clock that is moved by hand.

use std::time::Duration;

use dthrottle_core::ManualClock;

/// A clock that stands still until it is moved: for tests. Made by dthrottle_clock_new(), released
/// by dthrottle_clock_free().
pub struct Clock(pub(crate) ManualClock);

/// Makes a clock that stands at zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_new(out: *mut *mut Clock) -> i32 {
    guard!(|c| {
        c.out_handle(out)?.set(Clock(ManualClock::new()));
        Ok(())
    })
}

/// Releases a clock handle; NULL is fine. Throttles that run by the clock stand still then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_free(clock: *mut Clock) {
    guard!(|c| {
        c.take_handle(clock)?;
        Ok(())
    });
}

/// Moves the clock on. It stops at its end, after 584 years.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_advance(clock: *mut Clock, by_ns: u64) -> i32 {
    guard!(|c| {
        c.handle(clock)?.0.advance(Duration::from_nanos(by_ns));
        Ok(())
    })
}

/// Moves the clock on to a time since its zero. Time never runs backwards: an earlier time is
/// DTHROTTLE_ERR_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_set(clock: *mut Clock, to_ns: u64) -> i32 {
    guard!(|c| c.handle(clock)?.0.set(Duration::from_nanos(to_ns)))
}

/// The time since the clock's zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_now(clock: *const Clock, now_ns: *mut u64) -> i32 {
    guard!(|c| {
        let now = c.handle(clock)?.0.now();
        // A clock of 64 bits.
        c.store(now_ns, now.as_nanos() as u64)
    })
}
