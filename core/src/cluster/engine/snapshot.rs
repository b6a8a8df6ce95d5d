//! Warm start: a node that starts asks another for the buckets that are not full.
//!
//! The answer is one moment's: buckets, and which reports they include. Those reports are not
//! applied again. So nothing else may be applied before it is there, or has not come for too long.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::{Engine, To};
use crate::cluster::counter::Counter;
use crate::cluster::pace;
use crate::cluster::peer::Peer;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{Dropped, Kind, Snapshot, SnapshotWriter};
use crate::cluster::{Event, Origin, Window};

/// Datagrams of one snapshot.
const MOST_PARTS: usize = 128;
/// Buckets of one snapshot.
const MOST_LEVELS: usize = 12_000;

/// How far a node has started.
pub(super) enum Start {
    /// Waiting for buckets, or for somebody to ask.
    Waiting {
        until: u64,
        asked: Option<(Origin, u64)>,
        parts: BTreeMap<u16, Vec<u8>>,
        greet_at: u64,
    },
    /// At work.
    Ready,
}

impl Start {
    pub(super) fn waiting(now: u64) -> Start {
        let (until, greet_at) = (now + pace::WARM_START, now + pace::GREET_AGAIN);
        Start::Waiting { until, asked: None, parts: BTreeMap::new(), greet_at }
    }

    /// Somebody can be asked from now on.
    pub(super) fn begin(&mut self, now: u64) {
        if let Start::Waiting { until, .. } = self {
            *until = now + pace::WARM_START;
        }
    }
}

