//! Processes that stress one table, for the tests in `core/tests`: `hammer TASK [KEY=VALUE ...]`.
//!
//! The program has one thread, so that it may fork at any moment and its children may call any
//! function. Only `lock-race` and `lock-killed` have two threads. It prints what it counted, and
//! the tests check that.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a program for tests")]

use std::error::Error;

#[cfg(target_os = "linux")]
mod claim;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(target_os = "linux")]
mod exact;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod part;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod quiet;
#[cfg(target_os = "linux")]
mod race;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod services;
#[cfg(target_os = "linux")]
mod worker;

type TaskResult = Result<(), Box<dyn Error>>;

#[cfg(target_os = "linux")]
fn main() -> TaskResult {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    let options = options::Options::read(words)?;
    match task.as_str() {
        "claim" => claim::run(&options),
        "crash" => crash::run(&options),
        "die" => fault::die(),
        "exact" => exact::run(&options),
        "lock-closed" => lock::closed(&options),
        "lock-killed" => lock::killed(&options),
        "lock-orphan" => lock::orphan(&options),
        "lock-race" => lock::race(&options),
        "quiet" => quiet::run(&options),
        "race" => race::run(&options),
        "rules-closed" => rules::closed(&options),
        "rules-forked" => rules::forked(&options),
        "rules-killed" => rules::killed(&options),
        "services" => services::run(&options),
        "stall" => fault::stall(),
        "twice" => fault::twice(),
        "worker" => worker::run(&options),
        _ => Err(format!("unknown task {task:?}").into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> TaskResult {
    Err("named tables and their tests need Linux".into())
}
