//! ZMTP 3.0 with the NULL mechanism, as much of it as PUB and SUB need, without sockets: what
//! ZeroMQ peers of version 4 and later speak (rfc.zeromq.org/spec/23).

/// So many bytes of a message are read, and so many frames.
const LONGEST: usize = 64 * 1024;
const MOST_FRAMES: usize = 64;

const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Which end of a subscription this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Publisher,
    Subscriber,
}

/// What is known of the other end.
pub(super) struct Peer {
    kind: Kind,
    unread: Vec<u8>,
    stage: Stage,
    frames: Vec<Vec<u8>>,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Greeting,
    Handshake,
    Talk,
}

impl Peer {
    /// A new connection, and what to send first.
    pub(super) fn new(kind: Kind) -> (Peer, Vec<u8>) {
        let mut greeting = vec![0; GREETING];
        greeting[0] = 0xff;
        greeting[9] = 0x7f;
        // 3.0, so that subscriptions are messages and there are no heartbeats.
        greeting[10] = 3;
        greeting[12..16].copy_from_slice(b"NULL");
        let peer = Peer { kind, unread: Vec::new(), stage: Stage::Greeting, frames: Vec::new() };
        (peer, greeting)
    }

    /// Whether it has said what it is.
    pub(super) fn is_met(&self) -> bool {
        self.stage == Stage::Talk
    }

    /// Reads bytes; gives whole messages, and writes what has to be answered.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut message: impl FnMut(Vec<Vec<u8>>),
    ) -> Result<(), &'static str> {
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        if self.stage == Stage::Greeting {
            let Some(greeting) = self.unread.get(..GREETING) else { return Ok(()) };
            if greeting[0] != 0xff || greeting[9] & 1 != 1 || greeting[10] < 3 {
                return Err("not ZMTP 3");
            }
            if greeting[12..16] != *b"NULL" || greeting[16] != 0 {
                return Err("another security mechanism than NULL");
            }
            at = GREETING;
            self.stage = Stage::Handshake;
            let socket: &[u8] = if self.kind == Kind::Publisher { b"PUB" } else { b"SUB" };
            write_frame(
                COMMAND,
                &[b"\x05READY", property(b"Socket-Type", socket).as_slice()].concat(),
                out,
            );
        }
        while let Some(Frame { flags, body, length }) = frame(&self.unread[at..])? {
            let body = body.to_vec();
            at += length;
            if flags & COMMAND != 0 {
                self.command(&body, out)?;
            } else if self.stage != Stage::Talk {
                return Err("a message before the handshake");
            } else {
                self.frames.push(body);
                let size: usize = self.frames.iter().map(Vec::len).sum();
                if self.frames.len() > MOST_FRAMES || size > LONGEST {
                    return Err("a message that is too long");
                }
                if flags & MORE == 0 {
                    message(std::mem::take(&mut self.frames));
                }
            }
        }
        self.unread.drain(..at);
        Ok(())
    }

    fn command(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if body.starts_with(b"\x05READY") && self.stage == Stage::Handshake {
            self.stage = Stage::Talk;
            if self.kind == Kind::Subscriber {
                // To everything.
                write_frame(0, b"\x01", out);
            }
        } else if let Some(ping) = body.strip_prefix(b"\x04PING")
            && let Some(context) = ping.get(2..)
        {
            write_frame(COMMAND, &[b"\x04PONG", context].concat(), out);
        } else if body.starts_with(b"\x05ERROR") {
            return Err("the peer does not want to talk");
        }
        Ok(())
    }
}

/// A message of these frames.
pub(super) fn write_message(frames: &[&[u8]], out: &mut Vec<u8>) {
    for (i, body) in frames.iter().enumerate() {
        write_frame(if i + 1 < frames.len() { MORE } else { 0 }, body, out);
    }
}

fn write_frame(flags: u8, body: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(body.len()) {
        Ok(length) => out.extend_from_slice(&[flags, length]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

struct Frame<'a> {
    flags: u8,
    body: &'a [u8],
    /// With its head.
    length: usize,
}

/// The first frame, if it is all there.
fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, &'static str> {
    let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err("a frame of no known kind");
    }
    let (length, head) = match (flags & LONG != 0, rest) {
        (false, [length, ..]) => (u64::from(*length), 2),
        (true, _) if rest.len() >= 8 => {
            (u64::from_be_bytes(rest[..8].try_into().map_err(|_| "a length")?), 9)
        }
        _ => return Ok(None),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or("a frame that is too long")?;
    let body = bytes.get(head..head + length);
    Ok(body.map(|body| Frame { flags, body, length: head + length }))
}

fn property(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_be_bytes();
    [&[name.len() as u8], name, &length, value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two peers talk, byte by byte.
    #[test]
    fn both_ends_understand_each_other() {
        let (mut publisher, mut to_subscriber) = Peer::new(Kind::Publisher);
        let (mut subscriber, mut to_publisher) = Peer::new(Kind::Subscriber);
        let (mut subscriptions, mut messages) = (Vec::new(), Vec::new());
        let long = vec![7; 300];
        for round in 0..4 {
            let mut answers = Vec::new();
            for byte in std::mem::take(&mut to_publisher) {
                publisher
                    .feed(&[byte], &mut answers, |message| subscriptions.push(message))
                    .unwrap();
            }
            to_subscriber.extend(answers);
            if round == 2 {
                write_message(&[b"d\0", b"", &long], &mut to_subscriber);
            }
            let mut answers = Vec::new();
            for byte in std::mem::take(&mut to_subscriber) {
                subscriber.feed(&[byte], &mut answers, |message| messages.push(message)).unwrap();
            }
            to_publisher.extend(answers);
        }
        assert_eq!(subscriptions, [[b"\x01".to_vec()]]);
        assert_eq!(messages, [[b"d\0".to_vec(), Vec::new(), long]]);
    }

    #[test]
    fn nonsense_is_refused() {
        let greeting = Peer::new(Kind::Publisher).1;
        let feed = |bytes: &[u8]| {
            let mut peer = Peer::new(Kind::Subscriber).0;
            peer.feed(bytes, &mut Vec::new(), |_| {})
        };
        assert!(feed(&greeting).is_ok());
        assert!(feed(b"GET / HTTP/1.1\r\nHost: somebody.example.com\r\nAccept: text/html, nothing\r\n\r\n").is_err());
        let mut curve = greeting.clone();
        curve[12..17].copy_from_slice(b"CURVE");
        assert!(feed(&curve).is_err());
        for frame in [
            b"\x00\x01x".as_slice(),
            b"\x80\x01x",
            b"\x02\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x02\0\0\0\0\0\x02\0\0",
        ] {
            assert!(feed(&[&greeting, frame].concat()).is_err(), "{frame:?}");
        }
    }
}
