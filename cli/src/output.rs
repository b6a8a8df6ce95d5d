//! Standard output. A reader such as `head` may close the pipe before the end: that is no error.

use std::io::{self, ErrorKind, Write};

/// Prints text, as much of it as the reader takes.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
