//! What the driver runs: an engine, whose peers are at UDP addresses here.

use std::net::SocketAddr;

use crate::cluster::{Engine, Output, PeerAddr};

/// An engine, or a test's replacement for one.
pub trait UdpEngine {
    /// A datagram arrived.
    fn handle_datagram(&mut self, now: u64, from: SocketAddr, datagram: &mut [u8]);
    /// The time that `poll` named has come.
    fn handle_timeout(&mut self, now: u64);
    /// There may be peers at these addresses.
    fn join(&mut self, now: u64, peers: &[SocketAddr]);
    /// Leaves the cluster.
    fn leave(&mut self, now: u64);
    /// Peers reach this node here.
    fn set_address(&mut self, _address: SocketAddr) {}
    /// What to do next.
    fn poll(&mut self) -> Output;
}

impl UdpEngine for Engine {
    fn handle_datagram(&mut self, now: u64, from: SocketAddr, datagram: &mut [u8]) {
        Engine::handle_datagram(self, now, from.into(), datagram);
    }

    fn handle_timeout(&mut self, now: u64) {
        Engine::handle_timeout(self, now);
    }

    fn join(&mut self, now: u64, peers: &[SocketAddr]) {
        let peers: Vec<PeerAddr> = peers.iter().copied().map(PeerAddr::from).collect();
        Engine::join(self, now, &peers);
    }

    fn leave(&mut self, now: u64) {
        Engine::leave(self, now);
    }

    fn set_address(&mut self, address: SocketAddr) {
        Engine::set_address(self, address.into());
    }

    fn poll(&mut self) -> Output {
        Engine::poll(self)
    }
}
