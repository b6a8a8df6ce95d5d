//! Fingerprints: 64 bits that stand for (domain, rule, tag), under a key.
//!
//! SipHash-1-3: nobody who does not know the key can aim collisions.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// The hash of one rule: its key comes from the table's key and the rule.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints(SipHasher13);

impl Fingerprints {
    pub(crate) fn new(key: [u64; 2], rule_id: u64) -> Fingerprints {
        let hash = SipHasher13::new_with_keys(key[0], key[1]);
        let derived = |part: u64| {
            let mut hash = hash;
            hash.write(&rule_id.to_le_bytes());
            hash.write(&part.to_le_bytes());
            hash.finish()
        };
        Fingerprints(SipHasher13::new_with_keys(derived(0), derived(1)))
    }

    #[inline]
    pub(crate) fn of(&self, tag: &[u8]) -> u64 {
        self.0.hash(tag)
    }
}

/// A rule's identity, equal wherever domain and rule have these names.
pub(crate) fn rule_id(domain: &str, rule: &str) -> u64 {
    let mut hash = SipHasher13::new_with_keys(0, 0);
    hash.write(&(domain.len() as u64).to_le_bytes());
    hash.write(domain.as_bytes());
    hash.write(rule.as_bytes());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fingerprints travel between nodes: they may never change. The values come from another
    /// implementation of SipHash-1-3.
    #[test]
    fn fingerprints_are_a_promise() {
        assert_eq!(rule_id("default", "rule1"), 0xa2a2_ec50_0d5e_9027);
        assert_eq!(Fingerprints::new([1, 2], 3).of(b"203.0.113.7"), 0x1217_c960_01f4_cd88);
    }

    #[test]
    fn domain_rule_tag_and_key_all_count() {
        let base = Fingerprints::new([1, 2], 3).of(b"tag");
        assert_ne!(Fingerprints::new([1, 2], 4).of(b"tag"), base);
        assert_ne!(Fingerprints::new([2, 1], 3).of(b"tag"), base);
        assert_ne!(Fingerprints::new([1, 2], 3).of(b"tah"), base);
        assert_ne!(rule_id("ab", "c"), rule_id("a", "bc"));
    }
}
