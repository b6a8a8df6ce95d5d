//! GAP and GONE: reports of several origins, as ranges of numbers.

use super::bytes::{ORIGIN, Reader, put_origin, put_ranges, ranges_fitting};
use super::{DropCause, MAX_BODY};
use crate::cluster::{Origin, Ranges};

/// Writes as many entries of the list as fit into a body. Returns how many.
///
/// If the ranges of the first entry do not fit, its last ranges are left out and can be requested
/// later. So at least one entry is always written.
pub fn write_gaps(list: &[(Origin, Ranges)], out: &mut Vec<u8>) -> usize {
    out.clear();
    // The number of origins, as one byte: fewer than 128 fit into a datagram.
    out.push(0);
    for (written, (origin, ranges)) in list.iter().enumerate() {
        let room = MAX_BODY.saturating_sub(out.len() + ORIGIN);
        let fitting = ranges_fitting(ranges.iter(), room);
        if written > 0 && (fitting < ranges.len() || room == 0) {
            return written;
        }
        put_origin(out, *origin);
        put_ranges(out, &ranges[..fitting]);
        out[0] += 1;
    }
    list.len()
}

/// Parses a body: origins and ranges of report numbers.
pub fn parse_gaps(body: &[u8]) -> Result<Vec<(Origin, Ranges)>, DropCause> {
    let mut reader = Reader::new(body);
    let count = reader.count(ORIGIN + 1)?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        list.push((reader.origin()?, reader.ranges(u64::MAX)?));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(node: u64) -> Origin {
        Origin { node, incarnation: node << 20 | 5 }
    }

    fn holes(many: u64) -> Ranges {
        (1..=many).map(|n| (n << 16, n << 16 | 300)).collect()
    }

    #[test]
    fn gaps_are_read_as_they_were_written() {
        let list = vec![(origin(1), vec![(1, 1), (3, 70_000)]), (origin(2), holes(3))];
        let mut out = Vec::new();
        assert_eq!(write_gaps(&list, &mut out), 2);
        assert_eq!(parse_gaps(&out), Ok(list.clone()));
        out.extend([7; 9]);
        assert_eq!(parse_gaps(&out), Ok(list), "additional bytes are ignored");
        assert_eq!(write_gaps(&[], &mut out), 0);
        assert_eq!(parse_gaps(&out), Ok(vec![]));
    }

    #[test]
    fn a_long_list_is_split_over_several_datagrams() {
        for many in [0, 1, 2, 7, 50, 150] {
            let list: Vec<_> = (0..100).map(|node| (origin(node), holes(many))).collect();
            let (mut left, mut out, mut seen) = (&list[..], Vec::new(), Vec::new());
            while !left.is_empty() {
                let written = write_gaps(left, &mut out);
                assert!(written > 0 && out.len() <= MAX_BODY);
                left = &left[written..];
                seen.extend(parse_gaps(&out).unwrap());
            }
            assert_eq!(seen, list);
        }
    }

    #[test]
    fn ranges_of_one_origin_that_do_not_fit_are_left_out() {
        let list = [(origin(1), holes(1024)), (origin(2), holes(1))];
        let mut out = Vec::new();
        assert_eq!(write_gaps(&list, &mut out), 1);
        assert!((MAX_BODY - 8..=MAX_BODY).contains(&out.len()), "{}", out.len());
        let parsed = parse_gaps(&out).unwrap();
        assert_eq!(parsed.len(), 1);
        let ranges = &parsed[0].1;
        assert!(ranges.len() > 100 && list[0].1.starts_with(ranges));
    }

    #[test]
    fn truncated_gaps_are_malformed() {
        let mut out = Vec::new();
        write_gaps(&[(origin(1), holes(3)), (origin(2), vec![])], &mut out);
        for len in 0..out.len() {
            assert_eq!(parse_gaps(&out[..len]), Err(DropCause::Malformed), "{len} bytes");
        }
    }
}
