//! Outputs of an engine, which its driver handles.

use std::sync::Arc;

use crate::cluster::{Event, PeerAddr};

/// An output of `Engine::poll`.
#[derive(Debug)]
pub enum Output {
    /// Send this datagram.
    Transmit(Transmit),
    /// The state of the cluster changed.
    Event(Event),
    /// Call `handle_timeout` at this time, unless a datagram arrives first.
    Timeout(u64),
}

/// A datagram to send.
#[derive(Debug)]
pub struct Transmit {
    /// The destination.
    pub to: To,
    /// The sealed datagram, at most `MAX_DATAGRAM` bytes.
    pub bytes: Vec<u8>,
}

/// The destination of a datagram.
#[derive(Clone, Debug)]
pub enum To {
    /// One address.
    One(PeerAddr),
    /// Each of these addresses.
    Each(Arc<[PeerAddr]>),
    /// The multicast group.
    Group,
}
