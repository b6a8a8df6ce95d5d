//! The longer form of the line protocol: lines that begin with a NUL byte. The caller has removed
//! that byte.
//!
//! `check NUL domain=login NUL cost=2 NUL tag=203.0.113.7`: a verb, options, and last the tag,
//! which is the rest of the line and may contain any bytes. Names have no control characters, so a
//! NUL can separate the fields.

use std::io::Write;
use std::time::Duration;

use dthrottle::records::text;
use dthrottle::{CheckOptions, DEFAULT_COST, Decision, Domain, Error, ErrorKind, Result, Throttle};

use crate::line::LineContext;
use crate::report;
use crate::scan_cache::MAX_TOP;

/// A parsed line.
struct Query<'a> {
    verb: &'a str,
    domain: Option<&'a str>,
    cost: u64,
    max_delay: Duration,
    partial: bool,
    count: usize,
    token: &'a str,
    tag: Option<&'a [u8]>,
}

const VERBS: [&str; 8] = ["check", "peek", "refund", "reset", "stats", "peers", "rules", "top"];
const OPTIONS: &str = "domain, cost, max_delay_ms, partial, count, token or tag";
/// The maximum number of characters of an unknown domain's name in an error.
const MAX_SHOWN: usize = 64;

/// Writes the answer to a line, which is one line.
pub(crate) fn answer(line: &[u8], trusted: bool, context: &LineContext<'_>, out: &mut Vec<u8>) {
    answer_read(Query::read(line), trusted, context, out);
}

/// Like `answer`, for the beginning of a line that is too long. Its tag, which is last, is
/// truncated like that of an ordinary line.
pub(crate) fn answer_truncated(
    line: &[u8],
    trusted: bool,
    context: &LineContext<'_>,
    out: &mut Vec<u8>,
) {
    let query = Query::read(line).ok().filter(|query| query.tag.is_some());
    let error =
        || argument(format!("tag must begin within the {} bytes of a line", line.len() + 1));
    answer_read(query.ok_or_else(error), trusted, context, out);
}

fn answer_read(
    query: Result<Query<'_>>,
    trusted: bool,
    context: &LineContext<'_>,
    out: &mut Vec<u8>,
) {
    context.state.counts.queries.add(1);
    let start = out.len();
    if let Err(error) = query.and_then(|query| query.answer(trusted, context, out)) {
        out.truncate(start);
        write_error(&error, out);
    }
}

impl<'a> Query<'a> {
    fn read(line: &'a [u8]) -> Result<Query<'a>> {
        let (verb, mut rest) = first_field(line);
        let mut query = Query {
            verb: text(verb)?,
            domain: None,
            cost: DEFAULT_COST,
            max_delay: Duration::ZERO,
            partial: false,
            count: 20,
            token: "",
            tag: None,
        };
        while let Some(fields) = rest {
            if let Some(tag) = fields.strip_prefix(b"tag=") {
                query.tag = Some(tag);
                break;
            }
            let (field, more) = first_field(fields);
            rest = more;
            let (key, value) = text(field)?.split_once('=').unwrap_or_default();
            let number = || {
                let error = || argument(format!("{key} must be a whole number, got {value:?}"));
                value.parse::<u64>().map_err(|_| error())
            };
            match key {
                "domain" => query.domain = Some(value),
                "cost" => query.cost = number()?,
                "max_delay_ms" => query.max_delay = Duration::from_millis(number()?),
                "partial" => query.partial = number()? != 0,
                "token" => query.token = value,
                "count" => query.count = number()?.min(MAX_TOP as u64) as usize,
                _ => {
                    let field = String::from_utf8_lossy(field);
                    let message =
                        format!("{field:?} is not an option; write {OPTIONS}, with a value");
                    return Err(argument(message));
                }
            }
        }
        Ok(query)
    }

    fn answer(&self, trusted: bool, context: &LineContext<'_>, out: &mut Vec<u8>) -> Result<()> {
        let max_delay = self.max_delay.min(context.settings.max_delay);
        let options = CheckOptions::cost(self.cost).max_delay(max_delay).partial(self.partial);
        match self.verb {
            "check" => {
                let (domain, tag) = (self.domain(trusted, context)?, self.tag()?);
                let decision = domain.check_with(tag, options)?;
                context.state.add_decision(&domain, tag, decision.allowed);
                write_decision(&decision, &domain, out);
            }
            "peek" => {
                let domain = self.domain(trusted, context)?;
                write_decision(&domain.peek_with(self.tag()?, options)?, &domain, out);
            }
            verb if !VERBS.contains(&verb) => {
                let (last, others) = VERBS.split_last().unwrap_or((&"", &[]));
                let known = others.join(", ");
                return Err(argument(format!("{verb:?} is not a verb; write {known} or {last}")));
            }
            // The remaining verbs change or reveal state.
            verb if !self.may_see_state(trusted, context) => {
                let message = format!(
                    "{verb} needs the daemon's Unix socket, or over TCP the token of daemon.token"
                );
                return Err(argument(message));
            }
            "refund" => {
                self.domain(trusted, context)?.refund(self.tag()?, self.cost)?;
                out.extend_from_slice(b"OK\n");
            }
            "reset" => {
                self.domain(trusted, context)?.reset(self.tag()?)?;
                out.extend_from_slice(b"OK\n");
            }
            "stats" => write_json(&report::stats(context.throttle, context.state), out),
            "peers" => write_json(&report::peers(context.throttle), out),
            "rules" => write_json(&report::rules(context.throttle), out),
            _ => write_json(&report::top(context.throttle, context.state, self.count), out),
        }
        Ok(())
    }

    fn may_see_state(&self, trusted: bool, context: &LineContext<'_>) -> bool {
        trusted || context.settings.is_token(self.token.as_bytes())
    }

    fn domain(&self, trusted: bool, context: &LineContext<'_>) -> Result<Domain> {
        match self.domain {
            None => Ok((**context.throttle).clone()),
            Some(name) => find_domain(context.throttle, name, self.may_see_state(trusted, context)),
        }
    }

    fn tag(&self) -> Result<&'a [u8]> {
        self.tag
            .ok_or_else(|| argument("tag is missing; end the line with tag= and the tag".into()))
    }
}

