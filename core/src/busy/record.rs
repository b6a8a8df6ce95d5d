//! The record of one service: its words, and the arithmetic that changes them.
//!
//! Each word is changed separately. If several processes change two of them at the same time, the
//! words may be from different moments, and one request more or less is sent.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Turn;
use super::document::{NO_LIMIT, Recover, SecondState};
use super::live::{Cut, Live, MIN_CUT_INTERVAL_NS, Observation, SILENCE_NS};
use super::meter::{Meter, SECOND};
use super::report::BusyReport;
use super::service::{IDLE_NS, Service, Writer};
use crate::config::{BusyConfig, Mode};

/// After this time, the document's arithmetic, which counts in seconds, has recovered from a busy
/// response of a peer.
const MAX_DOCUMENT_AGE_NS: u64 = 2 * SECOND;
/// A pause is reported to peers if it ends more than this after the previous one.
const MIN_PAUSE_CHANGE_NS: u64 = SECOND / 10;
/// The burst under a limit, as a time: at once, as many requests may be sent as the limit allows in
/// this time, and at least one.
const BURST_NS: u64 = SECOND / 20;
/// Set in the value of a record with a limit, so that it is higher than any without.
const HAS_LIMIT: u64 = 1 << 63;

/// The settings by which limits are computed.
#[derive(Clone, Debug)]
pub(super) struct Arithmetic {
    mode: Mode,
    floor: f64,
    max_pause_ns: u64,
}

impl Arithmetic {
    pub(super) fn of(config: &BusyConfig) -> Arithmetic {
        let max_pause_ns = super::nanoseconds(config.max_pause);
        Arithmetic { mode: config.mode, floor: config.min_limit(), max_pause_ns }
    }
}

/// The record of a service and the arithmetic of its limit. Times are nanoseconds since the store's
/// zero.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) service: &'a Service,
    pub(super) arithmetic: &'a Arithmetic,
}

