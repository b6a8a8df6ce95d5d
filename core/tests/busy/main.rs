//! Tests of the busy throttle: calls of an application, properties, the tables of the document, and
//! servers and clients in virtual time.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod calls;
mod document;
mod eviction;
mod figures;
#[cfg(target_os = "linux")]
#[path = "../processes/folder.rs"]
mod folder;
mod laws;
mod model;
mod shared;
mod world;

use std::time::Duration;

use dthrottle::busy::{BusyThrottle, Mode, Recover};
use dthrottle::{BusyConfig, ManualClock};

/// A throttle with a manual clock. The tests pass the time to each call.
fn throttle(config: BusyConfig) -> BusyThrottle {
    BusyThrottle::with_clock(config, ManualClock::new()).unwrap()
}

fn live() -> BusyThrottle {
    throttle(BusyConfig::new())
}

fn document(recover: Recover) -> BusyThrottle {
    throttle(BusyConfig::new().mode(Mode::Document(recover)))
}

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Sends `requests` requests, evenly spread over a second. Returns how many were allowed.
fn passed(throttle: &BusyThrottle, service: &str, from: f64, requests: u32) -> u32 {
    let time = |i: u32| at(from + f64::from(i) / f64::from(requests));
    (0..requests).map(|i| u32::from(throttle.should_send(service, time(i)))).sum()
}
