//! Repair: detects missing reports and requests them, and sends stored reports again, merged where
//! that takes fewer datagrams.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;

use super::merger::Merger;
use super::peers::Peers;
use super::{Engine, To};
use crate::cluster::counter::Counter;
use crate::cluster::history::History;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{DatagramKind, DropCause, RELAYED, parse_gaps, write_gaps};
use crate::cluster::{Event, Origin, PeerAddr, Ranges};

/// The maximum number of ranges of one origin in a request.
const MAX_RANGES: usize = 32;
/// The maximum number of reports that answer a request.
const MAX_REPAIRS: usize = 64;
/// Requests that go to the origin itself before other members are asked.
const MAX_ORIGIN_REQUESTS: u32 = 3;

pub(super) struct Repair {
    /// The reports that peers may request.
    pub(super) history: History,
    /// The origins with missing reports.
    incomplete: BTreeSet<Origin>,
}

impl Repair {
    pub(super) fn new(history_bytes: usize) -> Repair {
        Repair { history: History::new(history_bytes), incomplete: BTreeSet::new() }
    }

    /// Notes that an origin has sent reports up to `top`.
    pub(super) fn extend_to(&mut self, now: u64, peers: &mut Peers, origin: Origin, top: u64) {
        if top > LAST_NUMBER || !peers.can_add(origin) {
            return;
        }
        let peer = peers.entry(now, origin);
        let before = peer.window.top();
        peer.window.extend_to(top);
        peer.note_gap(now, before);
        self.note_missing(peers, origin);
    }

    /// Updates whether an origin has missing reports.
    pub(super) fn note_missing(&mut self, peers: &mut Peers, origin: Origin) {
        let Some(peer) = peers.get_mut(origin) else { return };
        if peer.window.missing().is_empty() {
            peer.request_at = None;
            peer.high_water_marks.clear();
            self.incomplete.remove(&origin);
        } else {
            self.incomplete.insert(origin);
        }
    }

    /// Calls `note_missing` for all origins.
    pub(super) fn note_all_missing(&mut self, peers: &mut Peers) {
        let origins: Vec<Origin> = peers.iter().map(|(origin, _)| origin).collect();
        origins.into_iter().for_each(|origin| self.note_missing(peers, origin));
    }

    pub(super) fn forget(&mut self, origin: Origin) {
        self.incomplete.remove(&origin);
    }

    /// Collects the stored reports within these ranges, merged into at most `most` reports. Also
    /// returns the numbers of which no report is stored.
    fn collect(
        &self,
        mut merger: Merger<'_>,
        origin: Origin,
        ranges: Ranges,
        most: usize,
    ) -> (Vec<Vec<u8>>, Ranges) {
        let mut absent = Ranges::new();
        for range in ranges {
            let mut next = range.0;
            for (first, stored) in self.history.in_range(origin, range) {
                if merger.len() >= most {
                    next = u64::MAX;
                    break;
                }
                if first > next {
                    absent.push((next, first - 1));
                }
                merger.add(first, stored);
                next = stored.last.saturating_add(1);
            }
            if next <= range.1 {
                absent.push((next, range.1));
            }
            merger.flush();
        }
        (merger.into_reports(), absent)
    }
}

impl Engine {
    /// Sends the requests for missing reports that are due.
    pub(super) fn request_missing(&mut self, now: u64) {
        if self.repair.incomplete.is_empty() || self.snapshots.is_starting() {
            return;
        }
        let mut requests: BTreeMap<PeerAddr, Vec<(Origin, Ranges)>> = BTreeMap::new();
        let members = self.peers.proven_addresses();
        for origin in self.repair.incomplete.iter().copied().collect::<Vec<_>>() {
            self.give_up(now, origin);
            if let Some((target, ranges)) = self.next_request(now, origin, &members) {
                requests.entry(target).or_default().push((origin, ranges));
            }
        }
        for (target, list) in requests {
            let mut body = Vec::new();
            // Ranges that do not fit are requested next time.
            write_gaps(&list, &mut body);
            self.context.count(Counter::RepairsRequested, 1);
            self.context.send(To::One(target), DatagramKind::Gap, 0, &body);
        }
    }

