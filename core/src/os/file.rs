//! Reads configuration files and files with secrets.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|cause| unreadable(path, &cause))
}

/// Reads at most `most` bytes of a file with a secret. Also returns the file's mode if every user
/// of the machine can read the file.
pub(crate) fn read_secret(path: &Path, most: usize) -> Result<(Vec<u8>, Option<u32>)> {
    let read = || {
        let file = File::open(path)?;
        let mode = open_mode(&file)?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok((bytes, mode))
    };
    read().map_err(|cause| unreadable(path, &cause))
}

#[cfg(unix)]
fn open_mode(file: &File) -> io::Result<Option<u32>> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata()?;
    let mode = meta.mode() & 0o777;
    Ok((meta.is_file() && mode & 0o004 != 0).then_some(mode))
}

#[cfg(not(unix))]
fn open_mode(_: &File) -> io::Result<Option<u32>> {
    Ok(None)
}

fn unreadable(path: &Path, cause: &io::Error) -> Error {
    Error::new(ErrorKind::File, format!("cannot read {}: {cause}", path.display()))
}
