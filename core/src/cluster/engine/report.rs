//! Reports: what was admitted here goes out, what was admitted elsewhere is charged.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::SmallRng;

use super::Engine;
use crate::cluster::access::{Charge, Drained, Exchange, KnownRule, Level};
use crate::cluster::counter::Counter;
use crate::cluster::history::Kept;
use crate::cluster::pace::{self, age_class, late_after, rule_period};
use crate::cluster::settings::Settings;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{
    ANSWER, Dropped, Kind, RELAYED, Report, ReportEntry, ReportWriter, Section, write_digest,
};
use crate::cluster::{Origin, Verdict};

/// Half the burst, as a level counts.
const HALF: u64 = 1 << 31;

/// What goes out.
pub(super) struct Outbox {
    /// The number of the last report.
    pub(super) top: u64,
    /// Stands for all rules with their rates and bursts.
    pub(super) rules_hash: u64,
    /// How many nodes there are, this one included.
    pub(super) nodes: u64,
    /// When each rule is due, by its index in the table.
    paces: BTreeMap<u16, Pace>,
    groups: Groups,
    writer: ReportWriter,
    tail_at: Option<u64>,
    tails: usize,
    reported_at: u64,
}

/// Entries that can stand in one section: rule, quantum, class of age.
type Groups = BTreeMap<(u64, u64, u64), Vec<Drained>>;

/// How often a rule is reported.
#[derive(Clone, Copy)]
struct Pace {
    period: u64,
    due_at: u64,
    is_due: bool,
    /// So many quanta of one tag are worth a report at once.
    urgent: u64,
}

impl Pace {
    fn new(rule: &KnownRule, settings: &Settings, due_at: impl FnOnce(u64) -> u64) -> Pace {
        let longest = u64::try_from(settings.period.as_nanos()).unwrap_or(u64::MAX);
        let period = match settings.periodic {
            true => longest,
            false => rule_period(rule.fill_ns(), longest),
        };
        Pace { period, due_at: due_at(period), is_due: false, urgent: 1 }
    }

    /// Whether the rule is due; if so, when it is due again.
    fn look(&mut self, now: u64, settings: &Settings, rng: &mut SmallRng) -> bool {
        if now < self.due_at {
            return false;
        }
        self.due_at = match settings.periodic {
            // Counted from when it was due, so that the rate of reports is exact.
            true => self.due_at + (now - self.due_at) / self.period * self.period + self.period,
            // Never in step with others.
            false => now + rng.random_range(self.period * 8 / 10..=self.period * 12 / 10),
        };
        true
    }
}

impl Outbox {
    pub(super) fn new(
        exchange: &Exchange,
        settings: &Settings,
        now: u64,
        rng: &mut SmallRng,
    ) -> Outbox {
        let mut pace = |rule: &KnownRule| {
            Pace::new(rule, settings, |period| match settings.periodic {
                true => now + period,
                false => now + rng.random_range(1..=period),
            })
        };
        Outbox {
            top: 0,
            rules_hash: exchange.rules_hash(),
            nodes: 1,
            paces: exchange.rules().iter().map(|rule| (rule.index, pace(rule))).collect(),
            groups: Groups::new(),
            writer: ReportWriter::new(),
            tail_at: None,
            tails: 0,
            reported_at: now,
        }
    }

    /// Learns how often to report rules that were found in the table.
    pub(super) fn learn(&mut self, exchange: &Exchange, settings: &Settings, now: u64) {
        // All rules of a node with periodic reports are due at the same time.
        let common = self.paces.values().map(|pace| pace.due_at).max();
        let common = common.filter(|_| settings.periodic);
        for rule in exchange.rules() {
            let fresh = Pace::new(rule, settings, |period| common.unwrap_or(now + period));
            let pace = self.paces.entry(rule.index).or_insert(fresh);
            // The index means another rule by now.
            if pace.period != fresh.period {
                *pace = fresh;
            }
        }
    }

