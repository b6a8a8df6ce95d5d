//! A multicast group. A separate socket receives from it, so that several nodes of one host can.
//! The unicast socket sends to it, so that receivers see the address at which to answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use socket2::SockRef;

use super::{Hooks, Socket};
use crate::os::interface::{self, Interface};

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// The address and port of the group.
    pub address: SocketAddr,
    /// The name or an address of the interface. `None` uses the interface of the address listened
    /// on. If that is any address, the node joins on all interfaces and the system selects one to
    /// send on.
    pub interface: Option<String>,
    /// The multicast TTL: the number of routers that may forward a datagram, plus one.
    pub ttl: u32,
}

/// A multicast group that this node has joined.
pub(crate) struct JoinedGroup {
    /// The socket that receives from the group, unless the unicast socket does.
    pub(crate) receiver: Option<Socket>,
    /// The address to send to.
    pub(crate) to: SocketAddr,
}

impl MulticastGroup {
    /// Opens the unicast socket, so that other sockets can still join the group.
    pub(crate) fn open_unicast(
        group: Option<&MulticastGroup>,
        listen: SocketAddr,
        hooks: &Hooks,
    ) -> io::Result<Socket> {
        if !group.is_some_and(|group| group.shares_port_with(listen)) {
            return Socket::open(listen, hooks);
        }
        // Other nodes of this host may bind the group's port with sockets that set both reuse
        // options, but no two nodes may listen on this address. So the socket sets only the first
        // option while it is bound, and only the second afterwards.
        let socket = Socket::open_with(listen, hooks, |raw| raw.set_reuse_address(true))?;
        socket.options().set_reuse_address(false)?;
        socket.options().set_reuse_port(true)?;
        Ok(socket)
    }

    /// Returns true if the listener is bound to the group's port on all addresses, so that it
    /// receives from the group itself.
    fn shares_port_with(&self, listen: SocketAddr) -> bool {
        listen.ip().is_unspecified() && listen.port() == self.address.port()
    }

    /// Joins the group, and prepares the unicast socket to send to it.
    pub(crate) fn join(&self, unicast: &Socket, hooks: &Hooks) -> io::Result<JoinedGroup> {
        let chosen = self.interfaces(unicast.local().ip())?;
        self.set_send_options(&unicast.options(), chosen.as_deref())?;
        let to = match (self.address, chosen.as_deref()) {
            (SocketAddr::V6(v6), Some([first, ..])) => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, first.index).into()
            }
            (address, _) => address,
        };
        if unicast.family().map_destination(to).is_none() {
            return Err(io::Error::other(
                "the address family of the multicast group differs from that of the listener",
            ));
        }
        if self.shares_port_with(unicast.local()) {
            self.join_interfaces(&unicast.options(), chosen.as_deref())?;
            return Ok(JoinedGroup { receiver: None, to });
        }
        // A socket bound to the group's address receives nothing else. With any interface, that is
        // not possible for all groups.
        let bind = match to {
            SocketAddr::V6(v6) if v6.scope_id() == 0 => (Ipv6Addr::UNSPECIFIED, v6.port()).into(),
            to => to,
        };
        let receiver = Socket::open_with(bind, hooks, |socket| {
            if bind.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.set_reuse_address(true)?;
            socket.set_reuse_port(true)
        })?;
        self.join_interfaces(&receiver.options(), chosen.as_deref())?;
        Ok(JoinedGroup { receiver: Some(receiver), to })
    }

    /// Returns the addresses of the interface, or `None` for any interface.
    fn interfaces(&self, bound: IpAddr) -> io::Result<Option<Vec<Interface>>> {
        let wanted = match &self.interface {
            None if bound.is_unspecified() => return Ok(None),
            None => bound.to_string(),
            Some(wanted) => wanted.clone(),
        };
        let address: Option<IpAddr> = wanted.parse().ok();
        let all = interface::all()?;
        let of_name = all
            .iter()
            .find(|i| i.name == wanted || Some(i.address) == address)
            .map(|found| found.name.clone())
            .ok_or_else(|| {
                io::Error::other(format!("no network interface has the name or address {wanted:?}"))
            })?;
        let same = |i: &Interface| {
            i.name == of_name
                && i.address.is_ipv4() == self.address.is_ipv4()
                && address.is_none_or(|address| {
                    i.address == address || address.is_ipv4() != self.address.is_ipv4()
                })
        };
        let found: Vec<Interface> = all.into_iter().filter(same).collect();
        if found.is_empty() {
            return Err(io::Error::other(format!(
                "interface {wanted:?} has no address of the multicast group's family"
            )));
        }
        Ok(Some(found))
    }

    /// Sets the interface, TTL and loopback options for sending to the group.
    fn set_send_options(
        &self,
        socket: &SockRef<'_>,
        chosen: Option<&[Interface]>,
    ) -> io::Result<()> {
        let first = chosen.and_then(|chosen| chosen.first());
        if self.address.is_ipv4() {
            let address = first.map_or(Ipv4Addr::UNSPECIFIED, v4);
            socket.set_multicast_if_v4(&address)?;
            socket.set_multicast_ttl_v4(self.ttl)?;
            socket.set_multicast_loop_v4(true)
        } else {
            socket.set_multicast_if_v6(first.map_or(0, |first| first.index))?;
            socket.set_multicast_hops_v6(self.ttl)?;
            socket.set_multicast_loop_v6(true)
        }
    }

    /// Joins the group on the interfaces. Succeeds if at least one interface could join.
    fn join_interfaces(
        &self,
        socket: &SockRef<'_>,
        chosen: Option<&[Interface]>,
    ) -> io::Result<()> {
        let Some(chosen) = chosen else {
            let any = self.join_interface(socket, None);
            let all = interface::all().unwrap_or_default();
            // Joining an interface a second time, by another address or after the call above, is an
            // error that does not matter.
            let more = all.iter().map(|one| self.join_interface(socket, Some(one)).is_ok());
            return if more.fold(false, |joined, one| joined | one) { Ok(()) } else { any };
        };
        let mut result = Err(io::Error::other("the interface has no address"));
        for one in chosen {
            let joined = self.join_interface(socket, Some(one));
            if result.is_err() {
                result = joined;
            }
        }
        result
    }

    fn join_interface(&self, socket: &SockRef<'_>, on: Option<&Interface>) -> io::Result<()> {
        match self.address.ip() {
            IpAddr::V4(group) => {
                if on.is_some_and(|on| on.address.is_ipv6()) {
                    return Err(io::Error::other("not an IPv4 address"));
                }
                socket.join_multicast_v4(&group, &on.map_or(Ipv4Addr::UNSPECIFIED, v4))
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, on.map_or(0, |on| on.index)),
        }
    }
}

fn v4(interface: &Interface) -> Ipv4Addr {
    match interface.address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
