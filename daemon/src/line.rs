//! The line protocol, without sockets: reads bytes, writes answers. `docs/daemon.md` defines it.
//!
//! An ordinary line is a tag, and its answer is `OK` or `NO`. It needs no allocation. A line that
//! begins with a NUL byte is a query of the longer form (`query.rs`).

use dthrottle::Throttle;
use memchr::memchr;

use crate::config::Settings;
use crate::query;
use crate::state::State;

/// How many tags are checked in one call. The core prefetches this many buckets.
const BATCH: usize = 64;
/// A session stops reading when it has written this many bytes, so that the answers of a client
/// that does not read are bounded.
pub(crate) const MAX_OUTPUT: usize = 32 * 1024;

/// How much of its input a session has processed.
pub(crate) struct Consumed {
    pub(crate) bytes: usize,
    /// The number of requests that were answered.
    pub(crate) requests: u64,
}

/// The state of a connection between two reads.
pub(crate) struct Lines {
    /// The beginning of an incomplete line.
    part: Vec<u8>,
    /// The incomplete line is longer than `part`.
    is_truncated: bool,
    max_line: usize,
    /// Whether the client is on a Unix socket, so that it may see and change state without a token.
    trusted: bool,
}

/// The throttle, counters and settings with which lines are answered.
pub(crate) struct LineContext<'a> {
    pub(crate) throttle: &'a Throttle,
    pub(crate) state: &'a State,
    pub(crate) settings: &'a Settings,
}

/// Tags that are not checked yet.
struct Batch<'a> {
    tags: [&'a [u8]; BATCH],
    len: usize,
    /// The number of lines that were answered, including queries.
    answered: u64,
}

impl Lines {
    pub(crate) fn new(max_line: usize, trusted: bool) -> Lines {
        Lines { part: Vec::new(), is_truncated: false, max_line, trusted }
    }

    /// Reads lines and writes their answers, until `out` is long or all bytes are read.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        context: &LineContext<'_>,
        out: &mut Vec<u8>,
    ) -> Consumed {
        let (mut rest, mut requests) = (input, 0);
        if !self.part.is_empty() || self.is_truncated {
            let Some(end) = memchr(b'\n', rest) else {
                self.store(rest);
                return Consumed { bytes: input.len(), requests };
            };
            self.store(&rest[..end]);
            rest = &rest[end + 1..];
            let (part, is_truncated) =
                (std::mem::take(&mut self.part), std::mem::take(&mut self.is_truncated));
            let mut batch = Batch::new();
            self.line(&part, is_truncated, context, &mut batch, out);
            batch.answer(context, out);
            requests += batch.answered;
        }
        let mut batch = Batch::new();
        while out.len() < MAX_OUTPUT {
            let Some(end) = memchr(b'\n', rest) else {
                self.store(rest);
                rest = &[];
                break;
            };
            self.line(&rest[..end], end > self.max_line + 1, context, &mut batch, out);
            rest = &rest[end + 1..];
        }
        batch.answer(context, out);
        Consumed { bytes: input.len() - rest.len(), requests: requests + batch.answered }
    }

    /// Stores the beginning of a line, with one byte more than the longest tag for a CR.
    fn store(&mut self, bytes: &[u8]) {
        let room = self.max_line + 1 - self.part.len();
        self.is_truncated |= bytes.len() > room;
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    #[inline]
    fn line<'a>(
        &self,
        line: &'a [u8],
        is_truncated: bool,
        context: &LineContext<'_>,
        batch: &mut Batch<'a>,
        out: &mut Vec<u8>,
    ) {
        if line.first() == Some(&0) {
            // Answers must be in the order of the lines.
            batch.answer(context, out);
            batch.answered += 1;
            if is_truncated || line.len() > self.max_line {
                context.state.counts.long_lines.add(1);
                return query::answer_truncated(
                    &line[1..self.max_line],
                    self.trusted,
                    context,
                    out,
                );
            }
            return query::answer(&line[1..], self.trusted, context, out);
        }
        let mut tag = line;
        if !is_truncated && let [all @ .., b'\r'] = line {
            tag = all;
        }
        if tag.len() > self.max_line {
            // Only the beginning of a long tag counts.
            context.state.counts.long_lines.add(1);
            tag = &tag[..self.max_line];
        }
        batch.tags[batch.len] = tag;
        batch.len += 1;
        if batch.len == BATCH {
            batch.answer(context, out);
        }
    }
}

