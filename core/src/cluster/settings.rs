//! The settings of an engine.

use std::time::Duration;

use super::PeerAddr;
use super::wire::Keys;

/// The settings of an engine.
pub struct Settings {
    /// How datagrams are sealed.
    pub keys: Keys,
    /// Where peers reach this node.
    pub address: PeerAddr,
    /// Reports go to a group that all hear.
    pub multicast: bool,
    /// How often a rule is reported at most, if nothing is urgent.
    pub period: Duration,
    /// Every rule is reported exactly once a period, and never earlier.
    pub periodic: bool,
    /// How long reports may be repaired.
    pub retention: Duration,
    /// How many bytes of reports are kept for that.
    pub retention_bytes: usize,
    /// Which mechanisms are on. All are by default.
    pub mechanisms: Mechanisms,
}

impl Settings {
    /// The default settings.
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

/// The mechanisms that keep the exchange correct. The simulator turns them off one by one to show
/// that its tests notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// Request missing reports.
    pub repair: bool,
    /// Apply every report once.
    pub dedupe: bool,
    /// Report tags at once that are close to their limit.
    pub eager: bool,
    /// Do not charge late reports to clients that are within their limit.
    pub forgive_late_hits: bool,
}

impl Default for Mechanisms {
    fn default() -> Mechanisms {
        Mechanisms { repair: true, dedupe: true, eager: true, forgive_late_hits: true }
    }
}
