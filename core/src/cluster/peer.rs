//! What is known about another node, in one of its lives: as a sender of datagrams and as an
//! origin of reports.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::pace;
use super::replay::Replay;
use super::window::Window;

/// Another node.
#[derive(Default)]
pub(super) struct Peer {
    /// Its place in the table, if there is one left.
    pub(super) seat: Option<usize>,
    pub(super) window: Window,
    /// Nothing: it has yet to show that it is there, and not a recording.
    pub(super) replay: Option<Replay>,
    /// Which of its news of busy services were heard.
    pub(super) busy: Option<Box<Replay>>,
    /// Where it was heard from, or says that it is.
    pub(super) address: Option<SocketAddr>,
    /// What its rules come to, by its last greeting.
    pub(super) rules: u64,
    pub(super) challenged_at: Option<u64>,
    pub(super) answered_at: Option<u64>,
    pub(super) heard_at: u64,
    /// When one of its reports was last applied.
    pub(super) applied_at: Option<u64>,
    /// Half the round trip, smoothed.
    pub(super) delay: Option<u64>,
    pub(super) state: State,
    /// When what is missing is to be asked for, and how often it was.
    pub(super) ask_at: Option<u64>,
    pub(super) asked: u32,
    /// How far its reports went at a time, for times at which something was missing.
    pub(super) since: VecDeque<(u64, u64)>,
    pub(super) received: u64,
    pub(super) repaired: u64,
    pub(super) lost: u64,
    /// Something changed that the table does not know yet.
    pub(super) changed: bool,
}

/// What membership says about a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Heard of, but not a member.
    #[default]
    Known,
    /// A member.
    Up,
    /// Taken for dead since a time.
    Down(u64),
    /// Said goodbye.
    Left,
}

impl State {
    /// How it stands in the table.
    pub(crate) fn number(self) -> u64 {
        match self {
            State::Known => 0,
            State::Up => 1,
            State::Down(_) => 2,
            State::Left => 3,
        }
    }
}

impl Peer {
    pub(super) fn is_proven(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether reports are sent to it: also for a while after it was taken for dead, because most
    /// of the dead come back.
    pub(super) fn is_told(&self, now: u64, retention: u64) -> bool {
        match self.state {
            State::Up => true,
            State::Down(at) => now < at.saturating_add(retention),
            State::Known | State::Left => false,
        }
    }

    /// Takes a round trip into account. A clock that jumps ahead between a challenge and its echo
    /// makes one sample far too long, so a sample may not raise the delay by much.
    pub(super) fn saw_round_trip(&mut self, round_trip: u64) {
        let longest = self.delay.map_or(pace::FIRST_DELAY, |before| 2 * before + pace::DELAY_STEP);
        let sample = (round_trip / 2).min(longest);
        self.delay = Some(match self.delay {
            // Slow to forget a long one: tolerance is for those.
            Some(before) if sample < before => before - (before - sample) / 8,
            Some(before) => before + (sample - before) / 2,
            None => sample,
        });
    }

    /// Notes that something may have become missing.
    pub(super) fn notice(&mut self, now: u64, before: u64) {
        if self.window.top() == before {
            return;
        }
        if self.ask_at.is_none() {
            self.ask_at = Some(now + pace::REORDERED);
            self.asked = 0;
        }
        let soon = self.since.back().is_some_and(|(at, _)| now < at + 100 * pace::MILLI);
        match self.since.back_mut() {
            Some((_, top)) if soon => *top = self.window.top(),
            _ => self.since.push_back((now, self.window.top())),
        }
    }

    /// Gives up what has been missing since before a time. How many reports that are.
    pub(super) fn give_up(&mut self, before: u64) -> u64 {
        let mut lost = 0;
        while let Some((at, top)) = self.since.front().copied()
            && at < before
        {
            let missing = self.window.missing().iter().take_while(|(first, _)| *first <= top);
            lost += missing.map(|(first, last)| top.min(*last) - first + 1).sum::<u64>();
            // What was reported before this node was there is none of its loss.
            if self.applied_at.is_none() {
                lost = 0;
            }
            self.window.mark(1, top.max(1));
            self.since.pop_front();
        }
        lost
    }

    /// When to ask again what was asked for just now.
    pub(super) fn ask_later(&mut self, now: u64) {
        let round_trip = 2 * self.delay.unwrap_or(0);
        let patience = (pace::ASK_AGAIN + round_trip) << self.asked.min(6);
        self.ask_at = Some(now + patience.min(pace::ASK_AT_LAST.max(2 * round_trip)));
        self.asked = self.asked.saturating_add(1);
    }
}