    /// The period of a rule.
    fn period(&self, rule: &KnownRule) -> u64 {
        self.paces.get(&rule.index).map_or(0, |pace| pace.period)
    }
}

impl Engine {
    /// Reports what is due, or all there is.
    pub(super) fn report(&mut self, now: u64, all: bool) {
        let outbox = &mut self.outbox;
        let eager = self.settings.controls.eager && !self.settings.periodic;
        let mut any_due = false;
        for rule in self.exchange.rules() {
            let Some(pace) = outbox.paces.get_mut(&rule.index) else { continue };
            pace.is_due = pace.look(now, &self.settings, &mut self.rng) || all;
            any_due |= pace.is_due;
            let share = (rule.burst() / (4 * outbox.nodes)).max(1);
            pace.urgent = if eager { share.div_ceil(rule.quantum()) } else { u64::MAX };
        }
        let sweep = all || now >= self.sweep_at;
        if sweep {
            self.sweep_at = now + pace::SWEEP;
        }
        let mut groups = std::mem::take(&mut outbox.groups);
        let paces = &outbox.paces;
        let due = |rule: &KnownRule, level: &Level| {
            paces.get(&rule.index).is_none_or(|pace| {
                pace.is_due || level.hits >= pace.urgent || eager && level.used > HALF
            })
        };
        self.exchange.drain(now, sweep, due, |entry: Drained| {
            let class = age_class(now.saturating_sub(entry.start_ns));
            groups.entry((entry.rule, entry.quantum, class)).or_default().push(entry);
        });
        self.write_reports(now, &groups, self.settings.periodic && any_due);
        // The memory is needed again at the next tick; what was seldom is not kept.
        groups.retain(|_, entries| {
            let used = !entries.is_empty();
            entries.clear();
            used
        });
        self.outbox.groups = groups;
    }

    /// Sends all entries in as few reports as possible. With `empty` also if there are none.
    fn write_reports(&mut self, now: u64, groups: &Groups, empty: bool) {
        self.outbox.writer.clear(None);
        let mut entries_sent = 0;
        for ((rule, quantum, _), entries) in groups {
            let Some(oldest) = entries.iter().map(|entry| entry.start_ns).min() else { continue };
            let age_us = now.saturating_sub(oldest) / 1000;
            let section = Section { rule: *rule, quantum: *quantum, age_us };
            for Drained { fingerprint, hits, saturated, .. } in entries.iter().copied() {
                let entry = ReportEntry { fingerprint, hits, saturated };
                if !self.outbox.writer.push(&section, entry) {
                    self.send_report(now, true);
                    self.outbox.writer.push(&section, entry);
                }
                entries_sent += 1;
            }
        }
        if !self.outbox.writer.is_empty() || empty && entries_sent == 0 {
            self.send_report(now, false);
        }
        self.count(Counter::EntriesSent, entries_sent);
    }

    /// Sends what the writer holds, under the next number.
    fn send_report(&mut self, now: u64, is_full: bool) {
        self.outbox.top += 1;
        let number = self.outbox.top;
        let mut writer = std::mem::take(&mut self.outbox.writer);
        let body = writer.finish(number, number, is_full);
        let kept = Kept { last: number, at: now, flags: 0, body: body.into() };
        self.history.keep(now, self.me, number, kept);
        let to = self.everybody();
        self.send(to, Kind::Report, 0, body);
        self.count(Counter::ReportsSent, 1);
        writer.clear(None);
        self.outbox.writer = writer;
        self.outbox.tails = 0;
        self.outbox.reported_at = now;
        self.outbox.tail_at = Some(now + pace::TAILS[0]);
    }

    /// After the last report for now: says how far the reports go, a few times.
    pub(super) fn tell_tail(&mut self, now: u64) {
        let Some(at) = self.outbox.tail_at else { return };
        if now < at {
            return;
        }
        self.outbox.tails += 1;
        // A network that heals in silence must be noticed, too.
        let kept = now < self.outbox.reported_at + self.retention();
        let later = kept.then_some(pace::ROUND.max(self.outbox.nodes * pace::TICK));
        let after = pace::TAILS.get(self.outbox.tails).copied().or(later);
        self.outbox.tail_at = after.map(|after| now + after);
        let mut body = Vec::new();
        write_digest(&[(self.me, self.outbox.top)], &mut body);
        let to = self.everybody();
        self.send(to, Kind::Digest, ANSWER, &body);
    }

