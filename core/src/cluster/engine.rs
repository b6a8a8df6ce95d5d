//! A stand-in with the face of the engine, for the driver to be built against.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::exchange::Exchange;

/// How a node takes part.
#[derive(Clone, Debug, Default)]
pub struct Settings;

/// What is to be done next.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Transmit(Transmit),
    /// Something happened.
    Event(Event),
    /// Nothing is to be done before this time, in nanoseconds of the table, or a datagram.
    Timeout(u64),
}

/// A datagram on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: To,
    /// At most 1232.
    pub bytes: Vec<u8>,
}

/// Where a datagram goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// To one node.
    One(SocketAddr),
    /// To each of these.
    Each(Arc<[SocketAddr]>),
    /// To the multicast group.
    Group,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {}

/// Does nothing.
pub struct Engine;

impl Engine {
    /// One life of a node.
    pub fn new(_: Settings, _: Exchange, _seed: u64, _incarnation: u64, _now: u64) -> Engine {
        Engine
    }

    /// A datagram came.
    pub fn handle_datagram(&mut self, _now: u64, _from: SocketAddr, _datagram: &mut [u8]) {}

    /// The time that `poll` named has come.
    pub fn handle_timeout(&mut self, _now: u64) {}

    /// These addresses may be peers.
    pub fn join(&mut self, _now: u64, _peers: &[SocketAddr]) {}

    /// Says goodbye.
    pub fn leave(&mut self, _now: u64) {}

    /// What is to be done next.
    pub fn poll(&mut self) -> Output {
        Output::Timeout(u64::MAX)
    }
}
