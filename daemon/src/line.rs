//! The query protocol, without sockets: bytes in, answers out. `docs/daemon.md` defines it.
//!
//! An ordinary line is a tag and is answered by `OK` or `NO`; nothing is allocated for it. A line
//! that begins with a NUL byte is a query of the longer form (`query.rs`).

use dthrottle::Throttle;
use memchr::memchr;

use crate::config::Settings;
use crate::query;
use crate::state::State;

/// How many tags are asked about at once: what the core looks up together.
const BATCH: usize = 64;
/// A feed ends when it has written so much, so that nobody's unread answers grow without bound.
pub(crate) const MOST_OUTPUT: usize = 32 * 1024;

/// What became of the bytes that a session was given.
pub(crate) struct Consumed {
    pub(crate) bytes: usize,
    /// How many requests were answered.
    pub(crate) requests: u64,
}

/// What a connection remembers between two reads.
pub(crate) struct Lines {
    /// The beginning of a line whose end has yet to come.
    part: Vec<u8>,
    /// More of it came than is kept.
    over: bool,
    longest: usize,
    /// Whether it may change or see state without a token: it is on a Unix socket.
    trusted: bool,
}

/// What the lines are asked of.
pub(crate) struct Asked<'a> {
    pub(crate) throttle: &'a Throttle,
    pub(crate) state: &'a State,
    pub(crate) settings: &'a Settings,
}

/// Tags of one feed that have yet to be decided.
struct Batch<'a> {
    tags: [&'a [u8]; BATCH],
    len: usize,
    /// How many lines were answered, queries included.
    answered: u64,
}

impl Lines {
    pub(crate) fn new(longest: usize, trusted: bool) -> Lines {
        Lines { part: Vec::new(), over: false, longest, trusted }
    }

    /// Reads lines and writes their answers, until `out` is long or all bytes are read.
    pub(crate) fn feed(&mut self, input: &[u8], asked: &Asked<'_>, out: &mut Vec<u8>) -> Consumed {
        let (mut rest, mut requests) = (input, 0);
        if !self.part.is_empty() || self.over {
            let Some(end) = memchr(b'\n', rest) else {
                self.keep(rest);
                return Consumed { bytes: input.len(), requests };
            };
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            let (part, over) = (std::mem::take(&mut self.part), std::mem::take(&mut self.over));
            let mut batch = Batch::new();
            self.line(&part, over, asked, &mut batch, out);
            batch.answer(asked, out);
            requests += batch.answered;
        }
        let mut batch = Batch::new();
        while out.len() < MOST_OUTPUT {
            let Some(end) = memchr(b'\n', rest) else {
                self.keep(rest);
                rest = &[];
                break;
            };
            self.line(&rest[..end], end > self.longest + 1, asked, &mut batch, out);
            rest = &rest[end + 1..];
        }
        batch.answer(asked, out);
        Consumed { bytes: input.len() - rest.len(), requests: requests + batch.answered }
    }

    /// Keeps the beginning of a line: one byte more than the longest tag, which may be a CR.
    fn keep(&mut self, bytes: &[u8]) {
        let room = self.longest + 1 - self.part.len();
        self.over |= bytes.len() > room;
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    #[inline]
    fn line<'a>(
        &self,
        line: &'a [u8],
        over: bool,
        asked: &Asked<'_>,
        batch: &mut Batch<'a>,
        out: &mut Vec<u8>,
    ) {
        if line.first() == Some(&0) {
            // In the order of the lines.
            batch.answer(asked, out);
            batch.answered += 1;
            if over || line.len() > self.longest {
                asked.state.counts.long_lines.add(1);
                return query::answer_cut(&line[1..self.longest], self.trusted, asked, out);
            }
            return query::answer(&line[1..], self.trusted, asked, out);
        }
        let mut tag = line;
        if !over && let [all @ .., b'\r'] = line {
            tag = all;
        }
        if tag.len() > self.longest {
            // Whoever sends endless tags is held to the rate of their beginning.
            asked.state.counts.long_lines.add(1);
            tag = &tag[..self.longest];
        }
        batch.tags[batch.len] = tag;
        batch.len += 1;
        if batch.len == BATCH {
            batch.answer(asked, out);
        }
    }
}

