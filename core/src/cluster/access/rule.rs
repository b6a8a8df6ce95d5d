//! The rules by which an exchanger counts: those of its own throttle, and those that it learned
//! from the table.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Deref;

use crate::domain::ActiveRule;
use crate::limit::bucket::Scale;
use crate::table::Key;
use crate::table::fingerprint::hash_of;
use crate::table::rule_users::RuleHold;

/// A rule, as an exchanger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeRule {
    /// Its identity, equal wherever domain and rule have these names.
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

    /// Units to a hit.
    pub fn quantum(&self) -> u64 {
        self.scale.quantum()
    }

    /// Nanoseconds in which an empty bucket becomes full.
    pub fn fill_ns(&self) -> u64 {
        self.scale.fill_ns()
    }

    /// Units a second.
    pub fn rate(&self) -> f64 {
        self.scale.rate()
    }

    pub(super) fn key(&self, fingerprint: u64) -> Key {
        Key { fingerprint, rule: self.index }
    }
}

/// A rule whose index means it as long as this is kept.
#[derive(Debug)]
pub struct RuleInUse {
    rule: ExchangeRule,
    /// `None`: the exchange holds it.
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

/// Rules by identity and by index.
#[derive(Clone, Default)]
pub(super) struct Rules {
    all: Vec<ExchangeRule>,
    /// How many of them are the throttle's own; these come first.
    own: usize,
    /// Places in the list.
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

    /// Takes over all rules of the table. Those learned before whose index means another rule by
    /// now are forgotten.
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

    /// Adds a rule. If one of this identity is known, that one counts on: it is the throttle's own,
    /// or was at work when this one was looked for first.
    fn add(&mut self, rule: ExchangeRule) {
        let index = usize::from(rule.index);
        if self.by_index.len() <= index {
            self.by_index.resize(index + 1, None);
        }
        // No list has more places than there are indexes.
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

    /// The rule of this identity, and whether it is the throttle's own.
    pub(super) fn of_id(&self, id: u64) -> Option<(&ExchangeRule, bool)> {
        let position = *self.by_id.get(&id)?;
        self.all.get(position).map(|rule| (rule, position < self.own))
    }

    /// The throttle's own rule with this index.
    pub(super) fn own_of_index(&self, index: u16) -> Option<&ExchangeRule> {
        self.of_index(index, self.own)
    }

    /// Whether a rule is known, by its index too.
    pub(super) fn contains(&self, rule: &ExchangeRule) -> bool {
        self.of_index(rule.index, self.all.len()) == Some(rule)
    }

    /// The rule with this index, if it is one of so many.
    fn of_index(&self, index: u16, count: usize) -> Option<&ExchangeRule> {
        let position = self.by_index.get(usize::from(index)).copied().flatten()?;
        self.all[..count].get(usize::from(position))
    }

    /// The same for the same own rules, in whatever order, on every machine.
    pub(super) fn hash(&self) -> u64 {
        let own = &self.all[..self.own];
        let mut words: Vec<_> = own.iter().map(|rule| (rule.id, rule.scale.to_words())).collect();
        words.sort_unstable();
        let words = words.into_iter().flat_map(|(id, words)| [id].into_iter().chain(words));
        hash_of(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    }
}
