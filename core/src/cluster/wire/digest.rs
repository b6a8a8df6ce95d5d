//! DIGEST: the number of the last known report of each origin.

use super::bytes::{ORIGIN, Reader, put_origin, put_varint, varint_len};
use super::{DropCause, MAX_BODY};
use crate::cluster::Origin;

/// Flag of the envelope: the digest is an answer, and must not be answered.
pub const ANSWER: u8 = 1;

/// Writes as many entries of the list as fit into a body. Returns how many.
pub fn write_digest(list: &[(Origin, u64)], out: &mut Vec<u8>) -> usize {
    out.clear();
    // The number of origins, as one byte: fewer than 128 fit into a datagram.
    out.push(0);
    for (written, (origin, top)) in list.iter().enumerate() {
        if out.len() + ORIGIN + varint_len(*top) > MAX_BODY {
            return written;
        }
        put_origin(out, *origin);
        put_varint(out, *top);
        out[0] += 1;
    }
    list.len()
}

/// Parses a body: origins and the number of the last known report of each.
pub fn parse_digest(body: &[u8]) -> Result<Vec<(Origin, u64)>, DropCause> {
    let mut reader = Reader::new(body);
    let count = reader.count(ORIGIN + 1)?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        list.push((reader.origin()?, reader.varint()?));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(many: u64, top: u64) -> Vec<(Origin, u64)> {
        (0..many).map(|node| (Origin { node, incarnation: !node }, top + node)).collect()
    }

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        let mut out = Vec::new();
        for list in [list(0, 0), list(1, 0), list(40, 1 << 40)] {
            assert_eq!(write_digest(&list, &mut out), list.len());
            assert_eq!(parse_digest(&out).as_ref(), Ok(&list));
            out.push(9);
            assert_eq!(parse_digest(&out), Ok(list), "additional bytes are ignored");
        }
    }

    #[test]
    fn write_digest_writes_as_many_entries_as_fit() {
        let mut out = Vec::new();
        for (top, fitting) in [(0, 69), (1 << 40, 53), (1 << 62, 47)] {
            let list = list(100, top);
            assert_eq!(write_digest(&list, &mut out), fitting);
            assert!(out.len() <= MAX_BODY);
            assert_eq!(parse_digest(&out).unwrap(), list[..fitting]);
        }
    }

    #[test]
    fn a_truncated_digest_is_malformed() {
        let mut out = Vec::new();
        write_digest(&list(3, 1 << 20), &mut out);
        for len in 0..out.len() {
            assert_eq!(parse_digest(&out[..len]), Err(DropCause::Malformed), "{len} bytes");
        }
    }
}
