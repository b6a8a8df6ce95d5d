//! Talks with `core/examples/hammer`, and never waits for it forever.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::program;

/// Far longer than anything takes, so that only what hangs is ended.
const LIMIT: Duration = Duration::from_secs(120);

/// A program that runs.
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

    /// The next line; nothing: it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(Disconnected) => None,
            Err(Timeout) => {
                self.child.kill().unwrap();
                panic!("nothing was heard for {LIMIT:?}");
            }
        }
    }
}

impl Drop for Hammer {
    fn drop(&mut self) {
        // It may have ended already; its children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that has opened a table and does as it is told.
pub(crate) struct Worker {
    pub(crate) hammer: Hammer,
    input: ChildStdin,
    pub(crate) warnings: Vec<String>,
}

impl Worker {
    /// A worker, or why it could not open its table.
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

    /// Ends it wherever it is.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn kill(mut self) {
        self.hammer.child.kill().unwrap();
        self.hammer.child.wait().unwrap();
    }

    /// Gives it something to do.
    pub(crate) fn send(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// What it counted.
    pub(crate) fn read_answer(&mut self) -> Vec<i64> {
        let line = self.hammer.line().expect("the worker has ended");
        line.split(' ').map(|word| word.parse().unwrap()).collect()
    }

    /// Both, for one number.
    pub(crate) fn request(&mut self, order: &str) -> i64 {
        self.send(order);
        self.read_answer()[0]
    }
}
