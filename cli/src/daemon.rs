//! A connection to a dthrottled, with one query at a time.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, fs};

use serde_json::Value;

/// Longer than the timeouts of the client libraries: a person waits, and a report about a large
/// table takes time.
const TIMEOUT: Duration = Duration::from_secs(10);
const NO_DAEMON: &str =
    "the answer is not from a dthrottled; --daemon must name a socket of its line protocol";

#[derive(clap::Args)]
pub(crate) struct DaemonArgs {
    /// The path of the daemon's Unix socket, if it is not the default one, or an address with a
    /// port.
    #[arg(long, value_name = "PLACE", global = true)]
    daemon: Option<String>,
    /// A file with the daemon's token. Over TCP, reset, stats, peers and top need it.
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

/// A Unix or TCP socket.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl DaemonArgs {
    pub(crate) fn open(&self) -> Result<Stream, Box<dyn Error>> {
        let place = self.daemon.clone().unwrap_or_else(|| default_path().display().to_string());
        let about = |error: &dyn fmt::Display| {
            format!(
                "cannot connect to {place}: {error}; start dthrottled, or name its socket with --daemon"
            )
        };
        let stream = match place.parse::<SocketAddr>() {
            Ok(address) => TcpStream::connect_timeout(&address, TIMEOUT).map(Stream::Tcp),
            // A host name, probably. The path of such a file can be written as ./name:1.
            Err(_) if is_host_and_port(&place) => {
                let right = "a path or an address such as \"127.0.0.1:7373\"";
                return Err(format!("--daemon must be {right}, got {place:?}").into());
            }
            Err(_) => UnixStream::connect(&place).map(Stream::Unix),
        };
        let stream = stream.map_err(|error| about(&error))?;
        stream.set_timeouts()?;
        Ok(stream)
    }

    /// Sends a query in the longer form. Returns the answer without its newline.
    pub(crate) fn query(&self, query: &[u8]) -> Result<String, Box<dyn Error>> {
        if query.contains(&b'\n') {
            return Err("a tag must not contain a newline".into());
        }
        let verb_end = query.iter().position(|byte| *byte == 0).unwrap_or(query.len());
        let (verb, fields) = query.split_at(verb_end);
        let token = self.token_field()?;
        let mut stream = self.open()?;
        stream.write_all(&[b"\0", verb, token.as_bytes(), fields, b"\n"].concat())?;
        let mut answer = Vec::new();
        BufReader::new(stream).read_until(b'\n', &mut answer)?;
        let answer = answer.strip_suffix(b"\n").ok_or("the daemon closed the connection")?;
        let answer = str::from_utf8(answer).map_err(|_| NO_DAEMON)?;
        if let Some((_, message)) = answer.strip_prefix("ERROR ").and_then(|e| e.split_once(' ')) {
            return Err(message.into());
        }
        match answer.split(' ').next() {
            Some("OK" | "NO") => Ok(answer.into()),
            _ => Err(NO_DAEMON.into()),
        }
    }

    /// The field of a query with the token; empty if there is no token.
    fn token_field(&self) -> Result<String, Box<dyn Error>> {
        let Some(path) = &self.token_file else { return Ok(String::new()) };
        let text = fs::read_to_string(path)
            .map_err(|error| format!("--token-file: {}: {error}", path.display()))?;
        let token = text.trim_end_matches(['\n', '\r']);
        match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(format!("\0token={token}")),
            false => Err(format!("--token-file: {} contains no token", path.display()).into()),
        }
    }

    /// Queries a report.
    pub(crate) fn report(&self, query: &str) -> Result<Value, Box<dyn Error>> {
        let answer = self.query(query.as_bytes())?;
        let json = answer.strip_prefix("OK ").ok_or(NO_DAEMON)?;
        Ok(serde_json::from_str(json)?)
    }
}

fn is_host_and_port(place: &str) -> bool {
    let port = place.rsplit_once(':').map(|(_, port)| port);
    !place.contains('/') && port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// The daemon's default socket (`docs/daemon.md`).
fn default_path() -> PathBuf {
    let own = env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("dthrottled.sock"));
    own.filter(|own| own.exists()).unwrap_or_else(|| "/run/dthrottled/dthrottled.sock".into())
}

impl Stream {
    fn set_timeouts(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(Some(TIMEOUT)),
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
