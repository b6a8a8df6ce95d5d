//! Busy answers: what services said here is told, what they said elsewhere is noted for who asks
//! about them. What was heard is never told on.

use std::collections::VecDeque;

use super::Engine;
use crate::cluster::Origin;
use crate::cluster::access::News;
use crate::cluster::counter::Counter;
use crate::cluster::pace;
use crate::cluster::replay::Replay;
use crate::cluster::wire::{BusyEntry, Dropped, Kind, MAX_BUSY_US, parse_busy, write_busy};

/// The most services of one datagram. All of them fit, whatever their times.
const MOST_ENTRIES: usize = 56;
/// The most datagrams that wait to be told again.
const MOST_AGAIN: usize = 16;

/// What is told of busy services.
#[derive(Default)]
pub(super) struct BusyOutbox {
    /// The number of the last datagram.
    number: u64,
    /// Where to look next.
    place: usize,
    /// What is told once more, in case it was lost.
    again: VecDeque<Told>,
}

/// What was told of services, and when it is to be told again.
struct Told {
    again_at: u64,
    number: u64,
    news: Vec<(u64, News)>,
}

impl Engine {
    fn exchanges_busy(&self, now: u64) -> bool {
        self.context.settings.busy || self.context.exchange.is_busy_wished(now)
    }

    /// Tells of busy answers, one datagram at a time, and once more a little later; or all at once,
    /// because this is the last time.
    pub(super) fn tell_busy(&mut self, now: u64, all: bool) {
        // What nobody would hear yet waits.
        if !self.exchanges_busy(now) || !self.context.has_receivers() {
            return;
        }
        while self.tell_some(now) && all {}
        let is_due = |told: &mut Told| all || now >= told.again_at;
        while let Some(Told { number, news, .. }) = self.busy.again.pop_front_if(is_due) {
            self.send_busy(now, number, &news);
        }
    }

    /// Tells of as many as fit into a datagram; whether there were any.
    fn tell_some(&mut self, now: u64) -> bool {
        let mut taken = 0;
        let mut news = Vec::new();
        let place = self.busy.place;
        self.busy.place = self.context.exchange.take_said(place, MOST_ENTRIES, |service, said| {
            taken += 1;
            // Nobody exchanged for a while: what was said then is no news.
            if now.saturating_sub(said.at_ns) <= pace::BUSY_OLD || said.until_ns > now {
                news.push((service, said));
            }
        });
        if !news.is_empty() {
            self.busy.number += 1;
            let number = self.busy.number;
            self.context.count(Counter::BusySent, news.len() as u64);
            self.send_busy(now, number, &news);
            if self.busy.again.len() < MOST_AGAIN {
                let again_at = now + pace::BUSY_AGAIN;
                self.busy.again.push_back(Told { again_at, number, news });
            }
        }
        taken > 0
    }

    fn send_busy(&mut self, now: u64, number: u64, news: &[(u64, News)]) {
        let us = |time: u64| (time / 1000).min(MAX_BUSY_US);
        let entries = news.iter().map(|(service, news)| BusyEntry {
            service: *service,
            answers: news.answers.clamp(1, 255) as u8,
            age_us: us(now.saturating_sub(news.at_ns)),
            pause_us: us(news.until_ns.saturating_sub(now)),
        });
        let mut body = Vec::new();
        write_busy(number, &entries.collect::<Vec<_>>(), &mut body);
        self.context.broadcast(Kind::Busy, 0, &body);
    }

    /// Notes what services said to a peer.
    pub(super) fn handle_busy(
        &mut self,
        now: u64,
        sender: Origin,
        body: &[u8],
    ) -> Result<(), Dropped> {
        let told = parse_busy(body)?;
        if !self.exchanges_busy(now) {
            return Ok(());
        }
        let peer = self.peers.entry(now, sender);
        let delay = peer.delay.unwrap_or(0);
        let seen = peer.busy.get_or_insert_with(|| Box::new(Replay::after(0)));
        if !seen.is_new(told.number) {
            return Ok(());
        }
        let mut heard = 0;
        for entry in &told.entries {
            let age = entry.age_us.saturating_mul(1000).saturating_add(delay);
            let pause = entry.pause_us.saturating_mul(1000).saturating_sub(delay);
            if age > pace::BUSY_OLD && pause == 0 {
                continue;
            }
            let news = News {
                at_ns: now.saturating_sub(age),
                answers: entry.answers.into(),
                until_ns: if pause == 0 { 0 } else { now.saturating_add(pause) },
            };
            heard += u64::from(self.context.exchange.hear(entry.service, now, news));
        }
        self.context.count(Counter::BusyReceived, heard);
        Ok(())
    }
}
