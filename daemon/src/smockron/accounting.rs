//! Accounting messages of gatekeepers: reads and charges them, and computes until when a client
//! must be delayed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tracing::warn;

use crate::daemon::Daemon;
use crate::state::Count;

/// A cause is logged at most this often.
const LOG_PERIOD: Duration = Duration::from_secs(60);

const TOO_FEW_FRAMES: &str = "an accounting message had fewer than five frames";
const BAD_STATUS: &str = "a status was not ACCEPTED, DELAYED or REJECTED";
const BAD_TIMESTAMP: &str = "a timestamp was not a number of milliseconds since 1970";
const UNKNOWN_DOMAIN: &str = "a domain was not in the configuration";
const TOO_FAR_AHEAD: &str = "a timestamp was more than smockron_max_ahead ahead of this clock";
const OVERSIZE: &str = "an accounting message had more than 64 KB or 64 frames";
const CLOSED: &str = "the throttle is closed";

/// Charges the requests that gatekeepers report.
pub(super) struct Accounts {
    daemon: Arc<Daemon>,
    /// When each cause was logged for the last time.
    logged: RefCell<HashMap<&'static str, Instant>>,
}

/// A message to gatekeepers: delay the requests of a client.
pub(super) struct ClientDelay<'a> {
    pub(super) domain: &'a [u8],
    pub(super) identifier: &'a [u8],
    /// Milliseconds since 1970.
    pub(super) until_ms: u64,
}

impl Accounts {
    pub(super) fn new(daemon: Arc<Daemon>) -> Accounts {
        Accounts { daemon, logged: RefCell::default() }
    }

    /// Charges the request of a message. Returns a delay if its client is then in debt.
    pub(super) fn take<'a>(&self, frames: &'a [Vec<u8>]) -> Option<ClientDelay<'a>> {
        let taken = self.charge(frames);
        taken.unwrap_or_else(|cause| {
            self.bad(cause);
            None
        })
    }

    /// Counts a message that was too long to read.
    pub(super) fn oversize(&self) {
        self.bad(OVERSIZE);
    }

    fn bad(&self, cause: &'static str) {
        self.daemon.state.counts.smockron_bad.add(1);
        self.warn(cause);
    }

    fn charge<'a>(&self, frames: &'a [Vec<u8>]) -> Result<Option<ClientDelay<'a>>, &'static str> {
        let [domain, status, identifier, received, delayed, ..] = frames else {
            return Err(TOO_FEW_FRAMES);
        };
        let domain = domain.strip_suffix(b"\0").unwrap_or(domain);
        let counts = &self.daemon.state.counts;
        let (count, timestamp): (&Count, &[u8]) = match status.as_slice() {
            b"ACCEPTED" => (&counts.smockron_accepted, received),
            b"DELAYED" => (&counts.smockron_delayed, delayed),
            b"REJECTED" => (&counts.smockron_rejected, received),
            _ => return Err(BAD_STATUS),
        };
        let timestamp = parse_timestamp(timestamp)?;
        let name = str::from_utf8(domain).map_err(|_| UNKNOWN_DOMAIN)?;
        let known = self.daemon.with_throttle(|throttle| throttle.domain(name));
        let known = known.map_err(|_| UNKNOWN_DOMAIN)?;
        count.add(1);
        if status == b"REJECTED" {
            return Ok(None);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let debt = known.charge_ahead(identifier, 1, self.ahead(timestamp, now));
        let debt = debt.map_err(|_| CLOSED)?;
        if debt.is_zero() {
            return Ok(None);
        }
        self.daemon.state.refused.add(identifier);
        Ok(Some(ClientDelay { domain, identifier, until_ms: ceil_ms(now + debt) }))
    }

    /// How far ahead of now a request is charged. A timestamp in the past counts as now. So does
    /// one so far ahead that the gatekeeper's clock must be wrong, because it would delay the
    /// client until then.
    fn ahead(&self, timestamp: Option<Duration>, now: Duration) -> Duration {
        let ahead = timestamp.map_or(Duration::ZERO, |timestamp| timestamp.saturating_sub(now));
        if ahead <= self.daemon.settings.smockron_max_ahead {
            return ahead;
        }
        self.daemon.state.counts.smockron_far_ahead.add(1);
        self.warn(TOO_FAR_AHEAD);
        Duration::ZERO
    }

    /// Logs a cause at most once a minute, because every client that reaches the port can send
    /// messages.
    pub(super) fn warn(&self, cause: &'static str) {
        let now = Instant::now();
        let mut logged = self.logged.borrow_mut();
        if logged.get(cause).is_none_or(|last| now.duration_since(*last) >= LOG_PERIOD) {
            logged.insert(cause, now);
            let counts = &self.daemon.state.counts;
            warn!(
                bad = counts.smockron_bad.get(),
                far_ahead = counts.smockron_far_ahead.get(),
                dropped = counts.smockron_dropped.get(),
                "smockron: {cause}; this is logged once a minute"
            );
        }
    }
}

/// Milliseconds since 1970 in ASCII; `None` for an empty frame.
fn parse_timestamp(text: &[u8]) -> Result<Option<Duration>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = str::from_utf8(text).ok().filter(|_| text.iter().all(u8::is_ascii_digit));
    let ms = digits.and_then(|digits| digits.parse().ok()).ok_or(BAD_TIMESTAMP)?;
    Ok(Some(Duration::from_millis(ms)))
}

fn ceil_ms(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
