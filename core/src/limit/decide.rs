//! One check under all rules of a domain: look at every bucket, take from all or from none, and
//! put the answer together.
//!
//! With one rule the whole check is one atomic step. With several: look at all, then take from
//! each; if a bucket was emptied in between, what was taken is given back and the check is
//! refused. So alone it is exact, and in a race it is off by at most the checks in flight.

use std::time::Duration;

use crate::domain::{ActiveRule, Inner};
use crate::limit::bucket::{LAST, Scale, Tat, Window};
use crate::limit::decision::{Ask, Decision};
use crate::local::Local;
use crate::stats::Count;
use crate::table::{Key, Step};

/// The most rules of a domain.
pub(crate) const MAX_RULES: usize = 16;

/// A check under way, with room for N rules on the stack: what is not there costs nothing.
#[derive(Clone, Copy)]
pub(crate) struct Check<'a, const N: usize> {
    domain: &'a Inner,
    ask: Ask,
    /// Nanoseconds, as all times here.
    now: u64,
    /// The end of the longest wait.
    latest: u64,
    keys: [Key; N],
}

/// How a check ended.
pub(crate) struct Outcome<'a, const N: usize> {
    domain: &'a Inner,
    ask: Ask,
    now: u64,
    /// The buckets, after the check.
    tats: [Tat; N],
    /// Whether the units granted have been taken from the buckets.
    taken: bool,
    /// Units granted; none: refused.
    granted: Option<u64>,
    /// One bit a rule.
    refused: u32,
}

impl<'a> Check<'a, 1> {
    /// A check under one rule.
    #[inline]
    pub(crate) fn of_one(
        domain: &'a Inner,
        local: &Local,
        rule: &ActiveRule,
        tag: &[u8],
        ask: Ask,
    ) -> Self {
        Check::of_key(domain, rule.key(tag), ask, domain.host.now_by(local))
    }

    /// A check under one rule whose key is known.
    #[inline]
    fn of_key(domain: &'a Inner, key: Key, ask: Ask, now: u64) -> Self {
        Check { domain, ask, now, latest: now.saturating_add(ask.max_wait), keys: [key] }
    }

    /// Takes in the simplest case: a bucket that is there and has enough. The TAT after it; nothing
    /// is taken if this is another case.
    #[inline(always)]
    pub(crate) fn take_at_once(&self, local: &Local, rule: &ActiveRule) -> Option<Tat> {
        if !self.domain.host.table.is_alone() {
            // A copy, so that this one stays in registers.
            return Check::take_and_tell(*self, local, rule);
        }
        let hit = self.domain.host.table.hit(self.keys[0])?;
        let window = rule.scale.window(self.now, self.latest);
        let next = self.next(rule, window, hit.tat())?;
        if !hit.replace(next) {
            return None;
        }
        self.domain.host.counters.add_one_by(local, Count::Allowed);
        Some(next)
    }

    /// The same where peers have to hear of it.
    #[inline(never)]
    fn take_and_tell(self, local: &Local, rule: &ActiveRule) -> Option<Tat> {
        let hit = self.domain.host.table.hit(self.keys[0])?;
        let (tat, window) = (hit.tat(), self.window(rule, self.keys[0]));
        let next = self.next(rule, window, tat)?;
        let fingerprint = self.keys[0].fingerprint;
        let hits = rule.scale.hits_taken(tat, window, next, self.ask.cost, fingerprint);
        if !self.domain.host.table.replace_and_tell(hit, &rule.scale, next, hits, self.now) {
            return None;
        }
        self.domain.host.counters.add_one_by(local, Count::Allowed);
        Some(next)
    }

    /// The TAT after the check, in the simplest case.
    #[inline(always)]
    fn next(&self, rule: &ActiveRule, window: Window, tat: Tat) -> Option<Tat> {
        let cost = self.ask.cost;
        if self.ask.partial || cost == 0 || !rule.scale.passes(tat, window, cost) {
            return None;
        }
        // Whether dry run spared a wait is counted elsewhere.
        if self.ask.max_wait != 0 && self.domain.dry_run {
            return None;
        }
        // A clamped bucket is counted elsewhere.
        Some(rule.scale.take(tat, window, cost)).filter(|next| *next != LAST)
    }

