//! What the daemon counts about itself, and what all its connections share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::history::History;
use crate::looks::Looks;
use crate::refused::Refused;

/// Shared by all connections.
pub(crate) struct State {
    pub(crate) started: Instant,
    pub(crate) counts: Counts,
    pub(crate) refused: Refused,
    pub(crate) looks: Looks,
    pub(crate) history: Mutex<History>,
}

impl Default for State {
    fn default() -> State {
        State {
            started: Instant::now(),
            counts: Counts::default(),
            refused: Refused::default(),
            looks: Looks::default(),
            history: Mutex::default(),
        }
    }
}

impl State {
    /// The decisions of the last minutes.
    pub(crate) fn with_history<T>(&self, look: impl FnOnce(&mut History) -> T) -> T {
        look(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts since the start.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: Count,
    pub(crate) accepted: Count,
    /// Closed to make room for others, because they were idle longest.
    pub(crate) closed_idle: Count,
    /// Closed, because they did not read their answers.
    pub(crate) too_slow: Count,
    /// Closed, because they spoke HTTP or TLS to the port of lines or RESP.
    pub(crate) other_protocol: Count,
    /// Ordinary lines.
    pub(crate) lines: Count,
    /// Lines of the longer form.
    pub(crate) queries: Count,
    /// Lines of either form that were too long.
    pub(crate) long_lines: Count,
    pub(crate) resp_commands: Count,
    /// Commands with a rule that was one too many.
    pub(crate) resp_rules_refused: Count,
    pub(crate) http_requests: Count,
    /// What Smockron's gatekeepers told, and were told.
    pub(crate) smockron_accepted: Count,
    pub(crate) smockron_delayed: Count,
    pub(crate) smockron_rejected: Count,
    pub(crate) smockron_bad: Count,
    pub(crate) smockron_far_ahead: Count,
    pub(crate) smockron_published: Count,
    pub(crate) smockron_dropped: Count,
    pub(crate) reloads: Count,
    pub(crate) failed_reloads: Count,
}

impl Counts {
    /// All that only grow: name, what it is, count.
    pub(crate) fn all(&self) -> [(&'static str, &'static str, u64); 19] {
        [
            ("connections_accepted", "Connections accepted", self.accepted.get()),
            (
                "connections_closed_idle",
                "Idle connections closed because their listener was full",
                self.closed_idle.get(),
            ),
            (
                "connections_too_slow",
                "Connections closed that did not read answers",
                self.too_slow.get(),
            ),
            (
                "connections_other_protocol",
                "Connections closed that spoke HTTP or TLS to the port of lines or RESP",
                self.other_protocol.get(),
            ),
            ("lines", "Ordinary lines answered", self.lines.get()),
            ("queries", "Lines of the longer form answered", self.queries.get()),
            ("long_lines", "Lines that were too long", self.long_lines.get()),
            ("resp_commands", "RESP commands answered", self.resp_commands.get()),
            (
                "resp_rules_refused",
                "RESP commands refused because their rule was one too many",
                self.resp_rules_refused.get(),
            ),
            ("http_requests", "HTTP requests answered", self.http_requests.get()),
            (
                "smockron_accepted",
                "Requests that gatekeepers let through",
                self.smockron_accepted.get(),
            ),
            ("smockron_delayed", "Requests that gatekeepers delayed", self.smockron_delayed.get()),
            (
                "smockron_rejected",
                "Requests that gatekeepers rejected",
                self.smockron_rejected.get(),
            ),
            ("smockron_bad", "Messages of gatekeepers that made no sense", self.smockron_bad.get()),
            (
                "smockron_far_ahead",
                "Timestamps of gatekeepers too far ahead, taken as the time of arrival",
                self.smockron_far_ahead.get(),
            ),
            ("smockron_published", "Delays told to gatekeepers", self.smockron_published.get()),
            (
                "smockron_dropped",
                "Delays that a gatekeeper missed, because it did not read in time",
                self.smockron_dropped.get(),
            ),
            ("reloads", "Reloads of the configuration", self.reloads.get()),
            ("failed_reloads", "Reloads that failed", self.failed_reloads.get()),
        ]
    }
}

/// A count orders nothing: all its accesses are relaxed.
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
