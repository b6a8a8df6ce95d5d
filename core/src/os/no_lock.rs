//! Replaces `lock.rs` and `rule_lock.rs` on platforms without named tables. The types have no
//! values.

use std::io;

/// A file whose bytes can be locked.
#[derive(Debug)]
pub(crate) enum LockFile {}

/// The locks of a throttle on its rules.
#[derive(Debug)]
pub(crate) enum RuleLock {}

/// The lock that is needed to change the list of rules.
#[derive(Debug)]
pub(crate) enum RuleListLock {}

impl RuleLock {
    pub(crate) fn new(lock_file: &LockFile) -> io::Result<RuleLock> {
        match *lock_file {}
    }

    pub(crate) fn add(&self, _: u16) -> io::Result<bool> {
        match *self {}
    }

    pub(crate) fn keep(&mut self) -> io::Result<()> {
        match *self {}
    }
}

impl RuleListLock {
    pub(crate) fn new(lock_file: &LockFile) -> io::Result<Option<RuleListLock>> {
        match *lock_file {}
    }

    pub(crate) fn exclude(&self, _: u16) -> bool {
        match *self {}
    }

    pub(crate) fn readmit(&self) {
        match *self {}
    }
}

pub(crate) fn is_transient(_: &io::Error) -> bool {
    false
}
