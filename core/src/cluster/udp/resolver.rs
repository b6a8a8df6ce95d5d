//! The addresses of peers: fixed addresses, and names that are resolved periodically.
//!
//! Resolving may take long, so a thread does it, which ends when it has finished. There is at most
//! one such thread.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::hooks::{ErrorCounters, count};

const SECOND: u64 = 1_000_000_000;
/// How often names are resolved.
const PERIOD: u64 = 30 * SECOND;
/// How soon names are resolved again after a failure. Doubles up to `PERIOD`.
const RETRY: u64 = SECOND;

/// The addresses of a name.
type LookupResult = io::Result<Vec<SocketAddr>>;

/// Resolves the addresses of peers.
pub(crate) struct Resolver {
    /// Peers that were given as addresses.
    fixed: Vec<SocketAddr>,
    /// Names, each with the addresses of the last successful lookup.
    names: Vec<(String, Vec<SocketAddr>)>,
    resolve: fn(&str) -> LookupResult,
    pending: Option<oneshot::Receiver<Vec<LookupResult>>>,
    answers: Option<Vec<LookupResult>>,
    due: u64,
    retry: u64,
}

impl Resolver {
    /// Creates a resolver. Each peer is an address or a name, with a port.
    pub(crate) fn new(peers: &[String]) -> Resolver {
        Resolver::with(peers, |name| Ok(name.to_socket_addrs()?.collect()))
    }

    fn with(peers: &[String], resolve: fn(&str) -> LookupResult) -> Resolver {
        let (mut fixed, mut names) = (Vec::new(), Vec::new());
        for peer in peers {
            match peer.parse() {
                Ok(address) => fixed.push(address),
                Err(_) => names.push((peer.clone(), Vec::new())),
            }
        }
        Resolver { fixed, names, resolve, pending: None, answers: None, due: 0, retry: RETRY }
    }

    /// Returns when `update` has to be called next.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    pub(crate) fn addresses(&self) -> BTreeSet<SocketAddr> {
        let named = self.names.iter().flat_map(|(_, addresses)| addresses);
        self.fixed.iter().chain(named).copied().collect()
    }

    /// Takes the results of a finished lookup, and starts the next one if it is due. Returns true
    /// if the addresses should be greeted again.
    pub(crate) fn update(&mut self, now: u64, counters: &ErrorCounters) -> bool {
        let answered = self.answers.take().or_else(|| {
            let answers = match self.pending.as_mut()?.try_recv() {
                Err(TryRecvError::Empty) => return None,
                answers => answers.ok(),
            };
            Some(self.finish_lookup(answers))
        });
        if let Some(answers) = &answered {
            let failed = answers.iter().filter(|answer| answer.is_err()).count();
            count(&counters.resolve_errors, failed);
            let wait = if failed == 0 { PERIOD } else { self.retry.min(PERIOD) };
            self.retry = if failed == 0 { RETRY } else { wait * 2 };
            self.due = now.saturating_add(wait);
        }
        for ((_, known), answer) in self.names.iter_mut().zip(answered.iter().flatten()) {
            // A temporary failure of name resolution must not split the cluster.
            if let Ok(addresses) = answer {
                known.clone_from(addresses);
            }
        }
        let due = now >= self.due && self.pending.is_none();
        if due {
            self.due = now.saturating_add(PERIOD);
            if !self.names.is_empty() {
                self.pending = self.start_lookup();
                count(&counters.resolve_errors, usize::from(self.pending.is_none()));
            }
        }
        answered.is_some() || due && !self.fixed.is_empty()
    }

    fn start_lookup(&self) -> Option<oneshot::Receiver<Vec<LookupResult>>> {
        let (sender, receiver) = oneshot::channel();
        let names: Vec<String> = self.names.iter().map(|(name, _)| name.clone()).collect();
        let resolve = self.resolve;
        let lookup = move || {
            // The receiver may have been dropped.
            let _ = sender.send(names.iter().map(|name| non_empty(resolve(name))).collect());
        };
        thread::Builder::new().name("dthrottle names".into()).spawn(lookup).ok().map(|_| receiver)
    }

    /// Returns ready when a lookup has finished. Call `update` after that.
    pub(crate) fn poll_lookup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pending) = &mut self.pending else { return Poll::Pending };
        let Poll::Ready(answers) = Pin::new(pending).poll(cx) else { return Poll::Pending };
        self.answers = Some(self.finish_lookup(answers.ok()));
        Poll::Ready(())
    }

    fn finish_lookup(&mut self, answers: Option<Vec<LookupResult>>) -> Vec<LookupResult> {
        self.pending = None;
        let lost = || {
            self.names.iter().map(|_| Err(io::Error::other("the lookup thread panicked"))).collect()
        };
        answers.unwrap_or_else(lost)
    }
}