    /// The outcome of that.
    pub(crate) fn taken(&self, tat: Tat) -> Outcome<'a, 1> {
        let granted = Some(self.ask.cost);
        Outcome { tats: [tat], taken: true, granted, ..self.outcome() }
    }
}

impl<'a, const N: usize> Check<'a, N> {
    pub(crate) fn new(domain: &'a Inner, tag: &[u8], ask: Ask) -> Check<'a, N> {
        let now = domain.host.now();
        let mut keys = [Key { fingerprint: 0, rule: 0 }; N];
        for (key, rule) in keys.iter_mut().zip(&domain.rules) {
            *key = rule.key(tag);
        }
        Check { domain, ask, now, latest: now.saturating_add(ask.max_wait), keys }
    }

    /// Asks only.
    pub(crate) fn look(&self) -> Outcome<'a, N> {
        let mut outcome = self.outcome();
        let mut granted = self.ask.cost;
        for (i, rule) in self.domain.rules.iter().enumerate() {
            outcome.tats[i] = self.domain.host.table.read(self.keys[i], &rule.scale, self.now);
            match self.grant(&rule.scale, outcome.tats[i], self.window(rule, self.keys[i])) {
                Some(units) => granted = granted.min(units),
                None => outcome.refused |= 1 << i,
            }
        }
        outcome.granted = (outcome.refused == 0).then_some(granted);
        outcome
    }

