//! Shares busy responses with the other nodes of a cluster, as payloads of its exchange.

use std::sync::Arc;

use super::report::BusyReport;
use super::store::Store;
use super::wire::{BusyEntry, MAX_ENTRIES, parse_busy, write_busy};
use crate::cluster::payload::{MakePayload, Payload};

/// A report older than this is neither sent nor applied, unless its pause is not over.
const MAX_AGE_NS: u64 = 10_000_000_000;

/// The payload source of one store.
pub(super) struct BusyPayload {
    store: Arc<Store>,
    /// Whether the settings of this process share busy responses. Otherwise they are shared while
    /// another process of the store requests it.
    is_shared: bool,
    /// The index of the record at which to continue.
    from: usize,
}

impl BusyPayload {
    pub(super) fn new(store: Arc<Store>, is_shared: bool) -> BusyPayload {
        BusyPayload { store, is_shared, from: 0 }
    }

    /// Returns a function that makes such payload sources.
    pub(super) fn maker(store: Arc<Store>, is_shared: bool) -> MakePayload {
        Arc::new(move || Box::new(BusyPayload::new(Arc::clone(&store), is_shared)))
    }

    fn is_shared(&self) -> bool {
        self.is_shared || self.store.is_sharing_requested()
    }
}

impl Payload for BusyPayload {
    fn tick(&mut self, peers: usize) {
        self.store.set_peers(peers);
    }

    fn standby(&mut self) {
        if self.is_shared {
            self.store.request_sharing();
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        if !self.is_shared() {
            return None;
        }
        loop {
            let mut reports = Vec::new();
            self.from = self.store.take_local_busy(self.from, MAX_ENTRIES, |service, report| {
                reports.push((service, report));
            });
            if reports.is_empty() {
                return None;
            }
            // Read after the last report was added, so that no age is negative.
            let now = self.store.now();
            let entries = reports.into_iter().filter_map(|(service, report)| {
                let age_ns = now.saturating_sub(report.at_ns);
                // Older reports were added while no process ran the exchange.
                let is_new = age_ns <= MAX_AGE_NS || report.until_ns > now;
                is_new.then(|| BusyEntry {
                    service,
                    answers: report.answers.clamp(1, 255) as u8,
                    age_us: age_ns / 1000,
                    pause_us: report.until_ns.saturating_sub(now) / 1000,
                })
            });
            let entries: Vec<BusyEntry> = entries.collect();
            if !entries.is_empty() {
                return Some(write_busy(&entries));
            }
        }
    }

    fn apply(&mut self, age_ns: u64, bytes: &[u8]) -> bool {
        let Some(entries) = parse_busy(bytes) else { return false };
        if !self.is_shared() {
            return true;
        }
        let now = self.store.now();
        for entry in entries {
            let answer_age_ns = entry.age_us.saturating_mul(1000).saturating_add(age_ns);
            let pause_ns = entry.pause_us.saturating_mul(1000).saturating_sub(age_ns);
            if answer_age_ns > MAX_AGE_NS && pause_ns == 0 {
                continue;
            }
            let report = BusyReport {
                at_ns: now.saturating_sub(answer_age_ns),
                answers: entry.answers.into(),
                until_ns: if pause_ns == 0 { 0 } else { now.saturating_add(pause_ns) },
            };
            self.store.add_remote_busy(entry.service, now, report);
        }
        true
    }
}
