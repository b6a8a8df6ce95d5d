//! A UDP socket that sends and receives many datagrams per system call if the system supports it.

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

/// The requested size of the send and receive buffers, in bytes. The system may grant less.
const BUFFER: usize = 4 << 20;

/// An open socket, which is registered as a descriptor that forked children must close.
pub struct Socket {
    // Declared before the socket, so that the descriptor is unregistered before it is closed.
    _registered: Registered,
    io: UdpSocket,
    state: UdpSocketState,
    family: SocketFamily,
    local: SocketAddr,
}

impl Socket {
    /// Opens the socket that sends all datagrams and receives those for this node alone. Like the
    /// other methods, this must be called within a tokio runtime.
    ///
    /// # Errors
    /// The error of the system, for example that the address is in use.
    pub fn open(address: SocketAddr, hooks: &Hooks) -> io::Result<Socket> {
        Socket::open_with(address, hooks, |_| Ok(()))
    }

    /// Like `open`, but calls `prepare` before the socket is bound.
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
        // Failure is acceptable: with smaller buffers, bursts are lost earlier and repaired.
        let _ = raw.set_recv_buffer_size(BUFFER);
        let _ = raw.set_send_buffer_size(BUFFER);
        prepare(&raw)?;
        raw.bind(&address.into())?;
        let io = UdpSocket::from_std(raw.into())?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        let local = io.local_addr()?;
        Ok(Socket { _registered: registered, io, state, family, local })
    }

    /// The address to which the socket is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The maximum number of datagrams of one size that `try_send` accepts.
    pub fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(crate) fn family(&self) -> SocketFamily {
        self.family
    }

    pub(crate) fn options(&self) -> SockRef<'_> {
        SockRef::from(&self.io)
    }

    /// Sends one datagram, or, with `segment_size`, `contents` split into datagrams of that size.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` if the send buffer is full.
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

    /// Receives into some of the buffers. Each of them may then hold several datagrams of one
    /// sender.
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

    /// Waits until the send buffer has space.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Returns ready if a datagram may have arrived.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Reading returns the error, if there is one.
        self.io.poll_recv_ready(cx).map(drop)
    }

    /// Waits until a datagram may have arrived.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }
}

/// A registered descriptor, which is unregistered on drop.
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
