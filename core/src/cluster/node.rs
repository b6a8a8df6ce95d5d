//! A throttle's part in a cluster: what its engine is told, and the thread that runs it.

use std::sync::OnceLock;

use crate::cluster::Settings;
use crate::cluster::pace::rule_period;
use crate::cluster::payload::{MakePayload, Payload};
use crate::cluster::wire::{Keys, Secrets};
use crate::config::{ClusterConfig, Reports};
use crate::limit::bucket::Scale;
use crate::throttle::Throttle;

#[cfg(not(target_os = "linux"))]
use crate::cluster::no_thread::NodeThread;
#[cfg(target_os = "linux")]
use crate::cluster::udp::NodeThread;

/// A node of a cluster.
pub(crate) struct ClusterNode {
    config: ClusterConfig,
    payload: OnceLock<MakePayload>,
    thread: NodeThread,
}

impl ClusterNode {
    /// The configuration has been checked, and its secret loaded.
    pub(crate) fn new(config: ClusterConfig) -> ClusterNode {
        ClusterNode { config, payload: OnceLock::new(), thread: NodeThread::default() }
    }

    pub(crate) fn fingerprint_key(&self) -> [u64; 2] {
        self.config.keys().fingerprint_key()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.config.settings()
    }

    /// Whether the settings say that busy answers are shared.
    pub(crate) fn shares_busy(&self) -> bool {
        self.config.busy == Some(true)
    }

    /// Sets what the host broadcasts, unless it was set before. Must be called before `start`.
    pub(crate) fn set_payload(&self, make: MakePayload) {
        let _ = self.payload.set(make);
    }

    /// What the host broadcasts, for a new engine.
    pub(crate) fn payload(&self) -> Option<Box<dyn Payload>> {
        self.payload.get().map(|make| make())
    }

    /// How much later than their time checks of a rule may pass, and whether the way to the peers
    /// is added.
    pub(crate) fn tolerance(&self, scale: &Scale) -> (u64, bool) {
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match (self.config.tolerance, self.config.reports) {
            (Some(tolerance), _) => (ns(tolerance), false),
            (None, Reports::Periodic) => (0, false),
            (None, Reports::Eager) => (rule_period(scale.fill_ns(), ns(self.config.period)), true),
        }
    }

    pub(crate) fn is_paced(&self) -> bool {
        self.config.pacing
    }

    /// Learns whose node it is.
    pub(crate) fn attach(&self, throttle: &Throttle) {
        self.thread.prepare(&self.config, throttle);
    }

    /// Sees to it that the exchange runs in this process, or waits for its turn.
    #[inline]
    pub(crate) fn start(&self) {
        self.thread.start(&self.payload);
    }

    /// Leaves the exchange to other processes.
    pub(crate) fn disable(&self) {
        self.thread.disable();
    }

    /// Says goodbye.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

impl ClusterConfig {
    fn keys(&self) -> Keys {
        let cluster = &self.name;
        let packet_keys: Vec<Vec<u8>> = self.packet_key_bytes().map(Into::into).collect();
        Keys::new(&match self.secret_bytes() {
            Some(secret) => Secrets::Shared { cluster, secret, packet_keys: &packet_keys },
            None => Secrets::Open { cluster },
        })
    }

    /// What an engine is told.
    pub(crate) fn settings(&self) -> Settings {
        let listen = self.listen_address();
        let mut address = self.advertise.unwrap_or(listen);
        if address.port() == 0 {
            address.set_port(listen.port());
        }
        Settings {
            multicast: self.multicast.is_some(),
            period: self.period,
            periodic: self.reports == Reports::Periodic,
            retention: self.retention,
            retention_bytes: self.retention_bytes,
            ..Settings::new(self.keys(), address)
        }
    }
}
