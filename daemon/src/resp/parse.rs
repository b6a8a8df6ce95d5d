//! Commands as Redis clients write them: arrays of bulk strings, or a line of words.

use memchr::memchr;

/// The maximum number of words of a command.
const MAX_WORDS: usize = 64;
const TOO_LONG: &str = "ERR Protocol error: a command must have at most max_line bytes";

pub(super) enum Parsed<'a> {
    /// The command is incomplete.
    Unfinished,
    /// The words, and how many bytes they took. An empty line has none.
    Command(Vec<&'a [u8]>, usize),
    /// An error after which the connection must end.
    Wrong(&'static str),
}

/// Reads the first command, which has at most `max_line` bytes.
pub(super) fn parse(input: &[u8], max_line: usize) -> Parsed<'_> {
    let parsed = match input.first() {
        None => return Parsed::Unfinished,
        Some(b'*') => array(input, max_line),
        Some(_) => inline(input),
    };
    match parsed {
        Ok(Some((words, length))) if length <= max_line => Parsed::Command(words, length),
        Ok(None) if input.len() <= max_line => Parsed::Unfinished,
        Ok(_) => Parsed::Wrong(TOO_LONG),
        Err(message) => Parsed::Wrong(message),
    }
}

type Words<'a> = Result<Option<(Vec<&'a [u8]>, usize)>, &'static str>;

fn inline(input: &[u8]) -> Words<'_> {
    let Some((line, length)) = line(input) else { return Ok(None) };
    let words: Vec<&[u8]> =
        line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    match words.len() > MAX_WORDS {
        true => Err("ERR Protocol error: too many words in a line"),
        false => Ok(Some((words, length))),
    }
}

fn array(input: &[u8], max_line: usize) -> Words<'_> {
    let Some((head, mut at)) = line(input) else { return Ok(None) };
    let count = number(&head[1..]).filter(|count| *count <= MAX_WORDS);
    let count = count.ok_or("ERR Protocol error: invalid multibulk length")?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((head, length)) = line(&input[at..]) else { return Ok(None) };
        let Some((b'$', digits)) = head.split_first() else {
            return Err("ERR Protocol error: expected '$'");
        };
        let size = number(digits).ok_or("ERR Protocol error: invalid bulk length")?;
        if size > max_line {
            return Err(TOO_LONG);
        }
        at += length;
        let Some(word) = input.get(at..at + size + 2) else { return Ok(None) };
        if !word.ends_with(b"\r\n") {
            return Err("ERR Protocol error: no CRLF after a bulk string");
        }
        words.push(&word[..size]);
        at += size + 2;
    }
    Ok(Some((words, at)))
}

/// The first line without its end, and its length including the end.
fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr(b'\n', input)?;
    let line = &input[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

fn number(digits: &[u8]) -> Option<usize> {
    str::from_utf8(digits).ok()?.parse().ok()
}
