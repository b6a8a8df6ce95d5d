//! Runs an engine on sockets: hands it what was received and the time, and sends what it says.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout_at};

use super::address::{canonical_address, local_address};
use super::hooks::count;
use super::managed_socket::{Direction, ManagedSocket};
use super::multicast::JoinedGroup;
use super::resolver::Resolver;
use super::stop::StopSignal;
use super::udp_engine::UdpEngine;
use super::{Hooks, Inbox, MulticastGroup, Outbox, Socket};
use crate::cluster::Output;

/// The most outputs, and the most datagrams sent, between two looks at the sockets.
const MAX_OUTPUTS: usize = 1024;
const MAX_SENDS: usize = 16 * MAX_OUTPUTS;
/// The most datagrams handled between two looks at the time.
const MAX_DATAGRAMS: usize = 256;
/// How long a sleep may be. The table's clock goes on while the host is suspended; timers do not.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// How long the goodbye may take.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(100);

/// Where to listen, and whom to try.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The address of the socket. For `[::]` it serves IPv4 as well. Port 0: any that is free.
    pub listen: SocketAddr,
    /// Where peers reach it, if that is somewhere else. Port 0: that of the socket.
    pub advertise: Option<SocketAddr>,
    /// Nothing may go beyond this machine, whatever a name means.
    pub is_local: bool,
    /// The multicast group.
    pub group: Option<MulticastGroup>,
    /// Addresses and names, each with its port.
    pub peers: Vec<String>,
}

/// Runs an engine until it shall stop.
///
/// # Errors
/// The system has no room for it.
pub(crate) fn run(
    engine: impl UdpEngine,
    setup: DriverConfig,
    hooks: Hooks,
    stop: &StopSignal,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Driver::new(engine, setup, hooks).run(stop));
    Ok(())
}

struct Driver<E> {
    engine: E,
    setup: DriverConfig,
    hooks: Hooks,
    resolver: Resolver,
    unicast: ManagedSocket<Socket>,
    group: ManagedSocket<JoinedGroup>,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the group is read before the unicast socket: they take turns.
    group_first: bool,
}

impl<E: UdpEngine> Driver<E> {
    fn new(engine: E, setup: DriverConfig, hooks: Hooks) -> Driver<E> {
        Driver {
            engine,
            resolver: Resolver::new(&setup.peers),
            setup,
            hooks,
            unicast: ManagedSocket::new(),
            group: ManagedSocket::new(),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            group_first: false,
        }
    }

    async fn run(mut self, stop: &StopSignal) {
        while !stop.is_requested() {
            self.open_sockets();
            let due = self.send().await;
            let wake = due
                .unwrap_or(0)
                .min(self.unicast.due())
                .min(self.group_due())
                .min(self.resolver.due());
            self.wait(wake, stop).await;
            // What came is heard once everything was said: answers must not pile up.
            if due.is_some() {
                self.receive();
            }
            let now = self.now();
            if due.is_some_and(|due| now >= due) {
                self.engine.handle_timeout(now);
            }
        }
        self.leave().await;
    }

    /// Says goodbye. Late is as good as lost: peers notice by themselves.
    async fn leave(&mut self) {
        let end = Instant::now() + LEAVE_TIMEOUT;
        self.engine.leave(self.now());
        while let Ok(None) = timeout_at(end, self.send()).await
            && Instant::now() < end
        {}
    }

    fn now(&self) -> u64 {
        (self.hooks.now)()
    }

    /// Opens sockets and asks for names where that is due.
    fn open_sockets(&mut self) {
        let Driver { setup, hooks, unicast, group, .. } = self;
        let wanted = setup.group.as_ref();
        let opened =
            unicast.open(hooks, || MulticastGroup::open_unicast(wanted, setup.listen, hooks));
        if opened && let Some(socket) = unicast.get() {
            // Peers know the port: a later socket must have the same.
            setup.listen.set_port(socket.local().port());
            (hooks.bound)(socket.local());
            group.reopen();
        }
        if let (Some(wanted), Some(socket)) = (wanted, unicast.get()) {
            group.open(hooks, || wanted.join(socket, hooks));
        }
        let now = self.now();
        if self.resolver.update(now, &self.hooks.counters) || opened {
            let family = self.unicast.get().map(Socket::family);
            let is_local = self.setup.is_local;
            let can = |to: &SocketAddr| {
                (to.ip().is_loopback() || !is_local)
                    && family.is_none_or(|family| family.map_destination(*to).is_some())
            };
            let peers: Vec<SocketAddr> =
                self.resolver.addresses().into_iter().filter(can).collect();
            let beyond = peers.iter().find(|peer| !peer.ip().is_loopback());
            self.update_address(beyond.or(peers.first()).copied());
            self.engine.join(now, &peers);
        }
    }

