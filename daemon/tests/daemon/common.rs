//! Runs a real daemon with its own folder, table, socket and ports.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The limit for every wait. Nothing takes this long, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Daemon {
    pub(crate) dir: PathBuf,
    pub(crate) socket: PathBuf,
    table: String,
    pub(crate) child: Child,
    log: mpsc::Receiver<String>,
    /// The log line "... is ready: ...".
    pub(crate) ready: String,
}

/// Creates a folder. Returns it and an unused name for a table.
pub(crate) fn new_dir() -> (PathBuf, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("dthrottled-test-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(&name);
    fs::create_dir_all(&dir).unwrap();
    (dir, name)
}

impl Daemon {
    /// Starts a daemon with these rules and these keys of `[daemon]`.
    pub(crate) fn start(rules: &str, keys: &str) -> Daemon {
        let (dir, table) = new_dir();
        Daemon::start_in(dir, table, rules, keys)
    }

    pub(crate) fn start_in(dir: PathBuf, table: String, rules: &str, keys: &str) -> Daemon {
        let socket = dir.join("socket");
        write_config(&dir, &table, rules, keys);
        let (child, log, ready) = Daemon::launch(&dir);
        Daemon { dir, socket, table, child, log, ready }
    }

    fn launch(dir: &std::path::Path) -> (Child, mpsc::Receiver<String>, String) {
        let mut child = command()
            .arg("--config")
            .arg(dir.join("dthrottle.toml"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = lines(child.stderr.take().unwrap());
        let ready = wait_for(&log, "is ready");
        (child, log, ready)
    }

    /// Starts the daemon again with the same configuration.
    pub(crate) fn restart(&mut self) {
        let (child, log, ready) = Daemon::launch(&self.dir);
        (self.child, self.log, self.ready) = (child, log, ready);
    }

    /// Starts another daemon with the same configuration, while this one may still run.
    pub(crate) fn successor(&self) -> Daemon {
        let (child, log, ready) = Daemon::launch(&self.dir);
        let (dir, socket, table) = (self.dir.clone(), self.socket.clone(), self.table.clone());
        Daemon { dir, socket, table, child, log, ready }
    }

    pub(crate) fn rewrite(&self, rules: &str, keys: &str) {
        write_config(&self.dir, &self.table, rules, keys);
    }

    /// The address after these words in the line "is ready".
    pub(crate) fn address(&self, after: &str) -> String {
        let (_, rest) = self.ready.split_once(after).unwrap();
        rest.split([';', ' ']).next().unwrap().into()
    }

    /// The TCP address for lines.
    pub(crate) fn tcp_address(&self) -> String {
        self.address(" and ")
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    pub(crate) fn connect_tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp_address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends `input` and reads `answer` bytes.
    pub(crate) fn exchange(&self, input: &[u8], answer: usize) -> Vec<u8> {
        exchange(&mut self.connect(), input, answer)
    }

    /// Sends a query of the longer form.
    pub(crate) fn query(&self, line: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(format!("\0{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer.trim_end().into()
    }

    /// A count of the daemon, by its name.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let stats = self.query("stats");
        let (_, rest) = stats.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Daemon) -> bool) {
        assert!(self.becomes_true(TIMEOUT, holds), "{what}");
    }

    /// Returns whether a condition becomes true within a time.
    pub(crate) fn becomes_true(&self, time: Duration, holds: impl Fn(&Daemon) -> bool) -> bool {
        let start = Instant::now();
        while !holds(self) {
            if start.elapsed() > time {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let done =
            Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(done.unwrap().success());
    }

    pub(crate) fn wait_for(&self, words: &str) -> String {
        wait_for(&self.log, words)
    }

    /// Waits until the daemon has exited. Returns whether its status is 0.
    pub(crate) fn wait_for_exit(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// The private memory of the daemon in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("Private_Dirty:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dthrottled"));
    for name in ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"] {
        command.env_remove(name);
    }
    command
}

fn write_config(dir: &std::path::Path, table: &str, rules: &str, keys: &str) {
    let socket = dir.join("socket");
    let listen = format!(
        "listen = [{:?}, \"127.0.0.1:0\"]\nhttp = \"127.0.0.1:0\"",
        socket.display().to_string()
    );
    let listen = if keys.contains("listen") { "" } else { &listen };
    // The table is in the folder and is removed with it.
    let table = format!("table = {{ name = {table:?}, dir = {:?} }}", dir.display().to_string());
    let text = format!("{table}\n{rules}\n[daemon]\n{listen}\n{keys}\n");
    fs::write(dir.join("dthrottle.toml"), text).unwrap();
}

pub(crate) fn exchange(stream: &mut (impl Read + Write), input: &[u8], answer: usize) -> Vec<u8> {
    stream.write_all(input).unwrap();
    let mut out = vec![0; answer];
    stream.read_exact(&mut out).unwrap();
    out
}

/// Reads lines in a thread, so that the pipe cannot fill.
pub(crate) fn lines(from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

pub(crate) fn wait_for(log: &mpsc::Receiver<String>, words: &str) -> String {
    let mut all = String::new();
    loop {
        match log.recv_timeout(TIMEOUT) {
            Ok(line) if line.contains(words) => return line,
            Ok(line) => all = all + &line + "\n",
            Err(_) => panic!("no line with {words:?} in:\n{all}"),
        }
    }
}
