//! Locks on the rules of a shared table, which show what rules live processes use.
//!
//! A throttle holds a shared lock on one byte of the table's file for each of its rules. An index
//! is freed only under an exclusive lock on its byte, which the system grants only if no live
//! process uses the rule. Each throttle has its own open file description for its locks. Unlike the
//! lock of the exchange, these locks are inherited by a fork: the child uses the same rules. The
//! system releases a lock when the last of these processes has dropped the throttle or has ended in
//! any way.

use std::fs::File;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::fs::{FsWord, fstatfs};

use super::fork::{self, Guarded};
use super::lock::{ALL, CheckedFile, LockFile, RULE_LIST, RULES, try_change};
use super::memory::FilePin;

/// How long to wait for a process that changes the list of rules: 10 s. A change takes
/// milliseconds.
const TRIES: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(1);
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// The shared locks of one throttle on its rules.
#[derive(Debug)]
pub(crate) struct RuleLock {
    /// `None` if only the mapping still holds the locks.
    file: Option<CheckedFile>,
    /// `None` until all rules are locked.
    pin: Option<FilePin>,
}

impl RuleLock {
    pub(crate) fn new(lock_file: &LockFile) -> io::Result<RuleLock> {
        let file = CheckedFile::new(lock_file.open_again()?)?;
        Ok(RuleLock { file: Some(file), pin: None })
    }

    /// Locks one more rule. Returns false while another process excludes the rule's users.
    ///
    /// # Errors
    ///
    /// If the system does not support such locks.
    pub(crate) fn add(&self, index: u16) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        try_change(file, libc::F_RDLCK, byte_of(index), 1)
    }

    /// Keeps the locks until they are dropped. In a file system in memory the descriptor is closed,
    /// because a program that becomes a daemon would close it. Elsewhere it stays open, because a
    /// mapping may belong to another file below this one (overlayfs).
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            self.pin = Some(FilePin::new(file)?);
            if is_in_memory(file) {
                self.file = None;
            }
        }
        Ok(())
    }
}

impl Drop for RuleLock {
    fn drop(&mut self) {
        if let (Some(file), None) = (&self.file, &self.pin) {
            // Unlocks explicitly, because a child that is being forked may have a copy of the
            // descriptor.
            let _ = try_change(file, libc::F_UNLCK, 0, ALL);
        }
    }
}

/// The lock that is needed to change the list of rules. It is released on drop and never inherited
/// by a fork.
#[derive(Debug)]
pub(crate) struct RuleListLock(Guarded<File>);

impl RuleListLock {
    /// Waits for other processes. Returns `None` if another process does not release the lock.
    pub(crate) fn new(lock_file: &LockFile) -> io::Result<Option<RuleListLock>> {
        let lock = RuleListLock(fork::guard(|| lock_file.open_again())?);
        for _ in 0..TRIES {
            if lock.try_change(libc::F_WRLCK, RULE_LIST, 1)? {
                return Ok(Some(lock));
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Excludes all users of a rule. Returns false if the rule has a user.
    pub(crate) fn exclude(&self, index: u16) -> bool {
        self.try_change(libc::F_WRLCK, byte_of(index), 1).unwrap_or(false)
    }

    /// Ends the exclusion of all rules.
    pub(crate) fn readmit(&self) {
        let _ = self.try_change(libc::F_UNLCK, RULES, ALL);
    }

    fn try_change(
        &self,
        kind: libc::c_int,
        first: libc::off_t,
        count: libc::off_t,
    ) -> io::Result<bool> {
        let file =
            self.0.get().ok_or_else(|| io::Error::other("the lock belongs to a parent process"))?;
        try_change(file, kind, first, count)
    }
}

impl Drop for RuleListLock {
    fn drop(&mut self) {
        // Unlocks explicitly, as `exchange_lock::Lock` does.
        let _ = self.try_change(libc::F_UNLCK, RULE_LIST, ALL);
    }
}

fn byte_of(index: u16) -> libc::off_t {
    RULES + libc::off_t::from(index)
}

fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
}

/// Returns true if the same call may succeed later, because the system has too few descriptors, too
/// little memory, or too many forks at the moment. Other errors mean that this process can never
/// lock the rules.
pub(crate) fn is_transient(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::WouldBlock
        || matches!(cause.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}
