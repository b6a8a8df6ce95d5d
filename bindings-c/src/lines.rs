//! The query protocol on the side of a client: writes lines and parses answers. `docs/daemon.md`
//! describes it. Uses no sockets.

use dthrottle_core::records::text;
use dthrottle_core::{Decision, Error, ErrorKind, Result};

use crate::decision::CheckOptions;
use crate::ffi::bad;

/// A decision, and the name of the rule to which its indexes refer.
pub(crate) type Answer = (Decision, String);

/// Appends the line for a tag: the tag itself, or a query if the daemon would not read the line as
/// this tag.
pub(crate) fn write_line(tag: &[u8], out: &mut Vec<u8>) -> Result<()> {
    check_no_newline(tag)?;
    // The daemon detects TLS by its first bytes, and HTTP by a request line that ends with CR.
    if tag.starts_with(b"\0") || tag.starts_with(b"\x16\x03") || tag.ends_with(b"\r") {
        out.extend_from_slice(b"\0check\0tag=");
    }
    out.extend_from_slice(tag);
    out.push(b'\n');
    Ok(())
}

/// Returns the line of a query.
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
            return Err(bad("`domain` must not contain NUL or newline"));
        }
        line += &format!("\0domain={domain}");
    }
    if let Some(options) = options {
        if options.allow_debt != 0 {
            return Err(bad("`allow_debt` must be 0, because the daemon does not support it"));
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

/// Returns the token if it can be part of a line.
pub(crate) fn check_token(token: &str) -> Result<String> {
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.into()),
        false => Err(bad("`token` must be printable ASCII without spaces")),
    }
}

fn check_no_newline(tag: &[u8]) -> Result<()> {
    if tag.contains(&b'\n') {
        return Err(bad("`tag` must not contain a newline, which ends a line of the protocol"));
    }
    Ok(())
}

/// Returns true unless the answer to a tag is a refusal.
pub(crate) fn is_allowed(answer: &[u8]) -> bool {
    answer != b"NO" && !answer.starts_with(b"NO ")
}

/// Returns true if the answer follows the protocol. It may be an error.
pub(crate) fn is_answer(answer: &[u8]) -> bool {
    !matches!(parse_answer(answer), Ok(None))
}

/// Returns an answer as text. `None` if it does not follow the protocol.
///
/// # Errors
///
/// The error that the daemon reported.
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

/// Parses the fields of an answer.
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
    fn a_tag_is_sent_as_it_is_unless_it_is_ambiguous() {
        assert_eq!(line(b"203.0.113.7"), b"203.0.113.7\n");
        assert_eq!(line(b""), b"\n");
        assert_eq!(line(b"a\0\xff\rb"), b"a\0\xff\rb\n");
        assert_eq!(line(b"\0check"), b"\0check\0tag=\0check\n");
        assert_eq!(line(b"a\r"), b"\0check\0tag=a\r\n");
        assert_eq!(line(b"\x16\x03\x01"), b"\0check\0tag=\x16\x03\x01\n");
        let error = write_line(b"a\nb", &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("`tag` "), "{error}");
    }

    #[test]
    fn a_query_contains_its_options_before_the_tag() {
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
            assert!(error.to_string().starts_with("`domain` "), "{error}");
        }
        assert!(query("check", None, None, None, b"a\nb").is_err());
    }

    #[test]
    fn every_answer_but_no_allows_and_the_rule_is_the_rest_of_the_line() {
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
    fn errors_keep_their_kind_and_other_text_is_none() {
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
