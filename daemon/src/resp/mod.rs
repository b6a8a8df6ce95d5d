//! RESP, the protocol of Redis clients, without sockets. The main command is CL.THROTTLE of
//! redis-cell. The others are those that client libraries send when they connect.

mod call_rules;
mod command;
mod parse;

pub(crate) use call_rules::CallRules;

use crate::daemon::Daemon;
use crate::line::{Consumed, MAX_OUTPUT};
use parse::{Parsed, parse};

/// The state of a connection between two reads.
pub(crate) struct Resp {
    /// Input that is not answered yet: an incomplete command, or commands after the limit of
    /// output.
    part: Vec<u8>,
    /// Whether `part` may contain a complete command.
    pending: bool,
    ended: bool,
    max_line: usize,
    /// How many rules the connection has added.
    added: usize,
}

impl Resp {
    pub(crate) fn new(max_line: usize) -> Resp {
        Resp { part: Vec::new(), pending: false, ended: false, max_line, added: 0 }
    }

    /// Reads commands and writes their answers until `out` is long. Stores the input that is left.
    pub(crate) fn feed(&mut self, input: &[u8], daemon: &Daemon, out: &mut Vec<u8>) -> Consumed {
        let mut requests = 0;
        let mut joined = std::mem::take(&mut self.part);
        let mut rest = match joined.is_empty() {
            true => input,
            false => {
                joined.extend_from_slice(input);
                joined.as_slice()
            }
        };
        self.pending = true;
        while !self.ended && out.len() < MAX_OUTPUT {
            match parse(rest, self.max_line) {
                Parsed::Unfinished => {
                    self.pending = false;
                    break;
                }
                Parsed::Wrong(message) => {
                    command::write_error(message, out);
                    self.ended = true;
                }
                Parsed::Command(arguments, length) => {
                    rest = &rest[length..];
                    if !arguments.is_empty() {
                        daemon.state.counts.resp_commands.add(1);
                        requests += 1;
                        self.ended = command::answer(&arguments, daemon, &mut self.added, out);
                    }
                }
            }
        }
        self.part = rest.to_vec();
        Consumed { bytes: input.len(), requests }
    }

