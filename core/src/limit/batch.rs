//! Many checks at once. All table lines are prefetched before the first is used, so that the memory
//! latencies overlap.

use crate::domain::Inner;
use crate::limit::decide::{self, Check};
use crate::limit::decision::CheckOptions;
use crate::table::Key;

/// The maximum number of tags that are checked together: at least as many as the memory system can
/// load at once.
pub(crate) const BATCH: usize = 64;

/// Checks at most `BATCH` tags.
pub(crate) fn allow<T: AsRef<[u8]>>(domain: &Inner, tags: &[T], allowed: &mut [bool]) {
    let table = &domain.host.table;
    let options = CheckOptions::default();
    let [rule] = domain.rules.as_slice() else {
        for tag in tags {
            for rule in &domain.rules {
                table.prefetch(rule.key(tag.as_ref()));
            }
        }
        for (tag, allowed) in tags.iter().zip(allowed) {
            *allowed = decide::allow(domain, tag.as_ref(), options);
        }
        return;
    };
    let mut keys = [Key { fingerprint: 0, rule: 0 }; BATCH];
    for (key, tag) in keys.iter_mut().zip(tags) {
        *key = rule.key(tag.as_ref());
        table.prefetch(*key);
    }
    let now = domain.host.now();
    for (key, allowed) in keys.iter().zip(allowed) {
        *allowed = Check::at(domain, now, [*key], options).take(rule).allowed();
    }
}
