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
pub struct KnownRule {
    /// Its identity, equal wherever domain and rule have these names.
    pub id: u64,
    /// Its index in the table.
    pub index: u16,
    pub(crate) scale: Scale,
}

impl KnownRule {
    pub(super) fn new(id: u64, index: u16, scale: Scale) -> KnownRule {
        KnownRule { id, index, scale }
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
    rule: KnownRule,
    /// `None`: the exchange holds it.
    _hold: Option<RuleHold>,
}

impl RuleInUse {
    pub(super) fn own(rule: KnownRule) -> RuleInUse {
        RuleInUse { rule, _hold: None }
    }

    pub(super) fn learned(rule: KnownRule, hold: RuleHold) -> RuleInUse {
        RuleInUse { rule, _hold: Some(hold) }
    }
}

impl Deref for RuleInUse {
    type Target = KnownRule;

    fn deref(&self) -> &KnownRule {
        &self.rule
    }
}

/// Rules by identity and by index.
#[derive(Clone, Default)]
pub(super) struct Rules {
    all: Vec<KnownRule>,
    /// How many of them are the throttle's own; these come first.
    own: usize,
    /// Places in the list.
    by_id: BTreeMap<u64, usize>,
    by_index: Vec<Option<u16>>,
}

impl Rules {
    pub(super) fn new<'a>(own: impl Iterator<Item = &'a ActiveRule>) -> Rules {
        let mut rules = Rules::default();
        own.for_each(|rule| rules.learn(KnownRule::new(rule.id, rule.index, rule.scale)));
        rules.own = rules.all.len();
        rules
    }

    /// Takes over all rules of the table. Those learned before whose index means another rule by
    /// now are forgotten.
    pub(super) fn learn_all(&mut self, found: impl Iterator<Item = KnownRule>) {
        let found: Vec<KnownRule> = found.collect();
        let is_there = |rule: &KnownRule| {
            let place = found.binary_search_by_key(&rule.index, |found| found.index);
            place.is_ok_and(|place| found[place] == *rule)
        };
        if !self.all[self.own..].iter().all(is_there) {
            let Rules { mut all, own, .. } = mem::take(self);
            let learned = all.split_off(own);
            self.own = own;
            all.into_iter().chain(learned.into_iter().filter(is_there)).for_each(|r| self.learn(r));
        }
        found.into_iter().for_each(|rule| self.learn(rule));
    }

    /// Adds a rule. If one of this identity is known, that one counts on: it is the throttle's own,
    /// or was at work when this one was looked for first.
    fn learn(&mut self, rule: KnownRule) {
        let index = usize::from(rule.index);
        if self.by_index.len() <= index {
            self.by_index.resize(index + 1, None);
        }
        // No list has more places than there are indexes.
        let Ok(place) = u16::try_from(self.all.len()) else { return };
        if self.by_index[index].is_none() {
            self.by_index[index] = Some(place);
            self.by_id.entry(rule.id).or_insert(usize::from(place));
            self.all.push(rule);
        }
    }

    pub(super) fn all(&self) -> &[KnownRule] {
        &self.all
    }

    /// The rule of this identity, and whether it is the throttle's own.
    pub(super) fn of_id(&self, id: u64) -> Option<(&KnownRule, bool)> {
        let place = *self.by_id.get(&id)?;
        self.all.get(place).map(|rule| (rule, place < self.own))
    }

    /// The throttle's own rule with this index.
    pub(super) fn own_of_index(&self, index: u16) -> Option<&KnownRule> {
        self.of_index(index, self.own)
    }

    /// Whether a rule is known, by its index too.
    pub(super) fn knows(&self, rule: &KnownRule) -> bool {
        self.of_index(rule.index, self.all.len()) == Some(rule)
    }

    /// The rule with this index, if it is one of so many.
    fn of_index(&self, index: u16, many: usize) -> Option<&KnownRule> {
        let place = self.by_index.get(usize::from(index)).copied().flatten()?;
        self.all[..many].get(usize::from(place))
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
