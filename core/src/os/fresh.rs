//! Named tables that start empty in every process, for tests and development. If
//! `DTHROTTLE_FRESH_TABLES` is 1, a name refers to memory of this process and its forked children,
//! and no file is created.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::memory::Map;
use super::named::{NamedFile, NamedMemory, NamedOptions, OpenError, map};
use crate::error::Error;

const VARIABLE: &str = "DTHROTTLE_FRESH_TABLES";

/// The memory of each name, by the path that its file would have. It is kept until the process
/// ends, because a named table outlives its throttles.
static TABLES: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

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
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = find_file(&tables, &path)? {
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
    tables.push((path.clone(), kept));
    Ok(NamedFile { memory, file, path })
}

/// Opens the memory of a name if this process has created it.
pub(super) fn find<M: NamedMemory>(path: &Path) -> Option<M> {
    let tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    map(path, &find_file(&tables, path).ok()??).ok()
}

fn find_file(tables: &[(PathBuf, File)], path: &Path) -> Result<Option<File>, OpenError> {
    let found = tables.iter().find(|(known, _)| known == path);
    found.map(|(_, file)| file.try_clone()).transpose().map_err(|cause| no_memory(&cause))
}

fn no_memory(cause: &io::Error) -> OpenError {
    OpenError::Unavailable(format!("no memory for a fresh table: {cause}"))
}
