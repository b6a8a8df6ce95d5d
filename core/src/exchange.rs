//! Stand-in.
#![allow(missing_docs)]
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cluster::{Origin, Window};
use crate::domain::{ActiveRule, Host};
use crate::table::{Key, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub fingerprint: u64,
    pub hits: u64,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct RawEvent {
    pub number: u64,
    pub at_ns: u64,
    pub kind: u64,
    pub node: u64,
    pub value: u64,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    pub address: Option<SocketAddr>,
    pub state: u64,
    pub last_heard_ns: u64,
    pub delay_ns: u64,
    pub received: u64,
    pub repaired: u64,
    pub lost: u64,
}
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    pub rule: u64,
    pub quantum: u64,
    pub fingerprint: u64,
    pub hits: u64,
    pub start_ns: u64,
    pub saturated: bool,
}
pub struct Level {
    pub hits: u64,
    pub used: u64,
}
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    pub fingerprint: u64,
    pub units: u64,
    pub saturated: bool,
}
pub struct Charged {
    pub charged: u64,
    pub spared: u64,
}
pub struct LevelOf {
    pub rule: u64,
    pub fingerprint: u64,
    pub used_16ths: u64,
}
pub struct KnownRule {
    pub id: u64,
    pub index: u16,
    rule: ActiveRule,
}
impl KnownRule {
    pub fn burst(&self) -> u64 {
        self.rule.burst()
    }
    pub fn quantum(&self) -> u64 {
        1
    }
    pub fn fill_ns(&self) -> u64 {
        self.rule.scale.reset_after(self.rule.scale.charge(0, 0, self.burst()), 0)
    }
}
pub struct Exchange {
    host: Arc<Host>,
    rules: Vec<KnownRule>,
    counters: Vec<AtomicU64>,
}

impl Exchange {
    pub(crate) fn new(host: Arc<Host>, rules: Vec<ActiveRule>) -> Exchange {
        let rules = rules
            .into_iter()
            .map(|rule| KnownRule {
                id: host.table.rule_id(rule.index).unwrap(),
                index: rule.index,
                rule,
            })
            .collect();
        Exchange { host, rules, counters: (0..48).map(|_| AtomicU64::new(0)).collect() }
    }
    pub fn now(&self) -> u64 {
        self.host.now()
    }
    pub fn stay(&self, now: u64) {
        self.host.table.exchange(now);
    }
    pub fn rule(&self, id: u64) -> Option<&KnownRule> {
        self.rules.iter().find(|r| r.id == id)
    }
    pub fn rules(&self) -> &[KnownRule] {
        &self.rules
    }
    pub fn rules_hash(&self) -> u64 {
        1
    }
    pub fn drain(
        &self,
        now: u64,
        all: bool,
        mut due: impl FnMut(&KnownRule, &Level) -> bool,
        mut out: impl FnMut(Drained),
    ) {
        let rule_of = |index: u16| self.rules.iter().find(|r| r.index == index);
        self.host.table.drain(
            all,
            |b| {
                rule_of(b.key.rule).is_none_or(|r| {
                    due(r, &Level { hits: b.hits, used: r.rule.scale.share_used(b.tat, now) })
                })
            },
            |b| {
                let Some(r) = rule_of(b.key.rule) else { return };
                let used = r.rule.scale.share_used(b.tat, now);
                let before = r.rule.scale.refund(b.tat, b.hits);
                let start = r
                    .rule
                    .scale
                    .reset_after(before, 0)
                    .clamp(now.saturating_sub(15_000_000_000), now);
                out(Drained {
                    rule: r.id,
                    quantum: 1,
                    fingerprint: b.key.fingerprint,
                    hits: b.hits,
                    start_ns: start,
                    saturated: used > (1u64 << 32) / 10 * 9,
                });
            },
        );
    }
    pub fn charge(
        &self,
        rule: &KnownRule,
        now: u64,
        then: u64,
        late: bool,
        entries: impl Iterator<Item = Charge> + Clone,
    ) -> Charged {
        let mut done = Charged { charged: 0, spared: 0 };
        for entry in entries {
            let key = Key { fingerprint: entry.fingerprint, rule: rule.index };
            let scale = rule.rule.scale;
            let charged = self.host.update(&rule.rule, key, now, |tat| {
                if late && !entry.saturated && scale.share_used(tat, now) < (1u64 << 32) / 10 * 9 {
                    return Step { tat, hits: 0, answer: false };
                }
                Step { tat: scale.charge(tat, then, entry.units), hits: 0, answer: true }
            });
            if charged { done.charged += 1 } else { done.spared += 1 }
        }
        done
    }
    pub fn levels(&self, now: u64, most: usize) -> Vec<LevelOf> {
        let mut list = Vec::new();
        self.host.table.each(now, |b, scale| {
            if list.len() < most
                && let Some(id) = self.host.table.rule_id(b.key.rule)
            {
                let used =
                    scale.share_used(b.tat, now) as u128 * u128::from(scale.burst()) * 16 >> 32;
                list.push(LevelOf {
                    rule: id,
                    fingerprint: b.key.fingerprint,
                    used_16ths: used as u64,
                });
            }
        });
        list
    }
    pub fn raise(&self, rule: &KnownRule, now: u64, fingerprint: u64, used_16ths: u64) {
        let key = Key { fingerprint, rule: rule.index };
        self.host.update(&rule.rule, key, now, |tat| Step {
            tat: tat.max(rule.rule.scale.charge(0, now, used_16ths / 16)),
            hits: 0,
            answer: (),
        });
    }
    pub fn is_saturated(&self, rule: &KnownRule, now: u64, fingerprint: u64) -> bool {
        let key = Key { fingerprint, rule: rule.index };
        let tat = self.host.table.read(key, &rule.rule.scale, now);
        rule.rule.scale.share_used(tat, now) > (1u64 << 32) / 10 * 9
    }
    pub fn node_id(&self, fresh: u64) -> u64 {
        fresh
    }
    pub fn seats(&self) -> impl Iterator<Item = (usize, Origin)> + use<> {
        std::iter::empty()
    }
    pub fn take_seat(&self, _: Origin) -> Option<usize> {
        None
    }
    pub fn free_seat(&self, _: usize) {}
    pub fn window(&self, _: usize) -> Window {
        Window::default()
    }
    pub fn set_window(&self, _: usize, _: &Window) {}
    pub fn facts(&self, _: usize) -> Facts {
        Facts::default()
    }
    pub fn set_facts(&self, _: usize, _: &Facts) {}
    pub fn count(&self, counter: usize, by: u64) {
        self.counters[counter].fetch_add(by, Ordering::Relaxed);
    }
    pub fn counted(&self, counter: usize) -> u64 {
        self.counters[counter].load(Ordering::Relaxed)
    }
    pub fn known_node_id(&self) -> u64 { 0 }
    pub fn exchanger(&self) -> (u64, u64) { (0, 0) }
    pub fn notes_since(&self, _: u64) -> Vec<RawEvent> { Vec::new() }
    pub fn note(&self, _: RawEvent) {}
    pub fn set_slack(&self, _: u64) {}
    pub fn set_nodes(&self, _: u64) {}
}
