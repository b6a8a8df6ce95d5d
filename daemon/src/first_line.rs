//! Recognizes clients of other protocols by the first line of a connection. A web page can make a
//! browser connect to any TCP port of this machine, and the daemon would read its request as lines.

use memchr::memchr;

/// The first bytes of a TLS connection: a handshake record of version 3.
const TLS: [u8; 2] = [0x16, 0x03];
/// The length of the end of an HTTP request line: ` HTTP/1.1` and a CR.
const VERSION: usize = 10;

/// Start and end of an incomplete first line. A session does nothing before a line is complete, so
/// it may get the bytes before the protocol is known.
#[derive(Default)]
pub(crate) struct FirstLine {
    start: Vec<u8>,
    end: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The first line is not complete.
    Unknown,
    Expected,
    Http,
    Tls,
}

impl FirstLine {
    /// Adds input, before a session gets it. Returns the protocol.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Protocol {
        let newline = memchr(b'\n', input);
        let line = &input[..newline.unwrap_or(input.len())];
        self.start.extend(line.iter().take(TLS.len() - self.start.len()));
        self.end.extend_from_slice(&line[line.len().saturating_sub(VERSION)..]);
        self.end.drain(..self.end.len().saturating_sub(VERSION));
        match newline {
            // A query. Its tag may look like HTTP.
            _ if self.start.first() == Some(&0) => Protocol::Expected,
            _ if self.start == TLS => Protocol::Tls,
            None => Protocol::Unknown,
            Some(_) if is_version(&self.end) => Protocol::Http,
            Some(_) => Protocol::Expected,
        }
    }
}

fn is_version(end: &[u8]) -> bool {
    let Some([major, b'.', minor, b'\r']) = end.strip_prefix(b" HTTP/") else { return false };
    major.is_ascii_digit() && minor.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol_of(line: &[u8], piece: usize) -> Protocol {
        let mut first = FirstLine::default();
        let protocols = line.chunks(piece).map(|piece| first.feed(piece));
        protocols.into_iter().find(|found| *found != Protocol::Unknown).unwrap_or(Protocol::Unknown)
    }

    #[test]
    fn protocols_are_recognized_if_the_line_arrives_in_pieces_of_any_size() {
        let long = [b"GET /".as_slice(), &[b'x'; 50_000], b" HTTP/1.0\r\n"].concat();
        for (line, protocol) in [
            (b"GET / HTTP/1.1\r\nHost: x\r\n".as_slice(), Protocol::Http),
            (b"PRI * HTTP/2.0\r\n", Protocol::Http),
            (&long, Protocol::Http),
            (b"\x16\x03\x01\x02\x00\x01", Protocol::Tls),
            (b"\x16\x03\n", Protocol::Tls),
            (b"\x16", Protocol::Unknown),
            (b"\x16\n\x03", Protocol::Expected),
            (b"203.0.113.7\nGET / HTTP/1.1\r\n", Protocol::Expected),
            (b"\0check\0tag=GET / HTTP/1.1\r\n", Protocol::Expected),
            (b"GET / HTTP/1.1\n", Protocol::Expected),
            (b"GET / HTTP/1.1 \r\n", Protocol::Expected),
            (b"HTTP/1.1\r\n", Protocol::Expected),
            (b"GET / HTTP/1.1\r", Protocol::Unknown),
            (b"\n", Protocol::Expected),
        ] {
            for piece in [1, 2, 3, 7, 11, 1000, line.len()] {
                assert_eq!(protocol_of(line, piece), protocol, "{piece} of {line:?}");
            }
        }
    }
}