impl Batch<'_> {
    fn new() -> Self {
        Batch { tags: [&[]; BATCH], len: 0, answered: 0 }
    }

    #[inline]
    fn answer(&mut self, asked: &Asked<'_>, out: &mut Vec<u8>) {
        if self.len == 0 {
            return;
        }
        let tags = &self.tags[..self.len];
        let mut allowed = [true; BATCH];
        let allowed = &mut allowed[..self.len];
        if asked.throttle.allow_many(tags, allowed).is_err() {
            // Only a throttle that is closed: clients shall go on.
            allowed.fill(true);
        }
        let mut refused = 0;
        for (tag, allowed) in tags.iter().zip(allowed) {
            out.extend_from_slice(if *allowed { b"OK\n" } else { b"NO\n" });
            if !*allowed {
                asked.state.add_refused(asked.throttle, tag);
                refused += 1;
            }
        }
        let len = self.len as u64;
        asked.state.decisions.add(asked.throttle, len - refused, refused);
        asked.state.counts.lines.add(len);
        self.answered += len;
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dthrottle::{ManualClock, Rule};

    const LONGEST: usize = 10;

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
        let (settings, lines) = (Settings::usual(), Lines::new(LONGEST, true));
        Fixture { throttle, state: State::default(), settings, lines }
    }

    impl Fixture {
        fn feed(&mut self, input: &[u8]) -> Vec<u8> {
            let mut out = Vec::new();
            let (throttle, state, settings) = (&self.throttle, &self.state, &self.settings);
            let asked = Asked { throttle, state, settings };
            let mut rest = input;
            while !rest.is_empty() {
                let mut some = Vec::new();
                let read = self.lines.feed(rest, &asked, &mut some).bytes;
                assert!(some.len() < MOST_OUTPUT + 1000);
                rest = &rest[read..];
                out.extend(some);
            }
            out
        }
    }

    #[test]
    fn three_bytes_for_every_line() {
        let mut f = fixture(2);
        assert_eq!(f.feed(b"a\na\na\nb\n"), b"OK\nOK\nNO\nOK\n");
        assert_eq!(f.feed(b"\n\r\n\n"), b"OK\nOK\nNO\n", "the empty tag is one like others");
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        let mut f = fixture(1);
        for byte in b"abc\r" {
            assert_eq!(f.feed(&[*byte]), b"");
        }
        assert_eq!(f.feed(b"\nabc\nab"), b"OK\nNO\n");
        assert_eq!(f.feed(b"c\nx"), b"NO\n");
    }

    #[test]
    fn only_the_last_cr_is_no_part_of_a_tag() {
        let mut f = fixture(1);
        assert_eq!(f.feed(b"a\na\r\na\r\r\n\ra\n"), b"OK\nNO\nOK\nOK\n");
    }

    #[test]
    fn tags_are_bytes() {
        let mut f = fixture(1);
        assert_eq!(f.feed(b"\xff\x00\n\xff\n\xff\x00\n"), b"OK\nOK\nNO\n");
    }

    /// In one piece or in many, with CR or without: the first bytes count.
    #[test]
    fn a_long_tag_is_cut() {
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
    fn answers_are_bounded_and_all_come() {
        let mut f = fixture(1);
        let input = b"\n".repeat(100_000);
        let out = f.feed(&input);
        assert_eq!(out.len(), 300_000);
        assert_eq!(&out[..6], b"OK\nNO\n");
        assert_eq!(f.state.counts.lines.get(), 100_000);
    }

    #[test]
    fn long_forms_are_answered_in_order() {
        let mut f = fixture(1);
        f.lines.longest = 20;
        let out = f.feed(b"a\n\0peek\0tag=a\na\n");
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("OK", "NO", 3));
        assert!(lines[1].starts_with("NO limit=1 remaining=0 "), "{}", lines[1]);
    }

    /// Nobody gets more by asking about endless tags in the longer form.
    #[test]
    fn a_long_tag_of_the_longer_form_is_cut() {
        for cut in [0, 1, 15, 20, 21, 22, 30] {
            let mut f = fixture(1);
            f.lines.longest = 20;
            assert_eq!(&f.feed(b"\0check\0tag=123456789\n")[..3], b"OK ");
            let (first, second) = b"\0check\0tag=1234567890abcdefg\r\n".split_at(cut);
            let answers = [f.feed(first), f.feed(second)].concat();
            assert_eq!(&answers[..3], b"NO ");
            assert_eq!(f.feed(b"new\n"), b"OK\n");
            assert_eq!(f.state.counts.long_lines.get(), 1);
        }
    }
}
