//! PAYLOAD: data of the host program.

use super::DropCause;
use super::bytes::{Reader, put_varint};

/// The greatest age of a payload, in microseconds: 12 days.
pub const MAX_AGE_US: u64 = 1 << 40;

/// Writes a body into `out`, which is cleared first.
pub fn write_payload(number: u64, age_us: u64, payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    put_varint(out, number);
    put_varint(out, age_us.min(MAX_AGE_US));
    out.extend_from_slice(payload);
}

/// Parses a body: the payload's number, its age in microseconds, and the payload.
pub fn parse_payload(body: &[u8]) -> Result<(u64, u64, &[u8]), DropCause> {
    let mut reader = Reader::new(body);
    let (number, age_us) = (reader.varint()?, reader.varint()?);
    match number == 0 || age_us > MAX_AGE_US {
        true => Err(DropCause::Malformed),
        false => Ok((number, age_us, reader.rest())),
    }
}