    /// Returns which reports of an origin to request, and from which address: from the origin
    /// first, then from members at random.
    fn next_request(
        &mut self,
        now: u64,
        origin: Origin,
        members: &[PeerAddr],
    ) -> Option<(PeerAddr, Ranges)> {
        let retention = self.context.retention();
        let peer = self.peers.get_mut(origin)?;
        // The gaps come from a window in the table or in a snapshot.
        if peer.request_at.is_none() && !peer.window.missing().is_empty() {
            peer.request_at = Some(now);
            peer.high_water_marks.push_back((now, peer.window.top()));
        }
        let is_due = peer.request_at.is_some_and(|at| now >= at);
        if !is_due || !self.context.settings.mechanisms.repair {
            return None;
        }
        let ranges = peer.window.missing().iter().take(MAX_RANGES).copied().collect();
        let is_there = peer.receives_reports(now, retention) && peer.requests < MAX_ORIGIN_REQUESTS;
        let address = peer.address;
        peer.schedule_next_request(now);
        let target = match address.filter(|_| is_there) {
            Some(address) => Some(address),
            None => {
                let index = self.context.rng.random_range(0..members.len().max(1));
                members.get(index).copied().or(address)
            }
        };
        target.map(|target| (target, ranges))
    }

    /// Stops waiting for reports of an origin that have been missing for longer than nodes store
    /// them.
    fn give_up(&mut self, now: u64, origin: Origin) {
        let before = now.saturating_sub(self.context.retention());
        let Some(peer) = self.peers.get_mut(origin) else { return };
        let lost = peer.give_up(before);
        if lost > 0 {
            peer.changed = true;
            self.note_lost(now, origin, lost);
        }
    }

    /// Counts reports as lost.
    fn note_lost(&mut self, now: u64, origin: Origin, lost: u64) {
        self.peers.entry(now, origin).lost += lost;
        self.peers.store_window(&self.context.exchange, origin);
        self.repair.note_missing(&mut self.peers, origin);
        self.context.count(Counter::Lost, lost);
        if lost > 0 {
            self.context.emit(now, Event::Lost(origin, lost));
        }
    }

    /// Sends the reports that a peer requests.
    pub(super) fn handle_gap(
        &mut self,
        now: u64,
        from: PeerAddr,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let mut left = MAX_REPAIRS;
        let mut gone = Vec::new();
        for (origin, ranges) in parse_gaps(body)? {
            let relayed = (origin != self.context.origin).then_some(origin);
            let merger = Merger::new(now, relayed, &self.context.exchange);
            let (answers, mut absent) = self.repair.collect(merger, origin, ranges, left);
            // Numbers above the last report do not exist yet, so they are not gone.
            absent.retain_mut(|(first, last)| {
                *last = (*last).min(self.reports.top);
                first <= last
            });
            // Only the origin itself can say that a report is gone. Other nodes may still store it.
            if relayed.is_none() && !absent.is_empty() {
                gone.push((origin, absent));
            }
            left = left.saturating_sub(answers.len());
            self.context.count(Counter::RepairsSent, answers.len() as u64);
            let flags = if relayed.is_none() { 0 } else { RELAYED };
            for body in answers {
                self.context.send(To::One(from), DatagramKind::Report, flags, &body);
            }
        }
        if !gone.is_empty() {
            let mut body = Vec::new();
            write_gaps(&gone, &mut body);
            self.context.send(To::One(from), DatagramKind::Gone, 0, &body);
        }
        Ok(())
    }

    /// Stops waiting for reports that their origin no longer stores.
    pub(super) fn handle_gone(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), DropCause> {
        for (origin, ranges) in parse_gaps(body)? {
            if origin == sender {
                let lost = self.peers.entry(now, origin).give_up_ranges(&ranges);
                self.note_lost(now, origin, lost);
            }
        }
        Ok(())
    }
}
