//! Named tables: owners, directories, corrupt files, changed configurations, maintenance.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real files and processes")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod changes;
mod corrupt;
mod directories;
mod earlier;
#[path = "../processes/folder.rs"]
mod folder;
mod fresh;
#[path = "../processes/hammer.rs"]
mod hammer;
mod keys;
mod maintenance;
mod owners;
#[path = "../processes/program.rs"]
mod program;
mod protected;

use std::path::PathBuf;
use std::time::Duration;

use dthrottle::{Rate, Result, Rule, TableConfig, Throttle};

use crate::folder::Folder;

/// A rule whose units do not return while a test runs.
fn slow(burst: u64) -> Rule {
    let hardly_ever = Duration::from_secs(100 * 365 * 86_400);
    Rule::new(Rate::new(1, hardly_ever)).burst(burst).name("limit")
}

/// The smallest table named `web` in a folder.
fn web(folder: &Folder) -> TableConfig {
    TableConfig::named("web").dir(folder.path()).tags(1)
}

fn open(table: TableConfig, burst: u64) -> Result<Throttle> {
    Throttle::builder().table(table).rule(slow(burst)).build()
}

fn user() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::geteuid() }
}

/// Only root can change the user or mount a file system. Other users skip these tests.
fn is_root() -> bool {
    user() == 0
}

/// The file of a table of this user.
fn file(folder: &Folder, name: &str) -> PathBuf {
    PathBuf::from(folder.path()).join(format!("dthrottle-{}-{name}", user()))
}

fn balance(throttle: &Throttle, tag: &str) -> i64 {
    throttle.peek(tag).unwrap().balance
}

/// Takes units one by one.
fn take(throttle: &Throttle, tag: &str, units: u64) {
    for _ in 0..units {
        assert!(throttle.allow(tag).unwrap());
    }
}
