//! Reports of this node: takes the hits that are due out of the table, numbers the reports, sends
//! them and stores them for repair.

use std::collections::BTreeMap;

use rand::RngExt;

use super::Engine;
use super::context::Context;
use super::rule_pace::RulePace;
use crate::cluster::Origin;
use crate::cluster::access::{DrainedEntry, ExchangeRule, PendingBucket};
use crate::cluster::counter::Counter;
use crate::cluster::history::{History, StoredReport};
use crate::cluster::pace::{self, age_class};
use crate::cluster::wire::{
    ANSWER, DatagramKind, ReportEntry, ReportWriter, Section, write_digest,
};

/// Half the burst, in the unit of `PendingBucket::used`.
const HALF_USED: u64 = 1 << 31;

pub(super) struct Reports {
    /// The number of the last report.
    pub(super) top: u64,
    /// Hash of all own rules with their rates and bursts.
    pub(super) rules_hash: u64,
    /// The number of nodes, including this one.
    pub(super) nodes: u64,
    /// When the rules of other processes were last read from the table.
    pub(super) rules_refreshed_at: u64,
    /// The reports of peers that were applied, if they are recorded.
    pub(super) applied: Option<Vec<(Origin, u64, u64)>>,
    /// The pace of each rule, by its index in the table.
    paces: BTreeMap<u16, RulePace>,
    groups: Groups,
    writer: ReportWriter,
    announcements: TopAnnouncements,
    /// When the whole table is searched for hits next.
    sweep_at: u64,
}

/// Entries by section: rule, quantum and class of age.
type Groups = BTreeMap<(u64, u64, u64), Vec<DrainedEntry>>;

/// Announcements of the number of the last report, sent while there are no new reports.
struct TopAnnouncements {
    reported_at: u64,
    sent: usize,
    due_at: Option<u64>,
}

impl Reports {
    pub(super) fn new(context: &mut Context, now: u64) -> Reports {
        let Context { settings, exchange, rng, .. } = context;
        let mut pace = |rule: &ExchangeRule| {
            RulePace::new(rule, settings, |period| match settings.periodic {
                true => now + period,
                false => now + rng.random_range(1..=period),
            })
        };
        Reports {
            top: 0,
            rules_hash: exchange.rules_hash(),
            nodes: 1,
            rules_refreshed_at: now,
            applied: None,
            paces: exchange.rules().iter().map(|rule| (rule.index, pace(rule))).collect(),
            groups: Groups::new(),
            writer: ReportWriter::new(),
            announcements: TopAnnouncements { reported_at: now, sent: 0, due_at: None },
            sweep_at: now + pace::SWEEP_INTERVAL,
        }
    }

    /// Reads the rules of other processes from the table.
    pub(super) fn refresh_rules(&mut self, now: u64, context: &mut Context) {
        self.rules_refreshed_at = now;
        context.exchange.refresh_rules();
        let Context { settings, exchange, .. } = context;
        // With periodic reports, all rules are due at the same time.
        let common = self.paces.values().map(|pace| pace.due_at).max();
        let common = common.filter(|_| settings.periodic);
        for rule in exchange.rules() {
            let fresh = RulePace::new(rule, settings, |period| common.unwrap_or(now + period));
            let pace = self.paces.entry(rule.index).or_insert(fresh);
            // The index has been reused for another rule.
            if pace.period != fresh.period {
                *pace = fresh;
            }
        }
    }

    /// Returns the time between two reports of a rule.
    pub(super) fn period(&self, rule: &ExchangeRule) -> u64 {
        self.paces.get(&rule.index).map_or(0, |pace| pace.period)
    }

    /// Sends the reports that are due. With `all`, reports all pending hits.
    fn report(&mut self, now: u64, context: &mut Context, history: &mut History, all: bool) {
        let eager = context.settings.mechanisms.eager && !context.settings.periodic;
        let any_due = self.update_paces(now, context, eager, all);
        let sweep = all || now >= self.sweep_at;
        if sweep {
            self.sweep_at = now + pace::SWEEP_INTERVAL;
        }
        let mut groups = std::mem::take(&mut self.groups);
        let is_due = |rule: &ExchangeRule, level: &PendingBucket| {
            self.paces.get(&rule.index).is_none_or(|pace| {
                pace.is_due || level.hits >= pace.urgent || eager && level.used > HALF_USED
            })
        };
        context.exchange.drain(now, sweep, is_due, |entry: DrainedEntry| {
            let class = age_class(now.saturating_sub(entry.start_ns));
            groups.entry((entry.rule, entry.quantum, class)).or_default().push(entry);
        });
        let even_if_empty = context.settings.periodic && any_due;
        self.write(now, context, history, &groups, even_if_empty);
        // Keeps the allocated groups for the next tick, except those that were empty.
        groups.retain(|_, entries| {
            let used = !entries.is_empty();
            entries.clear();
            used
        });
        self.groups = groups;
    }

