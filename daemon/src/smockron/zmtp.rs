//! The part of ZMTP 3.0 with the NULL mechanism that PUB and SUB need, without sockets. ZeroMQ 4
//! and later use this protocol (rfc.zeromq.org/spec/23).

/// The maximum number of bytes and frames of a message. The rest of a longer message is skipped.
const MAX_MESSAGE: usize = 64 * 1024;
const MAX_FRAMES: usize = 64;

const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The role of this end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Publisher,
    Subscriber,
}

/// The state of a connection to the other end.
pub(super) struct Peer {
    kind: Kind,
    unread: Vec<u8>,
    stage: Stage,
    frames: Vec<Vec<u8>>,
    /// How many bytes of a frame that is too long are still to be skipped.
    skip: u64,
    /// Whether the message being read is too long.
    is_oversize: bool,
}

/// A message from the other end.
pub(super) enum Message {
    Frames(Vec<Vec<u8>>),
    /// A message that was too long and was skipped.
    Oversize,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Greeting,
    Handshake,
    Messages,
}

impl Peer {
    /// Returns a new connection and the bytes to send first.
    pub(super) fn new(kind: Kind) -> (Peer, Vec<u8>) {
        let mut greeting = vec![0; GREETING];
        greeting[0] = 0xff;
        greeting[9] = 0x7f;
        // Version 3.0, in which subscriptions are messages and there are no heartbeats.
        greeting[10] = 3;
        greeting[12..16].copy_from_slice(b"NULL");
        let peer = Peer {
            kind,
            unread: Vec::new(),
            stage: Stage::Greeting,
            frames: Vec::new(),
            skip: 0,
            is_oversize: false,
        };
        (peer, greeting)
    }

    /// Whether the handshake is complete.
    pub(super) fn is_connected(&self) -> bool {
        self.stage == Stage::Messages
    }

    /// Reads bytes, calls `message` for each complete message, and writes answers to `out`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        mut message: impl FnMut(Message),
    ) -> Result<(), &'static str> {
        // `unread` is empty while a frame is skipped, so a long frame needs no memory.
        let skipped = usize::try_from(self.skip).map_or(bytes.len(), |skip| skip.min(bytes.len()));
        self.skip -= skipped as u64;
        bytes = &bytes[skipped..];
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        if self.stage == Stage::Greeting {
            let Some(greeting) = self.unread.get(..GREETING) else { return Ok(()) };
            if greeting[0] != 0xff || greeting[9] & 1 != 1 || greeting[10] < 3 {
                return Err("not ZMTP 3");
            }
            if greeting[12..16] != *b"NULL" || greeting[16] != 0 {
                return Err("the security mechanism must be NULL");
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
        while let Some(Frame { flags, body, head }) = frame(&self.unread[at..])? {
            let is_message = flags & COMMAND == 0;
            if is_message && self.stage != Stage::Messages {
                return Err("a message before the handshake");
            }
            let start = at + head;
            let rest = &self.unread[start..];
            if body > MAX_MESSAGE as u64 {
                if !is_message {
                    return Err("a command that is too long");
                }
                let here = usize::try_from(body).map_or(rest.len(), |body| body.min(rest.len()));
                self.skip = body - here as u64;
                at = start + here;
                self.add(None, flags, &mut message);
                continue;
            }
            let Some(body) = rest.get(..body as usize).map(<[u8]>::to_vec) else { break };
            at = start + body.len();
            if is_message {
                self.add(Some(body), flags, &mut message);
            } else {
                self.command(&body, out)?;
            }
        }
        self.unread.drain(..at);
        Ok(())
    }

    /// Adds a frame to the current message. `None` is a frame that is too long.
    fn add(&mut self, body: Option<Vec<u8>>, flags: u8, message: &mut impl FnMut(Message)) {
        match body {
            Some(body) if !self.is_oversize => self.frames.push(body),
            Some(_) => {}
            None => self.is_oversize = true,
        }
        let size: usize = self.frames.iter().map(Vec::len).sum();
        if self.is_oversize || self.frames.len() > MAX_FRAMES || size > MAX_MESSAGE {
            self.is_oversize = true;
            self.frames = Vec::new();
        }
        if flags & MORE == 0 {
            let frames = std::mem::take(&mut self.frames);
            let is_oversize = std::mem::take(&mut self.is_oversize);
            message(if is_oversize { Message::Oversize } else { Message::Frames(frames) });
        }
    }

    fn command(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if body.starts_with(b"\x05READY") && self.stage == Stage::Handshake {
            self.stage = Stage::Messages;
            if self.kind == Kind::Subscriber {
                // Subscribes to all topics.
                write_frame(0, b"\x01", out);
            }
        } else if let Some(ping) = body.strip_prefix(b"\x04PING")
            && let Some(context) = ping.get(2..)
        {
            write_frame(COMMAND, &[b"\x04PONG", context].concat(), out);
        } else if body.starts_with(b"\x05ERROR") {
            return Err("the peer refused the connection");
        }
        Ok(())
    }
}

