//! The engine that the driver runs, with UDP addresses for peers.

use std::net::SocketAddr;

use crate::cluster::{Engine, Output, PeerAddr};

/// An engine whose peers have UDP addresses. Tests use their own implementation.
pub trait UdpEngine {
    /// Handles a received datagram.
    fn handle_datagram(&mut self, now: u64, from: SocketAddr, datagram: &mut [u8]);
    /// Does the work that is due, after the time that `poll` returned.
    fn handle_timeout(&mut self, now: u64);
    /// Sets the addresses at which peers may be.
    fn join(&mut self, now: u64, peers: &[SocketAddr]);
    /// Leaves the cluster.
    fn leave(&mut self, now: u64);
    /// Sets the address at which peers reach this node.
    fn set_address(&mut self, _address: SocketAddr) {}
    /// Returns the next output.
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
