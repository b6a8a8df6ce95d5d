//! An engine that sends what the test gives it and records what it receives.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dthrottle::internals::cluster::{Output, To, Transmit};
use dthrottle::internals::udp::{ErrorCounter, ErrorCounters, Hooks, UdpEngine};

/// The state that the test and the engine share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) to_send: Mutex<VecDeque<Transmit>>,
    pub(crate) received: Mutex<Vec<(SocketAddr, Vec<u8>)>>,
    pub(crate) joined: Mutex<Vec<Vec<SocketAddr>>>,
    /// Sent when the engine leaves.
    pub(crate) last_datagrams: Mutex<Vec<Transmit>>,
    /// Number of engines that were created.
    pub(crate) engines_started: AtomicU64,
    /// `/proc/thread-self/status` of the thread.
    pub(crate) status: Mutex<String>,
    /// If true, the engine never requests a timeout.
    pub(crate) never_wakes: AtomicBool,
    /// Number of polls before each received datagram.
    pub(crate) polls: Mutex<Vec<u64>>,
    /// Number of timeouts that were begun.
    pub(crate) timeouts: AtomicU64,
    /// The engine blocks in its next timeout while the test holds this lock.
    pub(crate) stop_engine: Mutex<()>,
}

pub(crate) struct TestEngine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) now: u64,
    pub(crate) polls: u64,
}

impl TestEngine {
    pub(crate) fn new(shared: &Arc<Shared>) -> TestEngine {
        shared.engines_started.fetch_add(1, Ordering::Relaxed);
        TestEngine { shared: shared.clone(), now: 0, polls: 0 }
    }
}

impl UdpEngine for TestEngine {
    fn handle_datagram(&mut self, now: u64, from: SocketAddr, datagram: &mut [u8]) {
        self.now = now;
        assert_ne!(datagram, b"panic", "intended panic");
        self.shared.polls.lock().unwrap().push(self.polls);
        self.shared.received.lock().unwrap().push((from, datagram.to_vec()));
    }

    fn handle_timeout(&mut self, now: u64) {
        self.now = now;
        self.shared.timeouts.fetch_add(1, Ordering::SeqCst);
        drop(self.shared.stop_engine.lock().unwrap());
    }

    fn join(&mut self, _: u64, peers: &[SocketAddr]) {
        self.shared.joined.lock().unwrap().push(peers.to_vec());
    }

    fn leave(&mut self, _: u64) {
        self.shared
            .to_send
            .lock()
            .unwrap()
            .extend(self.shared.last_datagrams.lock().unwrap().drain(..));
    }

    fn poll(&mut self) -> Output {
        self.polls += 1;
        match self.shared.to_send.lock().unwrap().pop_front() {
            Some(transmit) => Output::Transmit(transmit),
            None if self.shared.never_wakes.load(Ordering::Relaxed) => Output::Timeout(u64::MAX),
            None => Output::Timeout(self.now + 5_000_000),
        }
    }
}

/// Hooks with a clock and a list of the open descriptors.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    pub(crate) fds: Arc<Mutex<Vec<i32>>>,
    pub(crate) bound: Arc<Mutex<Vec<SocketAddr>>>,
    pub(crate) counters: Arc<ErrorCounters>,
}

impl Environment {
    pub(crate) fn hooks(&self) -> Hooks {
        let (start, fds, closed) = (Instant::now(), self.fds.clone(), self.fds.clone());
        let bound = self.bound.clone();
        Hooks {
            now: Arc::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap()),
            generation: Arc::new(|| u64::from(std::process::id())),
            register_fd: Arc::new(move |fd| fds.lock().unwrap().push(fd)),
            unregister_fd: Arc::new(move |fd| {
                let mut open = closed.lock().unwrap();
                let at =
                    open.iter().position(|one| *one == fd).expect("the descriptor is registered");
                open.remove(at);
            }),
            bound: Arc::new(move |address| bound.lock().unwrap().push(address)),
            counters: self.counters.clone(),
        }
    }
}

pub(crate) fn to_one(to: SocketAddr, bytes: impl Into<Vec<u8>>) -> Transmit {
    Transmit { to: To::One(to.into()), bytes: bytes.into() }
}

/// Waits until `there` returns a value, with a long timeout, because the duration does not matter.
pub(crate) fn until<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < end, "timeout waiting for {what}");
        sleep(Duration::from_millis(2));
    }
}

pub(crate) fn read(counter: &ErrorCounter) -> u64 {
    counter.get()
}

/// A lock that is always free.
#[allow(clippy::unnecessary_wraps, reason = "same signature as a real lock")]
pub(crate) fn free_lock() -> io::Result<Option<()>> {
    Ok(Some(()))
}
