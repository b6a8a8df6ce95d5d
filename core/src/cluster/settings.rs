//! What an engine is told when it is made.

use std::net::SocketAddr;
use std::time::Duration;

use super::wire::Keys;

/// The settings of an engine.
pub struct Settings {
    /// How datagrams are sealed.
    pub keys: Keys,
    /// Where peers reach this node.
    pub address: SocketAddr,
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
    /// Busy answers are exchanged, also if no other process of the table wishes it.
    pub busy: bool,
    /// What can be left out.
    pub controls: Controls,
}

impl Settings {
    /// The usual ones.
    pub fn new(keys: Keys, address: SocketAddr) -> Settings {
        Settings {
            keys,
            address,
            multicast: false,
            period: Duration::from_millis(100),
            periodic: false,
            retention: Duration::from_secs(15),
            retention_bytes: 16 << 20,
            busy: false,
            controls: Controls::default(),
        }
    }
}

/// What the exchange needs to be right. The simulator leaves out one or the other, to show that it
/// would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controls {
    /// Asking for what is missing.
    pub repair: bool,
    /// Applying every report once.
    pub dedupe: bool,
    /// Reporting at once what is urgent.
    pub eager: bool,
    /// Sparing innocent clients what is late.
    pub late_rule: bool,
}

impl Default for Controls {
    fn default() -> Controls {
        Controls { repair: true, dedupe: true, eager: true, late_rule: true }
    }
}
