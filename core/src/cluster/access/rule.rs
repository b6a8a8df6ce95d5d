//! The rules of an exchange: those of its own throttle, and those of other processes that it found
//! in the table.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Deref;

use crate::domain::ActiveRule;
use crate::limit::bucket::Scale;
use crate::table::Key;
use crate::table::fingerprint::hash_of;
use crate::table::rule_users::RuleHold;

/// A rule with its index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeRule {
    /// A hash of the names of domain and rule, equal on all nodes.
    pub id: u64,
    /// Its index in the table.
    pub index: u16,
    pub(crate) scale: Scale,
}

impl ExchangeRule {
    pub(super) fn new(id: u64, index: u16, scale: Scale) -> ExchangeRule {
        ExchangeRule { id, index, scale }
    }

    /// The burst in units.
    pub fn burst(&self) -> u64 {
        self.scale.burst()
    }

    /// Units per hit.
    pub fn quantum(&self) -> u64 {
        self.scale.quantum()
    }

    /// The time in which an empty bucket fills, in nanoseconds.
    pub fn fill_ns(&self) -> u64 {
        self.scale.fill_ns()
    }

    /// Units per second.
    pub fn rate(&self) -> f64 {
        self.scale.rate()
    }

    pub(super) fn key(&self, fingerprint: u64) -> Key {
        Key { fingerprint, rule: self.index }
    }
}

/// A rule whose index is not reused while this value exists.
#[derive(Debug)]
pub struct RuleInUse {
    rule: ExchangeRule,
    /// `None` if the rule is the throttle's own, which `Exchange` holds.
    _hold: Option<RuleHold>,
}

impl RuleInUse {
    pub(super) fn own(rule: ExchangeRule) -> RuleInUse {
        RuleInUse { rule, _hold: None }
    }

    pub(super) fn held(rule: ExchangeRule, hold: RuleHold) -> RuleInUse {
        RuleInUse { rule, _hold: Some(hold) }
    }
}

impl Deref for RuleInUse {
    type Target = ExchangeRule;

    fn deref(&self) -> &ExchangeRule {
        &self.rule
    }
}

/// Rules, with lookup by identity and by index.
#[derive(Clone, Default)]
pub(super) struct Rules {
    all: Vec<ExchangeRule>,
    /// The number of the throttle's own rules, which come first.
    own: usize,
    /// Positions in `all`.
    by_id: BTreeMap<u64, usize>,
    by_index: Vec<Option<u16>>,
}

impl Rules {
    pub(super) fn new<'a>(own: impl Iterator<Item = &'a ActiveRule>) -> Rules {
        let mut rules = Rules::default();
        own.for_each(|rule| rules.add(ExchangeRule::new(rule.id, rule.index, rule.scale)));
        rules.own = rules.all.len();
        rules
    }

    /// Adds all rules of the table, and removes those of other processes whose index has been
    /// reused. `found` is sorted by index.
    pub(super) fn refresh(&mut self, found: impl Iterator<Item = ExchangeRule>) {
        let found: Vec<ExchangeRule> = found.collect();
        let is_current = |rule: &ExchangeRule| {
            let position = found.binary_search_by_key(&rule.index, |found| found.index);
            position.is_ok_and(|position| found[position] == *rule)
        };
        if !self.all[self.own..].iter().all(is_current) {
            let Rules { mut all, own, .. } = mem::take(self);
            let discovered = all.split_off(own);
            self.own = own;
            all.into_iter()
                .chain(discovered.into_iter().filter(is_current))
                .for_each(|r| self.add(r));
        }
        found.into_iter().for_each(|rule| self.add(rule));
    }

    /// Adds a rule. If there is one with the same identity, lookup by identity still returns the
    /// first: it is the throttle's own rule, or was found earlier.
    fn add(&mut self, rule: ExchangeRule) {
        let index = usize::from(rule.index);
        if self.by_index.len() <= index {
            self.by_index.resize(index + 1, None);
        }
        // There are at most as many rules as indexes.
        let Ok(position) = u16::try_from(self.all.len()) else { return };
        if self.by_index[index].is_none() {
            self.by_index[index] = Some(position);
            self.by_id.entry(rule.id).or_insert(usize::from(position));
            self.all.push(rule);
        }
    }

    pub(super) fn all(&self) -> &[ExchangeRule] {
        &self.all
    }

    /// Returns the rule with this identity, and whether it is the throttle's own.
    pub(super) fn of_id(&self, id: u64) -> Option<(&ExchangeRule, bool)> {
        let position = *self.by_id.get(&id)?;
        self.all.get(position).map(|rule| (rule, position < self.own))
    }

    /// Returns the throttle's own rule with this index.
    pub(super) fn own_of_index(&self, index: u16) -> Option<&ExchangeRule> {
        self.of_index(index, self.own)
    }

    /// Returns true if this rule is in the list, with this index.
    pub(super) fn contains(&self, rule: &ExchangeRule) -> bool {
        self.of_index(rule.index, self.all.len()) == Some(rule)
    }

    /// Returns the rule with this index, if it is among the first `count`.
    fn of_index(&self, index: u16, count: usize) -> Option<&ExchangeRule> {
        let position = self.by_index.get(usize::from(index)).copied().flatten()?;
        self.all[..count].get(usize::from(position))
    }

    /// A hash of the own rules that does not depend on their order or on the machine.
    pub(super) fn hash(&self) -> u64 {
        let own = &self.all[..self.own];
        let mut words: Vec<_> = own.iter().map(|rule| (rule.id, rule.scale.to_words())).collect();
        words.sort_unstable();
        let words = words.into_iter().flat_map(|(id, words)| [id].into_iter().chain(words));
        hash_of(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    }
}
