//! Who uses most: the buckets of a table that are nearest to empty, or deepest in debt.

use std::time::Duration;

use crate::domain::{Domain, Host};

/// A bucket, as people want to see it. The tag itself is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopBucket {
    /// Stands for domain, rule and tag; 54 bits, the others are zero.
    pub fingerprint: u64,
    /// The domain's name.
    pub domain: String,
    /// The rule's name.
    pub rule: String,
    /// The rule's burst.
    pub limit: u64,
    /// Whole units in the bucket, negative in debt.
    pub balance: i64,
    /// Time until the bucket is full.
    pub reset_after: Duration,
}

/// The `count` buckets with the largest share of their burst used, most used first.
pub(crate) fn top(host: &Host, domains: &[Domain], count: usize) -> Vec<TopBucket> {
    let now = host.now();
    let mut most = Vec::new();
    host.table.each(now, |bucket, scale| {
        most.push((scale.share_used(bucket.tat, now), bucket));
        // Twice as many as are wanted, so that sorting is seldom.
        if most.len() >= count.max(1000).saturating_mul(2) {
            most.sort_unstable_by_key(|(share, _)| u64::MAX - share);
            most.truncate(count);
        }
    });
    most.sort_unstable_by_key(|(share, bucket)| (u64::MAX - share, bucket.key.fingerprint));
    let rules =
        || domains.iter().flat_map(|domain| domain.0.rules.iter().map(move |r| (domain, r)));
    let shown = most.into_iter().filter_map(|(_, bucket)| {
        let (domain, rule) = rules().find(|(_, rule)| rule.index == bucket.key.rule)?;
        Some(TopBucket {
            fingerprint: bucket.key.fingerprint,
            domain: domain.name().to_string(),
            rule: rule.name.clone(),
            limit: rule.burst(),
            balance: rule.scale.balance(bucket.tat, now),
            reset_after: Duration::from_nanos(rule.scale.reset_after(bucket.tat, now)),
        })
    });
    shown.take(count).collect()
}
