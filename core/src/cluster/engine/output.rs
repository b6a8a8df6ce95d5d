//! What an engine asks its driver to do.

use std::sync::Arc;

use crate::cluster::{Event, PeerAddr};

/// What is to be done next.
#[derive(Debug)]
pub enum Output {
    /// Send this datagram.
    Transmit(Transmit),
    /// Something happened that people may want to know.
    Event(Event),
    /// Call `handle_timeout` at this time, unless a datagram arrives first.
    Timeout(u64),
}

/// A datagram to send.
#[derive(Debug)]
pub struct Transmit {
    /// Its destination.
    pub to: To,
    /// At most `MAX_DATAGRAM` bytes.
    pub bytes: Vec<u8>,
}

/// Where a datagram goes.
#[derive(Clone, Debug)]
pub enum To {
    /// To one address.
    One(PeerAddr),
    /// To each of these addresses.
    Each(Arc<[PeerAddr]>),
    /// To the multicast group.
    Group,
}
