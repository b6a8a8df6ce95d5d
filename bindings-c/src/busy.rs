//! Busy answers of services that are called.

use std::ffi::c_char;
use std::time::Duration;

use dthrottle_core::{BusyConfig, BusyThrottle};

use crate::clock::Clock;

/// A busy throttle: slows down what is sent to services that say they are busy, and comes back
/// gradually. Made by dthrottle_busy_open(), released by dthrottle_busy_close().
pub struct Busy(BusyThrottle);

/// Opens a busy throttle from settings in TOML, such as "floor = 2" or "mode = 'document'"; without
/// any text, the usual ones. With "table = 'name'" all processes of this user that give the same
/// name share what they know. A clock, if one is given, takes the place of the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_open(
    toml: *const c_char,
    toml_len: usize,
    clock: *const Clock,
    out: *mut *mut Busy,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out(out)?;
        let config = BusyConfig::from_toml(c.text(toml, toml_len)?)?;
        let throttle = match clock.is_null() {
            true => BusyThrottle::new(config),
            false => BusyThrottle::with_clock(config, c.handle(clock)?.0.clone()),
        };
        out.give(Busy(throttle?));
        Ok(())
    })
}

/// Closes a busy throttle and releases it; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_close(busy: *mut Busy) {
    guard!(|c| {
        c.take(busy)?;
        Ok(())
    });
}

/// Whether a request to a service, known by any bytes, may be sent now: 1, and it counts as sent; or
/// 0, and wait_ns, unless it is NULL, says when it is worth asking again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_should_send(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    wait_ns: *mut u64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let turn = busy.turn(c.bytes(service.cast(), service_len)?, busy.now());
        if !wait_ns.is_null() {
            c.store(wait_ns, u64::try_from(turn.wait.as_nanos()).unwrap_or(u64::MAX))?;
        }
        Ok(turn.allowed)
    })
}

/// The service said that it is busy, and for how long nothing should be sent; 0: it did not say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_on_busy(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    retry_after_ns: u64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let service = c.bytes(service.cast(), service_len)?;
        let pause = (retry_after_ns > 0).then(|| Duration::from_nanos(retry_after_ns));
        busy.on_busy(service, busy.now(), pause);
        Ok(())
    })
}

/// The service gave any other answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_on_ok(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        busy.on_ok(c.bytes(service.cast(), service_len)?, busy.now());
        Ok(())
    })
}

/// The limit of a service in requests a second; below zero: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_limit(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    limit: *mut f64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let found = busy.limit(c.bytes(service.cast(), service_len)?, busy.now());
        c.store(limit, found.unwrap_or(-1.0))
    })
}
