//! Named tables that start empty in every process, for tests and development. If
//! `DTHROTTLE_FRESH_TABLES` is 1, a name refers to memory of this process and its forked children,
//! and no file is created.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::env;
use std::fs::File;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::memory::Map;
use super::named::{NamedFile, NamedMemory, NamedOptions, OpenError, map};
use crate::error::Error;

const VARIABLE: &str = "DTHROTTLE_FRESH_TABLES";

/// The memory of a name, by the path that its file would have. It is kept until the process ends,
/// because a named table outlives its throttles.
struct FreshTable {
    path: PathBuf,
    file: File,
    earlier: *const FreshTable,
}

/// A list without a lock, because a fork may happen while another thread adds a table.
static LATEST: AtomicPtr<FreshTable> = AtomicPtr::new(ptr::null_mut());

/// Returns true if named tables start empty in this process.
pub(super) fn is_on() -> Result<bool, Error> {
    let Some(value) = env::var_os(VARIABLE) else { return Ok(false) };
    match value.to_str() {
        Some("1") => Ok(true),
        Some("" | "0") => Ok(false),
        _ => Err(Error::config(VARIABLE, format!("must be 1 or 0, got {value:?}"))),
    }
}

/// Opens the memory of a name, or creates it.
pub(super) fn open<M: NamedMemory>(
    path: PathBuf,
    options: &NamedOptions<'_, M>,
) -> Result<NamedFile<M>, OpenError> {
    if let Some(file) = find_file(&path)? {
        return Ok(NamedFile { memory: map(&path, &file)?, file, path });
    }
    let make = || {
        let file = File::from(memfd_create("dthrottle", MemfdFlags::CLOEXEC)?);
        let len = M::bytes(options.shape);
        ftruncate(&file, len as u64)?;
        let memory = M::create(Box::new(Map::file(&file, len)?), options.shape, &options.params);
        let memory = memory.ok_or_else(|| io::Error::other("too short"))?;
        Ok((memory, file.try_clone()?, file))
    };
    let (memory, file, kept) = make().map_err(|cause| no_memory(&cause))?;
    if add(&path, kept) {
        return Ok(NamedFile { memory, file, path });
    }
    // Another thread has just created it.
    let file = find_file(&path)?.ok_or_else(|| no_memory(&io::Error::other("not found")))?;
    Ok(NamedFile { memory: map(&path, &file)?, file, path })
}

/// Opens the memory of a name if this process has created it.
pub(super) fn find<M: NamedMemory>(path: &Path) -> Option<M> {
    map(path, &find_file(path).ok()??).ok()
}

/// All tables, the latest first.
fn tables() -> impl Iterator<Item = &'static FreshTable> {
    // Acquire: pairs with the release in `add`.
    let mut next = LATEST.load(Ordering::Acquire).cast_const();
    iter::from_fn(move || {
        // SAFETY: every pointer in the list is null or from `Box::into_raw` in `add`, and a table
        // in the list is never freed or changed.
        let table = unsafe { next.as_ref() }?;
        next = table.earlier;
        Some(table)
    })
}

/// Adds a table. Returns false if there is one with this path.
fn add(path: &Path, file: File) -> bool {
    let new = Box::into_raw(Box::new(FreshTable { path: path.into(), file, earlier: ptr::null() }));
    loop {
        // Acquire: as in `tables`.
        let latest = LATEST.load(Ordering::Acquire);
        if tables().any(|table| table.path == path) {
            // SAFETY: `new` is from `Box::into_raw` above, and is not in the list.
            drop(unsafe { Box::from_raw(new) });
            return false;
        }
        // SAFETY: as above, so no other thread has a reference to it.
        unsafe { (*new).earlier = latest };
        // Release: pairs with the acquire in `tables`.
        let added = LATEST.compare_exchange(latest, new, Ordering::Release, Ordering::Relaxed);
        if added.is_ok() {
            return true;
        }
    }
}

fn find_file(path: &Path) -> Result<Option<File>, OpenError> {
    let found = tables().find(|table| table.path == path);
    found.map(|table| table.file.try_clone()).transpose().map_err(|cause| no_memory(&cause))
}

fn no_memory(cause: &io::Error) -> OpenError {
    OpenError::Unavailable(format!("no memory for a fresh table: {cause}"))
}
