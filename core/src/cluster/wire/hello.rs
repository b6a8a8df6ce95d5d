//! HELLO: a challenge, the echo of one, or both. An echo proves that the sender is running and is
//! not a recording.

use super::DropCause;
use super::bytes::{Reader, put_varint};
use crate::cluster::PeerAddr;

/// The body of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The challenge that the receiver echoes; 0 if there is none.
    pub challenge: u64,
    /// The echo of the receiver's challenge; 0 if there is none.
    pub echo: u64,
    /// The number of the sender's last report; 0 if there is none.
    pub top: u64,
    /// A hash of all the sender's rules.
    pub rules: u64,
    /// The address at which the sender is reached.
    pub address: PeerAddr,
    /// The longest round trip in the cluster that the sender knows, in microseconds; 0 if there is
    /// none.
    pub slack_us: u64,
    /// The age of that measurement, in microseconds.
    pub slack_age_us: u64,
}

impl Hello {
    /// Writes the body into `out`, which is cleared first.
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

    /// Parses a body. The two fields of the slack may both be missing.
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
    fn a_hello_is_read_as_it_was_written() {
        ["192.0.2.7:7373", "[2001:db8::7]:65535"].into_iter().for_each(assert_round_trip);
    }

    fn assert_round_trip(address: &str) {
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
        assert_eq!(
            Hello::parse(&out[..without_slack]),
            Ok(older),
            "the fields of the slack are optional"
        );
        for len in (0..out.len()).filter(|len| *len != without_slack) {
            assert_eq!(Hello::parse(&out[..len]), Err(DropCause::Malformed), "{len} bytes");
        }
        out.push(5);
        assert_eq!(Hello::parse(&out), Ok(hello), "additional bytes are ignored");
    }
}