fn non_empty(answer: LookupResult) -> LookupResult {
    match answer {
        Ok(addresses) if addresses.is_empty() => Err(io::Error::other("the name has no address")),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::Mutex;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn wait_and_update(resolver: &mut Resolver, now: u64, counters: &ErrorCounters) -> bool {
        block_on(poll_fn(|cx| resolver.poll_lookup(cx)));
        resolver.update(now, counters)
    }

    fn texts(resolver: &Resolver) -> Vec<String> {
        resolver.addresses().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn localhost_resolves_to_loopback_addresses() {
        let counters = ErrorCounters::default();
        let mut resolver = Resolver::new(&["localhost:7".into(), "192.0.2.1:9".into()]);
        assert!(resolver.update(1, &counters), "a fixed address needs no lookup");
        assert_eq!(texts(&resolver), ["192.0.2.1:9"]);
        assert!(wait_and_update(&mut resolver, 2, &counters));
        let loopback = |address: &SocketAddr| address.ip().is_loopback() && address.port() == 7;
        assert!(resolver.addresses().iter().any(loopback), "{:?}", texts(&resolver));
        assert_eq!(resolver.due(), 2 + PERIOD);
    }

    #[test]
    fn without_names_no_thread_is_started_and_addresses_are_greeted_each_period() {
        let counters = ErrorCounters::default();
        let mut resolver = Resolver::with(&["[::1]:9".into()], |_| unreachable!());
        assert!(resolver.update(5, &counters));
        assert!(resolver.pending.is_none());
        assert!(!resolver.update(6, &counters));
        assert!(!resolver.update(4 + PERIOD, &counters));
        assert!(resolver.update(5 + PERIOD, &counters));
        assert_eq!(texts(&resolver), ["[::1]:9"]);
    }

    /// The result of the lookup in the test below.
    static ANSWER: Mutex<Option<u16>> = Mutex::new(None);

    fn moving_name(name: &str) -> LookupResult {
        match *ANSWER.lock().unwrap() {
            Some(0) => Ok(Vec::new()),
            Some(port) if name == "moves:1" => Ok(vec![([192, 0, 2, 1], port).into()]),
            _ => Err(io::Error::other("temporary failure")),
        }
    }

    #[test]
    fn a_name_keeps_its_addresses_after_a_failed_lookup_and_is_soon_resolved_again() {
        let counters = ErrorCounters::default();
        let mut resolver = Resolver::with(&["moves:1".into()], moving_name);
        let errors = || counters.resolve_errors.get();
        let mut now = 1;
        for (answer, addresses, wait, failed) in [
            (None, vec![], 1, 1),
            (None, vec![], 2, 2),
            (Some(0), vec![], 4, 3),
            (Some(7), vec!["192.0.2.1:7"], 30, 3),
            (None, vec!["192.0.2.1:7"], 1, 4),
            (Some(8), vec!["192.0.2.1:8"], 30, 4),
        ] {
            *ANSWER.lock().unwrap() = answer;
            assert!(!resolver.update(now, &counters));
            assert!(resolver.pending.is_some());
            assert!(wait_and_update(&mut resolver, now, &counters));
            assert_eq!(
                (texts(&resolver), errors()),
                (addresses.iter().map(ToString::to_string).collect(), failed)
            );
            assert_eq!(resolver.due(), now + wait * SECOND);
            assert!(!resolver.update(resolver.due() - 1, &counters) && resolver.pending.is_none());
            now = resolver.due();
        }
    }

    #[test]
    fn only_one_lookup_thread_runs_at_a_time() {
        static STARTED: Mutex<u32> = Mutex::new(0);
        static GO: Mutex<()> = Mutex::new(());
        let counters = ErrorCounters::default();
        let mut resolver = Resolver::with(&["slow:1".into()], |_| {
            *STARTED.lock().unwrap() += 1;
            drop(GO.lock().unwrap());
            Err(io::Error::other("late"))
        });
        let go = GO.lock().unwrap();
        for period in 1..5 {
            assert!(!resolver.update(period * PERIOD, &counters));
        }
        drop(go);
        assert!(wait_and_update(&mut resolver, 5 * PERIOD, &counters));
        assert_eq!(*STARTED.lock().unwrap(), 1);
    }
}
