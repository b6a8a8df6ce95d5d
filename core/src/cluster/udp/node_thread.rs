//! From a throttle to its thread: started in the process that needs it, and again after a fork.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};

use super::background::Background;
use super::driver::DriverConfig;
use super::hooks::Hooks;
use super::multicast::MulticastGroup;
use crate::clock::Clock;
use crate::cluster::access::Exchange;
use crate::cluster::payload::MakePayload;
use crate::cluster::{Counter, Engine};
use crate::config::ClusterConfig;
use crate::os::{clock, fork, random};
use crate::throttle::Throttle;

/// The thread of a node.
#[derive(Default)]
pub(crate) struct NodeThread {
    factory: OnceLock<EngineFactory>,
    /// The generation of the process in which it was started, and one; zero: it was not.
    started: AtomicU32,
    /// The same of the process in which it shall have ended.
    disabled: AtomicU32,
    background: Mutex<Option<Background>>,
}

/// All that the thread needs.
#[derive(Clone)]
struct EngineFactory {
    config: Arc<ClusterConfig>,
    exchange: Exchange,
}

impl NodeThread {
    /// Learns what to run. With a clock that is moved by hand the hand runs the engine, too.
    pub(crate) fn prepare(&self, config: &ClusterConfig, throttle: &Throttle) {
        let host = &throttle.0.host;
        // Before anything is started: a child must know that it is one. Where that fails, threads
        // are not started again after a fork, and nothing worse.
        let _ = fork::watch();
        if matches!(host.clock.clock(), Clock::System) {
            let config = Arc::new(config.clone());
            let _ = self.factory.set(EngineFactory { config, exchange: throttle.exchange() });
        }
    }

    /// Starts the thread in this process, once.
    #[inline]
    pub(crate) fn start(&self, payload: &OnceLock<MakePayload>) {
        let here = fork::generation().wrapping_add(1);
        // Relaxed: the one who changes it starts the thread, and nobody else waits for it.
        let before = self.started.load(Ordering::Relaxed);
        if before != here {
            self.start_here(before, here, payload.get());
        }
    }

    #[cold]
    fn start_here(&self, before: u32, here: u32, payload: Option<&MakePayload>) {
        let claim =
            self.started.compare_exchange(before, here, Ordering::Relaxed, Ordering::Relaxed);
        let (Some(factory), Ok(_)) = (self.factory.get(), claim) else { return };
        // Whatever the system does not give cannot be had by asking at every check.
        let Ok(background) = factory.clone().start(payload.cloned()) else {
            return factory.exchange.add_to_counter(Counter::StartErrors.index(), 1);
        };
        match self.background.try_lock() {
            // A parent's is dropped, which does nothing in a child.
            Ok(mut current) => *current = Some(background),
            // Held by a thread that a fork has left behind: nobody can stop it, or has to. Or by one
            // that retires what is not there yet.
            Err(_) => {
                if self.is_disabled(here) {
                    background.request_stop();
                }
                mem::forget(background);
            }
        }
        // Who retired it meanwhile may have found nothing there.
        if self.is_disabled(here) {
            self.request_stop_if_started();
        }
    }

    fn is_disabled(&self, here: u32) -> bool {
        // Pairs with the fence in `retire`: either that finds the thread, or this finds the wish.
        fence(Ordering::SeqCst);
        self.disabled.load(Ordering::Relaxed) == here
    }

    fn request_stop_if_started(&self) {
        if let Ok(current) = self.background.try_lock() {
            current.as_ref().map(Background::request_stop);
        }
    }

    /// The thread shall end, now or before it has started in this process.
    pub(crate) fn disable(&self) {
        let here = fork::generation().wrapping_add(1);
        // As if it had been started.
        self.started.store(here, Ordering::Relaxed);
        self.disabled.store(here, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.request_stop_if_started();
    }

    /// Says goodbye and ends the thread.
    pub(crate) fn stop(&self) {
        let background = self.background.try_lock().ok().and_then(|mut current| current.take());
        drop(background);
    }
}

impl EngineFactory {
    fn start(self, payload: Option<MakePayload>) -> std::io::Result<Background> {
        let exchange = self.exchange.clone();
        let hooks = Hooks::of_table(exchange.clone());
        let mut waiting = payload.as_ref().map(|make| make());
        let try_lock = move || {
            if let Some(payload) = &mut waiting {
                payload.standby();
            }
            exchange.try_lock()
        };
        let make = move || {
            let mut engine = self.engine();
            if let Some(make) = &payload {
                engine.set_payload(make());
            }
            Ok((engine, self.setup()))
        };
        Background::start(hooks, try_lock, make)
    }

    fn engine(&self) -> Engine {
        let exchange = self.exchange.clone();
        let [seed, bits] = random::key();
        // Greater than that of any earlier life, whatever the clock says.
        let incarnation = clock::unix_ms() << 20 | bits & 0xf_ffff;
        let incarnation = incarnation.max(exchange.exchanger().0.saturating_add(1));
        let pid = u64::from(process::id());
        if !exchange.is_shared() && exchange.exchanger().1 != pid {
            // A copy of a table is another node.
            exchange.renew_node_id(seed);
        }
        exchange.set_exchanger(incarnation, pid);
        let now = exchange.now();
        Engine::new(self.config.settings(), exchange, seed, incarnation, now)
    }

    fn setup(&self) -> DriverConfig {
        let config = &self.config;
        DriverConfig {
            listen: config.listen_address(),
            advertise: config.advertise,
            is_local: config.is_loopback_only(),
            group: config.multicast.map(|address| MulticastGroup {
                address,
                interface: config.interface.clone(),
                ttl: config.ttl(),
            }),
            peers: config.peers.iter().map(ToString::to_string).collect(),
        }
    }
}
