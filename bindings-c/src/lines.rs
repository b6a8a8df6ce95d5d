//! The bytes of the query protocol, as a client has them: lines out, answers in. `docs/daemon.md`
//! describes them. Touches no sockets.

use dthrottle_core::records::text;
use dthrottle_core::{Decision, Error, ErrorKind, Result};

use crate::decision::CheckOptions;
use crate::ffi::bad;

/// A decision, and the name of the rule that its indexes stand for.
pub(crate) type Answer = (Decision, String);

/// Appends an ordinary line, or the longer form where that would mean something else.
pub(crate) fn write_line(tag: &[u8], out: &mut Vec<u8>) -> Result<()> {
    check_no_newline(tag)?;
    // The daemon takes a TCP connection that begins like TLS, or with a request line and a CR, for
    // another protocol.
    if tag.starts_with(b"\0") || tag.starts_with(b"\x16\x03") || tag.ends_with(b"\r") {
        out.extend_from_slice(b"\0check\0tag=");
    }
    out.extend_from_slice(tag);
    out.push(b'\n');
    Ok(())
}

/// A line of the longer form.
pub(crate) fn query(
    verb: &str,
    domain: Option<&str>,
    options: Option<CheckOptions>,
    token: Option<&str>,
    tag: &[u8],
) -> Result<Vec<u8>> {
    check_no_newline(tag)?;
    let mut line = format!("\0{verb}");
    if let Some(domain) = domain {
        if domain.contains(['\0', '\n']) {
            return Err(bad("domain: a name has no control characters"));
        }
        line += &format!("\0domain={domain}");
    }
    if let Some(options) = options {
        if options.allow_debt != 0 {
            return Err(bad("allow_debt: a daemon does not take this option"));
        }
        line += &format!("\0cost={}", options.cost);
        if options.max_delay_ns > 0 {
            line += &format!("\0max_delay_ms={}", options.max_delay_ns / 1_000_000);
        }
        if options.partial != 0 {
            line += "\0partial=1";
        }
    }
    if let Some(token) = token {
        line += &format!("\0token={token}");
    }
    line += "\0tag=";
    let mut line = line.into_bytes();
    line.extend_from_slice(tag);
    line.push(b'\n');
    Ok(line)
}

/// A token that can stand in a line.
pub(crate) fn check_token(token: &str) -> Result<String> {
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.into()),
        false => Err(bad("token: must be printable ASCII without blanks")),
    }
}

fn check_no_newline(tag: &[u8]) -> Result<()> {
    if tag.contains(&b'\n') {
        return Err(bad("tag: one that a daemon is asked about cannot have a newline in it"));
    }
    Ok(())
}

/// Whether an answer to an ordinary line is yes. Whatever is not a no is a yes.
pub(crate) fn is_allowed(answer: &[u8]) -> bool {
    answer != b"NO" && !answer.starts_with(b"NO ")
}

/// Whether it is the answer of a daemon, which may be an error.
pub(crate) fn is_answer(answer: &[u8]) -> bool {
    !matches!(parse_answer(answer), Ok(None))
}

/// What the daemon said, unless it was an error; nothing if it is not the answer of a daemon.
pub(crate) fn parse_answer(answer: &[u8]) -> Result<Option<&str>> {
    let Ok(answer) = str::from_utf8(answer) else {
        return Ok(None);
    };
    if let Some((kind, message)) = answer.strip_prefix("ERROR ").and_then(|e| e.split_once(' ')) {
        let known = ErrorKind::ALL.into_iter().find(|known| known.name() == kind);
        return Err(Error::new(known.unwrap_or(ErrorKind::Internal), message));
    }
    let word = answer.split(' ').next();
    Ok(matches!(word, Some("OK" | "NO")).then_some(answer))
}

/// The figures of a good answer.
pub(crate) fn parse_decision(answer: &str) -> Answer {
    let text::Answer { decision, rule } = text::read(answer);
    (decision, rule.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tag: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_line(tag, &mut out).unwrap();
        out
    }

    #[test]
    fn tags_are_lines_as_they_are() {
        assert_eq!(line(b"203.0.113.7"), b"203.0.113.7\n");
        assert_eq!(line(b""), b"\n");
        assert_eq!(line(b"a\0\xff\rb"), b"a\0\xff\rb\n");
        assert_eq!(line(b"\0check"), b"\0check\0tag=\0check\n");
        assert_eq!(line(b"a\r"), b"\0check\0tag=a\r\n");
        assert_eq!(line(b"\x16\x03\x01"), b"\0check\0tag=\x16\x03\x01\n");
        let error = write_line(b"a\nb", &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("tag: "), "{error}");
    }

    #[test]
    fn the_longer_form() {
        let options = CheckOptions { max_delay_ns: 2_500_000, partial: 1, ..CheckOptions::cost(2) };
        assert_eq!(
            query("check", Some("log in"), Some(options), None, b"x\0y").unwrap(),
            b"\0check\0domain=log in\0cost=2\0max_delay_ms=2\0partial=1\0tag=x\0y\n"
        );
        assert_eq!(query("reset", None, None, None, b"").unwrap(), b"\0reset\0tag=\n");
        let reset = query("reset", None, None, Some("t0ken"), b"x").unwrap();
        assert_eq!(reset, b"\0reset\0token=t0ken\0tag=x\n");
        assert!(
            ["", "a b", "a\0b", "a\n", "\u{e9}"].iter().all(|wrong| check_token(wrong).is_err())
        );
        for domain in ["a\0cost=0", "a\nb"] {
            let error = query("check", Some(domain), None, None, b"x").unwrap_err();
            assert!(error.to_string().starts_with("domain: "), "{error}");
        }
        assert!(query("check", None, None, None, b"a\nb").is_err());
    }

    #[test]
    fn answers_are_read() {
        assert!(
            is_allowed(b"OK")
                && is_allowed(b"")
                && is_allowed(b"NOW")
                && is_allowed(b"ERROR cost no")
        );
        assert!(!is_allowed(b"NO") && !is_allowed(b"NO limit=1"));
        let (decision, rule) = parse_decision("NO limit=4 rule=a rule=x");
        assert_eq!((decision.allowed, decision.limit, rule.as_str()), (false, 4, "a rule=x"));
    }

    #[test]
    fn errors_keep_their_kind_and_the_rest_is_nothing() {
        let kind = |answer: &str| parse_answer(answer.as_bytes()).unwrap_err().kind();
        for known in ErrorKind::ALL {
            assert_eq!(kind(&format!("ERROR {} some words", known.name())), known);
        }
        assert_eq!(kind("ERROR later some words"), ErrorKind::Internal);
        for answer in [b"".as_slice(), b"HTTP/1.1 400", b"ERROR", b"OKAY", b"\xff"] {
            assert_eq!(parse_answer(answer).unwrap(), None);
        }
        assert_eq!(parse_answer(b"OK").unwrap(), Some("OK"));
    }
}
