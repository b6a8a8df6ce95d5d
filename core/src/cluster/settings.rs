//! The settings of an engine.

use std::time::Duration;

use super::PeerAddr;
use super::wire::Keys;

/// The settings of an engine.
pub struct Settings {
    /// The keys that datagrams are sealed with.
    pub keys: Keys,
    /// The address at which peers reach this node.
    pub address: PeerAddr,
    /// Whether reports are sent to a multicast group instead of to each peer.
    pub multicast: bool,
    /// The longest time between two reports of a rule. Urgent entries are reported earlier.
    pub period: Duration,
    /// Whether every rule is reported exactly once per period and never earlier.
    pub periodic: bool,
    /// How long sent and received reports are stored, so that peers can request them again.
    pub retention: Duration,
    /// The maximum number of bytes of reports that are stored for repair.
    pub retention_bytes: usize,
    /// Which mechanisms are on. By default, all are.
    pub mechanisms: Mechanisms,
}

impl Settings {
    /// Default settings, with these keys and this address.
    pub fn new(keys: Keys, address: impl Into<PeerAddr>) -> Settings {
        Settings {
            keys,
            address: address.into(),
            multicast: false,
            period: Duration::from_millis(100),
            periodic: false,
            retention: Duration::from_secs(15),
            retention_bytes: 16 << 20,
            mechanisms: Mechanisms::default(),
        }
    }
}

/// The mechanisms that keep the exchange correct. The simulator turns them off one by one and
/// checks that its tests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// Request missing reports.
    pub repair: bool,
    /// Apply every report once.
    pub dedupe: bool,
    /// Report a tag immediately when it is close to its limit.
    pub eager: bool,
    /// Do not charge late reports to clients that are within their limit.
    pub forgive_late_hits: bool,
}

impl Default for Mechanisms {
    fn default() -> Mechanisms {
        Mechanisms { repair: true, dedupe: true, eager: true, forgive_late_hits: true }
    }
}
