//! The calls of busy throttles.

use dthrottle::{BusyThrottle, Clock as CoreClock};
use wasm_bindgen::prelude::*;

use crate::clock::Clock;
use crate::common::busy;
use crate::failure::{Result, failure};
use crate::link::without_cluster;
use crate::open::{Handle, random_key};

/// A busy throttle.
#[wasm_bindgen]
pub struct Busy(pub(crate) BusyThrottle);

/// Opens a busy throttle from an encoded object (`common/tree.rs`).
#[wasm_bindgen(js_name = busyFromConfig)]
pub fn busy_from_config(encoded: Vec<String>, clock: &Clock) -> Result<Busy> {
    let config = busy::config(encoded).map_err(failure)?;
    let clock = CoreClock::Manual(clock.clock.clone());
    Ok(Busy(BusyThrottle::with_key(config, clock, random_key()?).map_err(failure)?))
}

/// Decides about a request: allowed, waitMs, limit.
#[wasm_bindgen(js_name = busyTurn)]
pub fn busy_turn(handle: &Busy, service: &str, now_ms: Option<f64>) -> Result<Vec<f64>> {
    let throttle = busy::open(&handle.0).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::turn(throttle.turn(service, now)))
}

/// Reports a busy response.
#[wasm_bindgen(js_name = busyOnBusy)]
pub fn busy_on_busy(
    handle: &Busy,
    service: &str,
    retry_after_ms: Option<f64>,
    now_ms: Option<f64>,
) -> Result<()> {
    let pause = busy::pause(retry_after_ms).map_err(failure)?;
    let throttle = busy::open(&handle.0).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    throttle.on_busy(service, now, pause);
    Ok(())
}

/// Reports any other response.
#[wasm_bindgen(js_name = busyOnOk)]
pub fn busy_on_ok(handle: &Busy, service: &str, now_ms: Option<f64>) -> Result<()> {
    let throttle = busy::open(&handle.0).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    throttle.on_ok(service, now);
    Ok(())
}

/// The limit of a service. Infinity without one.
#[wasm_bindgen(js_name = busyLimit)]
pub fn busy_limit(handle: &Busy, service: &str, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(&handle.0).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(busy::limit(throttle.limit(service, now)))
}

/// The number of requests that were sent to a service in the last second.
#[wasm_bindgen(js_name = busyRate)]
pub fn busy_rate(handle: &Busy, service: &str, now_ms: Option<f64>) -> Result<f64> {
    let throttle = busy::open(&handle.0).map_err(failure)?;
    let now = busy::time(throttle, now_ms).map_err(failure)?;
    Ok(throttle.rate(service, now))
}

/// Removes a service.
#[wasm_bindgen(js_name = busyForget)]
pub fn busy_forget(handle: &Busy, service: &str) -> Result<()> {
    busy::open(&handle.0).map_err(failure)?.forget(service);
    Ok(())
}

/// Does nothing, because the host carries the datagrams by a link.
#[wasm_bindgen(js_name = busyStart)]
pub fn busy_start(handle: &Busy) -> Result<()> {
    busy::open(&handle.0).map_err(failure)?.start();
    Ok(())
}

/// The throttle without rules that exchanges its busy responses.
#[wasm_bindgen(js_name = busyNode)]
pub fn busy_node(handle: &Busy) -> Result<Handle> {
    let throttle = busy::open(&handle.0).map_err(failure)?.node().ok_or_else(without_cluster)?;
    let (throttle, domain) = (throttle.clone(), (**throttle).clone());
    Ok(Handle { throttle, domain, unix_ms: None })
}

/// The counts of the throttle.
#[wasm_bindgen(js_name = busyStats)]
pub fn busy_stats(handle: &Busy) -> Vec<f64> {
    busy::counts(&handle.0)
}

/// Closes the throttle.
#[wasm_bindgen(js_name = busyClose)]
pub fn busy_close(handle: &Busy) {
    handle.0.close();
}
