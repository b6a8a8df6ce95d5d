//! The node that a throttle is in a cluster: its configuration, and the thread that runs its
//! engine.

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

/// The cluster node of a throttle.
pub(crate) struct ClusterNode {
    config: ClusterConfig,
    payload: OnceLock<MakePayload>,
    thread: NodeThread,
}

impl ClusterNode {
    /// Creates the node. The configuration must have been checked, and its secret loaded.
    pub(crate) fn new(config: ClusterConfig) -> ClusterNode {
        ClusterNode { config, payload: OnceLock::new(), thread: NodeThread::default() }
    }

    pub(crate) fn fingerprint_key(&self) -> [u64; 2] {
        self.config.keys().fingerprint_key()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.config.settings()
    }

    /// Returns true if the configuration says that busy responses are shared.
    pub(crate) fn shares_busy(&self) -> bool {
        self.config.busy == Some(true)
    }

    /// Sets the function that makes payload sources, unless it is already set. Must be called
    /// before `start`.
    pub(crate) fn set_payload(&self, make: MakePayload) {
        let _ = self.payload.set(make);
    }

    /// Makes the payload source of a new engine. `None` if the host broadcasts no payloads.
    pub(crate) fn payload(&self) -> Option<Box<dyn Payload>> {
        self.payload.get().map(|make| make())
    }

    /// Returns how far beyond its limit a check of a rule may go, in nanoseconds, and whether the
    /// delay to the peers is added to that.
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

    /// Connects the node to the throttle whose table it exchanges.
    pub(crate) fn attach(&self, throttle: &Throttle) {
        self.thread.prepare(&self.config, throttle);
    }

    /// Starts the exchange in this process, unless it has started. If another process of the table
    /// runs it, the thread waits until that process ends.
    #[inline]
    pub(crate) fn start(&self) {
        self.thread.start(&self.payload);
    }

    /// Ends the exchange in this process and prevents it from starting again.
    pub(crate) fn disable(&self) {
        self.thread.disable();
    }

    /// Tells the peers that this node leaves, and ends the thread.
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

    /// Returns the settings of an engine with this configuration.
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
