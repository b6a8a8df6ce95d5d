//! Warm start: a starting node requests the buckets that are not full from a peer.
//!
//! A snapshot contains buckets, and windows that state which reports the buckets include. Those
//! reports must not be applied again, so a node applies no report before the snapshot has arrived
//! or timed out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::context::Context;
use super::peers::Peers;
use super::{Engine, To};
use crate::cluster::counter::Counter;
use crate::cluster::pace;
use crate::cluster::peer::Peer;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{DatagramKind, DropCause, Snapshot, SnapshotWriter};
use crate::cluster::{Event, Origin, PeerAddr, Window};

/// The maximum number of datagrams of a snapshot.
const MAX_PARTS: usize = 128;
/// The maximum number of buckets of a snapshot.
const MAX_LEVELS: usize = 12_000;

pub(super) struct Snapshots {
    /// The warm start in progress. `None` once the node applies reports.
    start: Option<WarmStart>,
    /// The last snapshot that was sent, and the time at which it was made.
    sent: Option<(u64, Arc<[Vec<u8>]>)>,
}

/// The state of a node that waits for a peer or for its snapshot.
struct WarmStart {
    /// When the node stops waiting.
    until: u64,
    greet_at: u64,
    /// The peer from which a snapshot was requested last, and when.
    requested_from: Option<(Origin, u64)>,
    parts: BTreeMap<u16, Vec<u8>>,
}

impl Snapshots {
    /// Begins a warm start if `is_cold` is true, because the node then needs the buckets of a peer.
    pub(super) fn new(now: u64, is_cold: bool) -> Snapshots {
        let start = is_cold.then(|| WarmStart {
            until: now + pace::WARM_START_TIMEOUT,
            greet_at: now + pace::GREET_INTERVAL,
            requested_from: None,
            parts: BTreeMap::new(),
        });
        Snapshots { start, sent: None }
    }

    /// Returns true if reports cannot be applied yet.
    pub(super) fn is_starting(&self) -> bool {
        self.start.is_some()
    }

    /// Restarts the timeout when this node gets the first addresses of peers.
    pub(super) fn restart_wait(&mut self, now: u64) {
        if let Some(start) = &mut self.start {
            start.until = now + pace::WARM_START_TIMEOUT;
        }
    }

    /// Requests a snapshot from a peer, unless none is needed or one was requested a moment ago.
    pub(super) fn request(
        &mut self,
        now: u64,
        context: &mut Context,
        peers: &Peers,
        origin: Origin,
    ) {
        let Some(start) = &mut self.start else { return };
        if start.requested_from.is_some_and(|(_, at)| now < at + pace::WARM_START_RETRY) {
            return;
        }
        let Some(address) = peers.get(origin).and_then(|peer| peer.address) else { return };
        start.requested_from = Some((origin, now));
        start.parts.clear();
        context.send(To::One(address), DatagramKind::SnapshotRequest, 0, &[]);
    }
}

impl WarmStart {
    /// Returns true if peers should be greeted again, because a greeting may have been lost.
    fn is_greeting_due(&mut self, now: u64) -> bool {
        let is_due = self.requested_from.is_none() && now >= self.greet_at;
        if is_due {
            self.greet_at = now + pace::GREET_INTERVAL;
        }
        is_due
    }

    /// Returns the snapshot's parts and the peer that sent them, if all windows have arrived.
    /// Windows come first, so they are complete once all parts up to the first one with buckets
    /// have arrived.
    fn take_parts(&mut self) -> Option<(Origin, Vec<Vec<u8>>)> {
        let (peer, _) = self.requested_from?;
        let parts: Vec<Vec<u8>> = std::mem::take(&mut self.parts).into_values().collect();
        let parsed = parts.iter().filter_map(|body| Snapshot::parse(body).ok());
        let has_all = parsed
            .zip(0_u16..)
            .take_while(|(part, number)| part.part == *number)
            .any(|(part, _)| part.sections().next().is_some() || part.part + 1 == part.parts);
        has_all.then_some((peer, parts))
    }
}

/// Returns the peer from which to request a snapshot. A peer with other rules has applied all
/// reports but has no buckets of this node's rules, so it is used only if there is no other.
fn next_source(now: u64, peers: &Peers, rules_hash: u64) -> Option<Origin> {
    let mut proven: Vec<_> = peers.iter().filter(|(_, peer)| peer.is_proven()).collect();
    let has_our_rules = |peer: &Peer| peer.rules == rules_hash;
    if proven.iter().any(|(_, peer)| has_our_rules(peer)) {
        proven.retain(|(_, peer)| has_our_rules(peer));
    }
    let turn = (now / pace::WARM_START_RETRY) as usize;
    turn.checked_rem(proven.len()).map(|turn| proven[turn].0)
}

