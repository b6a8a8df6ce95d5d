//! The limit of open files. Every connection is a file descriptor, so the limits of connections
//! must fit it. Otherwise, new connections would wait in the backlog and no idle one would be
//! closed.

use std::env;
use std::num::NonZero;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::config::Settings;

/// The maximum number of connections of HTTP, unless the limit of open files is low.
const HTTP: usize = 256;
/// The maximum number of connections to each of the two Smockron sockets, unless the limit of open
/// files is low.
const SMOCKRON: usize = 1000;
/// Descriptors of the daemon itself: standard streams, listeners, table, cluster, files that it
/// reads.
const OWN: usize = 32;
/// Descriptors of a thread with a runtime.
const RUNTIME: usize = 4;
/// The fewest connections of a listener.
const LEAST: usize = 8;

/// The maximum number of connections that are open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For each listener of lines and RESP.
    pub(crate) listener: usize,
    pub(crate) http: usize,
    /// For each of the two sockets of Smockron.
    pub(crate) smockron: usize,
}

impl Limits {
    /// Raises the limit of open files as far as the system allows, and derives the limits of
    /// connections from it.
    pub(crate) fn of_process(settings: &Settings) -> Result<Limits, String> {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, ..limit };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            warn!(%error, "the limit of open files could not be raised");
        }
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limits = Limits::fit(settings, usize::try_from(files).unwrap_or(usize::MAX))?;
        if limits.listener < settings.max_connections {
            warn!(
                "max_connections is {} instead of {}: the limit of open files is {files} \
                 (LimitNOFILE, ulimit -n)",
                limits.listener, settings.max_connections
            );
        }
        Ok(limits)
    }

    fn fit(settings: &Settings, files: usize) -> Result<Limits, String> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = settings.workers.unwrap_or(cores) + 1;
        let handed_over = env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok());
        let listeners = settings.listen.len().max(1)
            + usize::from(settings.resp.is_some())
            + handed_over.unwrap_or(0);
        let own = OWN + RUNTIME * threads + listeners;
        let smockron_listeners = if settings.smockron.is_some() { 2 } else { 0 };
        let shares = listeners + 1 + smockron_listeners;
        let least = own + LEAST * shares;
        if files < least {
            return Err(format!(
                "the limit of open files must be at least {least}, got {files}: raise it with \
                 LimitNOFILE or ulimit -n, or set fewer daemon.workers"
            ));
        }
        let room = files - own;
        let share = room / shares;
        let http = HTTP.min(share);
        let smockron = SMOCKRON.min(share);
        let rest = room - http - smockron_listeners * smockron;
        Ok(Limits { listener: settings.max_connections.min(rest / listeners), http, smockron })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_the_limit_of_open_files() {
        let text = "[daemon]\nlisten = ['/x', '127.0.0.1:1']\nresp = '127.0.0.1:2'\nworkers = 1";
        let settings = Settings::from_toml(text).unwrap().1;
        let own = OWN + 2 * RUNTIME + 3;
        let fit = |files| Limits::fit(&settings, files);
        let limits = |listener, http, smockron| Ok(Limits { listener, http, smockron });
        assert_eq!(fit(1 << 20), limits(10_000, 256, 1000));
        assert_eq!(fit(own + 256 + 3 * 5000), limits(5000, 256, 1000));
        assert_eq!(fit(own + 400), limits(100, 100, 100));
        assert_eq!(fit(own + 32), limits(8, 8, 8));
        let message = fit(own + 31).unwrap_err();
        assert!(
            message.starts_with("the limit of open files must be at least 75, got 74: "),
            "{message}"
        );
        let text = format!("{text}\nsmockron = '127.0.0.1:3'");
        let settings = Settings::from_toml(&text).unwrap().1;
        let fit = |files| Limits::fit(&settings, files);
        assert_eq!(fit(1 << 20), limits(10_000, 256, 1000));
        assert_eq!(fit(own + 256 + 2000 + 3 * 5000), limits(5000, 256, 1000));
        assert_eq!(fit(own + 600), limits(100, 100, 100));
        assert!(fit(own + 47).is_err());
    }
}
