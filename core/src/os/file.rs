//! Reading a configuration file.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|cause| {
        Error::new(ErrorKind::File, format!("cannot read {}: {cause}", path.display()))
    })
}