    /// Updates which rules are due. Returns true if any is.
    fn update_paces(&mut self, now: u64, context: &mut Context, eager: bool, all: bool) -> bool {
        let Context { settings, exchange, rng, .. } = context;
        let mut any_due = false;
        for rule in exchange.rules() {
            let Some(pace) = self.paces.get_mut(&rule.index) else { continue };
            pace.is_due = pace.is_due_at(now, settings, rng) || all;
            any_due |= pace.is_due;
            let share = (rule.burst() / (4 * self.nodes)).max(1);
            pace.urgent = if eager { share.div_ceil(rule.quantum()) } else { u64::MAX };
        }
        any_due
    }

    /// Sends all entries in as few reports as possible. If there are none and `even_if_empty` is
    /// true, sends an empty report.
    fn write(
        &mut self,
        now: u64,
        context: &mut Context,
        history: &mut History,
        groups: &Groups,
        even_if_empty: bool,
    ) {
        self.writer.clear(None);
        let mut entries_sent = 0;
        for ((rule, quantum, _), entries) in groups {
            let Some(oldest) = entries.iter().map(|entry| entry.start_ns).min() else { continue };
            let age_us = now.saturating_sub(oldest) / 1000;
            let section = Section { rule: *rule, quantum: *quantum, age_us };
            for DrainedEntry { fingerprint, hits, saturated, .. } in entries.iter().copied() {
                let entry = ReportEntry { fingerprint, hits, saturated };
                if !self.writer.push(&section, entry) {
                    self.send(now, context, history, true);
                    self.writer.push(&section, entry);
                }
                entries_sent += 1;
            }
        }
        if !self.writer.is_empty() || even_if_empty && entries_sent == 0 {
            self.send(now, context, history, false);
        }
        context.count(Counter::EntriesSent, entries_sent);
    }

    /// Sends the writer's content as the report with the next number.
    fn send(&mut self, now: u64, context: &mut Context, history: &mut History, is_full: bool) {
        self.top += 1;
        let number = self.top;
        let body = self.writer.finish(number, number, is_full);
        let stored = StoredReport { last: number, at: now, flags: 0, body: body.into() };
        history.insert(now, context.origin, number, stored);
        context.broadcast(DatagramKind::Report, 0, body);
        context.count(Counter::ReportsSent, 1);
        self.writer.clear(None);
        self.announcements = TopAnnouncements {
            reported_at: now,
            sent: 0,
            due_at: Some(now + pace::TOP_ANNOUNCEMENTS[0]),
        };
    }

    /// Announces the number of the last report if that is due. Peers notice a lost report by it.
    pub(super) fn announce_top(&mut self, now: u64, context: &mut Context) {
        if self.announcements.due_at.is_none_or(|at| now < at) {
            return;
        }
        self.announcements.sent += 1;
        // Continues while the report is stored: after a long partition, the last report may be
        // missing at peers, and no further report may follow.
        let is_kept = now < self.announcements.reported_at + context.retention();
        let later = is_kept.then_some(pace::HOUSEKEEPING.max(self.nodes * pace::TICK));
        let after = pace::TOP_ANNOUNCEMENTS.get(self.announcements.sent).copied().or(later);
        self.announcements.due_at = after.map(|after| now + after);
        let mut body = Vec::new();
        write_digest(&[(context.origin, self.top)], &mut body);
        context.broadcast(DatagramKind::Digest, ANSWER, &body);
    }
}

impl Engine {
    /// Sends the reports that are due. With `all`, reports all pending hits.
    pub(super) fn report(&mut self, now: u64, all: bool) {
        self.reports.report(now, &mut self.context, &mut self.repair.history, all);
    }
}
