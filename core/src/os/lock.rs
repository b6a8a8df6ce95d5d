//! Locks on the bytes of a table's file, which end with the process: the lock of the process that
//! runs the exchange (`exchange_lock.rs`), and locks on the rules in use (`rule_lock.rs`).
//!
//! A lock belongs to an open file description, so every process opens the file itself. A lock on a
//! description that a fork inherited would stay locked as long as any child lives. A named table
//! uses its own file, so there is no other file to create, protect and remove. Processes whose
//! table was removed or replaced still share the old file. `remove` and `resize` also lock that
//! file, but with `flock`, which does not interact with these locks (`F_OFD_SETLK`).
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

/// The meaning of the locked bytes. The file may be shorter.
pub(super) const EXCHANGE: libc::off_t = 0;
pub(super) const RULE_LIST: libc::off_t = 1;
/// The byte of rule index 0. Every other index has the byte that follows.
pub(super) const RULES: libc::off_t = 2;
/// The length of a range without end.
pub(super) const ALL: libc::off_t = 0;

/// A file whose bytes can be locked. Each lock opens it again.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: CheckedFile,
    /// The file's path, if it has one. Needed by programs that close all descriptors to become
    /// daemons.
    path: Option<PathBuf>,
}

/// A file that stays open for long. A program that becomes a daemon may close its descriptor, whose
/// number may then belong to another file. In that case dropping this value closes nothing.
#[derive(Debug)]
pub(super) struct CheckedFile {
    file: ManuallyDrop<File>,
    /// Device and inode of the file.
    identity: (u64, u64),
}

impl LockFile {
    /// A file without a name, for this process and its children.
    pub(crate) fn of_memory() -> io::Result<Arc<LockFile>> {
        LockFile::new(File::from(memfd_create("dthrottle", MemfdFlags::CLOEXEC)?), None)
    }

    /// The file of a named table, for all processes that use the table.
    pub(crate) fn of_table(file: File, path: PathBuf) -> io::Result<Arc<LockFile>> {
        LockFile::new(file, Some(path))
    }

    fn new(file: File, path: Option<PathBuf>) -> io::Result<Arc<LockFile>> {
        Ok(Arc::new(LockFile { file: CheckedFile::new(file)?, path }))
    }

    /// Returns true if a throttle of any process uses the table's rules, or if that is unknown.
    pub(crate) fn is_used(&self) -> bool {
        let mut lock = range(libc::F_WRLCK, RULES, ALL);
        // SAFETY: the descriptor is open, and the structure is used only during the call.
        let result =
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        result != 0 || lock.l_type != libc::F_UNLCK as libc::c_short
    }

    /// Opens the file again, with its own open file description.
    pub(super) fn open_again(&self) -> io::Result<File> {
        let (again, flags) = (OFlags::RDWR | OFlags::CLOEXEC, OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let by_path = self.path.as_deref().map(|path| (path, again | flags));
        let ways = [Some((Path::new(&by_descriptor), again)), by_path];
        let mut why = io::Error::other("the table's file does not exist any more");
        for (path, flags) in ways.into_iter().flatten() {
            match open(path, flags, Mode::empty()).map(File::from) {
                Ok(file) if identity(&file)? == self.file.identity => return Ok(file),
                // The descriptor or the path refers to another file by now.
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
            // SAFETY: dropped only here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Locks or unlocks bytes of the file without waiting. Returns false if another open file
/// description holds a conflicting lock.
pub(super) fn try_change(
    file: &File,
    kind: libc::c_int,
    first: libc::off_t,
    count: libc::off_t,
) -> io::Result<bool> {
    let lock = range(kind, first, count);
    // SAFETY: the descriptor is open, and the structure is read only during the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } == 0 {
        return Ok(true);
    }
    let cause = io::Error::last_os_error();
    match cause.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(cause),
    }
}

/// A lock on `count` bytes of a file, from `first` on.
fn range(kind: libc::c_int, first: libc::off_t, count: libc::off_t) -> libc::flock {
    // SAFETY: a structure of numbers, which may all be zero.
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
