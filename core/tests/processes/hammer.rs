//! Runs `core/examples/hammer` and communicates with it, with a timeout.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::program;

/// Far longer than any answer takes, so that only a hanging process is killed.
const LIMIT: Duration = Duration::from_secs(120);

/// A running program.
pub(crate) struct Hammer {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Hammer {
    pub(crate) fn start(words: &[&str]) -> Hammer {
        let mut command = Command::new(program::path());
        let command = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || out.lines().map_while(Result::ok).all(|l| sender.send(l).is_ok()));
        Hammer { child, lines }
    }

    /// Reads the next line. Returns `None` if the program has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(Disconnected) => None,
            Err(Timeout) => {
                self.child.kill().unwrap();
                panic!("the program printed nothing for {LIMIT:?}");
            }
        }
    }
}

impl Drop for Hammer {
    fn drop(&mut self) {
        // The program may have ended already. Its children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that has opened a table and executes commands.
pub(crate) struct Worker {
    pub(crate) hammer: Hammer,
    input: ChildStdin,
    pub(crate) warnings: Vec<String>,
}

impl Worker {
    /// Starts a worker. Returns the error if it could not open its table.
    pub(crate) fn open(words: &[&str]) -> Result<Worker, String> {
        let mut hammer = Hammer::start(&[&["worker"], words].concat());
        let mut warnings = Vec::new();
        loop {
            let line = hammer.line().unwrap_or_else(|| panic!("worker {words:?} ended"));
            if line == "open" {
                let input = hammer.child.stdin.take().unwrap();
                return Ok(Worker { hammer, input, warnings });
            } else if let Some(warning) = line.strip_prefix("warning ") {
                warnings.push(warning.to_string());
            } else if let Some(error) = line.strip_prefix("error ") {
                return Err(error.to_string());
            }
        }
    }

    /// Kills the worker.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn kill(mut self) {
        self.hammer.child.kill().unwrap();
        self.hammer.child.wait().unwrap();
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// Reads the numbers that answer a command.
    pub(crate) fn read_answer(&mut self) -> Vec<i64> {
        let line = self.hammer.line().expect("the worker has ended");
        line.split(' ').map(|word| word.parse().unwrap()).collect()
    }

    /// Sends a command and reads one number.
    pub(crate) fn request(&mut self, order: &str) -> i64 {
        self.send(order);
        self.read_answer()[0]
    }
}
