//! Broadcasts each payload of the host program twice, and delivers each payload of a peer once.

use std::collections::VecDeque;

use super::Engine;
use crate::cluster::Origin;
use crate::cluster::counter::Counter;
use crate::cluster::pace;
use crate::cluster::payload::Payload;
use crate::cluster::replay::Replay;
use crate::cluster::wire::{DatagramKind, DropCause, parse_payload, write_payload};

/// The maximum number of payloads that wait for their second transmission.
const MAX_REPEATS: usize = 16;

/// The payload source of the host program, and the payloads that were sent recently.
#[derive(Default)]
pub(super) struct Payloads {
    host: Option<Box<dyn Payload>>,
    /// The number of the last payload.
    number: u64,
    /// Payloads that will be sent a second time, in case the first datagram was lost.
    repeats: VecDeque<Sent>,
}

struct Sent {
    at: u64,
    number: u64,
    bytes: Vec<u8>,
}

impl Engine {
    /// Sets the source and receiver of payloads.
    pub fn set_payload(&mut self, host: Box<dyn Payload>) {
        self.payloads.host = Some(host);
    }

    /// Sends the next payload, and those whose second transmission is due. With `all`, sends every
    /// payload that is left, because the node leaves.
    pub(super) fn send_payloads(&mut self, now: u64, all: bool) {
        let (peers, has_receivers) = (self.membership.len(), self.context.has_receivers());
        let Some(host) = &mut self.payloads.host else { return };
        host.tick(peers);
        if !has_receivers {
            return;
        }
        while self.send_next_payload(now) && all {}
        let is_due = |sent: &mut Sent| all || now >= sent.at + pace::PAYLOAD_REPEAT;
        while let Some(sent) = self.payloads.repeats.pop_front_if(is_due) {
            self.send_payload(now, &sent);
        }
    }

    fn send_next_payload(&mut self, now: u64) -> bool {
        let payloads = &mut self.payloads;
        let Some(bytes) = payloads.host.as_mut().and_then(|host| host.take()) else { return false };
        payloads.number += 1;
        let sent = Sent { at: now, number: payloads.number, bytes };
        self.send_payload(now, &sent);
        self.context.count(Counter::PayloadsSent, 1);
        if self.payloads.repeats.len() < MAX_REPEATS {
            self.payloads.repeats.push_back(sent);
        }
        true
    }

    fn send_payload(&mut self, now: u64, sent: &Sent) {
        let mut body = Vec::new();
        let age_us = now.saturating_sub(sent.at) / 1000;
        write_payload(sent.number, age_us, &sent.bytes, &mut body);
        self.context.broadcast(DatagramKind::Payload, 0, &body);
    }

    /// Delivers a payload of a peer to the host program.
    pub(super) fn handle_payload(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), DropCause> {
        let (number, age_us, bytes) = parse_payload(body)?;
        let peer = self.peers.entry(now, sender);
        let age_ns = age_us.saturating_mul(1000).saturating_add(peer.delay.unwrap_or(0));
        let seen = peer.payloads.get_or_insert_with(|| Box::new(Replay::after(0)));
        if !seen.is_new(number) {
            return Ok(());
        }
        let Some(host) = &mut self.payloads.host else { return Ok(()) };
        if !host.apply(age_ns, bytes) {
            return Err(DropCause::Malformed);
        }
        self.context.count(Counter::PayloadsReceived, 1);
        Ok(())
    }
}
