//! Busy answers of services that are called.

use std::ffi::c_char;
use std::time::Duration;

use dthrottle_core::{BusyConfig, BusyThrottle};

use crate::clock::Clock;
use crate::records::BusyStats;

/// A busy throttle: slows down what is sent to services that say they are busy, and comes back
/// gradually. Made by dthrottle_busy_open(), released by dthrottle_busy_close().
///
/// A service is known by any bytes. The calls whose names end with _at take the time by the
/// throttle's clock, as dthrottle_busy_now() tells it; the others read that clock.
pub struct Busy(BusyThrottle);

/// Opens a busy throttle from settings in TOML, such as "floor = 2" or "mode = 'document'"; without
/// any text, the usual ones. With "table = 'name'" all processes of this user that give the same
/// name share what they know; with a table [cluster], the nodes of that cluster. A clock, if one is
/// given, takes the place of the system's.
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
        let out = c.out_handle(out)?;
        let config = BusyConfig::from_toml(c.text(toml, toml_len)?)?;
        let throttle = match clock.is_null() {
            true => BusyThrottle::new(config),
            false => BusyThrottle::with_clock(config, c.handle(clock)?.0.clone()),
        };
        out.set(Busy(throttle?));
        Ok(())
    })
}

/// Closes a busy throttle and releases it; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_close(busy: *mut Busy) {
    guard!(|c| {
        c.take_handle(busy)?;
        Ok(())
    });
}

/// Starts the exchange with the cluster in this process, unless it has started: otherwise the first
/// request does. Without a cluster there is nothing to start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_start(busy: *const Busy) -> i32 {
    guard!(|c| {
        c.handle(busy)?.0.start();
        Ok(())
    })
}

/// The time by the throttle's clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_now(busy: *const Busy, now_ns: *mut u64) -> i32 {
    guard!(|c| {
        let now = c.handle(busy)?.0.now();
        c.store(now_ns, nanoseconds(now))
    })
}

/// Whether a request to a service may be sent now: 1, and it counts as sent; or 0, and wait_ns,
/// unless it is NULL, says when it is worth asking again.
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
            c.store(wait_ns, nanoseconds(turn.wait))?;
        }
        Ok(turn.allowed)
    })
}

/// The same at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_should_send_at(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    now_ns: u64,
    wait_ns: *mut u64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let service = c.bytes(service.cast(), service_len)?;
        let turn = busy.turn(service, Duration::from_nanos(now_ns));
        if !wait_ns.is_null() {
            c.store(wait_ns, nanoseconds(turn.wait))?;
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
        busy.on_busy(service, busy.now(), pause(retry_after_ns));
        Ok(())
    })
}

/// The same at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_on_busy_at(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    now_ns: u64,
    retry_after_ns: u64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let service = c.bytes(service.cast(), service_len)?;
        busy.on_busy(service, Duration::from_nanos(now_ns), pause(retry_after_ns));
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

/// The same at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_on_ok_at(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    now_ns: u64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        busy.on_ok(c.bytes(service.cast(), service_len)?, Duration::from_nanos(now_ns));
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

/// The same at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_limit_at(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    now_ns: u64,
    limit: *mut f64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let service = c.bytes(service.cast(), service_len)?;
        let found = busy.limit(service, Duration::from_nanos(now_ns));
        c.store(limit, found.unwrap_or(-1.0))
    })
}

/// How many requests were sent to a service in the last second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_rate(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    rate: *mut f64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let found = busy.rate(c.bytes(service.cast(), service_len)?, busy.now());
        c.store(rate, found)
    })
}

/// The same at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_rate_at(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
    now_ns: u64,
    rate: *mut f64,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        let service = c.bytes(service.cast(), service_len)?;
        c.store(rate, busy.rate(service, Duration::from_nanos(now_ns)))
    })
}

/// Forgets a service, and with it its limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_forget(
    busy: *const Busy,
    service: *const c_char,
    service_len: usize,
) -> i32 {
    guard!(|c| {
        let busy = &c.handle(busy)?.0;
        busy.forget(c.bytes(service.cast(), service_len)?);
        Ok(())
    })
}

/// What the throttle counted so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_stats(busy: *const Busy, stats: *mut BusyStats) -> i32 {
    guard!(|c| {
        let out = c.out_struct(stats)?;
        let busy = &c.handle(busy)?.0;
        out.fill(BusyStats::of(&busy.stats(busy.now())));
        Ok(())
    })
}

fn pause(retry_after_ns: u64) -> Option<Duration> {
    (retry_after_ns > 0).then(|| Duration::from_nanos(retry_after_ns))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
