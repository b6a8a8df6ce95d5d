//! HELLO: a challenge, its echo, or both. It shows that a sender is there now, and is not a
//! recording.

use super::DropCause;
use super::bytes::{Reader, put_varint};
use crate::cluster::PeerAddr;

/// The body of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// To be echoed.
    pub challenge: u64,
    /// The receiver's challenge; 0: none.
    pub echo: u64,
    /// The number of the sender's last report.
    pub top: u64,
    /// A hash of all the sender's rules.
    pub rules: u64,
    /// Where the sender is reached.
    pub address: PeerAddr,
    /// The longest round trip in the cluster that the sender knows of, in microseconds; 0: none.
    pub slack_us: u64,
    /// How long ago some node measured it, in microseconds.
    pub slack_age_us: u64,
}

impl Hello {
    /// Makes the body in `out`, which is cleared first.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.challenge.to_be_bytes());
        out.extend_from_slice(&self.echo.to_be_bytes());
        put_varint(out, self.top);
        out.extend_from_slice(&self.rules.to_be_bytes());
        self.address.put(out);
        put_varint(out, self.slack_us);
        put_varint(out, self.slack_age_us);
    }

    /// Reads all of a body. A sender that knows nothing of the slack leaves out both fields.
    pub fn parse(body: &[u8]) -> Result<Hello, DropCause> {
        let mut reader = Reader::new(body);
        let mut hello = Hello {
            challenge: reader.u64()?,
            echo: reader.u64()?,
            top: reader.varint()?,
            rules: reader.u64()?,
            address: PeerAddr::read(&mut reader)?,
            slack_us: 0,
            slack_age_us: 0,
        };
        if !reader.is_empty() {
            (hello.slack_us, hello.slack_age_us) = (reader.varint()?, reader.varint()?);
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_come_back() {
        ["192.0.2.7:7373", "[2001:db8::7]:65535"].into_iter().for_each(comes_back);
    }

    fn comes_back(address: &str) {
        let address = address.parse::<std::net::SocketAddr>().unwrap().into();
        let hello = Hello {
            challenge: u64::MAX - 1,
            echo: 2,
            top: 300,
            rules: 4 << 56,
            address,
            slack_us: 80_000,
            slack_age_us: u64::MAX,
        };
        let mut out = vec![1];
        hello.write(&mut out);
        assert_eq!(Hello::parse(&out), Ok(hello));
        let without_slack = out.len() - 3 - 10;
        let older = Hello { slack_us: 0, slack_age_us: 0, ..hello };
        assert_eq!(Hello::parse(&out[..without_slack]), Ok(older), "a sender without slack");
        for len in (0..out.len()).filter(|len| *len != without_slack) {
            assert_eq!(Hello::parse(&out[..len]), Err(DropCause::Malformed), "{len} bytes");
        }
        out.push(5);
        assert_eq!(Hello::parse(&out), Ok(hello), "what is added later is ignored");
    }
}
