//! Locks on the rules of a shared table: which of them live processes use.
//!
//! A throttle holds a shared lock on the byte of each of its rules in the file that stands for the
//! table. An index is freed only under an exclusive lock on its byte, so only when no live process
//! uses it. Each throttle has its own open file description for its locks. Unlike the lock for
//! the exchange, these locks are inherited: a forked child uses the same rules, and the system
//! keeps the lock until the last of the processes has dropped the throttle or is gone, however it
//! ended.

use std::fs::File;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::fs::{FsWord, fstatfs};

use super::fork::{self, Guarded};
use super::lock::{ALL, CheckedFile, LockFile, RULE_LIST, RULES, try_change};
use super::memory::FilePin;

/// How long to wait for a process that changes the list of rules: 10 s. It takes milliseconds.
const TRIES: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(1);
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// The shared locks of one throttle on its rules.
#[derive(Debug)]
pub(crate) struct RuleLock {
    /// `None` once the mapping alone holds the locks.
    file: Option<CheckedFile>,
    /// `None` until all rules are locked.
    pin: Option<FilePin>,
}

impl RuleLock {
    pub(crate) fn new(place: &LockFile) -> io::Result<RuleLock> {
        let file = CheckedFile::new(place.open_again()?)?;
        Ok(RuleLock { file: Some(file), pin: None })
    }

    /// Locks one more rule. Returns false while another process excludes its users. Fails where
    /// the system has no such locks.
    pub(crate) fn add(&self, index: u16) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        try_change(file, libc::F_RDLCK, byte_of(index), 1)
    }

    /// Keeps the locks for good: without a descriptor, which a program that becomes a daemon would
    /// close. Only where the file is in memory: elsewhere a mapping may belong to another file
    /// below this one (overlayfs).
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
            // Not by closing alone: a child that is forked just now may have the descriptor, and
            // does not know of it.
            let _ = try_change(file, libc::F_UNLCK, 0, ALL);
        }
    }
}

/// The right to change the list of rules. Given back when it is dropped, and never inherited.
#[derive(Debug)]
pub(crate) struct RuleListLock(Guarded<File>);

impl RuleListLock {
    /// Waits for other processes. Returns `None` if one of them does not give the lock back.
    pub(crate) fn new(place: &LockFile) -> io::Result<Option<RuleListLock>> {
        let lock = RuleListLock(fork::guard(|| place.open_again())?);
        for _ in 0..TRIES {
            if lock.try_change(libc::F_WRLCK, RULE_LIST, 1)? {
                return Ok(Some(lock));
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Excludes all users of a rule. Returns false if there is one.
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
        let file = self.0.get().ok_or_else(|| io::Error::other("belongs to a parent"))?;
        try_change(file, kind, first, count)
    }
}

impl Drop for RuleListLock {
    fn drop(&mut self) {
        // See `Lock`.
        let _ = self.try_change(libc::F_UNLCK, RULE_LIST, ALL);
    }
}

fn byte_of(index: u16) -> libc::off_t {
    RULES + libc::off_t::from(index)
}

fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
}

/// Returns true if the same call may work later: too few descriptors, too little memory, or too
/// many forks at this moment. Otherwise this process can never lock the rules of the table.
pub(crate) fn is_transient(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::WouldBlock
        || matches!(cause.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}
