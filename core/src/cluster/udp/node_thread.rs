//! Connects a throttle to its thread: starts it in the process that needs it, and again after a
//! fork.

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

#[derive(Default)]
pub(crate) struct NodeThread {
    factory: OnceLock<EngineFactory>,
    /// The fork generation of the process in which the thread was started, plus one; zero if it was
    /// not.
    started: AtomicU32,
    /// The fork generation of the process in which the thread is disabled, plus one; zero if it is
    /// not.
    disabled: AtomicU32,
    background: Mutex<Option<Background>>,
}

/// Makes engines and their driver configuration.
#[derive(Clone)]
struct EngineFactory {
    config: Arc<ClusterConfig>,
    exchange: Exchange,
}

impl NodeThread {
    /// Prepares the thread. With a manual clock, no thread is started, and the host program runs
    /// the engine.
    pub(crate) fn prepare(&self, config: &ClusterConfig, throttle: &Throttle) {
        let host = &throttle.0.host;
        // A forked child must be able to detect the fork. If this fails, threads are only not
        // started again after a fork.
        let _ = fork::watch();
        if matches!(host.clock.clock(), Clock::System) {
            let config = Arc::new(config.clone());
            let _ = self.factory.set(EngineFactory { config, exchange: throttle.exchange() });
        }
    }

    /// Starts the thread in this process, unless it was started before.
    #[inline]
    pub(crate) fn start(&self, payload: &OnceLock<MakePayload>) {
        let generation = fork::generation().wrapping_add(1);
        // Relaxed: the caller that changes the value starts the thread, and no other caller waits
        // for it.
        let before = self.started.load(Ordering::Relaxed);
        if before != generation {
            self.start_thread(before, generation, payload.get());
        }
    }

    #[cold]
    fn start_thread(&self, before: u32, generation: u32, payload: Option<&MakePayload>) {
        let claim =
            self.started.compare_exchange(before, generation, Ordering::Relaxed, Ordering::Relaxed);
        let (Some(factory), Ok(_)) = (self.factory.get(), claim) else { return };
        // A failure is not retried, because the next checks would fail in the same way.
        let Ok(background) = factory.clone().start(payload.cloned()) else {
            return factory.exchange.add_to_counter(Counter::StartErrors.index(), 1);
        };
        match self.background.try_lock() {
            // Dropping the parent's handle does nothing in a child.
            Ok(mut current) => *current = Some(background),
            // The mutex is held by a thread of the parent, which does not exist in this process, or
            // by a caller of `disable`, which finds no thread yet. This handle cannot be stored, so
            // it is never stopped later.
            Err(_) => {
                if self.is_disabled(generation) {
                    background.request_stop();
                }
                mem::forget(background);
            }
        }
        // A concurrent call of `disable` may have found no handle.
        if self.is_disabled(generation) {
            self.request_stop_if_started();
        }
    }

    fn is_disabled(&self, generation: u32) -> bool {
        // Pairs with the fence in `disable`: either that call finds the handle, or this one sees
        // `disabled`.
        fence(Ordering::SeqCst);
        self.disabled.load(Ordering::Relaxed) == generation
    }

    fn request_stop_if_started(&self) {
        if let Ok(current) = self.background.try_lock() {
            current.as_ref().map(Background::request_stop);
        }
    }

    /// Stops the thread, and prevents it from being started in this process.
    pub(crate) fn disable(&self) {
        let generation = fork::generation().wrapping_add(1);
        // Counts as started, so that it is not started later.
        self.started.store(generation, Ordering::Relaxed);
        self.disabled.store(generation, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.request_stop_if_started();
    }

    /// Tells the peers that this node leaves, and ends the thread.
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
            Ok((engine, self.driver_config()))
        };
        Background::start(hooks, try_lock, make)
    }

    fn engine(&self) -> Engine {
        let exchange = self.exchange.clone();
        let [seed, bits] = random::key();
        // Greater than that of any earlier engine, even if the clock was set back.
        let incarnation = clock::unix_ms() << 20 | bits & 0xf_ffff;
        let incarnation = incarnation.max(exchange.exchanger().0.saturating_add(1));
        let pid = u64::from(process::id());
        if !exchange.is_shared() && exchange.exchanger().1 != pid {
            // A copy of a private table in a forked child is another node.
            exchange.renew_node_id(seed);
        }
        exchange.set_exchanger(incarnation, pid);
        let now = exchange.now();
        Engine::new(self.config.settings(), exchange, seed, incarnation, now)
    }

    fn driver_config(&self) -> DriverConfig {
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
