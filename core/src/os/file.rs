//! Reading a configuration file, or the secret that one names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|cause| unreadable(path, &cause))
}

/// The first bytes of a file, so many at most: it may be any.
pub(crate) fn read_start(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|cause| unreadable(path, &cause))
}

fn unreadable(path: &Path, cause: &io::Error) -> Error {
    Error::new(ErrorKind::File, format!("cannot read {}: {cause}", path.display()))
}