    /// Tells the engine where it is reached: at an address of its own, if it listens on all of
    /// them that from which a peer is reached.
    fn update_address(&mut self, peer: Option<SocketAddr>) {
        let Some(socket) = self.unicast.get() else { return };
        let mut address = self.setup.advertise.unwrap_or_else(|| canonical_address(socket.local()));
        if address.ip().is_unspecified() {
            let towards = peer.or(self.group.get().map(|joined| joined.to));
            address.set_ip(local_address(towards, address));
        }
        if address.port() == 0 {
            address.set_port(socket.local().port());
        }
        self.engine.set_address(address);
    }

    fn group_due(&self) -> u64 {
        if self.setup.group.is_some() && self.unicast.get().is_some() {
            self.group.due()
        } else {
            u64::MAX
        }
    }

    /// Sends what the engine says. Gives the time of its next timeout, unless it has more to
    /// say.
    async fn send(&mut self) -> Option<u64> {
        let mut due = None;
        for _ in 0..MAX_OUTPUTS {
            if self.outbox.sends() >= MAX_SENDS {
                break;
            }
            match self.engine.poll() {
                Output::Transmit(transmit) => self.outbox.push(transmit),
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    due = Some(at);
                    break;
                }
            }
        }
        let group = self.group.get().map(|joined| joined.to);
        match self.outbox.send(self.unicast.get(), group, &self.hooks.counters).await {
            Ok(true) => self.unicast.record_success(Direction::Send),
            Ok(false) => {}
            Err(_) => self.unicast.record_failure(Direction::Send, self.now()),
        }
        due
    }

    /// Waits for a datagram, a name, the stop, or the time.
    async fn wait(&mut self, until: u64, stop: &StopSignal) {
        let nanos = until.saturating_sub(self.now());
        if nanos == 0 || !self.inbox.is_empty() {
            // Lets the runtime look at sockets and timers all the same.
            return yield_now().await;
        }
        let mut time = pin!(sleep(Duration::from_nanos(nanos).min(MAX_SLEEP)));
        let mut stop = pin!(stop.requested());
        let Driver { unicast, group, resolver, .. } = self;
        let receiver = group.get().and_then(|joined| joined.receiver.as_ref());
        poll_fn(|cx| {
            let readable = [unicast.get(), receiver]
                .into_iter()
                .flatten()
                .any(|socket| socket.poll_readable(cx).is_ready());
            let woken = readable
                || stop.as_mut().poll(cx).is_ready()
                || resolver.poll_lookup(cx).is_ready()
                || time.as_mut().poll(cx).is_ready();
            if woken { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Hands the engine what has come, up to a limit.
    fn receive(&mut self) {
        let mut left = MAX_DATAGRAMS;
        loop {
            while let Some((from, datagram)) = self.inbox.next() {
                self.engine.handle_datagram((self.hooks.now)(), from, datagram);
                left -= 1;
                if left == 0 {
                    return;
                }
            }
            if !self.fill() {
                return;
            }
        }
    }

    /// Reads the one socket or the other. Says whether something came.
    fn fill(&mut self) -> bool {
        self.group_first = !self.group_first;
        for group in [self.group_first, !self.group_first] {
            let unicast = self.unicast.get();
            let joined = self.group.get().and_then(|joined| joined.receiver.as_ref());
            let Some(socket) = (if group { joined } else { unicast }) else { continue };
            let filled = self.inbox.fill(socket);
            if filled.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                continue;
            }
            let now = self.now();
            count(&self.hooks.counters.receive_errors, usize::from(filled.is_err()));
            match (filled, group) {
                (Ok(()), true) => self.group.record_success(Direction::Receive),
                (Ok(()), false) => self.unicast.record_success(Direction::Receive),
                (Err(_), true) => self.group.record_failure(Direction::Receive, now),
                (Err(_), false) => self.unicast.record_failure(Direction::Receive, now),
            }
            return !self.inbox.is_empty();
        }
        false
    }
}
