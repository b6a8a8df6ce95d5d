//! Merges consecutive reports into one, as long as the result fits into a datagram.

use std::collections::BTreeMap;

use crate::cluster::Origin;
use crate::cluster::access::Exchange;
use crate::cluster::history::StoredReport;
use crate::cluster::pace::age_class;
use crate::cluster::wire::{
    MAX_BODY, MAX_ENTRY, MAX_HEAD, MAX_SECTION, Report, ReportEntry, ReportWriter, Section,
};

pub(super) struct Merger<'a> {
    now: u64,
    /// The origin of the reports, if it is not this node.
    relayed: Option<Origin>,
    exchange: &'a Exchange,
    /// The first and last number of the report that is being built.
    range: Option<(u64, u64)>,
    sections: BTreeMap<(u64, u64, u64), MergedSection>,
    entries: usize,
    finished: Vec<Vec<u8>>,
}

/// Hits under one rule whose ages are in the same class.
#[derive(Default)]
struct MergedSection {
    /// When the oldest of these hits began.
    start: Option<u64>,
    tags: BTreeMap<u64, TagHits>,
}

#[derive(Default)]
struct TagHits {
    hits: u64,
    saturated: bool,
}

impl<'a> Merger<'a> {
    pub(super) fn new(now: u64, relayed: Option<Origin>, exchange: &'a Exchange) -> Merger<'a> {
        let (sections, finished) = (BTreeMap::new(), Vec::new());
        Merger { now, relayed, exchange, range: None, sections, entries: 0, finished }
    }

    /// The number of finished reports.
    pub(super) fn len(&self) -> usize {
        self.finished.len()
    }

    pub(super) fn into_reports(self) -> Vec<Vec<u8>> {
        self.finished
    }

    pub(super) fn add(&mut self, first: u64, stored: &StoredReport) {
        // Reports are parsed before they are kept.
        let Ok(report) = Report::parse(&stored.body, stored.flags) else { return };
        let follows = self.range.is_some_and(|(_, last)| last + 1 == first);
        // A single report always fits, because its writer reserved space for that.
        if !follows || !self.fits(&report, stored.at) {
            self.flush();
        }
        let (start, _) = *self.range.get_or_insert((first, stored.last));
        self.range = Some((start, stored.last));
        for (section, entries) in report.sections() {
            let begun = stored.at.saturating_sub(section.age_us.saturating_mul(1000));
            let part = self.sections.entry(self.key(&section, begun)).or_default();
            part.start = Some(part.start.map_or(begun, |start| start.min(begun)));
            for entry in entries {
                let before = part.tags.len();
                let sum = part.tags.entry(entry.fingerprint).or_default();
                sum.hits = (sum.hits + entry.hits).min(u64::from(u32::MAX));
                sum.saturated |= entry.saturated;
                self.entries += part.tags.len() - before;
            }
        }
    }

    /// Hits with the same key share a section. The key includes the class of the age, so that old
    /// hits do not make newer ones late.
    fn key(&self, section: &Section, begun: u64) -> (u64, u64, u64) {
        (section.rule, section.quantum, age_class(self.now.saturating_sub(begun)))
    }

    fn fits(&self, report: &Report<'_>, at: u64) -> bool {
        let (mut sections, mut entries) = (self.sections.len(), self.entries);
        for (section, tags) in report.sections() {
            let begun = at.saturating_sub(section.age_us.saturating_mul(1000));
            let part = self.sections.get(&self.key(&section, begun));
            sections += usize::from(part.is_none());
            let known = |tag: u64| part.is_some_and(|part| part.tags.contains_key(&tag));
            entries += tags.filter(|entry| !known(entry.fingerprint)).count();
        }
        MAX_HEAD + sections * MAX_SECTION + entries * MAX_ENTRY <= MAX_BODY
    }

    /// Finishes the current report. An entry is also marked as saturated if its tag has become
    /// saturated since the entry was first reported.
    pub(super) fn flush(&mut self) {
        let Some((first, last)) = self.range.take() else { return };
        self.entries = 0;
        let mut writer = ReportWriter::new();
        writer.clear(self.relayed);
        for ((rule, quantum, _), part) in std::mem::take(&mut self.sections) {
            let age_us = self.now.saturating_sub(part.start.unwrap_or(self.now)) / 1000;
            let section = Section { rule, quantum, age_us };
            let known = self.exchange.rule(rule);
            for (fingerprint, TagHits { hits, saturated }) in part.tags {
                let is_now = |rule| self.exchange.is_saturated(rule, self.now, fingerprint);
                let saturated = saturated || known.as_deref().is_some_and(is_now);
                writer.push(&section, ReportEntry { fingerprint, hits, saturated });
            }
        }
        self.finished.push(writer.finish(first, last, false).to_vec());
    }
}
