//! Fingerprints: 64-bit keyed hashes of (domain, rule, tag).
//!
//! The hash is SipHash-1-3, so a client that does not know the key cannot construct collisions.

use crate::local::LOCAL;

/// The hash function of one rule. Its key is derived from the table's key and the rule.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints(Sip);

impl Fingerprints {
    pub(crate) fn new(key: [u64; 2], rule_id: u64) -> Fingerprints {
        let sip = Sip::new(key);
        let derived = |part: u64| sip.hash([rule_id, part].map(u64::to_le_bytes).as_flattened());
        Fingerprints(Sip::new([derived(0), derived(1)]))
    }

    /// Returns the fingerprint of a tag. Each thread remembers its last one, because checks of one
    /// tag often follow each other: without it `allow` of a hot tag takes 14 ns instead of 11. Only
    /// tags of less than two words are remembered, such as IPv4 addresses.
    #[inline(always)]
    pub(crate) fn of(&self, tag: &[u8]) -> u64 {
        let (words, rest) = tag.as_chunks::<WORD>();
        if words.len() > 1 {
            return self.0.hash(tag);
        }
        let first = words.first().map_or(0, |word| u64::from_le_bytes(*word));
        let (key, end) = (self.0.0[0], end(tag, rest.len()));
        let last = LOCAL.with(|local| local.fingerprint.get());
        if (last.key ^ key) | (last.first ^ first) | (last.end ^ end) == 0 {
            return last.fingerprint;
        }
        let fingerprint = self.0.hash(tag);
        LOCAL.with(|local| {
            local.fingerprint.set(LastFingerprint { key, first, end, fingerprint });
        });
        fingerprint
    }
}

/// The last fingerprint of a thread and what it was computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastFingerprint {
    /// The first word of the hash's key, which differs between rules.
    key: u64,
    /// The tag's first word, or 0.
    first: u64,
    /// The last word that is hashed. It contains the length of the tag.
    end: u64,
    fingerprint: u64,
}

impl LastFingerprint {
    /// Matches no tag: the length in `end` is that of a longer tag.
    pub(crate) const NONE: LastFingerprint =
        LastFingerprint { key: 0, first: 0, end: u64::MAX, fingerprint: 0 };
}

/// Identity of a rule. It depends only on the names of the domain and the rule.
pub(crate) fn rule_id(domain: &str, rule: &str) -> u64 {
    let length = (domain.len() as u64).to_le_bytes();
    hash_of(&[&length, domain.as_bytes(), rule.as_bytes()].concat())
}

/// A hash without a key, equal on all machines.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    Sip::new([0, 0]).hash(bytes)
}

/// The state of SipHash-1-3. A separate implementation, because every check computes a fingerprint:
/// it is inlined, and reads the last word without a branch for each byte.
#[derive(Clone, Copy, Debug)]
struct Sip([u64; 4]);

const WORD: usize = size_of::<u64>();

impl Sip {
    /// "somepseudorandomlygeneratedbytes", as SipHash defines it.
    const START: [u64; 4] = [
        0x736f_6d65_7073_6575,
        0x646f_7261_6e64_6f6d,
        0x6c79_6765_6e65_7261,
        0x7465_6462_7974_6573,
    ];

    fn new([first, second]: [u64; 2]) -> Sip {
        let [a, b, c, d] = Sip::START;
        Sip([a ^ first, b ^ second, c ^ first, d ^ second])
    }

    #[inline(always)]
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut sip = *self;
        let (words, rest) = bytes.as_chunks::<WORD>();
        for word in words {
            sip.take(u64::from_le_bytes(*word));
        }
        sip.take(end(bytes, rest.len()));
        sip.0[2] ^= 0xff;
        sip.round();
        sip.round();
        sip.round();
        let [a, b, c, d] = sip.0;
        a ^ b ^ c ^ d
    }

    #[inline]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

/// The last word of the input: the remaining bytes, and the length in the top byte.
#[inline(always)]
fn end(bytes: &[u8], rest: usize) -> u64 {
    // The remaining bytes are the end of the last eight bytes, shifted down.
    let end = match bytes.last_chunk::<WORD>() {
        Some(last) => u64::from_le_bytes(*last) >> 8 >> (8 * (WORD - 1 - rest)),
        None => short(bytes),
    };
    end | (bytes.len() as u64) << 56
}

/// Packs fewer than eight bytes into the low bytes of a word.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // The two halves may overlap, and are equal where they do.
        (Some(first), Some(last)) => {
            let moved = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
            u64::from(u32::from_le_bytes(*first)) | moved
        }
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use siphasher::sip::SipHasher13;

    use super::*;

    /// Fingerprints travel between nodes, so they must never change. The expected values come from
    /// another implementation of SipHash-1-3.
    #[test]
    fn a_remembered_fingerprint_is_not_used_for_another_tag_or_rule() {
        let (first, second) = (Fingerprints::new([1, 2], 3), Fingerprints::new([1, 2], 4));
        let tags: [&[u8]; 5] = [b"", b"alice001", b"bobby001", b"alice002", b"alice001x"];
        for (tag, rule) in tags.iter().flat_map(|tag| [(tag, &first), (tag, &second)]) {
            for _ in 0..2 {
                assert_eq!(rule.of(tag), rule.0.hash(tag), "{tag:?}");
            }
        }
    }

    #[test]
    fn fingerprints_never_change() {
        assert_eq!(rule_id("default", "rule1"), 0xa2a2_ec50_0d5e_9027);
        assert_eq!(Fingerprints::new([1, 2], 3).of(b"203.0.113.7"), 0x1217_c960_01f4_cd88);
    }

    /// Covers every branch, and every length of the last word.
    #[test]
    fn hashes_equal_those_of_the_siphasher_crate() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x9e37_79b9);
            random.swap_bytes() ^ random
        };
        for length in (0..=64).chain([255, 256, 257, 1000]) {
            for _ in 0..50 {
                let key = [next(), next()];
                let bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
                let truth = SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
                assert_eq!(Sip::new(key).hash(&bytes), truth, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_fingerprint_depends_on_domain_rule_tag_and_key() {
        let base = Fingerprints::new([1, 2], 3).of(b"tag");
        assert_ne!(Fingerprints::new([1, 2], 4).of(b"tag"), base);
        assert_ne!(Fingerprints::new([2, 1], 3).of(b"tag"), base);
        assert_ne!(Fingerprints::new([1, 2], 3).of(b"tah"), base);
        assert_ne!(rule_id("ab", "c"), rule_id("a", "bc"));
    }
}
