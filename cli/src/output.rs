//! Standard output. It is not an error if a reader such as `head` closes the pipe early.

use std::io::{self, ErrorKind, Write};

/// Prints text. Succeeds if the reader has closed the pipe.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
