//! The rules that slots name by index: a list in the region that only grows.
//!
//! A rule that changes is another rule with another index. So the index in a slot always says
//! truly how its TAT was counted, whatever the configuration of the process that finds it.

use std::hint;
use std::sync::atomic::Ordering;

use super::cell::AtomicU64;
use crate::bucket::Scale;

/// How long to wait for a process that is just writing the same rule.
const PATIENCE: u32 = 1000;

/// A rule in the region.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct SharedRule {
    /// The hash of domain and rule name; zero: the place is free.
    id: AtomicU64,
    scale: [AtomicU64; 4],
    /// One when all of it is written. A process killed while it writes leaves a place that is
    /// never used.
    ready: AtomicU64,
}

impl SharedRule {
    /// The rule's arithmetic, if it is written and makes sense.
    pub(super) fn scale(&self) -> Option<Scale> {
        // Acquire: pairs with the store in `write`.
        if self.ready.load(Ordering::Acquire) != 1 {
            return None;
        }
        Scale::from_words(self.scale.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// The rule's identity as well.
    pub(super) fn read(&self) -> Option<(u64, Scale)> {
        self.scale().map(|scale| (self.id.load(Ordering::Relaxed), scale))
    }

    pub(super) fn is_free(&self) -> bool {
        self.id.load(Ordering::Relaxed) == 0
    }

    fn write(&self, scale: &Scale) {
        for (place, word) in self.scale.iter().zip(scale.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: who sees it ready sees the words.
        self.ready.store(1, Ordering::Release);
    }

    /// Waits a moment for another process to finish this place.
    fn settled(&self) -> Option<Scale> {
        for _ in 0..PATIENCE {
            if let Some(scale) = self.scale() {
                return Some(scale);
            }
            hint::spin_loop();
        }
        None
    }
}

/// The index of a rule, which is added if it is not there. `None`: the list is full.
pub(super) fn index_of(rules: &[SharedRule], id: u64, scale: &Scale) -> Option<u16> {
    let id = id.max(1);
    // Index zero is what an empty slot has, the last one what a claim has.
    let free = rules.iter().enumerate().take(rules.len() - 1).skip(1);
    for (index, place) in free {
        // Relaxed: `ready` orders the rest.
        let claimed = place.id.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed);
        let found = match claimed {
            Ok(_) => {
                place.write(scale);
                true
            }
            Err(other) => other == id && place.settled().as_ref() == Some(scale),
        };
        if found {
            return u16::try_from(index).ok();
        }
    }
    None
}

/// Takes over a list into an empty one, with the same indexes.
pub(super) fn copy(from: &[SharedRule], to: &[SharedRule]) {
    for (from, to) in from.iter().zip(to) {
        // Relaxed: nobody else sees the new list yet.
        to.id.store(from.id.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(scale) = from.scale() {
            to.write(&scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Rate;

    fn scale(count: u64) -> Scale {
        Scale::new(&Rate::new(count, Duration::from_secs(1)), 10)
    }

    #[test]
    fn the_same_rule_has_one_index_and_a_changed_one_another() {
        let rules: Vec<SharedRule> = (0..5).map(|_| SharedRule::default()).collect();
        assert_eq!(index_of(&rules, 7, &scale(1)), Some(1));
        assert_eq!(index_of(&rules, 7, &scale(1)), Some(1));
        assert_eq!(index_of(&rules, 7, &scale(2)), Some(2));
        assert_eq!(index_of(&rules, 8, &scale(1)), Some(3));
        assert_eq!(index_of(&rules, 9, &scale(1)), None, "full");
        assert_eq!(rules[2].scale(), Some(scale(2)));
        assert_eq!(rules[0].scale(), None);
    }

    /// A process was killed while it wrote: the place is lost, the list is not.
    #[test]
    fn a_place_half_written_is_passed_over() {
        let rules: Vec<SharedRule> = (0..4).map(|_| SharedRule::default()).collect();
        rules[1].id.store(7, Ordering::Relaxed);
        assert_eq!(index_of(&rules, 7, &scale(1)), Some(2));
        assert_eq!(rules[1].scale(), None);
    }
}
