//! The calls of busy throttles.

use dthrottle::{BusyThrottle, ManualClock};
use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::common::busy;
use crate::failure::{Result, failure};

type Handle = External<BusyThrottle>;

/// The approximate memory of a busy throttle, for the garbage collector.
const SIZE_HINT: usize = 131_072;

/// Opens a busy throttle from an encoded object (`common/tree.rs`).
#[napi(catch_unwind)]
pub fn busy_from_config(
    encoded: Vec<String>,
    clock: Option<&External<ManualClock>>,
) -> Result<External<BusyThrottle>> {
    let config = busy::config(encoded).map_err(failure)?;
    let throttle = match clock {
        Some(clock) => BusyThrottle::with_clock(config, (**clock).clone()),
        None => BusyThrottle::new(config),
    };
    Ok(External::new_with_size_hint(throttle.map_err(failure)?, SIZE_HINT))
}

/// Decides about a request: allowed, waitMs, limit.
#[napi(catch_unwind)]
pub fn busy_turn(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<Vec<f64>> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::turn(throttle.turn(service, now)))
}

/// Reports a busy response.
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

/// Reports any other response.
#[napi(catch_unwind)]
pub fn busy_on_ok(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<()> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    throttle.on_ok(service, now);
    Ok(())
}

/// The limit of a service. Infinity without one.
#[napi(catch_unwind)]
pub fn busy_limit(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::limit(throttle.limit(service, now)))
}

/// The number of requests that were sent to a service in the last second.
#[napi(catch_unwind)]
pub fn busy_rate(handle: &Handle, service: String, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(handle).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(throttle.rate(service, now))
}

/// Removes a service.
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

/// The warnings about problems that are no errors.
#[napi(catch_unwind)]
pub fn busy_warnings(handle: &Handle) -> Vec<String> {
    handle.warnings().to_vec()
}

/// Closes the throttle.
#[napi(catch_unwind)]
pub fn busy_close(handle: &Handle) {
    handle.close();
}
