//! The counts of the daemon, and other state that all connections share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use dthrottle::Domain;
use tracing::info;

use crate::decisions::Decisions;
use crate::histogram::Histogram;
use crate::history::History;
use crate::refused::Refused;
use crate::scan_cache::ScanCache;

/// Shared by all connections.
pub(crate) struct State {
    pub(crate) started: Instant,
    pub(crate) start_time: SystemTime,
    pub(crate) counts: Counts,
    pub(crate) decisions: Decisions,
    pub(crate) times: RequestTimes,
    pub(crate) refused: Refused,
    pub(crate) scans: ScanCache,
    pub(crate) history: Mutex<History>,
}

/// The durations of requests, by protocol.
#[derive(Default)]
pub(crate) struct RequestTimes {
    pub(crate) lines: Histogram,
    pub(crate) resp: Histogram,
    /// Only `/check`, because a page of metrics takes long.
    pub(crate) http: Histogram,
}

impl Default for State {
    fn default() -> State {
        State {
            started: Instant::now(),
            start_time: SystemTime::now(),
            counts: Counts::default(),
            decisions: Decisions::default(),
            times: RequestTimes::default(),
            refused: Refused::default(),
            scans: ScanCache::default(),
            history: Mutex::default(),
        }
    }
}

impl State {
    /// Counts one check of `tag` in `domain`.
    pub(crate) fn add_decision(&self, domain: &Domain, tag: &[u8], is_allowed: bool) {
        self.decisions.add(domain, is_allowed.into(), (!is_allowed).into());
        if !is_allowed {
            self.add_refused(domain, tag);
        }
    }

    /// Counts the refusal of a tag, and logs once that an earlier process caused one.
    pub(crate) fn add_refused(&self, domain: &Domain, tag: &[u8]) {
        self.refused.add(tag);
        if let Some(warning) = domain.earlier_process_warning(tag) {
            info!("{warning}");
        }
    }

    /// Calls `work` with the decisions of the last minutes.
    pub(crate) fn with_history<T>(&self, work: impl FnOnce(&mut History) -> T) -> T {
        work(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

macro_rules! counts {
    ($($(#[doc = $help:literal])+ $field:ident: $name:literal,)*) => {
        /// Counts since the start.
        #[derive(Default)]
        pub(crate) struct Counts {
            /// Open connections.
            pub(crate) connections: Count,
            $($(#[doc = $help])+ pub(crate) $field: Count,)*
        }

        impl Counts {
            /// The name, help text and value of each count that only grows.
            pub(crate) fn all(&self) -> [(&'static str, &'static str, u64); [$($name),*].len()] {
                [$(($name, concat!($($help),+).trim_ascii_start(), self.$field.get())),*]
            }
        }
    };
}

counts! {
    /// Connections accepted
    accepted: "connections_accepted",
    /// Idle connections closed because their listener was full
    closed_idle: "connections_closed_idle",
    /// Connections closed because the client did not read its answers
    too_slow: "connections_too_slow",
    /// Connections closed because they began with HTTP or TLS on a port for lines or RESP
    other_protocol: "connections_other_protocol",
    /// Ordinary lines answered
    lines: "lines",
    /// Lines of the longer form answered
    queries: "queries",
    /// Lines that were too long
    long_lines: "long_lines",
    /// RESP commands answered
    resp_commands: "resp_commands",
    /// RESP commands refused because there were too many rules
    resp_rules_refused: "resp_rules_refused",
    /// HTTP requests answered
    http_requests: "http_requests",
    /// Requests that gatekeepers passed
    smockron_accepted: "smockron_accepted",
    /// Requests that gatekeepers delayed
    smockron_delayed: "smockron_delayed",
    /// Requests that gatekeepers rejected
    smockron_rejected: "smockron_rejected",
    /// Invalid messages of gatekeepers
    smockron_bad: "smockron_bad",
    /// Timestamps of gatekeepers too far ahead, replaced by the time of arrival
    smockron_far_ahead: "smockron_far_ahead",
    /// Delays sent to gatekeepers
    smockron_published: "smockron_published",
    /// Delays that were dropped because a gatekeeper did not read in time
    smockron_dropped: "smockron_dropped",
    /// Reloads of the configuration
    reloads: "reloads",
    /// Reloads that failed
    failed_reloads: "failed_reloads",
}

/// All accesses are relaxed, because a count orders nothing.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