    /// Applies a report, if it is new.
    pub(super) fn handle_report(
        &mut self,
        now: u64,
        sender: Origin,
        flags: u8,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let report = Report::parse(body, flags)?;
        let origin = report.origin.unwrap_or(sender);
        if report.last > LAST_NUMBER {
            return Err(Dropped::Malformed);
        }
        if origin.node == self.me.node || !self.has_room_for(origin) {
            return Ok(());
        }
        let delay = self.peers.get(&sender).and_then(|peer| peer.delay).unwrap_or(0);
        let (first, last) = (report.first, report.last);
        if self.is_starting() {
            self.hear_of(now, origin, last);
            return Ok(());
        }
        let dedupe = self.settings.controls.dedupe;
        let peer = self.peer(now, origin);
        let before = peer.window.top();
        match peer.window.verdict(first, last) {
            Verdict::New => {}
            Verdict::Seen if dedupe => {
                self.count(Counter::Duplicates, 1);
                return Ok(());
            }
            Verdict::Mixed if dedupe => {
                self.count(Counter::Duplicates, 1);
                self.hear_of(now, origin, last);
                return Ok(());
            }
            Verdict::Seen | Verdict::Mixed => {}
        }
        let repaired = last <= before;
        peer.window.mark(first, last);
        peer.applied_at = Some(now);
        peer.received += 1;
        peer.repaired += u64::from(repaired);
        peer.changed = true;
        if first > before + 1 {
            peer.notice(now, before);
        }
        if repaired {
            peer.asked = 0;
        }
        self.seat(origin);
        self.note_missing(origin);
        // First marked, then charged: whoever is killed in between charges nothing twice.
        self.store_window(origin);
        let is_known = |(section, _): (Section, _)| self.exchange.rule(section.rule).is_some();
        if !report.sections().all(is_known) && now >= self.learned_at + pace::LEARN_AGAIN {
            self.learn(now);
        }
        self.charge(now, &report, delay);
        if let Some(ledger) = &mut self.ledger {
            ledger.push((origin, first, last));
        }
        self.count(Counter::ReportsReceived, 1);
        self.count(Counter::Repaired, u64::from(repaired));
        let at = now.saturating_sub(delay);
        let kept = Kept { last, at, flags: flags & RELAYED, body: body.into() };
        self.history.keep(now, origin, first, kept);
        Ok(())
    }

    fn charge(&mut self, now: u64, report: &Report<'_>, delay: u64) {
        let (mut charged, mut spared, mut unknown) = (0, 0, 0);
        for (section, entries) in report.sections() {
            let Some(rule) = self.exchange.rule(section.rule) else {
                unknown += entries.len() as u64;
                continue;
            };
            let age = section.age_us.saturating_mul(1000).saturating_add(delay);
            let late = self.settings.controls.late_rule
                && age
                    > late_after(self.outbox.period(&rule), rule.fill_ns()).saturating_add(delay);
            let entries = entries.map(|entry| Charge {
                fingerprint: entry.fingerprint,
                units: entry.hits.saturating_mul(section.quantum),
                saturated: entry.saturated,
            });
            let done = self.exchange.charge(&rule, now, now.saturating_sub(age), late, entries);
            charged += done.charged;
            spared += done.spared;
        }
        self.count(Counter::EntriesReceived, charged);
        self.count(Counter::Spared, spared);
        self.count(Counter::UnknownRule, unknown);
    }

    /// Keeps the table's copy of a window.
    pub(super) fn store_window(&mut self, origin: Origin) {
        let Some(peer) = self.peers.get(&origin) else { return };
        if let Some(seat) = peer.seat {
            self.exchange.set_window(seat, &peer.window);
        }
    }
}
