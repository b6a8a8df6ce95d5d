//! Manual clocks, for tests.

use std::time::Duration;

use dthrottle_core::ManualClock;

/// A manual clock, for tests. Its time changes only by dthrottle_clock_advance() and
/// dthrottle_clock_set(). Made by dthrottle_clock_new(), released by dthrottle_clock_free().
pub struct Clock(pub(crate) ManualClock);

/// Makes a manual clock at time zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_new(out: *mut *mut Clock) -> i32 {
    guard!(|c| {
        c.out_handle(out)?.set(Clock(ManualClock::new()));
        Ok(())
    })
}

/// Releases a clock handle. NULL is allowed. For throttles that use the clock, time then stands
/// still.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_free(clock: *mut Clock) {
    guard!(|c| {
        c.take_handle(clock)?;
        Ok(())
    });
}

/// Advances the clock. It stops at 2^64 - 1 ns, after 584 years.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_advance(clock: *mut Clock, by_ns: u64) -> i32 {
    guard!(|c| {
        c.handle(clock)?.0.advance(Duration::from_nanos(by_ns));
        Ok(())
    })
}

/// Sets the clock to a time since its zero. Returns DTHROTTLE_ERR_ARGUMENT if this is earlier than
/// the current time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_set(clock: *mut Clock, to_ns: u64) -> i32 {
    guard!(|c| c.handle(clock)?.0.set(Duration::from_nanos(to_ns)))
}

/// Returns the time since the zero of the clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_clock_now(clock: *const Clock, now_ns: *mut u64) -> i32 {
    guard!(|c| {
        let now = c.handle(clock)?.0.now();
        // A clock counts nanoseconds in 64 bits.
        c.store(now_ns, now.as_nanos() as u64)
    })
}