impl Engine {
    /// Continues a warm start, and ends it after the timeout.
    pub(super) fn continue_warm_start(&mut self, now: u64) {
        let Some(start) = &mut self.snapshots.start else { return };
        let is_over = now >= start.until;
        let was_requested = start.requested_from.is_some();
        let last = start
            .requested_from
            .map_or(start.until.saturating_sub(pace::WARM_START_TIMEOUT), |(_, at)| at);
        if start.is_greeting_due(now) {
            self.greet_missing(now);
        }
        if is_over {
            self.apply_snapshot(now);
            self.snapshots.start = None;
        } else if now >= last + pace::WARM_START_RETRY {
            if was_requested && self.apply_snapshot(now) {
                self.snapshots.start = None;
            } else if let Some(peer) = next_source(now, &self.peers, self.reports.rules_hash) {
                self.snapshots.request(now, &mut self.context, &self.peers, peer);
            }
        }
    }

    /// Sends a snapshot to a peer.
    pub(super) fn handle_snapshot_request(&mut self, now: u64, from: PeerAddr) {
        // The windows of a node without rules include reports whose buckets it does not have.
        if self.snapshots.is_starting() || self.context.exchange.rules().is_empty() {
            return;
        }
        self.context.count(Counter::Snapshots, 1);
        // A recent snapshot is sent again, because making one reads the whole table, and many nodes
        // may start at the same time.
        let sent = self.snapshots.sent.take().filter(|(at, _)| now < at + pace::SNAPSHOT_LIFETIME);
        let (at, pages) = sent.unwrap_or_else(|| (now, self.write_snapshot(now).into()));
        for body in pages.iter() {
            self.context.send(To::One(from), DatagramKind::Snapshot, 0, body);
        }
        self.snapshots.sent = Some((at, pages));
    }

    fn write_snapshot(&self, now: u64) -> Vec<Vec<u8>> {
        let mut writer = SnapshotWriter::default();
        let mut pages: Vec<SnapshotWriter> = Vec::new();
        let own = Window::new(self.reports.top, Vec::new());
        let windows = self.peers.iter().map(|(origin, peer)| (origin, &peer.window));
        let windows = windows.filter(|(_, window)| window.top() > 0);
        for (origin, window) in windows.chain([(self.context.origin, &own)]) {
            if !writer.push_window(origin, window) {
                pages.push(std::mem::take(&mut writer));
                writer.push_window(origin, window);
            }
        }
        for level in self.context.exchange.bucket_levels(now, MAX_LEVELS) {
            if !writer.push(level.rule, level.fingerprint, level.used_16ths) {
                pages.push(std::mem::take(&mut writer));
                if pages.len() == MAX_PARTS {
                    break;
                }
                writer.push(level.rule, level.fingerprint, level.used_16ths);
            }
        }
        pages.push(writer);
        let parts = u16::try_from(pages.len()).unwrap_or(u16::MAX);
        let numbered = pages.iter_mut().zip(0_u16..);
        numbered.map(|(page, part)| page.finish(part, parts).to_vec()).collect()
    }

    /// Stores a part of the snapshot that this node requested.
    pub(super) fn handle_snapshot(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let snapshot = Snapshot::parse(body)?;
        let Some(start) = &mut self.snapshots.start else { return Ok(()) };
        if start.requested_from.is_none_or(|(peer, _)| peer != sender)
            || usize::from(snapshot.parts) > MAX_PARTS + 1
        {
            return Ok(());
        }
        start.parts.insert(snapshot.part, body.to_vec());
        if start.parts.len() == usize::from(snapshot.parts) && self.apply_snapshot(now) {
            self.snapshots.start = None;
        }
        Ok(())
    }

    /// Applies the parts of a snapshot that have arrived. If windows are missing, applies nothing,
    /// because a report could be charged twice. Returns true if the snapshot was applied.
    fn apply_snapshot(&mut self, now: u64) -> bool {
        let taken = self.snapshots.start.as_mut().and_then(WarmStart::take_parts);
        let Some((peer, parts)) = taken else { return false };
        let parts: Vec<Snapshot<'_>> =
            parts.iter().filter_map(|body| Snapshot::parse(body).ok()).collect();
        // Buckets of rules that are unknown after this are dropped.
        self.reports.refresh_rules(now, &mut self.context);
        for (origin, window) in parts.iter().flat_map(Snapshot::windows) {
            self.apply_window(now, origin, &window);
        }
        let mut count = 0;
        for (rule, levels) in parts.iter().flat_map(Snapshot::sections) {
            let Some(rule) = self.context.exchange.rule(rule) else { continue };
            for (fingerprint, used_16ths) in levels {
                self.context.exchange.raise_level(&rule, now, fingerprint, used_16ths);
                count += 1;
            }
        }
        self.context.emit(now, Event::WarmStart(peer, count));
        true
    }

    /// Marks the reports of a snapshot's window as applied.
    fn apply_window(&mut self, now: u64, origin: Origin, window: &Window) {
        if origin.node == self.context.origin.node
            || window.top() > LAST_NUMBER
            || !self.peers.can_add(origin)
        {
            return;
        }
        self.peers.entry(now, origin).window.fast_forward(window);
        self.peers.claim_peer_slot(&self.context.exchange, origin);
        self.peers.store_window(&self.context.exchange, origin);
        self.repair.note_missing(&mut self.peers, origin);
    }
}