impl Engine {
    /// Whether reports cannot be applied yet.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.start, Start::Waiting { .. })
    }

    /// Asks a peer for its buckets, if this node needs any and nobody was asked.
    pub(super) fn ask_for_snapshot(&mut self, now: u64, peer: Origin) {
        let Start::Waiting { asked, parts, .. } = &mut self.start else { return };
        if asked.is_some_and(|(_, at)| now < at + pace::WARM_START_AGAIN) {
            return;
        }
        let Some(address) = self.peers.get(&peer).and_then(|peer| peer.address) else { return };
        *asked = Some((peer, now));
        parts.clear();
        self.send(To::One(address), Kind::SnapshotRequest, 0, &[]);
    }

    pub(super) fn go_on_with_start(&mut self, now: u64) {
        let Start::Waiting { until, asked, greet_at, .. } = &mut self.start else { return };
        let (is_over, was_asked) = (now >= *until, asked.is_some());
        let last = asked.map_or(until.saturating_sub(pace::WARM_START), |(_, at)| at);
        if asked.is_none() && now >= *greet_at {
            // Also a greeting may be lost.
            *greet_at = now + pace::GREET_AGAIN;
            self.try_addresses(now);
        }
        if is_over {
            self.take_over(now);
            self.start = Start::Ready;
        } else if now >= last + pace::WARM_START_AGAIN {
            if was_asked && self.take_over(now) {
                self.start = Start::Ready;
            } else if let Some(peer) = self.next_to_ask(now) {
                self.ask_for_snapshot(now, peer);
            }
        }
    }

    /// Whom to ask for buckets. One with other rules has seen all reports, and may have kept nothing
    /// of those that matter here: it is asked only if there is no other.
    fn next_to_ask(&self, now: u64) -> Option<Origin> {
        let proven = self.peers.iter().filter(|(_, peer)| peer.is_proven());
        let mut proven: Vec<_> = proven.collect();
        let is_like = |peer: &Peer| peer.rules == self.outbox.rules_hash;
        if proven.iter().any(|(_, peer)| is_like(peer)) {
            proven.retain(|(_, peer)| is_like(peer));
        }
        let turn = (now / pace::WARM_START_AGAIN) as usize;
        turn.checked_rem(proven.len()).map(|turn| *proven[turn].0)
    }

    pub(super) fn handle_snapshot_request(
        &mut self,
        now: u64,
        from: SocketAddr,
    ) -> Result<(), Dropped> {
        // Who has no rules, and only exchanges busy answers, has seen all reports and kept nothing of
        // them.
        if self.is_starting() || self.exchange.rules().is_empty() {
            return Ok(());
        }
        self.count(Counter::Snapshots, 1);
        // Many may start at once, and each snapshot looks at the whole table.
        if self.snapshot.is_none() || now >= self.snapshot_at + pace::SNAPSHOT_AGAIN {
            self.snapshot = Some(self.write_snapshot(now).into());
            self.snapshot_at = now;
        }
        for body in self.snapshot.iter().flat_map(|pages| pages.iter()).cloned().collect::<Vec<_>>()
        {
            self.send(To::One(from), Kind::Snapshot, 0, &body);
        }
        Ok(())
    }

    fn write_snapshot(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut writer = SnapshotWriter::default();
        let mut pages: Vec<SnapshotWriter> = Vec::new();
        let mine = Window::new(self.outbox.top, Vec::new());
        let windows = self.peers.iter().map(|(origin, peer)| (*origin, &peer.window));
        let windows = windows.filter(|(_, window)| window.top() > 0);
        for (origin, window) in windows.chain([(self.me, &mine)]) {
            if !writer.push_window(origin, window) {
                pages.push(std::mem::take(&mut writer));
                writer.push_window(origin, window);
            }
        }
        for level in self.exchange.levels(now, MOST_LEVELS) {
            if !writer.push(level.rule, level.fingerprint, level.used_16ths) {
                pages.push(std::mem::take(&mut writer));
                if pages.len() == MOST_PARTS {
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

    pub(super) fn handle_snapshot(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let snapshot = Snapshot::parse(body)?;
        let Start::Waiting { asked, parts, .. } = &mut self.start else { return Ok(()) };
        if asked.is_none_or(|(peer, _)| peer != sender)
            || usize::from(snapshot.parts) > MOST_PARTS + 1
        {
            return Ok(());
        }
        parts.insert(snapshot.part, body.to_vec());
        if parts.len() == usize::from(snapshot.parts) && self.take_over(now) {
            self.start = Start::Ready;
        }
        Ok(())
    }

    /// Takes over what came of a snapshot. Without all of its windows nothing is: a report could
    /// be charged twice.
    fn take_over(&mut self, now: u64) -> bool {
        let Start::Waiting { asked: Some((peer, _)), parts, .. } = &mut self.start else {
            return false;
        };
        let (peer, parts) = (*peer, std::mem::take(parts));
        let parsed: Vec<Snapshot<'_>> =
            parts.values().filter_map(|body| Snapshot::parse(body).ok()).collect();
        // Windows come first: they are all there when the first part with buckets is, and all
        // before it.
        let whole = parsed.iter().zip(0_u16..).take_while(|(part, number)| part.part == *number);
        let has_all = whole
            .map(|(part, _)| part)
            .any(|part| part.sections().next().is_some() || part.part + 1 == part.parts);
        if !has_all {
            return false;
        }
        // What is known of other rules is gone after this.
        self.learn(now);
        for (origin, window) in parsed.iter().flat_map(Snapshot::windows) {
            if origin.node == self.me.node
                || window.top() > LAST_NUMBER
                || !self.has_room_for(origin)
            {
                continue;
            }
            self.peer(now, origin).window.fast_forward(&window);
            self.seat(origin);
            self.store_window(origin);
            self.note_missing(origin);
        }
        let mut count = 0;
        for (rule, levels) in parsed.iter().flat_map(Snapshot::sections) {
            let Some(rule) = self.exchange.rule(rule) else { continue };
            for (fingerprint, used_16ths) in levels {
                self.exchange.raise(&rule, now, fingerprint, used_16ths);
                count += 1;
            }
        }
        self.happened(now, Event::WarmStart(peer, count));
        true
    }
}
