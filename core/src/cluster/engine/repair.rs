//! Repair: what is missing is noticed, asked for, and sent again, summed up where that is shorter.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rand::RngExt;

use super::{Engine, To};
use crate::cluster::access::Exchange;
use crate::cluster::counter::Counter;
use crate::cluster::history::Kept;
use crate::cluster::pace::age_class;
use crate::cluster::peer::State;
use crate::cluster::window::LAST_NUMBER;
use crate::cluster::wire::{
    ANSWER, Dropped, Kind, MAX_BODY, MAX_ENTRY, MAX_HEAD, MAX_SECTION, RELAYED, Report,
    ReportEntry, ReportWriter, Section, parse_digest, parse_gaps, write_digest, write_gaps,
};
use crate::cluster::{Event, Origin, Ranges};

/// Ranges of one origin in one request.
const MOST_RANGES: usize = 32;
/// Reports in answer to one request.
const MOST_ANSWERS: usize = 64;
/// Questions to the origin itself before others are asked.
const ASK_ORIGIN: u32 = 3;
/// No origin is so far ahead of what was heard of it.
const FAR_AHEAD: u64 = 1 << 20;
/// Origins in a digest.
const MOST_IN_DIGEST: usize = 60;

impl Engine {
    /// Notes that an origin's reports go up to a number.
    pub(super) fn hear_of(&mut self, now: u64, origin: Origin, top: u64) {
        if top > LAST_NUMBER || !self.has_room_for(origin) {
            return;
        }
        let peer = self.peer(now, origin);
        let before = peer.window.top();
        peer.window.hear_of(top);
        peer.notice(now, before);
        self.note_missing(origin);
    }

    /// Keeps the list of those that something is missing of.
    pub(super) fn note_missing(&mut self, origin: Origin) {
        let Some(peer) = self.peers.get_mut(&origin) else { return };
        if peer.window.missing().is_empty() {
            peer.ask_at = None;
            peer.since.clear();
            self.asking.remove(&origin);
        } else {
            self.asking.insert(origin);
        }
    }

    /// Asks for what has been missing for a while.
    pub(super) fn ask_for_missing(&mut self, now: u64) {
        if self.asking.is_empty() || self.is_starting() {
            return;
        }
        let retention = self.retention();
        let mut questions: BTreeMap<SocketAddr, Vec<(Origin, Ranges)>> = BTreeMap::new();
        let up = self.members_at();
        for origin in self.asking.iter().copied().collect::<Vec<_>>() {
            self.give_up(now, origin, now.saturating_sub(retention));
            let Some(peer) = self.peers.get_mut(&origin) else { continue };
            // Holes that came with a window, from the table or from a snapshot.
            if peer.ask_at.is_none() && !peer.window.missing().is_empty() {
                peer.ask_at = Some(now);
                peer.since.push_back((now, peer.window.top()));
            }
            if !self.settings.controls.repair || peer.ask_at.is_none_or(|at| now < at) {
                continue;
            }
            let ranges = peer.window.missing().iter().take(MOST_RANGES).copied().collect();
            let origin_is_there = peer.is_told(now, retention) && peer.asked < ASK_ORIGIN;
            let address = peer.address;
            peer.ask_later(now);
            let mut others = || self.rng.random_range(0..up.len().max(1));
            let target = match address.filter(|_| origin_is_there) {
                Some(address) => Some(address),
                None => up.get(others()).copied().or(address),
            };
            if let Some(target) = target {
                questions.entry(target).or_default().push((origin, ranges));
            }
        }
        for (target, list) in questions {
            let mut body = Vec::new();
            // What does not fit is asked for next time.
            write_gaps(&list, &mut body);
            self.count(Counter::Asked, 1);
            self.send(To::One(target), Kind::Gap, 0, &body);
        }
    }

    fn give_up(&mut self, now: u64, origin: Origin, before: u64) {
        let Some(peer) = self.peers.get_mut(&origin) else { return };
        let lost = peer.give_up(before);
        if lost > 0 {
            peer.lost += lost;
            peer.changed = true;
            self.store_window(origin);
            self.note_missing(origin);
            self.count(Counter::Lost, lost);
            self.happened(now, Event::Lost(origin, lost));
        }
    }

