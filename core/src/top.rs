//! Lists the buckets that used the largest share of their burst.

use std::collections::HashMap;
use std::time::Duration;

use crate::domain::{Domain, Host};
use crate::limit::bucket::carry_over;

/// A bucket in a listing; see [`Throttle::top`](crate::Throttle::top).
///
/// The tag is not included, because a table stores only fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopBucket {
    /// Hash of the domain, the rule and the tag. The lowest 10 bits are 0.
    pub fingerprint: u64,
    /// The domain's name.
    pub domain: String,
    /// The rule's name.
    pub rule: String,
    /// The rule's burst in units.
    pub limit: u64,
    /// Whole units in the bucket, negative if it is in debt.
    pub balance: i64,
    /// Time until the bucket is full.
    pub reset_after: Duration,
}

/// The `count` buckets with the largest used share of their burst, in descending order. A bucket
/// that was counted under an earlier version of its rule is converted to the current one.
pub(crate) fn top(host: &Host, domains: &[Domain], count: usize) -> Vec<TopBucket> {
    let now = host.now();
    let shown = || domains.iter().flat_map(|d| d.0.rules.iter().map(move |rule| (d, rule)));
    let by_id: HashMap<u64, _> = shown().map(|pair| (pair.1.id, pair)).collect();
    let mut most = Vec::new();
    host.table.each(now, |bucket, id, counted| {
        let Some((domain, rule)) = by_id.get(&id) else { return };
        let tat = match rule.index == bucket.key.rule {
            true => bucket.tat,
            false => carry_over(counted, &rule.scale, bucket.tat, now),
        };
        let share = rule.scale.share_used(tat, now);
        if share == 0 {
            return;
        }
        most.push(((u64::MAX - share, bucket.key.fingerprint), *domain, *rule, tat));
        // The list may grow to twice its size, so that it is rarely sorted.
        if most.len() >= count.max(1000).saturating_mul(2) {
            most.sort_unstable_by_key(|(order, ..)| *order);
            most.truncate(count);
        }
    });
    most.sort_unstable_by_key(|(order, ..)| *order);
    let shown =
        most.into_iter().take(count).map(|((_, fingerprint), domain, rule, tat)| TopBucket {
            fingerprint,
            domain: domain.name().to_string(),
            rule: rule.name.clone(),
            limit: rule.burst(),
            balance: rule.scale.balance(tat, now),
            reset_after: Duration::from_nanos(rule.scale.reset_after(tat, now)),
        });
    shown.collect()
}