/// Writes a message with these frames.
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

/// The head of a frame.
struct Frame {
    flags: u8,
    /// The length of its body.
    body: u64,
    /// The length of the head.
    head: usize,
}

/// Reads the head of the first frame. Returns `None` if it is incomplete.
fn frame(bytes: &[u8]) -> Result<Option<Frame>, &'static str> {
    let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err("a frame has unknown flags");
    }
    Ok(match (flags & LONG != 0, rest) {
        (false, [length, ..]) => Some(Frame { flags, body: u64::from(*length), head: 2 }),
        (true, [a, b, c, d, e, f, g, h, ..]) => {
            let body = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            Some(Frame { flags, body, head: 9 })
        }
        _ => None,
    })
}

fn property(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_be_bytes();
    [&[name.len() as u8], name, &length, value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a message. Empty if it was too long.
    fn frames(message: Message) -> Vec<Vec<u8>> {
        match message {
            Message::Frames(frames) => frames,
            Message::Oversize => Vec::new(),
        }
    }

    #[test]
    fn an_oversize_message_is_skipped_and_the_next_is_read() {
        let (mut peer, mut bytes) = (Peer::new(Kind::Subscriber).0, Peer::new(Kind::Publisher).1);
        write_frame(COMMAND, b"\x05READY", &mut bytes);
        let long = vec![7; MAX_MESSAGE + 1];
        let half = vec![7; MAX_MESSAGE / 2 + 1];
        write_message(&[b"d", &long, b"x"], &mut bytes);
        write_message(&[b"d", &half, &half, b"x"], &mut bytes);
        write_message(&[b"".as_slice(); MAX_FRAMES + 10], &mut bytes);
        write_message(&[b"d", b"x"], &mut bytes);
        write_message(&[&long], &mut bytes);
        write_message(&[b"d", b"y"], &mut bytes);
        let mut messages = Vec::new();
        for part in bytes.chunks(1000) {
            peer.feed(part, &mut Vec::new(), |message| messages.push(frames(message))).unwrap();
            assert!(peer.unread.len() <= MAX_MESSAGE + 1000);
        }
        let whole = |tag: &[u8]| vec![b"d".to_vec(), tag.to_vec()];
        let none = Vec::new;
        assert_eq!(messages, [none(), none(), none(), whole(b"x"), none(), whole(b"y")]);
    }

    /// Both ends get the bytes of the other one by one.
    #[test]
    fn a_publisher_and_a_subscriber_exchange_messages() {
        let (mut publisher, mut to_subscriber) = Peer::new(Kind::Publisher);
        let (mut subscriber, mut to_publisher) = Peer::new(Kind::Subscriber);
        let (mut subscriptions, mut messages) = (Vec::new(), Vec::new());
        let long = vec![7; 300];
        for round in 0..4 {
            let mut answers = Vec::new();
            for byte in std::mem::take(&mut to_publisher) {
                publisher
                    .feed(&[byte], &mut answers, |message| subscriptions.push(frames(message)))
                    .unwrap();
            }
            to_subscriber.extend(answers);
            if round == 2 {
                write_message(&[b"d\0", b"", &long], &mut to_subscriber);
            }
            let mut answers = Vec::new();
            for byte in std::mem::take(&mut to_subscriber) {
                subscriber
                    .feed(&[byte], &mut answers, |message| messages.push(frames(message)))
                    .unwrap();
            }
            to_publisher.extend(answers);
        }
        assert_eq!(subscriptions, [[b"\x01".to_vec()]]);
        assert_eq!(messages, [[b"d\0".to_vec(), Vec::new(), long]]);
    }

    #[test]
    fn invalid_greetings_and_frames_are_errors() {
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
