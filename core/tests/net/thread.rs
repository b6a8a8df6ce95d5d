//! The thread of the exchange: it waits for the lock, survives errors and panics, and ends when
//! requested.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use dthrottle::internals::udp::{Background, DriverConfig};

use crate::test_engine::{Environment, Shared, TestEngine, free_lock, read, to_one, until};
use crate::test_node::TestNode;

fn setup() -> DriverConfig {
    DriverConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        advertise: None,
        is_local: false,
        group: None,
        peers: Vec::new(),
    }
}

/// A lock like the kernel's, which is released on drop.
#[derive(Clone, Default)]
struct Lock(Arc<AtomicBool>);

struct TestLockGuard(Lock);

impl Lock {
    fn take(&self) -> Option<TestLockGuard> {
        (!self.0.swap(true, Ordering::SeqCst)).then(|| TestLockGuard(self.clone()))
    }
}

impl Drop for TestLockGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::SeqCst);
    }
}

/// Starts a thread that exchanges while it holds the lock.
fn with_lock(lock: &Lock) -> (Arc<Shared>, Environment, Background) {
    let (shared, environment, lock) =
        (Arc::<Shared>::default(), Environment::default(), lock.clone());
    let engines = shared.clone();
    let make = move || Ok((TestEngine::new(&engines), setup()));
    let background = Background::start(environment.hooks(), move || Ok(lock.take()), make).unwrap();
    (shared, environment, background)
}

#[test]
fn stop_sends_the_last_datagrams_and_closes_the_sockets() {
    let (mut node, peer) = (TestNode::start("127.0.0.1:0"), TestNode::start("127.0.0.1:0"));
    let address = node.address();
    node.shared.last_datagrams.lock().unwrap().push(to_one(peer.address(), *b"goodbye"));
    node.background.stop();
    assert_eq!(peer.receives(b"goodbye"), address);
    until("end", || node.environment.fds.lock().unwrap().is_empty().then_some(()));
    assert_eq!(node.shared.engines_started.load(Ordering::Relaxed), 1);
    node.background.stop();
}

#[test]
fn one_of_two_threads_runs_the_exchange_and_the_other_takes_over() {
    let lock = Lock::default();
    let (first, _, mut background) = with_lock(&lock);
    until("first", || (first.engines_started.load(Ordering::Relaxed) == 1).then_some(()));
    let (second, environment, _background) = with_lock(&lock);
    assert!(lock.take().is_none());
    assert!(environment.bound.lock().unwrap().is_empty());
    assert_eq!(second.engines_started.load(Ordering::Relaxed), 0);
    background.stop();
    until("takeover", || (second.engines_started.load(Ordering::Relaxed) == 1).then_some(()));
}

#[test]
fn a_thread_that_waits_for_the_lock_ends_when_it_is_dropped() {
    let lock = Lock::default();
    let held = lock.take();
    let (shared, _, background) = with_lock(&lock);
    drop(background);
    // The thread held the other reference.
    until("end", || (Arc::strong_count(&shared) == 1).then_some(()));
    assert_eq!(shared.engines_started.load(Ordering::Relaxed), 0);
    drop(held);
    assert!(lock.take().is_some());
}

#[test]
fn stop_wakes_a_sleeping_thread() {
    // The thread could sleep for a second. One success in twenty attempts suffices on a busy host.
    let ends = (0..20).any(|_| {
        let mut node = TestNode::start("127.0.0.1:0");
        node.shared.never_wakes.store(true, Ordering::Relaxed);
        node.address();
        sleep(Duration::from_millis(20));
        node.background.stop();
        node.environment.fds.lock().unwrap().is_empty()
    });
    assert!(ends);
}

#[test]
fn the_thread_has_a_name_and_blocks_signals() {
    let node = TestNode::start("127.0.0.1:0");
    node.address();
    let status = node.shared.status.lock().unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.strip_prefix(':')).unwrap().trim()
    };
    assert_eq!(field("Name"), "dthrottle");
    let blocked = u64::from_str_radix(field("SigBlk"), 16).unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD, libc::SIGALRM] {
        assert_ne!(blocked & 1 << (signal - 1), 0, "{signal}");
    }
}

#[test]
fn stop_returns_even_if_the_engine_is_blocked() {
    let mut node = TestNode::start("127.0.0.1:0");
    node.address();
    let shared = node.shared.clone();
    let stop_engine = shared.stop_engine.lock().unwrap();
    let before = shared.timeouts.load(Ordering::Relaxed);
    until("a blocked engine", || (shared.timeouts.load(Ordering::Relaxed) > before).then_some(()));
    // If it does not return, this test hangs.
    node.background.stop();
    drop(stop_engine);
    until("end", || node.environment.fds.lock().unwrap().is_empty().then_some(()));
}

#[test]
fn an_engine_that_panics_is_replaced() {
    let lock = Lock::default();
    let (shared, environment, _background) = with_lock(&lock);
    let peer = TestNode::start("127.0.0.1:0");
    for starts in 1..4 {
        let address = until("socket", || {
            let bound = environment.bound.lock().unwrap();
            (bound.len() == starts).then(|| bound[starts - 1])
        });
        peer.send(to_one(address, *b"panic"));
        until("panic", || (read(&environment.counters.panics) == starts as u64).then_some(()));
    }
    until("socket", || (environment.bound.lock().unwrap().len() == 4).then_some(()));
    assert_eq!(shared.engines_started.load(Ordering::Relaxed), 4);
    assert_eq!(environment.fds.lock().unwrap().len(), 1);
}

#[test]
fn failures_at_the_start_are_retried() {
    let (shared, environment) = (Arc::<Shared>::default(), Environment::default());
    let (engines, tries) = (shared.clone(), AtomicU64::new(0));
    let try_lock = {
        let mut tries = 0;
        move || {
            tries += 1;
            match tries {
                1 => Err(io::Error::other("no lock")),
                2 => panic!("intended panic"),
                _ => free_lock(),
            }
        }
    };
    let make = move || match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Err(io::Error::other("no engine")),
        1 => panic!("intended panic"),
        _ => Ok((TestEngine::new(&engines), setup())),
    };
    let _background = Background::start(environment.hooks(), try_lock, make).unwrap();
    until("socket", || environment.bound.lock().unwrap().last().copied());
    let counters = &environment.counters;
    assert_eq!(read(&counters.lock_errors), 1);
    assert_eq!(read(&counters.start_errors), 1);
    assert_eq!(read(&counters.panics), 2);
}

#[test]
fn a_background_can_be_dropped_by_its_own_thread() {
    let slot: Arc<Mutex<Option<Background>>> = Arc::default();
    let (environment, dropped) = (Environment::default(), Arc::new(AtomicBool::new(false)));
    let (own, done) = (slot.clone(), dropped.clone());
    let try_lock = move || {
        match own.try_lock() {
            Ok(mut slot) => done.store(slot.take().is_some(), Ordering::SeqCst),
            Err(TryLockError::WouldBlock) => {}
            Err(error) => panic!("{error}"),
        }
        Ok(None::<()>)
    };
    let make = || Err::<(TestEngine, DriverConfig), _>(io::Error::other("never"));
    *slot.lock().unwrap() = Some(Background::start(environment.hooks(), try_lock, make).unwrap());
    until("drop", || dropped.load(Ordering::SeqCst).then_some(()));
    // Everything that the thread held is dropped with it.
    until("end", || (Arc::strong_count(&dropped) == 1).then_some(()));
    assert_eq!(read(&environment.counters.panics), 0);
}
