//! Measures the memory of connections and tags.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::Result;
use crate::servers::Server;
use crate::size::sized;

const BATCH: usize = 1000;

/// Returns the daemon's bytes per idle connection, after one command on each.
pub(crate) fn of_a_connection(dir: &Path) -> Result<u64> {
    let count = sized(2000, 50);
    let daemon = Server::daemon(dir, None)?;
    let request = |stream: &mut UnixStream| -> Result<()> {
        stream.write_all(b"x\n")?;
        Ok(stream.read_exact(&mut [0; 3])?)
    };
    // Let all threads allocate their buffers first.
    for _ in 0..16 {
        request(&mut UnixStream::connect(&daemon.socket)?)?;
    }
    let before = daemon.memory("smaps_rollup", "Private_Dirty:")?;
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = UnixStream::connect(&daemon.socket)?;
        request(&mut stream)?;
        streams.push(stream);
    }
    let after = daemon.memory("smaps_rollup", "Private_Dirty:")?;
    Ok(after.saturating_sub(before) / count as u64)
}

/// Returns the bytes of the table and of the process besides it, with ten million tags (10,000 in a
/// short run).
pub(crate) fn of_many_tags(dir: &Path) -> Result<(u64, u64)> {
    let count = sized(10_000_000, 10_000);
    let dir = dir.join("many");
    fs::create_dir_all(&dir)?;
    let daemon =
        Server::daemon_with(&dir, "rate = \"10 per day\"", &format!(", size = {count}"), None)?;
    let mut stream = UnixStream::connect(&daemon.socket)?;
    let (mut lines, mut answers) = (String::new(), vec![0; 3 * BATCH]);
    for first in (0..count).step_by(BATCH) {
        lines.clear();
        for number in first..first + BATCH {
            let _ = writeln!(lines, "tag-{number}");
        }
        stream.write_all(lines.as_bytes())?;
        stream.read_exact(&mut answers)?;
    }
    let files = fs::read_dir(&dir)?.filter_map(|entry| entry.ok()?.metadata().ok());
    let table = files.filter(fs::Metadata::is_file).map(|file| file.len()).max().unwrap_or(0);
    let process = daemon.memory("smaps_rollup", "Anonymous:")?;
    Ok((table, process))
}
