//! Runs an engine on sockets: passes received datagrams and the time to it, and sends its
//! datagrams.

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

/// The maximum number of outputs handled, and of datagrams sent, before the sockets are read again.
const MAX_OUTPUTS: usize = 1024;
const MAX_SENDS: usize = 16 * MAX_OUTPUTS;
/// The maximum number of datagrams handled before timers are checked again.
const MAX_DATAGRAMS: usize = 256;
/// The longest sleep. The table's clock continues while the host is suspended, but timers do not.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// How long sending the last datagrams may take.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(100);

/// Configuration of the driver.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The address to bind. `[::]` also serves IPv4. With port 0, the system chooses a free port.
    pub listen: SocketAddr,
    /// The address at which peers reach the socket, if it differs. Port 0 means the port of the
    /// socket.
    pub advertise: Option<SocketAddr>,
    /// Whether datagrams are sent only to loopback addresses, even if a name resolves to others.
    pub is_local: bool,
    /// The multicast group to join, if any.
    pub group: Option<MulticastGroup>,
    /// Addresses or names of peers, each with a port.
    pub peers: Vec<String>,
}

/// Runs an engine until it is stopped.
///
/// # Errors
/// The system cannot create the resources of the runtime.
pub(crate) fn run(
    engine: impl UdpEngine,
    config: DriverConfig,
    hooks: Hooks,
    stop: &StopSignal,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Driver::new(engine, config, hooks).run(stop));
    Ok(())
}

struct Driver<E> {
    engine: E,
    config: DriverConfig,
    hooks: Hooks,
    resolver: Resolver,
    unicast: ManagedSocket<Socket>,
    group: ManagedSocket<JoinedGroup>,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the group's socket is read first. The two sockets alternate.
    group_first: bool,
}

impl<E: UdpEngine> Driver<E> {
    fn new(engine: E, config: DriverConfig, hooks: Hooks) -> Driver<E> {
        Driver {
            engine,
            resolver: Resolver::new(&config.peers),
            config,
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
            // Datagrams are received only after all outputs have been sent, so that outputs do not
            // accumulate.
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

    /// Sends the last datagrams. Gives up after a timeout, because peers notice the end of a node
    /// anyway.
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

    /// Opens sockets and resolves names if that is due.
    fn open_sockets(&mut self) {
        let Driver { config, hooks, unicast, group, .. } = self;
        let group_config = config.group.as_ref();
        let opened = unicast
            .open(hooks, || MulticastGroup::open_unicast(group_config, config.listen, hooks));
        if opened && let Some(socket) = unicast.get() {
            // Peers know this port, so a socket that is opened later must use it, too.
            config.listen.set_port(socket.local().port());
            (hooks.bound)(socket.local());
            group.reopen();
        }
        if let (Some(group_config), Some(socket)) = (group_config, unicast.get()) {
            group.open(hooks, || group_config.join(socket, hooks));
        }
        let now = self.now();
        if self.resolver.update(now, &self.hooks.counters) || opened {
            let family = self.unicast.get().map(Socket::family);
            let is_local = self.config.is_local;
            let is_reachable = |to: &SocketAddr| {
                (to.ip().is_loopback() || !is_local)
                    && family.is_none_or(|family| family.map_destination(*to).is_some())
            };
            let peers: Vec<SocketAddr> =
                self.resolver.addresses().into_iter().filter(is_reachable).collect();
            let remote = peers.iter().find(|peer| !peer.ip().is_loopback());
            self.update_address(remote.or(peers.first()).copied());
            self.engine.join(now, &peers);
        }
    }

    /// Sets the address of the engine. If the socket is bound to all addresses, uses the one from
    /// which a peer is reached.
    fn update_address(&mut self, peer: Option<SocketAddr>) {
        let Some(socket) = self.unicast.get() else { return };
        let mut address =
            self.config.advertise.unwrap_or_else(|| canonical_address(socket.local()));
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
        if self.config.group.is_some() && self.unicast.get().is_some() {
            self.group.due()
        } else {
            u64::MAX
        }
    }

    /// Sends the engine's datagrams. Returns the time of its next timeout, or `None` if it has more
    /// outputs.
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

    /// Waits for a datagram, a resolved name, the stop signal or the time.
    async fn wait(&mut self, until: u64, stop: &StopSignal) {
        let nanos = until.saturating_sub(self.now());
        if nanos == 0 || !self.inbox.is_empty() {
            // Yields, so that the runtime polls sockets and timers.
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

    /// Passes received datagrams to the engine, up to a limit.
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

    /// Fills the inbox from one of the sockets. Returns true if it received something.
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