    /// Whether stored input can be answered by another call of `feed`.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending && !self.ended
    }

    /// Whether the connection ends after this answer.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::descriptors::Limits;
    use dthrottle::Throttle;

    const MAX_LINE: usize = 8192;

    fn daemon() -> Daemon {
        let throttle = Throttle::builder().rule(dthrottle::Rule::unlimited()).build().unwrap();
        let settings = Settings::defaults();
        let limits = Limits::of_process(&settings).unwrap();
        Daemon::new(settings, limits, None, throttle).unwrap()
    }

    fn feed(resp: &mut Resp, input: &[u8], daemon: &Daemon) -> String {
        let mut all = Vec::new();
        resp.feed(input, daemon, &mut all);
        while resp.is_pending() {
            let mut out = Vec::new();
            resp.feed(b"", daemon, &mut out);
            all.extend(out);
        }
        String::from_utf8(all).unwrap()
    }

    fn ask(input: &str, daemon: &Daemon) -> String {
        feed(&mut Resp::new(MAX_LINE), input.as_bytes(), daemon)
    }

    #[test]
    fn cl_throttle_answers_five_numbers_as_redis_cell_does() {
        let daemon = daemon();
        let call = "CL.THROTTLE user123 15 30 60 1\r\n";
        assert_eq!(ask(call, &daemon), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
        let all = "cl.throttle user123 15 30 60 15\r\n";
        assert_eq!(ask(all, &daemon), "*5\r\n:0\r\n:16\r\n:0\r\n:-1\r\n:32\r\n");
        assert_eq!(ask(call, &daemon), "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n");
        let look = "CL.THROTTLE user123 15 30 60 0\r\n";
        assert_eq!(ask(look, &daemon), "*5\r\n:0\r\n:16\r\n:0\r\n:-1\r\n:32\r\n");
        let never = "CL.THROTTLE other 15 30 60 17\r\n";
        assert_eq!(ask(never, &daemon), "*5\r\n:1\r\n:16\r\n:16\r\n:-1\r\n:0\r\n");
    }

    #[test]
    fn a_key_has_one_bucket_for_all_rules() {
        let daemon = daemon();
        assert!(
            ask("CL.THROTTLE k 9 10 60 10\r\n", &daemon).starts_with("*5\r\n:0\r\n:10\r\n:0\r\n")
        );
        assert!(ask("CL.THROTTLE k 4 10 60\r\n", &daemon).starts_with("*5\r\n:1\r\n:5\r\n:0\r\n"));
    }

    #[test]
    fn commands_may_arrive_in_pieces_or_together() {
        let daemon = daemon();
        let call = "*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\na\nb\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n";
        let mut resp = Resp::new(MAX_LINE);
        let answers: String =
            call.repeat(2).bytes().map(|byte| feed(&mut resp, &[byte], &daemon)).collect();
        assert_eq!(
            answers,
            "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n"
        );
        let many = feed(&mut resp, call.repeat(5000).as_bytes(), &daemon);
        assert_eq!(many.matches("*5\r\n:1\r\n").count(), 5000);
    }

    #[test]
    fn the_commands_that_clients_send_at_connect_are_answered() {
        let daemon = daemon();
        assert_eq!(ask("PING\r\n", &daemon), "+PONG\r\n");
        assert_eq!(ask("ping hi\r\n", &daemon), "$2\r\nhi\r\n");
        assert!(ask("INFO\r\n", &daemon).contains("redis_version:"));
        assert!(ask("COMMAND\r\n", &daemon).starts_with("*"));
        assert_eq!(ask("COMMAND COUNT\r\n", &daemon).as_bytes()[0], b':');
        assert_eq!(ask("COMMAND DOCS\r\n", &daemon), "*0\r\n");
        assert!(ask("HELLO 3\r\n", &daemon).starts_with("%7\r\n"));
        assert!(ask("HELLO 2\r\n", &daemon).starts_with("*14\r\n"));
        assert!(ask("HELLO 4\r\n", &daemon).starts_with("-NOPROTO"));
        assert_eq!(ask("CLIENT SETINFO LIB-NAME x\r\n", &daemon), "+OK\r\n");
        assert_eq!(ask("QUIT\r\nPING\r\n", &daemon), "+OK\r\n");
        assert_eq!(ask("\r\n\r\nPING\r\n", &daemon), "+PONG\r\n");
    }

    #[test]
    fn an_invalid_command_gets_an_error_in_one_line() {
        let daemon = daemon();
        for (input, printed) in [
            ("GET x\r\n", "-ERR unknown command 'GET'; dthrottled has the commands"),
            ("CL.THROTTLE x 1 1\r\n", "-ERR wrong number of arguments for 'cl.throttle' command"),
            (
                "CL.THROTTLE x -1 1 1\r\n",
                "-ERR max_burst must be a whole number of at least 0, got -1",
            ),
            (
                "CL.THROTTLE x 1 0 1\r\n",
                "-ERR count_per_period must be a whole number of at least 1, got 0",
            ),
            ("CL.THROTTLE x 1 1 0\r\n", "-ERR period must be a whole number of at least 1, got 0"),
            ("CL.THROTTLE x 1 1 y\r\n", "-ERR period must be a whole number of at least 1, got y"),
            ("CL.THROTTLE x 9999999999999999 1 1\r\n", "-ERR "),
            ("SELECT 3\r\n", "-ERR"),
            ("*1\r\n:5\r\n", "-ERR Protocol error"),
            ("*-5\r\n", "-ERR Protocol error"),
            ("*99999\r\n", "-ERR Protocol error"),
            ("*1\r\n$9999999\r\n", "-ERR Protocol error: a command must have at most"),
            ("*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length"),
            ("*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length"),
        ] {
            let answer = ask(input, &daemon);
            assert!(answer.starts_with(printed) && answer.lines().count() == 1, "{answer}");
        }
    }

    /// The stored input of a connection is bounded, no matter how the command is cut.
    #[test]
    fn a_command_above_max_line_ends_the_connection() {
        let daemon = daemon();
        let echo = |size: usize| format!("*2\r\n$4\r\nECHO\r\n${size}\r\n{:x<size$}\r\n", "");
        let most = MAX_LINE - echo(1000).len() + 1000;
        for (input, fits) in [
            (echo(most), true),
            (echo(most + 1), false),
            (format!("ECHO {:x<1$}\r\n", "", MAX_LINE - 7), true),
            (format!("ECHO {:x<1$}\r\n", "", MAX_LINE - 6), false),
            ("x".repeat(MAX_LINE + 1), false),
        ] {
            for cut in [0, 1, 20, MAX_LINE, MAX_LINE + 1] {
                let mut resp = Resp::new(MAX_LINE);
                let (first, second) = input.split_at(cut.min(input.len()));
                let mut out = feed(&mut resp, first.as_bytes(), &daemon);
                assert!(resp.has_ended() || resp.part.len() <= MAX_LINE);
                if !resp.has_ended() {
                    out += &feed(&mut resp, second.as_bytes(), &daemon);
                }
                assert_eq!(out.starts_with('$'), fits, "{out}");
                assert_eq!(resp.has_ended(), !fits);
            }
        }
    }

    #[test]
    fn the_number_of_rules_is_bounded_and_buckets_are_kept() {
        let daemon = daemon();
        let victim = "CL.THROTTLE victim 0 1 3600\r\n";
        assert!(ask(victim, &daemon).starts_with("*5\r\n:0\r\n"));
        let mut one = Resp::new(MAX_LINE);
        let add = |resp: &mut Resp, burst: u32| {
            feed(resp, format!("CL.THROTTLE x {burst} 1 60\r\n").as_bytes(), &daemon)
        };
        for burst in 0..250 {
            assert!(add(&mut one, burst).starts_with("*5\r\n"));
        }
        assert!(add(&mut one, 250).starts_with("-ERR too many different rules: "));
        // Existing rules can be used by every connection.
        assert!(add(&mut one, 249).starts_with("*5\r\n"));
        let added =
            (250..5000).filter(|burst| add(&mut Resp::new(MAX_LINE), *burst).starts_with("*5\r\n"));
        assert_eq!(added.count(), 4000 - 251);
        assert_eq!(daemon.state.counts.resp_rules_refused.get(), 1 + 5000 - 250 - (4000 - 251));
        assert!(ask(victim, &daemon).starts_with("*5\r\n:1\r\n"), "its bucket is still empty");
    }
}
