//! Which process of a table runs the exchange: the one that holds a lock, which dies with it.
//!
//! The lock is on an open file description, and every process opens the file for itself: one that
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

use super::fork::{self, Guarded};
use crate::table::rule_users::RuleUsers;

/// What a locked byte of the file stands for. The bytes need not be there.
pub(super) const EXCHANGE: libc::off_t = 0;
pub(super) const RULE_LIST: libc::off_t = 1;
/// The byte of rule index zero; every other index has the byte that follows.
pub(super) const RULES: libc::off_t = 2;
/// As many bytes as there are.
pub(super) const ALL: libc::off_t = 0;

/// Where the processes of a table agree on one of them.
#[derive(Clone, Debug)]
pub(crate) enum LockPlace {
    /// The table is this process's own.
    None,
    /// A file that stands for the table.
    File(Arc<LockFile>),
}

/// A file to be opened again.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: KeptFile,
    /// If it has a name: for programs that close all descriptors when they become daemons.
    path: Option<PathBuf>,
}

/// A file that stays open for long. A program that becomes a daemon may close all descriptors
/// without its knowledge: a descriptor that refers to another file by then is not closed.
#[derive(Debug)]
pub(super) struct KeptFile {
    file: ManuallyDrop<File>,
    /// Device and number of the file.
    identity: (u64, u64),
}

/// The right to run the exchange. Given back when it is dropped, and never inherited.
#[derive(Debug)]
pub struct Lock(Option<Guarded<File>>);

impl LockPlace {
    /// For this process and its children.
    pub(crate) fn of_memory() -> io::Result<LockPlace> {
        let file = File::from(memfd_create("dthrottle", MemfdFlags::CLOEXEC)?);
        LockPlace::of_file(file, None)
    }

    /// For all processes that have the table in this file.
    pub(crate) fn of_table(file: File, path: PathBuf) -> io::Result<LockPlace> {
        LockPlace::of_file(file, Some(path))
    }

    fn of_file(file: File, path: Option<PathBuf>) -> io::Result<LockPlace> {
        let file = KeptFile::new(file)?;
        Ok(LockPlace::File(Arc::new(LockFile { file, path })))
    }

    /// How the users of the table's rules are known.
    pub(crate) fn rule_users(&self) -> RuleUsers {
        match self {
            LockPlace::None => RuleUsers::counted(),
            LockPlace::File(file) => RuleUsers::Locked(Arc::clone(file)),
        }
    }

    /// The lock, unless another process has it.
    pub(crate) fn try_lock(&self) -> io::Result<Option<Lock>> {
        let LockPlace::File(place) = self else { return Ok(Some(Lock(None))) };
        let guarded = fork::guard(|| place.open_again())?;
        let Some(file) = guarded.get() else { return Ok(None) };
        let is_free = try_change(file, libc::F_WRLCK, EXCHANGE, 1)?;
        Ok(is_free.then_some(Lock(Some(guarded))))
    }
}

impl LockFile {
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

impl Lock {
    /// Whether it is still this process's: a forked child has only a shadow of it.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_none_or(|guarded| guarded.get().is_some())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.0.as_ref().and_then(Guarded::get) {
            // Not by closing alone: a child that is forked just now may keep the descriptor for a
            // moment, or for ever. It cannot fail: the descriptor is ours.
            let _ = try_change(file, libc::F_UNLCK, EXCHANGE, 1);
        }
    }
}

impl KeptFile {
    pub(super) fn new(file: File) -> io::Result<KeptFile> {
        let identity = identity(&file)?;
        Ok(KeptFile { file: ManuallyDrop::new(file), identity })
    }
}

impl Deref for KeptFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for KeptFile {
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
    // SAFETY: a structure of numbers, for which zeroes are right: no process.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = first;
    lock.l_len = count;
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

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let meta = file.metadata()?;
    Ok((meta.dev(), meta.ino()))
}