    /// Where the members are.
    fn members_at(&self) -> Vec<SocketAddr> {
        let up = self.peers.values().filter(|peer| peer.state == State::Up && peer.is_proven());
        up.filter_map(|peer| peer.address).collect()
    }

    /// Some member, at random.
    pub(super) fn anybody(&mut self) -> Option<SocketAddr> {
        let up = self.members_at();
        match up.len() {
            0 => None,
            count => Some(up[self.rng.random_range(0..count)]),
        }
    }

    /// Sends what somebody misses.
    pub(super) fn handle_gap(
        &mut self,
        now: u64,
        from: SocketAddr,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let mut left = MOST_ANSWERS;
        let mut gone = Vec::new();
        for (origin, ranges) in parse_gaps(body)? {
            let relayed = (origin != self.me).then_some(origin);
            let mut merger = Merger::new(now, relayed, &self.exchange);
            let mut not_here = Ranges::new();
            for range in ranges {
                let mut next = range.0;
                for (first, kept) in self.history.within(origin, range) {
                    if merger.done.len() >= left {
                        next = u64::MAX;
                        break;
                    }
                    if first > next {
                        not_here.push((next, first - 1));
                    }
                    merger.add(first, kept);
                    next = kept.last.saturating_add(1);
                }
                if next <= range.1 {
                    not_here.push((next, range.1));
                }
                merger.flush();
            }
            // Others may still have what is not here, unless this is where it came from. What has
            // not been reported yet is not gone.
            not_here.retain_mut(|(first, last)| {
                *last = (*last).min(self.outbox.top);
                first <= last
            });
            if origin == self.me && !not_here.is_empty() {
                gone.push((origin, not_here));
            }
            let flags = if relayed.is_none() { 0 } else { RELAYED };
            let answers = merger.done;
            left = left.saturating_sub(answers.len());
            self.count(Counter::Answered, answers.len() as u64);
            for body in answers {
                self.send(To::One(from), Kind::Report, flags, &body);
            }
        }
        if !gone.is_empty() {
            let mut body = Vec::new();
            write_gaps(&gone, &mut body);
            self.send(To::One(from), Kind::Gone, 0, &body);
        }
        Ok(())
    }

    /// Gives up what its origin has no more.
    pub(super) fn handle_gone(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), Dropped> {
        for (origin, ranges) in parse_gaps(body)? {
            if origin != sender {
                continue;
            }
            let peer = self.peer(now, origin);
            let mut lost = 0;
            for (first, last) in ranges {
                let top = peer.window.top();
                if first <= top {
                    let missing = peer.window.missing().iter();
                    let missing = missing.map(|(a, b)| (*a.max(&first), *b.min(&last)));
                    lost += missing.filter(|(a, b)| a <= b).map(|(a, b)| b - a + 1).sum::<u64>();
                    peer.window.mark(first, last.min(top));
                }
            }
            // What was reported before this node was there is none of its loss.
            if peer.applied_at.is_none() {
                lost = 0;
            }
            peer.lost += lost;
            self.count(Counter::Lost, lost);
            self.store_window(origin);
            self.note_missing(origin);
            if lost > 0 {
                self.happened(now, Event::Lost(origin, lost));
            }
        }
        Ok(())
    }

    /// Tells a random member how far the reports of all origins go, as far as is known here.
    pub(super) fn send_digest(&mut self, now: u64) {
        let Some(to) = self.anybody() else { return };
        let mut list = self.digest(now);
        // Everything has its turn.
        while list.len() >= MOST_IN_DIGEST {
            let out = self.rng.random_range(0..list.len());
            list.swap_remove(out);
        }
        list.insert(0, (self.me, self.outbox.top));
        let mut body = Vec::new();
        write_digest(&list, &mut body);
        self.send(To::One(to), Kind::Digest, 0, &body);
    }

