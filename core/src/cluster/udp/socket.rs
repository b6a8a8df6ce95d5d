//! A UDP socket that sends and receives many datagrams at once where the system can.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::task::{Context, Poll};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, SockRef, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::Hooks;
use super::address::{SocketFamily, canonical_address};

/// What the system is asked to hold in each direction. It may give less.
const BUFFER: usize = 4 << 20;

/// An open socket, known to the registry of descriptors.
pub struct Socket {
    // Before the socket itself, so that it is unregistered before it is closed.
    _registered: Registered,
    io: UdpSocket,
    state: UdpSocketState,
    family: SocketFamily,
    local: SocketAddr,
}

impl Socket {
    /// Opens the socket that sends everything and receives what is for this node alone.
    ///
    /// Like all of it, for use in a tokio runtime.
    ///
    /// # Errors
    /// What the system says, above all that the address is in use.
    pub fn open(address: SocketAddr, hooks: &Hooks) -> io::Result<Socket> {
        Socket::open_with(address, hooks, |_| Ok(()))
    }

    /// The same, prepared before it is bound.
    pub(crate) fn open_with(
        address: SocketAddr,
        hooks: &Hooks,
        prepare: impl FnOnce(&socket2::Socket) -> io::Result<()>,
    ) -> io::Result<Socket> {
        let raw = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        let registered = Registered::new(raw.as_raw_fd(), hooks);
        raw.set_nonblocking(true)?;
        let family = SocketFamily::of(address.ip());
        if address.is_ipv6() {
            raw.set_only_v6(family != SocketFamily::Both)?;
        }
        // An answer is not needed: with less room bursts are lost earlier, and repaired.
        let _ = raw.set_recv_buffer_size(BUFFER);
        let _ = raw.set_send_buffer_size(BUFFER);
        prepare(&raw)?;
        raw.bind(&address.into())?;
        let io = UdpSocket::from_std(raw.into())?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        let local = io.local_addr()?;
        Ok(Socket { _registered: registered, io, state, family, local })
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// How many datagrams of one size it takes at once.
    pub fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(crate) fn family(&self) -> SocketFamily {
        self.family
    }

    pub(crate) fn options(&self) -> SockRef<'_> {
        SockRef::from(&self.io)
    }

    /// Sends one datagram, or as many as there are segments of a size in `contents`.
    ///
    /// # Errors
    /// What the system says; `WouldBlock`: it has no room now.
    pub fn try_send(
        &self,
        to: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let unreachable = || io::Error::from(io::ErrorKind::NetworkUnreachable);
        let destination = self.family.map_destination(to).ok_or_else(unreachable)?;
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        self.io.try_io(Interest::WRITABLE, || {
            self.state.try_send(UdpSockRef::from(&self.io), &transmit)
        })
    }

    /// Receives into some of the buffers, each of which may then hold several datagrams.
    pub(crate) fn try_receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let received = self.io.try_io(Interest::READABLE, || {
            self.state.recv(UdpSockRef::from(&self.io), buffers, meta)
        })?;
        for meta in meta.iter_mut().take(received) {
            meta.addr = canonical_address(meta.addr);
        }
        Ok(received)
    }

    /// Waits until there is room to send.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Whether something may have come.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        // An error shows when it is read.
        self.io.poll_recv_ready(cx).map(drop)
    }

    /// Waits until something may have come.
    ///
    /// # Errors
    /// What the system says.
    pub async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }
}

/// A descriptor in the registry.
struct Registered {
    fd: RawFd,
    hooks: Hooks,
}

impl Registered {
    fn new(fd: RawFd, hooks: &Hooks) -> Registered {
        (hooks.register_fd)(fd);
        Registered { fd, hooks: hooks.clone() }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        (self.hooks.unregister_fd)(self.fd);
    }
}
