//! The list of rules in a region. A slot refers to its rule by the index in this list.
//!
//! A rule whose rate or burst changes gets a new index. So the index in a slot always determines
//! how its TAT was counted, whatever the configuration of the process that reads it. An index that
//! no slot contains and no live process uses is reused for another rule. `reclaim.rs` finds indexes
//! that no slot contains, `rule_users.rs` those that no process uses.

use std::sync::atomic::Ordering;

use super::cell::AtomicU64;
use crate::limit::bucket::Scale;

/// A rule in the region.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SharedRule {
    /// Hash of the domain name and the rule name. 0: this entry and all that follow were never
    /// used.
    id: AtomicU64,
    scale: [AtomicU64; 4],
    /// 1 once all words are written. Otherwise the entry is free and no slot names it: it was
    /// freed, or a process was killed while it wrote the entry.
    ready: AtomicU64,
}

impl SharedRule {
    /// Returns the rule's scale, or `None` if the entry is free or its words are invalid.
    pub(super) fn scale(&self) -> Option<Scale> {
        if !self.is_ready() {
            return None;
        }
        Scale::from_words(self.scale.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Returns the rule's identity and scale. If the entry is reused during the read, they may
    /// belong to different rules. That cannot happen while a slot or a throttle uses the rule.
    pub(super) fn read(&self) -> Option<(u64, Scale)> {
        self.scale().map(|scale| (self.id.load(Ordering::Relaxed), scale))
    }

    /// Returns true if the entry holds this rule.
    fn is(&self, id: u64, words: &[u64; 4]) -> bool {
        // The burst is compared first, because it differs in most rules.
        self.scale[0].load(Ordering::Relaxed) == words[0]
            && self.is_ready()
            && self.id.load(Ordering::Relaxed) == id
            && self.scale.each_ref().map(|word| word.load(Ordering::Relaxed)) == *words
    }

    /// Returns true if the entry was ever used.
    pub(super) fn is_used(&self) -> bool {
        self.id.load(Ordering::Relaxed) != 0
    }

    pub(super) fn is_ready(&self) -> bool {
        // Acquire: pairs with the store in `write`.
        self.ready.load(Ordering::Acquire) == 1
    }

    /// Frees the entry if `is_ready` is false. Otherwise makes it valid again.
    pub(super) fn set_ready(&self, is_ready: bool) {
        // Release: as in `write`.
        self.ready.store(u64::from(is_ready), Ordering::Release);
    }

    /// Returns true if `take` would succeed now.
    fn is_free(&self, may_reuse: impl Fn() -> bool) -> bool {
        !self.is_ready() && (!self.is_used() || may_reuse())
    }

    /// Takes a free entry for a rule. Returns false if the entry is in use.
    fn take(&self, id: u64, may_reuse: impl Fn() -> bool) -> bool {
        if self.is_ready() {
            return false;
        }
        // AcqRel: a process that cannot lock rules pins them before it takes an entry. If
        // `may_reuse` finds an entry that is taken and not written yet, it must see that pin.
        match self.id.compare_exchange(0, id, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(_) if may_reuse() => {
                // Relaxed: `ready` orders it.
                self.id.store(id, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    fn write(&self, scale: &Scale) {
        for (entry, word) in self.scale.iter().zip(scale.to_words()) {
            entry.store(word, Ordering::Relaxed);
        }
        // Release: a reader that sees `ready` sees the words.
        self.ready.store(1, Ordering::Release);
    }
}

/// All entries that were ever used, with their indexes. The first and the last index are skipped,
/// because they mark empty and reserved slots.
pub(super) fn used(rules: &[SharedRule]) -> impl Iterator<Item = (u16, &SharedRule)> {
    entries(rules).take_while(|(_, entry)| entry.is_used())
}

fn entries(rules: &[SharedRule]) -> impl Iterator<Item = (u16, &SharedRule)> {
    (1..).zip(&rules[1..rules.len() - 1])
}

/// Returns the index of a rule, or `None` if the list does not have it.
pub(super) fn find(rules: &[SharedRule], id: u64, scale: &Scale) -> Option<u16> {
    let (id, words) = (id.max(1), scale.to_words());
    used(rules).find(|(_, entry)| entry.is(id, &words)).map(|(index, _)| index)
}

/// Adds a rule and returns its index, or `None` if the list is full. Freed entries are reused only
/// if `may_reuse` returns true, which it must not do in two processes at a time. `hold` is called
/// before an entry is taken, because a taken entry cannot be returned. It returns true if this
/// process now holds the index.
pub(super) fn add(
    rules: &[SharedRule],
    id: u64,
    scale: &Scale,
    may_reuse: impl Fn() -> bool,
    mut hold: impl FnMut(u16) -> bool,
) -> Option<u16> {
    for (index, entry) in entries(rules).filter(|(_, entry)| entry.is_free(&may_reuse)) {
        if hold(index) && entry.take(id.max(1), &may_reuse) {
            entry.write(scale);
            return Some(index);
        }
        if !entry.is_used() {
            // The list ends here, so a rule after this entry would not be found.
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Rate;

    fn scale(count: u64) -> Scale {
        Scale::new(&Rate::new(count, Duration::from_secs(1)), 10)
    }

    fn list(len: usize) -> Vec<SharedRule> {
        (0..len).map(|_| SharedRule::default()).collect()
    }

    fn find_or_add(rules: &[SharedRule], id: u64, scale: &Scale) -> Option<u16> {
        find(rules, id, scale).or_else(|| add(rules, id, scale, || true, |_| true))
    }

    #[test]
    fn equal_rules_share_an_index_and_a_changed_rule_gets_a_new_one() {
        let rules = list(5);
        assert_eq!(find_or_add(&rules, 7, &scale(1)), Some(1));
        assert_eq!(find_or_add(&rules, 7, &scale(1)), Some(1));
        assert_eq!(find_or_add(&rules, 7, &scale(2)), Some(2));
        assert_eq!(find_or_add(&rules, 8, &scale(1)), Some(3));
        assert_eq!(find_or_add(&rules, 9, &scale(1)), None, "the list is full");
        assert_eq!(rules[2].scale(), Some(scale(2)));
        assert_eq!(rules[0].scale(), None);
    }

    /// A process was killed while it wrote an entry.
    #[test]
    fn a_half_written_entry_is_reused() {
        let rules = list(4);
        rules[1].id.store(7, Ordering::Relaxed);
        assert_eq!(find(&rules, 7, &scale(1)), None);
        assert_eq!(
            add(&rules, 7, &scale(1), || false, |_| true),
            Some(2),
            "another process may be writing the half-written entry"
        );
        assert_eq!(add(&rules, 8, &scale(2), || true, |_| true), Some(1));
        assert_eq!(rules[1].read(), Some((8, scale(2))));
    }

    #[test]
    fn an_entry_that_cannot_be_held_is_skipped() {
        let rules = list(4);
        assert_eq!(find_or_add(&rules, 6, &scale(1)), Some(1));
        rules[1].set_ready(false);
        assert_eq!(add(&rules, 7, &scale(1), || true, |index| index > 1), Some(2));
        assert_eq!(find(&rules, 7, &scale(1)), Some(2));
    }

    #[test]
    fn a_process_that_can_hold_no_entry_leaves_the_list_unchanged() {
        let rules = list(4);
        assert_eq!(add(&rules, 7, &scale(1), || true, |_| false), None);
        assert_eq!(used(&rules).count(), 0);
        assert_eq!(find_or_add(&rules, 8, &scale(1)), Some(1));
    }
}
