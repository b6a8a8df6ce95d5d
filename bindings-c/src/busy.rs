//! Limits for calls to services that answer 429 or 503.

use std::ffi::c_char;
use std::time::Duration;

use dthrottle_core::{BusyConfig, BusyThrottle};

use crate::clock::Clock;
use crate::records::BusyStats;

/// A busy throttle: limits the requests to services that answer busy (429 or 503), and raises the
/// limit gradually when they recover. Made by dthrottle_busy_open(), released by
/// dthrottle_busy_close().
///
/// The name of a service may be any bytes. Calls whose names end with _at take the time of the
/// throttle's clock, which dthrottle_busy_now() returns. The other calls read that clock.
pub struct Busy(BusyThrottle);

/// Opens a busy throttle from settings in TOML, such as "floor = 2" or "mode = 'document'". An
/// empty string uses the defaults. With "table = 'name'", all processes of this user that use the
/// same name share their limits. With a table [cluster], the nodes of that cluster do. If clock is
/// not NULL, it is used instead of the clock of the system.
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

/// Closes a busy throttle and releases it. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_close(busy: *mut Busy) {
    guard!(|c| {
        c.take_handle(busy)?;
        Ok(())
    });
}

/// Starts the exchange with the cluster in this process. Without this call the first request starts
/// it. Does nothing without a cluster, or if the exchange runs already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_start(busy: *const Busy) -> i32 {
    guard!(|c| {
        c.handle(busy)?.0.start();
        Ok(())
    })
}

/// Returns the time of the throttle's clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_busy_now(busy: *const Busy, now_ns: *mut u64) -> i32 {
    guard!(|c| {
        let now = c.handle(busy)?.0.now();
        c.store(now_ns, nanoseconds(now))
    })
}

/// Returns 1 if a request to a service may be sent now; it then counts as sent. Otherwise returns
/// 0, and wait_ns, unless it is NULL, receives the time after which to call again.
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

/// Like dthrottle_busy_should_send(), at the time now_ns.
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

/// Reports a busy response of a service. retry_after_ns is the time of its Retry-After field, or 0.
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

/// Like dthrottle_busy_on_busy(), at the time now_ns.
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

/// Reports any other response of a service.
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

/// Like dthrottle_busy_on_ok(), at the time now_ns.
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

/// Returns the limit of a service in requests per second. Negative if there is no limit.
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

/// Like dthrottle_busy_limit(), at the time now_ns.
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

/// Returns the number of requests sent to a service in the last second.
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

/// Like dthrottle_busy_rate(), at the time now_ns.
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

/// Removes a service and its limit.
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

/// Returns the statistics of a busy throttle.
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
