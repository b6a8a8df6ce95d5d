//! Busy answers of services that are called.

use dthrottle::{BusyThrottle, ManualClock};
use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::common::busy;
use crate::failure::{Result, failure};

type Handle = External<BusyThrottle>;

/// About what a busy throttle takes, so that the garbage collector knows what a handle holds.
const SIZE_HINT: usize = 131_072;

/// Opens a busy throttle from an object of settings, as the words of `common/tree.rs`.
#[napi(catch_unwind)]
pub fn busy_from_words(
    words: Vec<String>,
    clock: Option<&External<ManualClock>>,
) -> Result<External<BusyThrottle>> {
    let config = busy::config(words).map_err(failure)?;
    let throttle = match clock {
        Some(clock) => BusyThrottle::with_clock(config, (**clock).clone()),
        None => BusyThrottle::new(config),
    };
    Ok(External::new_with_size_hint(throttle.map_err(failure)?, SIZE_HINT))
}

/// Whether a request may be sent now: allowed, waitMs, limit.
#[napi(catch_unwind)]
pub fn busy_turn(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<Vec<f64>> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::turn(throttle.turn(service, now)))
}

/// The service is busy.
#[napi(catch_unwind)]
pub fn busy_on_busy(
    handle: &Handle,
    service: String,
    retry_after_ms: Option<f64>,
    now_ms: Option<f64>,
) -> Result<()> {
    let pause = busy::pause(retry_after_ms).map_err(failure)?;
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    throttle.on_busy(service, now, pause);
    Ok(())
}

/// The service gave any other answer.
#[napi(catch_unwind)]
pub fn busy_on_ok(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<()> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    throttle.on_ok(service, now);
    Ok(())
}

/// The limit of a service; Infinity: none.
#[napi(catch_unwind)]
pub fn busy_limit(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::limit(throttle.limit(service, now)))
}

/// How many requests were sent to a service in the last second.
#[napi(catch_unwind)]
pub fn busy_rate(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(throttle.rate(service, now))
}

/// Forgets a service.
#[napi(catch_unwind)]
pub fn busy_forget(handle: &Handle, service: String) -> Result<()> {
    busy::open(handle).map_err(failure)?.forget(service);
    Ok(())
}

/// Starts the exchange with the cluster.
#[napi(catch_unwind)]
pub fn busy_start(handle: &Handle) -> Result<()> {
    busy::open(handle).map_err(failure)?.start();
    Ok(())
}

/// The counts of the throttle.
#[napi(catch_unwind)]
pub fn busy_stats(handle: &Handle) -> Vec<f64> {
    busy::counts(handle)
}

/// What is not as it was asked for.
#[napi(catch_unwind)]
pub fn busy_warnings(handle: &Handle) -> Vec<String> {
    handle.warnings().to_vec()
}

/// Ends the throttle.
#[napi(catch_unwind)]
pub fn busy_close(handle: &Handle) {
    handle.close();
}
