//! Checks the values of a cluster configuration.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use super::address::{self, PORT};
use super::{ClusterConfig, ClusterFieldError, Reports};
use crate::config::check_name;
use crate::config::reader::Names;
use crate::error::{Error, Result};
use crate::limit::rate::quoted;

const MAX_PACKET_KEYS: usize = 4;
/// The maximum number of peers in the configuration.
pub(super) const MAX_PEERS: usize = 1000;
/// IFNAMSIZ of Linux, without the NUL.
const MAX_INTERFACE_BYTES: usize = 15;
const MAX_TTL: u32 = 255;
const MIN_PERIOD: Duration = Duration::from_millis(5);
/// The interval of the exchange's ticks. Each period needs its own tick.
const MIN_PERIODIC_PERIOD: Duration = Duration::from_millis(10);
const MAX_PERIOD: Duration = Duration::from_secs(10);
const MAX_TOLERANCE: Duration = Duration::from_secs(60);
const MIN_RETENTION: Duration = Duration::from_secs(1);
const MAX_RETENTION: Duration = Duration::from_secs(600);
const MIN_RETENTION_BYTES: usize = 64_000;
const MAX_RETENTION_BYTES: usize = 1_000_000_000;

impl ClusterFieldError {
    fn at(key: impl Into<String>) -> impl FnOnce(String) -> ClusterFieldError {
        move |message| ClusterFieldError { key: key.into(), message }
    }
}

impl ClusterConfig {
    /// Checks every value. Errors spell keys as `names` says.
    pub(crate) fn check(&self, names: Names) -> Result<()> {
        let checks =
            [Self::check_identity, Self::check_addresses, Self::check_multicast, Self::check_times];
        let mut errors = checks.iter().filter_map(|check| check(self, names).err());
        match self.first_error.clone().or_else(|| errors.next()) {
            None => Ok(()),
            Some(ClusterFieldError { key, message }) => {
                Err(Error::config(format!("cluster.{}", names.spell(&key)), message))
            }
        }
    }

    fn check_identity(&self, _: Names) -> Result<(), ClusterFieldError> {
        check_name(&self.name).map_err(ClusterFieldError::at("name"))?;
        if let Some(secret) = &self.secret {
            secret.check().map_err(ClusterFieldError::at("secret"))?;
            if self.without_secret {
                let message = "must not be true when `secret` is set; remove one of them";
                return Err(ClusterFieldError::at("without_secret")(message.into()));
            }
        }
        let Some(keys) = &self.packet_keys else { return Ok(()) };
        let message = match keys.len() {
            _ if self.secret.is_none() => "needs `secret`; add one".into(),
            1..=MAX_PACKET_KEYS => {
                for (i, key) in keys.iter().enumerate() {
                    let at = format!("packet_keys[{i}]");
                    key.check().map_err(ClusterFieldError::at(at.as_str()))?;
                    if keys[..i].contains(key) {
                        return Err(ClusterFieldError::at(at)(
                            "must differ from the other keys; remove one".into(),
                        ));
                    }
                }
                return Ok(());
            }
            count => format!("must have 1 to {MAX_PACKET_KEYS} keys, got {count}"),
        };
        Err(ClusterFieldError::at("packet_keys")(message))
    }

    fn check_addresses(&self, names: Names) -> Result<(), ClusterFieldError> {
        let listen = self.listen_address();
        self.check_loopback("listen", listen, listen.ip().is_loopback(), names)?;
        if address::is_unassignable(listen.ip()) && !listen.ip().is_unspecified() {
            let message = format!("must be an address of this node, got {listen}");
            return Err(ClusterFieldError::at("listen")(message));
        }
        if let Some(address) = self.advertise {
            if address::is_unassignable(address.ip()) {
                let message = format!("must be an address of this node, got {address}");
                return Err(ClusterFieldError::at("advertise")(message));
            }
            self.check_loopback("advertise", address, address.ip().is_loopback(), names)?;
        }
        if self.peers.len() > MAX_PEERS {
            let message = format!(
                "must have at most {MAX_PEERS} peers; a few are enough, since they know the others"
            );
            return Err(ClusterFieldError::at("peers")(message));
        }
        for (i, peer) in self.peers.iter().enumerate() {
            let key = format!("peers[{i}]");
            self.check_loopback(&key, quoted(&peer.host), peer.is_loopback(), names)?;
            let Some(ip) = peer.ip() else { continue };
            let message = match address::is_unassignable(ip) {
                true => Some(format!("must be the address of one node, got {ip}")),
                false => address::unreachable_reason(listen.ip(), ip),
            };
            message.map_or(Ok(()), |message| Err(ClusterFieldError::at(key)(message)))?;
        }
        Ok(())
    }

