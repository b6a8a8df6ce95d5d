//! Whether a cluster can be as it is asked for.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use super::address::{self, PORT};
use super::{ClusterConfig, Fault, Reports};
use crate::config::check_name;
use crate::config::reader::Names;
use crate::error::{Error, Result};
use crate::limit::rate::quoted;

const MOST_KEYS: usize = 4;
/// More nodes than that do not fit into one cluster.
pub(super) const MOST_PEERS: usize = 1000;
/// As the system has it.
const LONGEST_INTERFACE: usize = 15;
const MOST_TTL: u32 = 255;
const SHORTEST_PERIOD: Duration = Duration::from_millis(5);
/// Reports leave at a tick of the exchange, and every period needs one.
const SHORTEST_PERIODIC: Duration = Duration::from_millis(10);
const LONGEST_PERIOD: Duration = Duration::from_secs(10);
const LONGEST_TOLERANCE: Duration = Duration::from_secs(60);
const SHORTEST_RETENTION: Duration = Duration::from_secs(1);
const LONGEST_RETENTION: Duration = Duration::from_secs(600);
const FEWEST_BYTES: usize = 64_000;
const MOST_BYTES: usize = 1_000_000_000;

impl Fault {
    fn at(key: impl Into<String>) -> impl FnOnce(String) -> Fault {
        move |message| Fault { key: key.into(), message }
    }
}

impl ClusterConfig {
    /// Looks at every value. Keys are named as the user spells them.
    pub(crate) fn check(&self, names: Names) -> Result<()> {
        let checks =
            [Self::check_identity, Self::check_addresses, Self::check_multicast, Self::check_times];
        let mut faults = checks.iter().filter_map(|check| check(self, names).err());
        match self.fault.clone().or_else(|| faults.next()) {
            None => Ok(()),
            Some(Fault { key, message }) => {
                Err(Error::config(format!("cluster.{}", names.spell(&key)), message))
            }
        }
    }

    fn check_identity(&self, _: Names) -> Result<(), Fault> {
        check_name(&self.name).map_err(Fault::at("name"))?;
        if let Some(secret) = &self.secret {
            secret.check().map_err(Fault::at("secret"))?;
            if self.without_secret {
                let message = "there is a secret; leave out one of the two";
                return Err(Fault::at("without_secret")(message.into()));
            }
        }
        let Some(keys) = &self.packet_keys else { return Ok(()) };
        let message = match keys.len() {
            _ if self.secret.is_none() => "packet keys need a secret beside them; add one".into(),
            1..=MOST_KEYS => {
                for (i, key) in keys.iter().enumerate() {
                    let at = format!("packet_keys[{i}]");
                    key.check("a key").map_err(Fault::at(at.as_str()))?;
                    if keys[..i].contains(key) {
                        return Err(Fault::at(at)("the same key twice; leave out one".into()));
                    }
                }
                return Ok(());
            }
            count => format!("{count} keys; write 1 to {MOST_KEYS}, or leave them out"),
        };
        Err(Fault::at("packet_keys")(message))
    }

    fn check_addresses(&self, names: Names) -> Result<(), Fault> {
        let listen = self.listen_address();
        self.check_beyond("listen", listen, listen.ip().is_loopback(), names)?;
        if address::is_nobody(listen.ip()) && !listen.ip().is_unspecified() {
            let message =
                format!("{listen}: nobody can listen there; write an address of this node");
            return Err(Fault::at("listen")(message));
        }
        if let Some(address) = self.advertise {
            if address::is_nobody(address.ip()) {
                let message = format!("{address}: nobody is there; write an address of this node");
                return Err(Fault::at("advertise")(message));
            }
            self.check_beyond("advertise", address, address.ip().is_loopback(), names)?;
        }
        if self.peers.len() > MOST_PEERS {
            let message = format!("more than {MOST_PEERS} peers; name a few, they know the others");
            return Err(Fault::at("peers")(message));
        }
        for (i, peer) in self.peers.iter().enumerate() {
            let key = format!("peers[{i}]");
            self.check_beyond(&key, quoted(&peer.host), peer.is_loopback(), names)?;
            let Some(ip) = peer.ip() else { continue };
            let message = match address::is_nobody(ip) {
                true => Some(format!("{ip}: nobody is there; write the address of one node")),
                false => address::unreachable(listen.ip(), ip),
            };
            message.map_or(Ok(()), |message| Err(Fault::at(key)(message)))?;
        }
        Ok(())
    }