    /// Asks and takes.
    #[inline(never)]
    pub(crate) fn take(&self) -> Outcome<'a, N> {
        let outcome = match self.domain.rules.as_slice() {
            [rule] => self.take_one(rule),
            _ => self.take_all(),
        };
        let counters = &self.domain.host.counters;
        if let (None, Some(pacing)) = (outcome.granted, &self.domain.host.pacing) {
            let refused = self.keys.iter().enumerate();
            let refused = refused.filter(|(i, _)| outcome.refused & (1 << i) != 0);
            refused.for_each(|(_, key)| pacing.refused(key.fingerprint, self.now));
        }
        if outcome.granted.is_some_and(|units| units > 0) && outcome.is_uncounted() {
            counters.add_one(Count::FailedOpen);
        }
        match outcome.granted {
            _ if outcome.is_spared() => {
                counters.add_one(Count::Allowed);
                counters.add_one(Count::DryRun);
            }
            Some(_) => counters.add_one(Count::Allowed),
            None => counters.add_one(Count::Refused),
        }
        outcome
    }

    fn take_one(&self, rule: &ActiveRule) -> Outcome<'a, N> {
        let window = self.window(rule, self.keys[0]);
        let (tat, granted) = self.domain.host.update(&rule.scale, self.keys[0], self.now, |tat| {
            let granted = self.grant(&rule.scale, tat, window);
            match granted.or_else(|| self.refused_units(rule)) {
                Some(units) => charged(rule, self.keys[0], tat, window, units, granted),
                None => Step { tat, hits: 0, answer: (tat, granted) },
            }
        });
        let mut outcome = self.outcome();
        outcome.tats[0] = tat;
        outcome.taken = true;
        outcome.granted = granted;
        outcome.refused = u32::from(granted.is_none());
        outcome
    }

    fn take_all(&self) -> Outcome<'a, N> {
        self.settle(self.look())
    }

    /// Takes what a look granted, if it is still there, or charges the refusal.
    fn settle(&self, mut outcome: Outcome<'a, N>) -> Outcome<'a, N> {
        if let Some(units) = outcome.granted {
            outcome.taken = true;
            if let Err(lost) = self.take_from_each(units, &mut outcome.tats) {
                outcome.granted = None;
                outcome.refused = 1 << lost;
            }
        }
        if outcome.granted.is_none() {
            self.charge_refused(&mut outcome.tats);
        }
        outcome
    }

    /// Takes from every rule, or from none and tells which one ran out in between.
    fn take_from_each(&self, units: u64, tats: &mut [Tat; N]) -> Result<(), usize> {
        for (i, rule) in self.domain.rules.iter().enumerate() {
            let window = self.window(rule, self.keys[i]);
            let (tat, taken) =
                self.domain.host.update(&rule.scale, self.keys[i], self.now, |tat| {
                    if rule.scale.passes(tat, window, self.ask.needed(rule.burst()).min(units)) {
                        charged(rule, self.keys[i], tat, window, units, true)
                    } else {
                        Step { tat, hits: 0, answer: (tat, false) }
                    }
                });
            tats[i] = tat;
            if !taken {
                for (j, rule) in self.domain.rules[..i].iter().enumerate() {
                    let key = self.keys[j];
                    tats[j] = self.domain.host.update(&rule.scale, key, self.now, |tat| {
                        let next = rule.scale.refund(tat, units);
                        let hits = rule.scale.hits(tat, next, key.fingerprint);
                        Step { tat: next, hits, answer: next }
                    });
                }
                return Err(i);
            }
        }
        Ok(())
    }

    fn charge_refused(&self, tats: &mut [Tat; N]) {
        for (i, rule) in self.domain.rules.iter().enumerate() {
            if let Some(units) = self.refused_units(rule) {
                let window = self.window(rule, self.keys[i]);
                let charge = |tat| charged(rule, self.keys[i], tat, window, units, ());
                tats[i] = self.domain.host.update(&rule.scale, self.keys[i], self.now, charge).0;
            }
        }
    }

    /// What a refusal costs under a rule. A partial check may ask for any number: the burst is
    /// the most that it could have been about.
    fn refused_units(&self, rule: &ActiveRule) -> Option<u64> {
        rule.charge_refused.then(|| self.ask.cost.min(rule.burst()))
    }

    /// When the check may pass under a rule. What peers admitted may not have been heard of yet,
    /// so that a bucket's TAT may be too early here or, when it is heard of later, too late: that
    /// much is forgiven.
    fn window(&self, rule: &ActiveRule, key: Key) -> Window {
        let host = &self.domain.host;
        let mut tolerance = host.table.tolerance(rule.tolerance_ns, rule.slack, self.now);
        if let Some(pacing) = &host.pacing {
            let node = host.table.known_node_id();
            tolerance = pacing.share(tolerance, key.fingerprint, node, self.now);
        }
        rule.scale.window(self.now, self.latest.saturating_add(tolerance))
    }

    /// The units that a rule grants; none: it refuses.
    #[inline]
    fn grant(&self, rule: &Scale, tat: Tat, window: Window) -> Option<u64> {
        let cost = self.ask.cost;
        if !self.ask.partial {
            return rule.passes(tat, window, self.ask.needed(rule.burst())).then_some(cost);
        }
        let units = cost.min(rule.most(tat, window)?);
        (units > 0 || cost == 0).then_some(units)
    }

    fn outcome(&self) -> Outcome<'a, N> {
        Outcome {
            domain: self.domain,
            ask: self.ask,
            now: self.now,
            tats: [0; N],
            taken: false,
            granted: None,
            refused: 0,
        }
    }
}