impl Batch<'_> {
    fn new() -> Self {
        Batch { tags: [&[]; BATCH], len: 0, answered: 0 }
    }

    #[inline]
    fn answer(&mut self, context: &LineContext<'_>, out: &mut Vec<u8>) {
        if self.len == 0 {
            return;
        }
        let tags = &self.tags[..self.len];
        let mut allowed = [true; BATCH];
        let allowed = &mut allowed[..self.len];
        if context.throttle.allow_many(tags, allowed).is_err() {
            // The only error is a closed throttle. Fails open.
            allowed.fill(true);
        }
        let mut refused = 0;
        for (tag, allowed) in tags.iter().zip(allowed) {
            out.extend_from_slice(if *allowed { b"OK\n" } else { b"NO\n" });
            if !*allowed {
                context.state.add_refused(context.throttle, tag);
                refused += 1;
            }
        }
        let len = self.len as u64;
        context.state.decisions.add(context.throttle, len - refused, refused);
        context.state.counts.lines.add(len);
        self.answered += len;
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dthrottle::{ManualClock, Rule};

    const MAX_LINE: usize = 10;

    struct Fixture {
        throttle: Throttle,
        state: State,
        settings: Settings,
        lines: Lines,
    }

    fn fixture(burst: u64) -> Fixture {
        let builder = Throttle::builder().rule(Rule::per_second(1).burst(burst));
        let builder = builder.domain("login", [Rule::per_second(1).burst(3)]);
        let throttle = builder.clock(ManualClock::new()).build().unwrap();
        let (settings, lines) = (Settings::defaults(), Lines::new(MAX_LINE, true));
        Fixture { throttle, state: State::default(), settings, lines }
    }

    impl Fixture {
        fn feed(&mut self, input: &[u8]) -> Vec<u8> {
            let mut out = Vec::new();
            let (throttle, state, settings) = (&self.throttle, &self.state, &self.settings);
            let context = LineContext { throttle, state, settings };
            let mut rest = input;
            while !rest.is_empty() {
                let mut some = Vec::new();
                let read = self.lines.feed(rest, &context, &mut some).bytes;
                assert!(some.len() < MAX_OUTPUT + 1000);
                rest = &rest[read..];
                out.extend(some);
            }
            out
        }
    }

    #[test]
    fn every_line_gets_an_answer_of_three_bytes() {
        let mut f = fixture(2);
        assert_eq!(f.feed(b"a\na\na\nb\n"), b"OK\nOK\nNO\nOK\n");
        assert_eq!(f.feed(b"\n\r\n\n"), b"OK\nOK\nNO\n", "the empty tag is valid");
    }

    #[test]
    fn a_line_may_arrive_in_pieces() {
        let mut f = fixture(1);
        for byte in b"abc\r" {
            assert_eq!(f.feed(&[*byte]), b"");
        }
        assert_eq!(f.feed(b"\nabc\nab"), b"OK\nNO\n");
        assert_eq!(f.feed(b"c\nx"), b"NO\n");
    }

    #[test]
    fn only_the_last_cr_is_removed_from_a_tag() {
        let mut f = fixture(1);
        assert_eq!(f.feed(b"a\na\r\na\r\r\n\ra\n"), b"OK\nNO\nOK\nOK\n");
    }

    #[test]
    fn a_tag_may_be_any_bytes() {
        let mut f = fixture(1);
        assert_eq!(f.feed(b"\xff\x00\n\xff\n\xff\x00\n"), b"OK\nOK\nNO\n");
    }

    /// The result does not depend on the pieces of the line or on a CR.
    #[test]
    fn a_long_tag_is_truncated() {
        let ten = b"0123456789".as_slice();
        for long in
            [b"0123456789".as_slice(), b"0123456789x", b"0123456789xyz", &[ten; 90].concat()]
        {
            for end in [b"\n".as_slice(), b"\r\n"] {
                for cut in [0, 5, 10, 11, 12, long.len()] {
                    let mut f = fixture(1);
                    assert_eq!(f.feed(b"0123456789\n012345678\n"), b"OK\nOK\n");
                    let line = [long, end].concat();
                    let (first, second) = line.split_at(cut.min(line.len()));
                    let answers = [f.feed(first), f.feed(second)].concat();
                    assert_eq!(answers, b"NO\n", "{cut} of {}", line.len());
                    assert_eq!(f.feed(b"new\n"), b"OK\n");
                }
            }
        }
    }

    #[test]
    fn answers_are_written_in_bounded_parts_and_all_arrive() {
        let mut f = fixture(1);
        let input = b"\n".repeat(100_000);
        let out = f.feed(&input);
        assert_eq!(out.len(), 300_000);
        assert_eq!(&out[..6], b"OK\nNO\n");
        assert_eq!(f.state.counts.lines.get(), 100_000);
    }

    #[test]
    fn queries_and_ordinary_lines_are_answered_in_order() {
        let mut f = fixture(1);
        f.lines.max_line = 20;
        let out = f.feed(b"a\n\0peek\0tag=a\na\n");
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("OK", "NO", 3));
        assert!(lines[1].starts_with("NO limit=1 remaining=0 "), "{}", lines[1]);
    }

    /// A client gets no further units by making its tag longer.
    #[test]
    fn a_long_tag_of_the_longer_form_is_truncated() {
        for cut in [0, 1, 15, 20, 21, 22, 30] {
            let mut f = fixture(1);
            f.lines.max_line = 20;
            assert_eq!(&f.feed(b"\0check\0tag=123456789\n")[..3], b"OK ");
            let (first, second) = b"\0check\0tag=1234567890abcdefg\r\n".split_at(cut);
            let answers = [f.feed(first), f.feed(second)].concat();
            assert_eq!(&answers[..3], b"NO ");
            assert_eq!(f.feed(b"new\n"), b"OK\n");
            assert_eq!(f.state.counts.long_lines.get(), 1);
        }
    }
}
