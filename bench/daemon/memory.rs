//! What connections and tags cost.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::Done;
use crate::servers::Server;

const CONNECTIONS: usize = 2000;
const TAGS: usize = 10_000_000;
const BATCH: usize = 1000;

/// Bytes of the daemon for each idle connection that has asked before.
pub(crate) fn of_a_connection(dir: &Path) -> Done<u64> {
    let daemon = Server::daemon(dir, None)?;
    let ask = |stream: &mut UnixStream| -> Done<()> {
        stream.write_all(b"x\n")?;
        Ok(stream.read_exact(&mut [0; 3])?)
    };
    // All its threads have what they need.
    for _ in 0..16 {
        ask(&mut UnixStream::connect(&daemon.socket)?)?;
    }
    let before = daemon.memory("smaps_rollup", "Private_Dirty:")?;
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = UnixStream::connect(&daemon.socket)?;
        ask(&mut stream)?;
        streams.push(stream);
    }
    let after = daemon.memory("smaps_rollup", "Private_Dirty:")?;
    Ok(after.saturating_sub(before) / CONNECTIONS as u64)
}

/// Bytes of the table and of the daemon besides, with ten million tags in it.
pub(crate) fn of_ten_million_tags(dir: &Path) -> Done<(u64, u64)> {
    let dir = dir.join("many");
    fs::create_dir_all(&dir)?;
    let daemon =
        Server::daemon_with(&dir, "rate = \"10 per day\"", &format!(", size = {TAGS}"), None)?;
    let mut stream = UnixStream::connect(&daemon.socket)?;
    let (mut lines, mut answers) = (String::new(), vec![0; 3 * BATCH]);
    for first in (0..TAGS).step_by(BATCH) {
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