    /// Without a secret, only loopback addresses are allowed, unless `without_secret` is set.
    fn check_loopback(
        &self,
        key: &str,
        address: impl Display,
        is_loopback: bool,
        names: Names,
    ) -> Result<(), ClusterFieldError> {
        if is_loopback || !self.is_loopback_only() {
            return Ok(());
        }
        let without = names.spell("without_secret");
        let message = format!(
            "must be a loopback address as long as there is no secret, got {address}; \
             set `secret`, or {without} = true if everyone in that network is trusted"
        );
        Err(ClusterFieldError::at(key)(message))
    }

    fn check_multicast(&self, names: Names) -> Result<(), ClusterFieldError> {
        let Some(group) = self.multicast else {
            let misplaced = match (&self.interface, self.multicast_ttl) {
                (Some(_), _) => "interface",
                (None, Some(_)) => "multicast_ttl",
                (None, None) => return Ok(()),
            };
            return Err(ClusterFieldError::at(misplaced)(
                "has no effect without `multicast`; remove it".into(),
            ));
        };
        let message = if !group.ip().is_multicast() {
            format!(r#"must be a multicast group such as "239.73.73.73:{PORT}", got {group}"#)
        } else if group.port() == 0 {
            format!("must have a port such as {PORT}, got {group}")
        } else if let Some(message) =
            address::unreachable_reason(self.listen_address().ip(), group.ip())
        {
            message
        } else {
            self.check_loopback("multicast", group, false, names)?;
            self.check_interface(group.ip())?;
            return match self.peers.is_empty() {
                true => Ok(()),
                false => {
                    let message = "must not be given together with `multicast`, which finds the peers; \
                                   remove one of them";
                    Err(ClusterFieldError::at("peers")(message.into()))
                }
            };
        };
        Err(ClusterFieldError::at("multicast")(message))
    }

    fn check_interface(&self, group: IpAddr) -> Result<(), ClusterFieldError> {
        let ttl = self.ttl();
        if ttl > MAX_TTL {
            return Err(ClusterFieldError::at("multicast_ttl")(format!(
                "must be a number from 0 to {MAX_TTL}, got {ttl}"
            )));
        }
        let Some(interface) = &self.interface else { return Ok(()) };
        let odd = |c: char| c.is_control() || c.is_whitespace() || c == '/';
        let message = match interface.parse::<IpAddr>() {
            Ok(ip) if address::is_unassignable(ip) => "no interface can have this address",
            Ok(ip) if ip.is_ipv4() != group.is_ipv4() => "the group is of the other IP version",
            Ok(_) => return Ok(()),
            Err(_) if interface.is_empty() => "it is empty",
            Err(_) if interface.len() > MAX_INTERFACE_BYTES || interface.contains(odd) => {
                "no interface can have this name"
            }
            Err(_) => return Ok(()),
        };
        let message = format!(
            r#"must be a name such as "eth0" or an address of this node, got {}: {message}"#,
            quoted(interface)
        );
        Err(ClusterFieldError::at("interface")(message))
    }

    fn check_times(&self, _: Names) -> Result<(), ClusterFieldError> {
        let within = |key, time: Duration, least: Duration, most: Duration| {
            if (least..=most).contains(&time) {
                return Ok(());
            }
            Err(ClusterFieldError::at(key)(format!(
                "must be a duration from {least:?} to {most:?}, got {time:?}"
            )))
        };
        let shortest = match self.reports {
            Reports::Eager => MIN_PERIOD,
            Reports::Periodic => MIN_PERIODIC_PERIOD,
        };
        within("period", self.period, shortest, MAX_PERIOD)?;
        let tolerance = self.tolerance.unwrap_or_default();
        within("tolerance", tolerance, Duration::ZERO, MAX_TOLERANCE)?;
        within("retention", self.retention, MIN_RETENTION, MAX_RETENTION)?;
        match self.retention_bytes {
            MIN_RETENTION_BYTES..=MAX_RETENTION_BYTES => Ok(()),
            bytes => {
                let message = format!(r#"must be from "64 KB" to "1 GB", got {bytes} bytes"#);
                Err(ClusterFieldError::at("retention_bytes")(message))
            }
        }
    }
}