impl<const N: usize> Outcome<'_, N> {
    pub(crate) fn allowed(&self) -> bool {
        self.granted.is_some() || self.domain.dry_run
    }

    pub(crate) fn decision(&self) -> Decision {
        let Some(deciding) = self.deciding_rule() else {
            return Decision::unlimited(self.ask.cost);
        };
        let (wait, retry_after) = match self.granted {
            // Nobody waits in dry run: it is told as the time until no wait is needed.
            Some(_) if self.domain.dry_run => (0, self.wait()),
            Some(_) => (self.wait(), 0),
            None => (0, self.longest(|scale, tat| self.retry_after(scale, tat))),
        };
        let scale = &self.domain.rules[deciding].scale;
        let balance = scale.balance(self.tats[deciding], self.now);
        Decision {
            allowed: self.allowed(),
            dry_run: self.domain.dry_run && (self.granted.is_none() || retry_after > 0),
            rule: self.granted.is_none().then_some(deciding),
            deciding: Some(deciding),
            granted: self.granted.unwrap_or(0),
            limit: scale.burst(),
            remaining: balance.max(0) as u64,
            balance,
            wait: Duration::from_nanos(wait),
            retry_after: Duration::from_nanos(retry_after),
            reset_after: Duration::from_nanos(
                self.longest(|scale, tat| scale.reset_after(tat, self.now)),
            ),
        }
    }

    /// Whether a bucket has no ticks left to count what was granted. A debt may end there, too.
    fn is_uncounted(&self) -> bool {
        let mut buckets = self.domain.rules.iter().zip(self.tats);
        buckets.any(|(rule, tat)| tat == LAST && self.ask.cost <= rule.burst())
    }

    /// Whether only dry run lets it go on, or go on at once.
    fn is_spared(&self) -> bool {
        self.domain.dry_run && (self.granted.is_none() || self.wait() > 0)
    }

    /// The wait until the turn of what was granted, as if there were no dry run.
    fn wait(&self) -> u64 {
        let wait = match self.granted {
            // Nothing was waited for, so every turn has come.
            Some(_) if self.ask.max_wait == 0 => 0,
            Some(units) if self.taken => self.longest(|scale, tat| {
                // Only the units needed are waited for, not those that became debt.
                let debt = units - units.min(self.ask.needed(scale.burst()));
                scale.wait(scale.refund(tat, debt), self.now)
            }),
            Some(units) => self.longest(|scale, tat| {
                scale.retry_after(tat, self.now, units.min(self.ask.needed(scale.burst())))
            }),
            None => 0,
        };
        // With tolerance a check may pass before its turn.
        wait.min(self.ask.max_wait)
    }

    /// The longest of some time over all rules.
    fn longest(&self, time: impl Fn(&Scale, Tat) -> u64) -> u64 {
        let buckets = self.domain.rules.iter().zip(self.tats);
        buckets.map(|(rule, tat)| time(&rule.scale, tat)).max().unwrap_or(0)
    }

    /// The rule whose figures the decision shows.
    fn deciding_rule(&self) -> Option<usize> {
        let rules = self.domain.rules.iter().zip(self.tats).enumerate();
        match self.granted {
            // min_by_key keeps the first of equals.
            Some(_) => rules.min_by_key(|(_, (rule, tat))| {
                let remaining = rule.scale.balance(*tat, self.now).max(0);
                (remaining, rule.scale.burst())
            }),
            None => rules.filter(|(i, _)| self.refused & (1 << i) != 0).min_by_key(
                |(_, (rule, tat))| {
                    (u64::MAX - self.retry_after(&rule.scale, *tat), rule.scale.burst())
                },
            ),
        }
        .map(|(i, _)| i)
    }

    fn retry_after(&self, scale: &Scale, tat: Tat) -> u64 {
        let units = match self.ask.partial {
            true => self.ask.cost.min(1),
            false => self.ask.needed(scale.burst()),
        };
        scale.retry_after(tat, self.now, units)
    }
}

/// A check under one rule whose key is known: yes or no.
#[inline]
pub(crate) fn allow_one(
    domain: &Inner,
    local: &Local,
    rule: &ActiveRule,
    key: Key,
    ask: Ask,
    now: u64,
) -> bool {
    // Two checks alike, so that one of them never needs memory.
    Check::of_key(domain, key, ask, now).take_at_once(local, rule).is_some()
        || allow_at_length(domain, key, now, ask)
}

/// A check under several rules: yes or no.
#[inline(never)]
pub(crate) fn allow_all(domain: &Inner, tag: &[u8], ask: Ask) -> bool {
    Check::<MAX_RULES>::new(domain, tag, ask).take().allowed()
}

#[inline(never)]
fn allow_at_length(domain: &Inner, key: Key, now: u64, ask: Ask) -> bool {
    Check::of_key(domain, key, ask, now).take().allowed()
}

/// The step that charges units; it answers the TAT after it, and `answer`.
#[inline]
fn charged<R>(
    rule: &ActiveRule,
    key: Key,
    tat: Tat,
    window: Window,
    units: u64,
    answer: R,
) -> Step<(Tat, R)> {
    let next = rule.scale.take(tat, window, units);
    let hits = rule.scale.hits_taken(tat, window, next, units, key.fingerprint);
    Step { tat: next, hits, answer: (next, answer) }
}

#[cfg(test)]
mod tests;
