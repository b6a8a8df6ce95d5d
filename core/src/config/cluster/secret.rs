//! The secret and the packet keys of a cluster. No error message and no `Debug` output shows them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::os::file;

const MIN_BYTES: usize = 16;
/// A longer secret is most likely another file, given by mistake.
const MAX_BYTES: usize = 4096;

/// Bytes that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretBytes(pub(crate) Vec<u8>);

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

impl SecretBytes {
    pub(super) fn check(&self) -> Result<(), String> {
        match self.0.len() {
            MIN_BYTES..=MAX_BYTES => Ok(()),
            bytes => Err(format!("must have {MIN_BYTES} to {MAX_BYTES} bytes, got {bytes}")),
        }
    }
}

/// A secret, or the path of the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    Known(SecretBytes),
    File(PathBuf),
}

impl Secret {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Secret::Known(secret) => secret.check(),
            Secret::File(path) if path.as_os_str().is_empty() => {
                Err("must have the path of the file, got an empty path".into())
            }
            Secret::File(_) => Ok(()),
        }
    }

    /// Reads the secret if it is in a file, without a newline at its end. Returns a warning if
    /// every user of the machine can read the file.
    pub(super) fn load(&mut self) -> Result<Option<String>> {
        let Secret::File(path) = self else { return Ok(None) };
        let (bytes, warning) = read_secret(path, "cluster.secret", MAX_BYTES)
            .map_err(|error| error.in_field("cluster.secret"))?;
        let secret = SecretBytes(bytes);
        secret.check().map_err(|message| {
            Error::config("cluster.secret", format!("{message} in {}", path.display()))
        })?;
        *self = Secret::Known(secret);
        Ok(warning)
    }
}

/// Reads a secret from a file, without a newline at its end. If the secret has more than `longest`
/// bytes, returns more than `longest` bytes of it. Also returns a warning about `field` if every
/// user of the machine can read the file.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read_secret(path: &Path, field: &str, longest: usize) -> Result<(Vec<u8>, Option<String>)> {
    // Two bytes more for CR and LF, and one more to detect a secret that is too long.
    let (mut bytes, open_mode) = file::read_secret(path, longest + 3)?;
    let warning = open_mode.map(|mode| {
        let path = path.display();
        format!(
            "`{field}`: every user of this machine can read {path} (mode {mode:o}); \
             run `chmod o-r {path}`"
        )
    });
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    Ok((bytes, warning))
}
