//! Received reports: each is applied once, and its entries are charged.

use super::Engine;
use super::context::Context;
use super::report::Reports;
use crate::cluster::access::PeerEntry;
use crate::cluster::counter::Counter;
use crate::cluster::history::StoredReport;
use crate::cluster::pace::{self, late_after};
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{DropCause, RELAYED, Report, Section};
use crate::cluster::{Origin, ReportStatus};

impl Engine {
    /// Applies a report, if it is new.
    pub(super) fn handle_report(
        &mut self,
        now: u64,
        sender: Origin,
        flags: u8,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let report = Report::parse(body, flags)?;
        let origin = report.origin.unwrap_or(sender);
        if report.last > LAST_NUMBER {
            return Err(DropCause::Malformed);
        }
        if origin.node == self.context.origin.node || !self.peers.can_add(origin) {
            return Ok(());
        }
        // The snapshot may include this report, so it cannot be applied before the snapshot has
        // arrived. It is repaired later if it was missing there.
        if self.snapshots.is_starting() {
            self.repair.extend_to(now, &mut self.peers, origin, report.last);
            return Ok(());
        }
        if !self.is_new_report(now, origin, &report) {
            return Ok(());
        }
        let delay = self.peers.delay_of(sender);
        self.mark_applied(now, origin, (report.first, report.last));
        self.refresh_rules_for(now, &report);
        self.reports.charge(now, &self.context, &report, delay);
        let stored = StoredReport {
            last: report.last,
            at: now.saturating_sub(delay),
            flags: flags & RELAYED,
            body: body.into(),
        };
        self.repair.history.insert(now, origin, report.first, stored);
        Ok(())
    }

    /// Returns true if none of a report's numbers was applied before.
    fn is_new_report(&mut self, now: u64, origin: Origin, report: &Report<'_>) -> bool {
        let verdict = self.peers.entry(now, origin).window.status(report.first, report.last);
        if verdict == ReportStatus::New || !self.context.settings.mechanisms.dedupe {
            return true;
        }
        self.context.count(Counter::Duplicates, 1);
        if verdict == ReportStatus::PartlyApplied {
            self.repair.extend_to(now, &mut self.peers, origin, report.last);
        }
        false
    }

    /// Marks reports as applied. This happens before they are charged, so that a process that is
    /// killed in between causes no double charge.
    fn mark_applied(&mut self, now: u64, origin: Origin, (first, last): (u64, u64)) {
        let peer = self.peers.entry(now, origin);
        let before = peer.window.top();
        let is_repaired = last <= before;
        peer.window.mark(first, last);
        peer.applied_at = Some(now);
        peer.received += 1;
        peer.repaired += u64::from(is_repaired);
        peer.changed = true;
        if first > before + 1 {
            peer.note_gap(now, before);
        }
        if is_repaired {
            peer.requests = 0;
        }
        self.peers.claim_peer_slot(&self.context.exchange, origin);
        self.repair.note_missing(&mut self.peers, origin);
        self.peers.store_window(&self.context.exchange, origin);
        if let Some(applied) = &mut self.reports.applied {
            applied.push((origin, first, last));
        }
        self.context.count(Counter::ReportsReceived, 1);
        self.context.count(Counter::Repaired, u64::from(is_repaired));
    }

    /// Refreshes the rules from the table if a report contains rules that are not known.
    fn refresh_rules_for(&mut self, now: u64, report: &Report<'_>) {
        let exchange = &self.context.exchange;
        let is_known = |(section, _): (Section, _)| exchange.rule(section.rule).is_some();
        if !report.sections().all(is_known)
            && now >= self.reports.rules_refreshed_at + pace::RULE_REFRESH_INTERVAL
        {
            self.reports.refresh_rules(now, &mut self.context);
        }
    }
}

impl Reports {
    /// Charges the entries of a report that arrived `delay` after it was sent.
    fn charge(&self, now: u64, context: &Context, report: &Report<'_>, delay: u64) {
        let exchange = &context.exchange;
        let (mut charged, mut skipped, mut unknown) = (0, 0, 0);
        for (section, entries) in report.sections() {
            let Some(rule) = exchange.rule(section.rule) else {
                unknown += entries.len() as u64;
                continue;
            };
            let age = section.age_us.saturating_mul(1000).saturating_add(delay);
            let late_from = late_after(self.period(&rule), rule.fill_ns()).saturating_add(delay);
            let is_late = context.settings.mechanisms.forgive_late_hits && age > late_from;
            let entries = entries.map(|entry| PeerEntry {
                fingerprint: entry.fingerprint,
                units: entry.hits.saturating_mul(section.quantum),
                saturated: entry.saturated,
            });
            let done = exchange.charge(&rule, now, now.saturating_sub(age), is_late, entries);
            charged += done.charged;
            skipped += done.skipped;
        }
        context.count(Counter::EntriesReceived, charged);
        context.count(Counter::EntriesLate, skipped);
        context.count(Counter::UnknownRule, unknown);
    }
}