    /// Origins whose reports somebody may still have.
    fn digest(&self, now: u64) -> Vec<(Origin, u64)> {
        let fresh = now.saturating_sub(self.retention());
        let fresh =
            self.peers.iter().filter(|(_, peer)| peer.applied_at.is_some_and(|at| at > fresh));
        fresh.map(|(origin, peer)| (*origin, peer.window.top())).collect()
    }

    /// Learns what is missing here, and tells what is missing there.
    pub(super) fn handle_digest(
        &mut self,
        now: u64,
        sender: Origin,
        from: SocketAddr,
        flags: u8,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let mut ahead = Vec::new();
        for (origin, top) in parse_digest(body)? {
            if origin.node == self.me.node {
                continue;
            }
            let here = self.peers.get(&origin).map_or(0, |peer| peer.window.top());
            // What others say about an origin is believed only if it can be.
            if origin == sender || here == 0 || top <= here.saturating_add(FAR_AHEAD) {
                self.hear_of(now, origin, top);
            }
            if here > top && origin != sender {
                ahead.push((origin, here));
            }
        }
        if flags & ANSWER == 0 && !ahead.is_empty() {
            let mut body = Vec::new();
            write_digest(&ahead, &mut body);
            self.send(To::One(from), Kind::Digest, ANSWER, &body);
        }
        Ok(())
    }
}

/// Puts reports that follow each other into one, as long as they fit.
struct Merger<'a> {
    now: u64,
    relayed: Option<Origin>,
    exchange: &'a Exchange,
    /// First and last number of what is being put together.
    range: Option<(u64, u64)>,
    sections: BTreeMap<(u64, u64, u64), Part>,
    entries: usize,
    done: Vec<Vec<u8>>,
}

/// What several reports say about one rule and hits of about one age, which is that of the oldest.
#[derive(Default)]
struct Part {
    start: Option<u64>,
    tags: BTreeMap<u64, Sum>,
}

/// What several reports say about one tag.
#[derive(Default)]
struct Sum {
    hits: u64,
    saturated: bool,
}

impl<'a> Merger<'a> {
    fn new(now: u64, relayed: Option<Origin>, exchange: &'a Exchange) -> Merger<'a> {
        let (sections, done) = (BTreeMap::new(), Vec::new());
        Merger { now, relayed, exchange, range: None, sections, entries: 0, done }
    }

    fn add(&mut self, first: u64, kept: &Kept) {
        // What is kept was parsed before.
        let Ok(report) = Report::parse(&kept.body, kept.flags) else { return };
        let follows = self.range.is_some_and(|(_, last)| last + 1 == first);
        // One report alone always fits: room was left for that.
        if !follows || !self.has_room_for(&report, kept.at) {
            self.flush();
        }
        let (start, _) = *self.range.get_or_insert((first, kept.last));
        self.range = Some((start, kept.last));
        for (section, entries) in report.sections() {
            let begun = kept.at.saturating_sub(section.age_us.saturating_mul(1000));
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

    /// What may stand in one section: late hits must not make others late.
    fn key(&self, section: &Section, begun: u64) -> (u64, u64, u64) {
        (section.rule, section.quantum, age_class(self.now.saturating_sub(begun)))
    }

    fn has_room_for(&self, report: &Report<'_>, at: u64) -> bool {
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

    /// Writes what was put together, as it is now: a tag may have reached its limit since.
    fn flush(&mut self) {
        let Some((first, last)) = self.range.take() else { return };
        self.entries = 0;
        let mut writer = ReportWriter::new();
        writer.clear(self.relayed);
        for ((rule, quantum, _), part) in std::mem::take(&mut self.sections) {
            let age_us = self.now.saturating_sub(part.start.unwrap_or(self.now)) / 1000;
            let section = Section { rule, quantum, age_us };
            let known = self.exchange.rule(rule);
            for (fingerprint, Sum { hits, saturated }) in part.tags {
                let is_now = |rule| self.exchange.is_saturated(rule, self.now, fingerprint);
                let saturated = saturated || known.as_deref().is_some_and(is_now);
                writer.push(&section, ReportEntry { fingerprint, hits, saturated });
            }
        }
        self.done.push(writer.finish(first, last, false).to_vec());
    }
}
