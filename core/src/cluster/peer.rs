//! The state of one incarnation of a peer, as a sender of datagrams and as an origin of reports.

use std::collections::VecDeque;

use super::replay::Replay;
use super::window::{Ranges, Window};
use super::{PeerAddr, pace};

/// One incarnation of another node. Times are nanoseconds since the table's zero.
#[derive(Default)]
pub(super) struct Peer {
    /// The peer slot in the table. `None` if the table had no free slot.
    pub(super) peer_slot: Option<usize>,
    pub(super) window: Window,
    /// `None` until the peer answers a challenge, proving it is not a recording.
    pub(super) replay: Option<Replay>,
    /// The numbers of the payloads that were received. `None` if there were none.
    pub(super) payloads: Option<Box<Replay>>,
    /// The address at which the peer is reached.
    pub(super) address: Option<PeerAddr>,
    /// Hash of the peer's rules, from its last HELLO.
    pub(super) rules: u64,
    pub(super) challenged_at: Option<u64>,
    pub(super) answered_at: Option<u64>,
    pub(super) last_heard_at: u64,
    /// When a report of the peer was last applied.
    pub(super) applied_at: Option<u64>,
    /// One-way delay: half the round trip, smoothed, in nanoseconds.
    pub(super) delay: Option<u64>,
    pub(super) state: PeerState,
    /// When to request missing reports next.
    pub(super) request_at: Option<u64>,
    /// How often missing reports have been requested since the last repair.
    pub(super) requests: u32,
    /// (time, highest report number then), kept while reports are missing.
    pub(super) high_water_marks: VecDeque<(u64, u64)>,
    pub(super) received: u64,
    pub(super) repaired: u64,
    pub(super) lost: u64,
    /// Whether the peer slot has to be updated.
    pub(super) changed: bool,
}

/// The membership state of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerState {
    /// The peer is known, but not a member.
    #[default]
    Known,
    /// A member.
    Up,
    /// The failure detector declared the peer dead at this time.
    Down(u64),
    /// The peer left the cluster, or a newer incarnation replaced it.
    Left,
}

impl PeerState {
    /// Returns the number that represents the state in the table.
    pub(crate) fn number(self) -> u64 {
        match self {
            PeerState::Known => 0,
            PeerState::Up => 1,
            PeerState::Down(_) => 2,
            PeerState::Left => 3,
        }
    }
}

impl Peer {
    pub(super) fn is_proven(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns true if reports are sent to the peer. A peer that was declared dead receives them
    /// for `retention` more, because most such peers come back.
    pub(super) fn receives_reports(&self, now: u64, retention: u64) -> bool {
        match self.state {
            PeerState::Up => true,
            PeerState::Down(at) => now < at.saturating_add(retention),
            PeerState::Known | PeerState::Left => false,
        }
    }

    /// Updates the delay with a measured round trip. The sample is limited, because a clock that
    /// jumps ahead between a challenge and its echo produces one sample that is far too long.
    pub(super) fn record_round_trip(&mut self, round_trip: u64) {
        let longest =
            self.delay.map_or(pace::MAX_FIRST_DELAY, |before| 2 * before + pace::MAX_DELAY_STEP);
        let sample = (round_trip / 2).min(longest);
        self.delay = Some(match self.delay {
            // Decay slowly after a long delay, since the tolerance must cover long delays.
            Some(before) if sample < before => before - (before - sample) / 8,
            Some(before) => before + (sample - before) / 2,
            None => sample,
        });
    }

    /// Notes that reports above `before` may be missing.
    pub(super) fn note_gap(&mut self, now: u64, before: u64) {
        if self.window.top() == before {
            return;
        }
        if self.request_at.is_none() {
            self.request_at = Some(now + pace::REORDER_WAIT);
            self.requests = 0;
        }
        let soon = self.high_water_marks.back().is_some_and(|(at, _)| now < at + 100 * pace::MILLI);
        match self.high_water_marks.back_mut() {
            Some((_, top)) if soon => *top = self.window.top(),
            _ => self.high_water_marks.push_back((now, self.window.top())),
        }
    }

    /// Stops waiting for reports that have been missing since before this time. Returns how many
    /// are lost.
    pub(super) fn give_up(&mut self, before: u64) -> u64 {
        let mut lost = 0;
        while let Some((at, top)) = self.high_water_marks.front().copied()
            && at < before
        {
            lost += self.missing_in(1, top);
            self.window.mark(1, top.max(1));
            self.high_water_marks.pop_front();
        }
        lost
    }

    /// Stops waiting for the missing reports in these ranges. Returns how many are lost.
    pub(super) fn give_up_ranges(&mut self, ranges: &Ranges) -> u64 {
        let mut lost = 0;
        for (first, last) in ranges.iter().copied() {
            let top = self.window.top();
            if first <= top {
                lost += self.missing_in(first, last);
                self.window.mark(first, last.min(top));
            }
        }
        lost
    }

    /// Returns how many reports of a range are missing. Reports sent before this node started do
    /// not count.
    fn missing_in(&self, first: u64, last: u64) -> u64 {
        if self.applied_at.is_none() {
            return 0;
        }
        let missing = self.window.missing().iter().map(|(a, b)| (*a.max(&first), *b.min(&last)));
        missing.filter(|(a, b)| a <= b).map(|(a, b)| b - a + 1).sum()
    }

    /// Schedules the next request, after reports were requested just now.
    pub(super) fn schedule_next_request(&mut self, now: u64) {
        let round_trip = 2 * self.delay.unwrap_or(0);
        let wait = (pace::REQUEST_RETRY + round_trip) << self.requests.min(6);
        self.request_at = Some(now + wait.min(pace::MAX_REQUEST_RETRY.max(2 * round_trip)));
        self.requests = self.requests.saturating_add(1);
    }
}
