//! The secret of a cluster and its packet keys: bytes that no message and no `Debug` output shows.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::os::file;

const MIN_BYTES: usize = 16;
/// What is longer is another file, given by mistake.
const MAX_BYTES: usize = 4096;

/// Bytes that are not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretBytes(pub(crate) Vec<u8>);

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

impl SecretBytes {
    pub(super) fn check(&self, what: &str) -> Result<(), String> {
        match self.0.len() {
            MIN_BYTES..=MAX_BYTES => Ok(()),
            bytes => Err(format!("{what} of {bytes} bytes; give it {MIN_BYTES} to {MAX_BYTES}")),
        }
    }
}

/// A secret, or the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    Known(SecretBytes),
    File(PathBuf),
}

impl Secret {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Secret::Known(secret) => secret.check("a secret"),
            Secret::File(path) if path.as_os_str().is_empty() => {
                Err("the path of the file is empty".into())
            }
            Secret::File(_) => Ok(()),
        }
    }

    /// Reads the file, if it is one; the newline at its end does not count. Returns a warning if
    /// every user of the machine can read it.
    pub(super) fn load(&mut self) -> Result<Option<String>> {
        let Secret::File(path) = self else { return Ok(None) };
        let (bytes, warning) = read_secret(path, "cluster.secret", MAX_BYTES)
            .map_err(|error| error.in_field("cluster.secret"))?;
        let secret = SecretBytes(bytes);
        secret.check("the file has a secret").map_err(|message| {
            Error::config("cluster.secret", format!("{}: {message}", path.display()))
        })?;
        *self = Secret::Known(secret);
        Ok(warning)
    }
}

/// Reads the secret in a file without the newline at its end; at least one byte more than `longest`
/// if the secret is longer. Returns a warning about `field` if every user of the machine can read the
/// file.
pub fn read_secret(path: &Path, field: &str, longest: usize) -> Result<(Vec<u8>, Option<String>)> {
    // And a newline, and one to see that it is too long.
    let (mut bytes, open_mode) = file::read_secret(path, longest + 3)?;
    let warning = open_mode.map(|mode| {
        let path = path.display();
        format!(
            "{field}: every user of this machine can read {path} (mode {mode:o}); \
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
