//! The table as an exchanger sees it: what was admitted here goes out, what was admitted elsewhere
//! comes in. Tags are known by fingerprint only.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::{Domain, Host};
use crate::table::{Key, Step};

/// How many entries ahead their lines are asked for.
const AHEAD: usize = 16;

/// What was admitted for one tag under one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Stands for domain, rule and tag.
    pub fingerprint: u64,
    /// Units.
    pub hits: u64,
}

/// A throttle's table, with hits counted for peers while somebody asks for them.
pub struct Exchange(Arc<Host>);

impl Exchange {
    pub(crate) fn new(host: Arc<Host>) -> Exchange {
        let exchange = Exchange(host);
        exchange.stay();
        exchange
    }

    /// Says that the exchange goes on: without a word for 15 seconds, hits are no longer counted
    /// for peers.
    pub fn stay(&self) {
        self.0.table.exchange(self.0.now());
    }

    /// Hands over all hits that were not handed over before, with the identity of their rule.
    pub fn drain(&self, mut out: impl FnMut(u64, Entry)) {
        self.drain_table(false, &mut out);
    }

    /// The same, also of buckets that a killed process may have left unmarked. Slower: looks at
    /// the whole table.
    pub fn drain_all(&self, mut out: impl FnMut(u64, Entry)) {
        self.drain_table(true, &mut out);
    }

    fn drain_table(&self, all: bool, out: &mut impl FnMut(u64, Entry)) {
        let table = &self.0.table;
        table.drain(
            all,
            |_| true,
            |bucket| {
                let entry = Entry { fingerprint: bucket.key.fingerprint, hits: bucket.hits };
                match table.rule_id(bucket.key.rule) {
                    Some(rule) => out(rule, entry),
                    None => table.unreported.add(entry.hits),
                }
            },
        );
    }

    /// Charges what peers admitted under a rule of a domain, the first of it `age` ago.
    pub fn apply(&self, domain: &Domain, rule: usize, entries: &[Entry], age: Duration) {
        let host = &self.0;
        let Some(rule) = domain.0.rules.get(rule) else { return };
        if !Arc::ptr_eq(host, &domain.0.host) {
            return;
        }
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        let now = host.now();
        let then = now.saturating_sub(age);
        let key = |entry: &Entry| Key { fingerprint: entry.fingerprint, rule: rule.index };
        for entry in entries.iter().take(AHEAD) {
            host.table.prefetch(key(entry));
        }
        for (i, entry) in entries.iter().enumerate() {
            if let Some(next) = entries.get(i + AHEAD) {
                host.table.prefetch(key(next));
            }
            host.update(rule, key(entry), now, |tat| {
                let tat = rule.scale.charge(tat, then, entry.hits);
                Step { tat, hits: 0, answer: () }
            });
        }
    }
}
