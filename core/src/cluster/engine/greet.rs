//! Greetings: datagrams of a peer are accepted after it has echoed a random challenge, which proves
//! that they are not a recording.

use std::collections::{BTreeMap, VecDeque};

use rand::RngExt;

use super::{Engine, To};
use crate::cluster::members::Identity;
use crate::cluster::pace;
use crate::cluster::peer::PeerState;
use crate::cluster::replay::Replay;
use crate::cluster::wire::{DatagramKind, DropCause, Envelope, Hello};
use crate::cluster::{Event, Origin, PeerAddr};

/// The most unanswered challenges.
const MAX_CHALLENGES: usize = 4096;

/// Recently sent challenges, with the time at which each was sent.
#[derive(Default)]
pub(super) struct Challenges {
    at: BTreeMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
}

impl Challenges {
    fn add(&mut self, now: u64, challenge: u64) {
        while let Some((at, oldest)) = self.order.front()
            && (self.order.len() >= MAX_CHALLENGES || now >= at + pace::CHALLENGE_LIFETIME)
        {
            self.at.remove(oldest);
            self.order.pop_front();
        }
        self.at.insert(challenge, now);
        self.order.push_back((now, challenge));
    }

    /// Returns when a challenge was sent, or `None` if it is unknown or has expired.
    fn get(&self, now: u64, challenge: u64) -> Option<u64> {
        self.at.get(&challenge).copied().filter(|at| now < at + pace::CHALLENGE_LIFETIME)
    }
}

impl Engine {
    /// Sends a HELLO with a challenge.
    pub(super) fn greet(&mut self, now: u64, to: To) {
        let challenge = self.new_challenge(now);
        self.send_hello(now, to, challenge, 0);
    }

    /// Challenges a sender, unless it was challenged a moment ago.
    pub(super) fn challenge(&mut self, now: u64, at: PeerAddr, origin: Origin) {
        if !self.peers.can_add(origin) {
            return;
        }
        let peer = self.peers.entry(now, origin);
        let lately = |at: u64| now < at + pace::CHALLENGE_INTERVAL;
        if peer.challenged_at.is_some_and(lately) {
            return;
        }
        peer.challenged_at = Some(now);
        self.greet(now, To::One(at));
    }

    fn new_challenge(&mut self, now: u64) -> u64 {
        let challenge = self.context.rng.random_range(1..=u64::MAX);
        self.membership.challenges.add(now, challenge);
        challenge
    }

    fn send_hello(&mut self, now: u64, to: To, challenge: u64, echo: u64) {
        let (slack_us, slack_age_us) = self.slack.announcement(now);
        let hello = Hello {
            challenge,
            echo,
            top: self.reports.top,
            rules: self.reports.rules_hash,
            address: self.context.settings.address,
            slack_us,
            slack_age_us,
        };
        let mut body = Vec::new();
        hello.write(&mut body);
        self.context.send(to, DatagramKind::Hello, 0, &body);
    }

    pub(super) fn handle_hello(
        &mut self,
        now: u64,
        from: PeerAddr,
        envelope: &Envelope,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let hello = Hello::parse(body)?;
        let sender = envelope.sender;
        if !self.peers.can_add(sender) {
            return Ok(());
        }
        if let Some(at) = self.membership.challenges.get(now, hello.echo) {
            let address = hello.address.reachable_from(from);
            self.mark_proven(now, envelope, &Hello { address, ..hello }, now.saturating_sub(at));
        }
        let is_proven = self.peers.is_proven(sender);
        // A recording could announce any slack, so only the slack of a proven sender is used.
        let delay = self.peers.delay_of(sender);
        if is_proven
            && self.slack.record_announcement(now, hello.slack_us, hello.slack_age_us, delay)
        {
            self.publish_slack(now);
        }
        match hello.challenge {
            0 => {}
            challenge if is_proven => self.send_hello(now, To::One(from), 0, challenge),
            challenge => self.answer_unproven(now, from, sender, challenge),
        }
        Ok(())
    }

    /// Answers a greeting of a sender that has not answered a challenge. The rate is limited,
    /// because an attacker may replay a recorded greeting with a victim's address.
    fn answer_unproven(&mut self, now: u64, from: PeerAddr, sender: Origin, echo: u64) {
        let peer = self.peers.entry(now, sender);
        if peer.answered_at.is_none_or(|at| now >= at + pace::ANSWER_INTERVAL) {
            peer.answered_at = Some(now);
            let challenge = self.new_challenge(now);
            self.send_hello(now, To::One(from), challenge, echo);
        }
    }

    /// Handles the echo of a challenge.
    fn mark_proven(&mut self, now: u64, envelope: &Envelope, hello: &Hello, round_trip: u64) {
        let sender = envelope.sender;
        let peer = self.peers.entry(now, sender);
        peer.last_heard_at = now;
        peer.record_round_trip(round_trip);
        peer.address = Some(hello.address);
        peer.rules = hello.rules;
        peer.changed = true;
        if !peer.is_proven() {
            // Packets up to this one may be recordings. Reports among them that were genuine are
            // repaired.
            peer.replay = Some(Replay::after(envelope.packet));
            return self.admit(now, sender, hello);
        }
        if !matches!(peer.state, PeerState::Up | PeerState::Left) {
            self.membership.announce(now, Identity::new(hello.address, sender));
        }
        self.repair.extend_to(now, &mut self.peers, sender, hello.top);
    }

    /// Accepts a sender that has echoed a challenge for the first time.
    fn admit(&mut self, now: u64, sender: Origin, hello: &Hello) {
        let rules_differ = hello.rules != self.reports.rules_hash;
        let is_member = self.peers.entry(now, sender).state == PeerState::Up;
        self.peers.claim_peer_slot(&self.context.exchange, sender);
        self.peers.skip_unknown_past(sender, hello.top);
        self.supersede(now, sender, hello.address);
        if rules_differ {
            self.context.emit(now, Event::RulesDiffer(sender));
        }
        if !is_member {
            self.membership.announce(now, Identity::new(hello.address, sender));
        }
        self.repair.extend_to(now, &mut self.peers, sender, hello.top);
        if !rules_differ {
            self.snapshots.request(now, &mut self.context, &self.peers, sender);
        }
    }
}