/// Finds a domain by its name. The error lists all domains only if `may_list` is true.
pub(crate) fn find_domain(throttle: &Throttle, name: &str, may_list: bool) -> Result<Domain> {
    throttle.domain(name).map_err(|error| match error.kind() {
        ErrorKind::Domain if !may_list => {
            let shown: String = name.chars().take(MAX_SHOWN).collect();
            Error::new(ErrorKind::Domain, format!("unknown domain {shown:?}"))
        }
        _ => error,
    })
}

fn first_field(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(0, line) {
        Some(end) => (&line[..end], Some(&line[end + 1..])),
        None => (line, None),
    }
}

fn text(field: &[u8]) -> Result<&str> {
    str::from_utf8(field).map_err(|_| argument("all fields except the tag must be UTF-8".into()))
}

fn argument(message: String) -> Error {
    Error::new(ErrorKind::Argument, message)
}

fn write_decision(decision: &Decision, domain: &Domain, out: &mut Vec<u8>) {
    let mut line = String::from(if decision.allowed { "OK" } else { "NO" });
    // Writing to memory cannot fail.
    let _ = text::write(decision, domain, &mut line);
    line.push('\n');
    out.extend_from_slice(line.as_bytes());
}

fn write_error(error: &Error, out: &mut Vec<u8>) {
    let message = error.to_string().replace(char::is_control, " ");
    let _ = writeln!(out, "ERROR {} {message}", error.kind().name());
}

