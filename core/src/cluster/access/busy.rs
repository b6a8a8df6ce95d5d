//! Busy answers as an exchanger sees them: what was answered here goes out, what was answered
//! elsewhere comes in. See `table/news.rs`.

use super::{Exchange, News};

impl Exchange {
    /// Says that busy answers shall be exchanged, for as long as somebody goes on saying so.
    pub fn wish_busy(&self, now: u64) {
        self.host.table.wish_busy(now);
    }

    /// Whether somebody says so.
    pub fn is_busy_wished(&self, now: u64) -> bool {
        self.host.table.is_busy_wished(now)
    }

    /// Takes busy answers that peers have yet to hear of, of so many services at most, the first at
    /// a place. The place to go on at.
    pub fn take_said(&self, from: usize, most: usize, out: impl FnMut(u64, News)) -> usize {
        self.host.table.take_said(from, most, out)
    }

    /// Notes what a peer was answered. Whether somebody here may want to know.
    pub fn hear(&self, service: u64, now: u64, news: News) -> bool {
        self.host.table.hear(service, now, news)
    }
}
