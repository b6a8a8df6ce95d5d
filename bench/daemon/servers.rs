//! The servers. Each is started for a measurement and killed when it is dropped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::{Result, echo};

const DAEMON: &str = "target/release/dthrottled";

/// GCRA as a Redis script, which stores one number per key, as redis-cell does.
const GCRA: &str = "local now = redis.call('TIME'); now = now[1] * 1e6 + now[2] \
    local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) \
    local interval = 1e6 / rate \
    local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + cost * interval \
    if tat - burst * interval > now then return 0 end \
    redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1) \
    return 1";

pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Server {
    /// Starts a daemon that allows every check. `core` is the core to bind it to.
    pub(crate) fn daemon(dir: &Path, core: Option<usize>) -> Result<Server> {
        Server::daemon_with(dir, "rate = \"1000000/s\"\nburst = 1000000000", "", core)
    }

    /// Starts a daemon with this rule and with more keys for `[table]`.
    pub(crate) fn daemon_with(
        dir: &Path,
        rule: &str,
        table: &str,
        core: Option<usize>,
    ) -> Result<Server> {
        let (config, socket) = (dir.join("dthrottle.toml"), dir.join("daemon"));
        let dir = dir.display();
        let text = format!(
            "{rule}\ntable = {{ name = \"bench\", dir = \"{dir}\"{table} }}\n\
             [daemon]\nlisten = \"{}\"\nhttp = false\nmax_connections = 100000\n",
            socket.display()
        );
        fs::write(&config, text)?;
        let mut command = command_on(core, DAEMON);
        command.arg("--config").arg(config).args(["--log-level", "warn"]);
        Server::start(command, socket)
    }

    pub(crate) fn redis(dir: &Path, core: Option<usize>) -> Result<Server> {
        let socket = dir.join("redis");
        let mut command = command_on(core, "redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(&socket).stdout(Stdio::null());
        Server::start(command, socket)
    }

    pub(crate) fn echo(dir: &Path, core: Option<usize>) -> Result<Server> {
        let socket = dir.join("echo");
        let mut command = command_on(core, &env::current_exe()?.display().to_string());
        command.arg(echo::ARGUMENT).arg(&socket);
        Server::start(command, socket)
    }

    fn start(mut command: Command, socket: PathBuf) -> Result<Server> {
        let _ = fs::remove_file(&socket);
        let server = Server { child: command.spawn()?, socket };
        let start = Instant::now();
        while UnixStream::connect(&server.socket).is_err() {
            if start.elapsed() > Duration::from_secs(10) {
                return Err(format!("{command:?} does not answer").into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Loads the script into Redis, and returns its hash.
    pub(crate) fn load_gcra(&self) -> Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        write!(stream, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n${}\r\n{GCRA}\r\n", GCRA.len())?;
        let mut lines = BufReader::new(stream).lines();
        let head = lines.next().ok_or("no answer")??;
        match head.as_str() {
            "$40" => Ok(lines.next().ok_or("no name")??),
            _ => Err(format!("Redis does not take the script: {head}").into()),
        }
    }

    /// Returns the value of a key in a file of /proc about the process, in bytes.
    pub(crate) fn memory(&self, file: &str, key: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with(key)).ok_or("no such figure")?;
        Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse::<u64>()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command for a program, which is bound to `core` if one is given.
fn command_on(core: Option<usize>, program: &str) -> Command {
    match core {
        None => Command::new(program),
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", &core.to_string(), program]);
            command
        }
    }
}