fn write_json(value: &serde_json::Value, out: &mut Vec<u8>) {
    let _ = writeln!(out, "OK {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::state::State;
    use dthrottle::{ManualClock, Rule};

    fn ask(throttle: &Throttle, line: &[u8], trusted: bool) -> String {
        let text = "[daemon]\ntoken = '0123456789abcdef'\nmax_delay = '10s'";
        let (state, settings) = (State::default(), Settings::from_toml(text).unwrap().1);
        let (context, mut out) =
            (LineContext { throttle, state: &state, settings: &settings }, Vec::new());
        answer(line, trusted, &context, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == 1, "{text:?}");
        text.trim_end().into()
    }

    fn throttle() -> Throttle {
        let builder = Throttle::builder().domain("free", []);
        let builder = builder.domain("log in", [Rule::per_second(2).burst(4).name("a rule")]);
        builder.clock(ManualClock::new()).build().unwrap()
    }

    #[test]
    fn check_and_peek_answer_with_all_fields() {
        let throttle = throttle();
        let one = ask(&throttle, b"check\0domain=log in\0cost=3\0tag=x\0y", false);
        let times = "delay_ns=0 retry_after_ns=0 reset_after_ns=1500000000";
        let figures = "limit=4 remaining=1 balance=1 granted=3";
        assert_eq!(one, format!("OK {figures} {times} deciding=a rule"));
        let two = ask(&throttle, b"peek\0domain=log in\0cost=3\0tag=x\0y", false);
        let times = "delay_ns=0 retry_after_ns=1000000000 reset_after_ns=1500000000";
        assert_eq!(two, format!("NO limit=4 remaining=1 balance=1 granted=0 {times} rule=a rule"));
        let three =
            ask(&throttle, b"check\0domain=log in\0cost=3\0max_delay_ms=1000\0tag=x\0y", false);
        assert!(
            three.starts_with("OK limit=4 remaining=0 balance=-2 granted=3 delay_ns=1000000000")
        );
        let part = ask(&throttle, b"check\0domain=log in\0cost=3\0partial=1\0tag=z", false);
        assert!(part.starts_with("OK limit=4 remaining=1"));
        let free = ask(&throttle, b"check\0domain=free\0tag=", false);
        assert_eq!(free, "OK granted=1 delay_ns=0 retry_after_ns=0 reset_after_ns=0");
    }

    #[test]
    fn refund_and_reset_return_units() {
        let throttle = throttle();
        let left = || ask(&throttle, b"peek\0domain=log in\0tag=x", false);
        for _ in 0..4 {
            ask(&throttle, b"check\0domain=log in\0tag=x", false);
        }
        assert_eq!(ask(&throttle, b"refund\0domain=log in\0cost=2\0tag=x", true), "OK");
        assert!(left().contains("remaining=2"));
        assert_eq!(ask(&throttle, b"reset\0domain=log in\0tag=x", true), "OK");
        assert!(left().contains("remaining=4"));
    }

    #[test]
    fn an_invalid_line_gets_an_error_that_names_the_field() {
        for (line, output) in [
            (b"".as_slice(), "not a verb"),
            (b"chekc\0tag=x", "\"chekc\" is not a verb; write check, peek"),
            (b"check", "tag is missing"),
            (b"check\0cost=2", "tag is missing"),
            (b"check\0cost=-1\0tag=x", "cost must be a whole number, got \"-1\""),
            (b"check\0price=1\0tag=x", "\"price=1\" is not an option"),
            (b"check\0\0tag=x", "\"\" is not an option"),
            (b"check\0domain=\xff\0tag=x", "UTF-8"),
            (
                b"check\0domain=nobody\0tag=x",
                "unknown domain \"nobody\"; known domains are default, free",
            ),
            (b"check\0domain=log in\0cost=5\0tag=x", "can never pass"),
        ] {
            let answer = ask(&throttle(), line, true);
            assert!(answer.starts_with("ERROR ") && answer.contains(output), "{answer}");
        }
    }

    #[test]
    fn reports_are_valid_json() {
        for verb in ["stats", "peers", "rules", "top"] {
            let answer = ask(&throttle(), verb.as_bytes(), true);
            let json = answer.strip_prefix("OK ").unwrap();
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
        }
    }

    #[test]
    fn verbs_for_state_need_a_unix_socket_or_the_token() {
        let throttle = throttle();
        for verb in ["refund", "reset", "stats", "peers", "rules", "top"] {
            let with = |token: &str, trusted| {
                let line = format!("{verb}{token}\0domain=free\0tag=x");
                ask(&throttle, line.as_bytes(), trusted)
            };
            assert!(with("", true).starts_with("OK"));
            assert!(with("\0token=0123456789abcdef", false).starts_with("OK"));
            for token in ["", "\0token=", "\0token=0123456789abcdeg"] {
                let error = format!("ERROR argument {verb} needs the daemon's Unix socket");
                assert!(with(token, false).starts_with(&error));
            }
        }
    }

    #[test]
    fn domains_are_listed_only_for_trusted_clients() {
        let throttle = throttle();
        let with = |verb: &str, token: &str, trusted| {
            let line = format!("{verb}{token}\0domain=nobody\0tag=x");
            ask(&throttle, line.as_bytes(), trusted)
        };
        for verb in ["check", "peek"] {
            let listed =
                "ERROR domain unknown domain \"nobody\"; known domains are default, free, log in";
            assert_eq!(with(verb, "", true), listed);
            assert_eq!(with(verb, "\0token=0123456789abcdef", false), listed);
            for token in ["", "\0token=", "\0token=0123456789abcdeg"] {
                assert_eq!(with(verb, token, false), "ERROR domain unknown domain \"nobody\"");
            }
        }
    }

    #[test]
    fn an_unknown_verb_is_reported_before_a_missing_token() {
        let answer = ask(&throttle(), b"bogus\0tag=x", false);
        assert!(
            answer.starts_with("ERROR argument \"bogus\" is not a verb; write check"),
            "{answer}"
        );
        assert!(answer.ends_with("rules or top"), "{answer}");
    }

    #[test]
    fn a_check_is_delayed_by_at_most_max_delay() {
        let throttle = throttle();
        let check = || ask(&throttle, b"check\0domain=log in\0max_delay_ms=99999999\0tag=x", false);
        // The burst of 4, and 2 per second for 10 seconds.
        for _ in 0..24 {
            assert!(check().starts_with("OK "));
        }
        assert!(check().starts_with("NO "));
        let reset_after = " reset_after_ns=12000000000 ";
        assert!(check().contains(reset_after), "{}", check());
    }
}
