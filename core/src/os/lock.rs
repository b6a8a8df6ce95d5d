//! The file that stands for a table, and locks on its bytes, which end with the process: on the one
//! that runs the exchange (`exchange_lock.rs`), and on the rules in use (`rule_lock.rs`).
//!
//! A lock is on an open file description, and every process opens the file for itself: one that
//! was inherited by a fork would stay locked as long as any of the children lives. The file of a
//! named table is the table's own, so that there is nothing else to make, to guard and to remove,
//! and processes whose table has been removed or replaced still agree among themselves. `remove`
//! and `resize` lock that file too, but by `flock`, which has nothing to do with this kind of lock
//! (`F_OFD_SETLK`).
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

/// What a locked byte of the file stands for. The bytes need not be there.
pub(super) const EXCHANGE: libc::off_t = 0;
pub(super) const RULE_LIST: libc::off_t = 1;
/// The byte of rule index zero; every other index has the byte that follows.
pub(super) const RULES: libc::off_t = 2;
/// As many bytes as there are.
pub(super) const ALL: libc::off_t = 0;

/// A file that stands for a table, to be opened again.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: CheckedFile,
    /// If it has a name: for programs that close all descriptors when they become daemons.
    path: Option<PathBuf>,
}

/// A file that stays open for long. A program that becomes a daemon may close all descriptors
/// without its knowledge: a descriptor that refers to another file by then is not closed.
#[derive(Debug)]
pub(super) struct CheckedFile {
    file: ManuallyDrop<File>,
    /// Device and number of the file.
    identity: (u64, u64),
}

impl LockFile {
    /// For this process and its children.
    pub(crate) fn of_memory() -> io::Result<Arc<LockFile>> {
        LockFile::new(File::from(memfd_create("dthrottle", MemfdFlags::CLOEXEC)?), None)
    }

    /// For all processes that have the table in this file.
    pub(crate) fn of_table(file: File, path: PathBuf) -> io::Result<Arc<LockFile>> {
        LockFile::new(file, Some(path))
    }

    fn new(file: File, path: Option<PathBuf>) -> io::Result<Arc<LockFile>> {
        Ok(Arc::new(LockFile { file: CheckedFile::new(file)?, path }))
    }

    /// Whether a throttle of any process uses the table's rules. Returns true if that is unknown.
    pub(crate) fn is_used(&self) -> bool {
        let mut lock = range(libc::F_WRLCK, RULES, ALL);
        // SAFETY: the descriptor is open, and the structure is used during the call only.
        let asked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        asked != 0 || lock.l_type != libc::F_UNLCK as libc::c_short
    }

    /// A description of its own.
    pub(super) fn open_again(&self) -> io::Result<File> {
        let (again, flags) = (OFlags::RDWR | OFlags::CLOEXEC, OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let by_path = self.path.as_deref().map(|path| (path, again | flags));
        let ways = [Some((Path::new(&by_descriptor), again)), by_path];
        let mut why = io::Error::other("the lock's file is gone");
        for (path, flags) in ways.into_iter().flatten() {
            match open(path, flags, Mode::empty()).map(File::from) {
                Ok(file) if identity(&file)? == self.file.identity => return Ok(file),
                // The number or the name means something else by now.
                Ok(_) => {}
                Err(cause) => why = cause.into(),
            }
        }
        Err(why)
    }
}

impl CheckedFile {
    pub(super) fn new(file: File) -> io::Result<CheckedFile> {
        let identity = identity(&file)?;
        Ok(CheckedFile { file: ManuallyDrop::new(file), identity })
    }
}

impl Deref for CheckedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for CheckedFile {
    fn drop(&mut self) {
        if identity(&self.file).is_ok_and(|found| found == self.identity) {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Locks or unlocks bytes of the file, without waiting. Returns false if another open file
/// description has a lock that conflicts.
pub(super) fn try_change(
    file: &File,
    kind: libc::c_int,
    first: libc::off_t,
    count: libc::off_t,
) -> io::Result<bool> {
    let lock = range(kind, first, count);
    // SAFETY: the descriptor is open, and the structure is read during the call only.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } == 0 {
        return Ok(true);
    }
    let cause = io::Error::last_os_error();
    match cause.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(cause),
    }
}

/// A lock on these bytes of a file.
fn range(kind: libc::c_int, first: libc::off_t, count: libc::off_t) -> libc::flock {
    // SAFETY: a structure of numbers, for which zeroes are right: no process.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = first;
    lock.l_len = count;
    lock
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let meta = file.metadata()?;
    Ok((meta.dev(), meta.ino()))
}