// Relaxed everywhere: each word is independent of the others.
impl Record<'_> {
    /// Notes a local call. The record of an idle service is reset.
    pub(super) fn touch(self, now: u64) {
        self.service.touch(now, || self.is_idle(now));
    }

    pub(super) fn is_idle(self, now: u64) -> bool {
        self.service.is_unused(now) && self.paused_until(now) <= now
    }

    /// Returns how valuable the record is to its owner: zero if idle, higher the later it was used,
    /// highest with a limit. A record that was written with other settings is read as if it had
    /// these settings. If the modes differ, the record that is evicted may not be the best choice.
    pub(super) fn value(self, now: u64) -> u64 {
        if self.is_idle(now) {
            return 0;
        }
        let used = self.service.used_ns.load(Ordering::Relaxed);
        // A time in the future was written before the clock was set back. Such a record is evicted
        // before those with a current time.
        let used = if used > now.saturating_add(MIN_CUT_INTERVAL_NS) {
            1
        } else {
            used.clamp(1, HAS_LIMIT - 1)
        };
        let has_limit = self.limit(now).is_some() && !self.is_ahead(now);
        if has_limit || self.paused_until(now) > now { HAS_LIMIT | used } else { used }
    }

    /// Returns true if the limit was written before the clock was set back.
    fn is_ahead(self, now: u64) -> bool {
        let bits = self.service.state.load(Ordering::Relaxed);
        let floor = self.arithmetic.floor;
        match self.arithmetic.mode {
            Mode::Live(_) => Cut::from_bits(bits, floor).is_some_and(|cut| cut.is_ahead(now)),
            Mode::Document(_) => SecondState::from_bits(bits, now, floor).is_ahead(now),
        }
    }

    pub(super) fn rate(self, now: u64) -> f64 {
        Meter(self.service.sent.load(Ordering::Relaxed)).rate(now)
    }

    pub(super) fn limit(self, now: u64) -> Option<f64> {
        match self.arithmetic.mode {
            Mode::Live(live) => self.live_limit(&live, now),
            Mode::Document(recover) => {
                Some(self.second(now, recover).limit).filter(|limit| *limit < NO_LIMIT)
            }
        }
    }

    pub(super) fn turn(self, now: u64) -> Turn {
        let paused = self.paused_until(now);
        if paused > now {
            let limit = self.limit(now);
            return Turn { allowed: false, wait: Duration::from_nanos(paused - now), limit };
        }
        let (limit, wait_ns) = match self.arithmetic.mode {
            Mode::Live(live) => self.live_turn(&live, now),
            Mode::Document(recover) => self.document_turn(recover, now),
        };
        let wait = Duration::from_nanos(wait_ns.unwrap_or(0));
        Turn { allowed: wait_ns.is_none(), wait, limit }
    }

    /// Applies a busy response. Returns whether the limit was cut, and a report for peers if it
    /// contains something new.
    pub(super) fn on_busy(
        self,
        writer: &Writer<'_>,
        now: u64,
        retry_after_ns: Option<u64>,
    ) -> (bool, Option<BusyReport>) {
        let before = self.paused_until(now);
        let pause_ns = retry_after_ns.filter(|pause| *pause > 0);
        let until = pause_ns.map_or(0, |pause| self.pause(writer, now, pause));
        let cut = match self.arithmetic.mode {
            Mode::Live(live) => self.live_busy(&live, writer, now, now, before, false),
            Mode::Document(recover) => self.document_busy(recover, writer, now),
        };
        let is_new = cut || until > before.saturating_add(MIN_PAUSE_CHANGE_NS);
        (cut, is_new.then_some(BusyReport { at_ns: now, answers: 1, until_ns: until }))
    }

    /// Applies a report of peers.
    pub(super) fn on_remote_busy(self, writer: &Writer<'_>, now: u64, report: BusyReport) {
        let at = report.at_ns.min(now);
        let before = self.paused_until(now);
        if report.until_ns > now {
            self.pause(writer, now, report.until_ns - now);
        }
        match self.arithmetic.mode {
            Mode::Live(live) if now - at <= IDLE_NS => {
                self.live_busy(&live, writer, now, at, before, true);
            }
            Mode::Document(recover) if now - at < MAX_DOCUMENT_AGE_NS => {
                for _ in 0..report.answers {
                    self.document_busy(recover, writer, now);
                }
            }
            _ => {}
        }
    }

    /// Starts a pause, or extends it. Returns its end.
    fn pause(self, writer: &Writer<'_>, now: u64, pause_ns: u64) -> u64 {
        let until = now.saturating_add(pause_ns.min(self.arithmetic.max_pause_ns));
        writer.pause(|before| until.max(self.valid_pause(before, now)));
        until
    }

    fn document_busy(self, recover: Recover, writer: &Writer<'_>, now: u64) -> bool {
        writer.change(|bits| Some(self.second_of(bits, now, recover).with_busy().to_bits()))
    }

    pub(super) fn on_ok(self, now: u64) {
        count(&self.service.good, now);
    }

    /// Returns the end of the pause for which the service asked; zero if there is none.
    fn paused_until(self, now: u64) -> u64 {
        self.valid_pause(self.service.paused_ns.load(Ordering::Relaxed), now)
    }

    /// Returns the end of a pause, or zero if it is further ahead than any pause can be, because it
    /// was written before the clock was set back. Other processes may have read the clock a little
    /// later.
    fn valid_pause(self, until: u64, now: u64) -> u64 {
        let longest =
            now.saturating_add(self.arithmetic.max_pause_ns).saturating_add(MIN_CUT_INTERVAL_NS);
        if until <= longest { until } else { 0 }
    }

    fn live_limit(self, live: &Live, now: u64) -> Option<f64> {
        let bits = self.service.state.load(Ordering::Relaxed);
        let cut = Cut::from_bits(bits, self.arithmetic.floor)?;
        // The limit recovers from the end of the pause on.
        live.limit(cut, now.saturating_sub(cut.at.max(self.paused_until(now))))
    }

    fn live_turn(self, live: &Live, now: u64) -> (Option<f64>, Option<u64>) {
        self.repair_future_cut(&Writer::new(self.service), now);
        let limit = self.live_limit(live, now);
        let wait = limit
            .and_then(|limit| self.silence_left(limit, now).or_else(|| self.take_turn(limit, now)));
        if wait.is_none() {
            count(&self.service.sent, now);
        }
        (limit, wait)
    }

    /// Returns the rest of the time after a cut in which no requests are sent. `None` if it is
    /// over, or if the limit is at the floor.
    fn silence_left(self, limit: f64, now: u64) -> Option<u64> {
        let floor = self.arithmetic.floor;
        let cut = Cut::from_bits(self.service.state.load(Ordering::Relaxed), floor)?;
        let left = cut.at.saturating_add(SILENCE_NS).checked_sub(now)?;
        // The record stores limits as `f32`.
        (left > 0 && limit > f64::from(floor as f32)).then_some(left)
    }

    /// Applies a busy response that was received at `at`. Returns true if the limit was cut.
    fn live_busy(
        self,
        live: &Live,
        writer: &Writer<'_>,
        now: u64,
        at: u64,
        paused: u64,
        from_peer: bool,
    ) -> bool {
        self.repair_future_cut(writer, now);
        let floor = self.arithmetic.floor;
        let sent = self.rate(now);
        let good = Meter(self.service.good.load(Ordering::Relaxed));
        let good = (!good.is_new()).then(|| good.rate(now));
        let cut = writer.change(|bits| {
            let before = Cut::from_bits(bits, floor);
            // Responses to requests sent before the cut, or before a pause, contain nothing new.
            if at < paused
                || before.is_some_and(|cut| at.saturating_sub(cut.at) < MIN_CUT_INTERVAL_NS)
            {
                return None;
            }
            let limit =
                before.and_then(|cut| live.limit(cut, at.saturating_sub(cut.at.max(paused))));
            // If the last second began with a pause, requests could be sent only in the rest of it.
            let unpaused_ns = at - paused;
            let seen = Observation { sent, good, limit, from_peer, unpaused_ns };
            Some(live.cut(before, at, seen, floor).to_bits())
        });
        let until = self.paused_until(now);
        let is_longer = until > paused.max(now);
        if (cut || is_longer)
            && let Some(limit) = self.live_limit(live, now)
        {
            // A service that has just answered "busy" has no capacity for several requests at once.
            // After a pause, one may be sent.
            let (unit, burst) = spacing(limit);
            let begin = if is_longer { until.saturating_sub(unit) } else { now };
            self.service.turn_ns.store(begin.saturating_add(burst), Ordering::Relaxed);
        }
        cut
    }

    /// Changes the time of a cut in the future, which was written before the clock was set back, to
    /// now.
    fn repair_future_cut(self, writer: &Writer<'_>, now: u64) {
        writer.change(|bits| {
            let cut = Cut::from_bits(bits, self.arithmetic.floor)?;
            cut.is_ahead(now).then(|| cut.with_time(now).to_bits())
        });
    }

    /// Takes the next turn under a limit. Returns the time to wait for one if there is none now.
    fn take_turn(self, limit: f64, now: u64) -> Option<u64> {
        let (unit, burst) = spacing(limit);
        let end = now.saturating_add(burst);
        // A turn further ahead was stored under a lower limit or with another clock.
        let next = |turn: u64| turn.clamp(now, end).saturating_add(unit);
        let taken =
            self.service.turn_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |turn| {
                Some(next(turn)).filter(|next| *next <= end)
            });
        taken.err().map(|turn| next(turn) - end)
    }

    fn document_turn(self, recover: Recover, now: u64) -> (Option<f64>, Option<u64>) {
        let second = self.second(now, recover);
        let most = second.limit.floor();
        let sent = self.service.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let meter = Meter(word);
            ((meter.this_second(now) as f64) < most).then(|| meter.count(now).0)
        });
        let wait = || second.wait(now, recover, self.arithmetic.floor);
        let limit = Some(second.limit).filter(|limit| *limit < NO_LIMIT);
        (limit, sent.is_err().then(wait))
    }

    fn second(self, now: u64, recover: Recover) -> SecondState {
        self.second_of(self.service.state.load(Ordering::Relaxed), now, recover)
    }

    fn second_of(self, bits: u128, now: u64, recover: Recover) -> SecondState {
        let floor = self.arithmetic.floor;
        SecondState::from_bits(bits, now, floor).at(now, recover, floor)
    }
}

/// Returns true if a record with this value had a limit.
pub(super) fn had_limit(value: u64) -> bool {
    value >= HAS_LIMIT
}

/// Returns the time between two requests under a limit, and the burst as a time (see `BURST_NS`),
/// both in nanoseconds.
fn spacing(limit: f64) -> (u64, u64) {
    let unit = (SECOND as f64 / limit).max(1.0) as u64;
    (unit, unit.max(BURST_NS))
}

fn count(word: &std::sync::atomic::AtomicU64, now: u64) {
    word.update(Ordering::Relaxed, Ordering::Relaxed, |word| Meter(word).count(now).0);
}
