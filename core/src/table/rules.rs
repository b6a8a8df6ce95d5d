//! The rules that slots name by index: a list in the region.
//!
//! A rule that changes is another rule with another index. So the index in a slot always says
//! truly how its TAT was counted, whatever the configuration of the process that finds it. An index
//! that no slot names and no live process uses is given to another rule: `reclaim.rs` finds those
//! that no slot names, `rule_users.rs` those that nobody uses.

use std::sync::atomic::Ordering;

use super::cell::AtomicU64;
use crate::limit::bucket::Scale;

/// A rule in the region.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SharedRule {
    /// The hash of domain and rule name; zero: never used, and so are all that follow.
    id: AtomicU64,
    scale: [AtomicU64; 4],
    /// One when all of it is written. Otherwise the entry is free, and no slot names it: it was
    /// freed, or a process was killed while it wrote.
    ready: AtomicU64,
}

impl SharedRule {
    /// The rule's arithmetic, if it is written and makes sense.
    pub(super) fn scale(&self) -> Option<Scale> {
        if !self.is_ready() {
            return None;
        }
        Scale::from_words(self.scale.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// The rule's identity as well. If the entry is reused during the read, id and scale may belong
    /// to different rules. That cannot happen while a slot or a throttle uses the rule.
    pub(super) fn read(&self) -> Option<(u64, Scale)> {
        self.scale().map(|scale| (self.id.load(Ordering::Relaxed), scale))
    }

    /// Whether this rule is here.
    fn is(&self, id: u64, words: &[u64; 4]) -> bool {
        // The burst differs in most rules, so it is compared first.
        self.scale[0].load(Ordering::Relaxed) == words[0]
            && self.is_ready()
            && self.id.load(Ordering::Relaxed) == id
            && self.scale.each_ref().map(|word| word.load(Ordering::Relaxed)) == *words
    }

    /// Whether the entry was ever used.
    pub(super) fn is_used(&self) -> bool {
        self.id.load(Ordering::Relaxed) != 0
    }

    pub(super) fn is_ready(&self) -> bool {
        // Acquire: pairs with the store in `write`.
        self.ready.load(Ordering::Acquire) == 1
    }

    /// Frees the entry, or takes that back.
    pub(super) fn set_ready(&self, is_ready: bool) {
        // Release: as in `write`.
        self.ready.store(u64::from(is_ready), Ordering::Release);
    }

    /// Whether `take` would take the entry at this moment.
    fn is_free(&self, may_reuse: impl Fn() -> bool) -> bool {
        !self.is_ready() && (!self.is_used() || may_reuse())
    }

    /// Takes the entry for a rule, if it is free.
    fn take(&self, id: u64, may_reuse: impl Fn() -> bool) -> bool {
        if self.is_ready() {
            return false;
        }
        // AcqRel: a process that cannot exclude others says so before it takes a entry, and
        // `may_reuse` must know when it finds that entry taken and not written yet.
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
        // Release: a reader that sees it ready sees the words.
        self.ready.store(1, Ordering::Release);
    }
}

/// All places that were ever used, with their indexes. Index zero is what an empty slot has, the
/// last one what a claim has.
pub(super) fn used(rules: &[SharedRule]) -> impl Iterator<Item = (u16, &SharedRule)> {
    entries(rules).take_while(|(_, entry)| entry.is_used())
}

fn entries(rules: &[SharedRule]) -> impl Iterator<Item = (u16, &SharedRule)> {
    (1..).zip(&rules[1..rules.len() - 1])
}

/// The index of a rule that is in the list.
pub(super) fn find(rules: &[SharedRule], id: u64, scale: &Scale) -> Option<u16> {
    let (id, words) = (id.max(1), scale.to_words());
    used(rules).find(|(_, entry)| entry.is(id, &words)).map(|(index, _)| index)
}

/// Adds a rule and returns its index, or `None` if the list is full. Places that were freed are used
/// only if `may_reuse`, which may be true in one process at a time. `hold` holds the index before
/// the entry is taken, and returns whether it could: a entry that is taken cannot be given back.
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
            // The list ends here, so a rule behind this entry would not be found.
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
    fn the_same_rule_has_one_index_and_a_changed_one_another() {
        let rules = list(5);
        assert_eq!(find_or_add(&rules, 7, &scale(1)), Some(1));
        assert_eq!(find_or_add(&rules, 7, &scale(1)), Some(1));
        assert_eq!(find_or_add(&rules, 7, &scale(2)), Some(2));
        assert_eq!(find_or_add(&rules, 8, &scale(1)), Some(3));
        assert_eq!(find_or_add(&rules, 9, &scale(1)), None, "full");
        assert_eq!(rules[2].scale(), Some(scale(2)));
        assert_eq!(rules[0].scale(), None);
    }

    /// A process was killed while it wrote: the next one writes there.
    #[test]
    fn a_place_half_written_is_used_again() {
        let rules = list(4);
        rules[1].id.store(7, Ordering::Relaxed);
        assert_eq!(find(&rules, 7, &scale(1)), None);
        assert_eq!(
            add(&rules, 7, &scale(1), || false, |_| true),
            Some(2),
            "perhaps at this moment"
        );
        assert_eq!(add(&rules, 8, &scale(2), || true, |_| true), Some(1));
        assert_eq!(rules[1].read(), Some((8, scale(2))));
    }

    #[test]
    fn a_place_that_cannot_be_held_is_passed_over() {
        let rules = list(4);
        assert_eq!(find_or_add(&rules, 6, &scale(1)), Some(1));
        rules[1].set_ready(false);
        assert_eq!(add(&rules, 7, &scale(1), || true, |index| index > 1), Some(2));
        assert_eq!(find(&rules, 7, &scale(1)), Some(2));
    }

    #[test]
    fn a_process_that_can_hold_no_place_leaves_the_list_as_it_was() {
        let rules = list(4);
        assert_eq!(add(&rules, 7, &scale(1), || true, |_| false), None);
        assert_eq!(used(&rules).count(), 0);
        assert_eq!(find_or_add(&rules, 8, &scale(1)), Some(1));
    }
}