    /// Without a secret nothing goes beyond this machine, unless it shall.
    fn check_beyond(
        &self,
        key: &str,
        address: impl Display,
        is_loopback: bool,
        names: Names,
    ) -> Result<(), Fault> {
        if is_loopback || !self.is_loopback_only() {
            return Ok(());
        }
        let without = names.spell("without_secret");
        let message = format!(
            "{address} is not an address of this machine alone, and there is no secret; \
             add one, or {without} = true if everyone there may do anything"
        );
        Err(Fault::at(key)(message))
    }

    fn check_multicast(&self, names: Names) -> Result<(), Fault> {
        let Some(group) = self.multicast else {
            let stray = match (&self.interface, self.multicast_ttl) {
                (Some(_), _) => "interface",
                (None, Some(_)) => "multicast_ttl",
                (None, None) => return Ok(()),
            };
            return Err(Fault::at(stray)("has no meaning without multicast".into()));
        };
        let message = if !group.ip().is_multicast() {
            format!(r#"{group} is not a group; write one like "239.73.73.73:{PORT}""#)
        } else if group.port() == 0 {
            format!("{group}: a group needs a port; {PORT} is usual")
        } else if let Some(message) = address::unreachable(self.listen_address().ip(), group.ip()) {
            message
        } else {
            self.check_beyond("multicast", group, false, names)?;
            self.check_interface(group.ip())?;
            return match self.peers.is_empty() {
                true => Ok(()),
                false => {
                    let message = "peers are found by multicast; leave out one of the two";
                    Err(Fault::at("peers")(message.into()))
                }
            };
        };
        Err(Fault::at("multicast")(message))
    }

    fn check_interface(&self, group: IpAddr) -> Result<(), Fault> {
        let ttl = self.ttl();
        if ttl > MOST_TTL {
            return Err(Fault::at("multicast_ttl")(format!("{ttl}: write 0 to {MOST_TTL}")));
        }
        let Some(interface) = &self.interface else { return Ok(()) };
        let odd = |c: char| c.is_control() || c.is_whitespace() || c == '/';
        let message = match interface.parse::<IpAddr>() {
            Ok(ip) if address::is_nobody(ip) => "no interface has this address",
            Ok(ip) if ip.is_ipv4() != group.is_ipv4() => "of another kind than the group",
            Ok(_) => return Ok(()),
            Err(_) if interface.is_empty() => "empty",
            Err(_) if interface.len() > LONGEST_INTERFACE || interface.contains(odd) => {
                "no interface has this name"
            }
            Err(_) => return Ok(()),
        };
        let message = format!(
            r#"{}: {message}; write a name such as "eth0", or an address of this node"#,
            quoted(interface)
        );
        Err(Fault::at("interface")(message))
    }

    fn check_times(&self, _: Names) -> Result<(), Fault> {
        let within = |key, time: Duration, least: Duration, most: Duration| {
            if (least..=most).contains(&time) {
                return Ok(());
            }
            Err(Fault::at(key)(format!("{time:?}: write {least:?} to {most:?}")))
        };
        let shortest = match self.reports {
            Reports::Eager => SHORTEST_PERIOD,
            Reports::Periodic => SHORTEST_PERIODIC,
        };
        within("period", self.period, shortest, LONGEST_PERIOD)?;
        let tolerance = self.tolerance.unwrap_or_default();
        within("tolerance", tolerance, Duration::ZERO, LONGEST_TOLERANCE)?;
        within("retention", self.retention, SHORTEST_RETENTION, LONGEST_RETENTION)?;
        match self.retention_bytes {
            FEWEST_BYTES..=MOST_BYTES => Ok(()),
            bytes => {
                let message = format!(r#"{bytes} bytes; write "64 KB" to "1 GB""#);
                Err(Fault::at("retention_bytes")(message))
            }
        }
    }
}
