//! The configuration of the cluster: its name and secret, the addresses of its nodes, and when they
//! exchange reports.

mod address;
mod check;
mod read;
mod secret;
mod settings;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use self::address::{PORT, PeerName};
#[doc(hidden)]
pub use self::secret::read_secret;
use self::secret::{Secret, SecretBytes};
use super::Config;
use crate::error::Result;

/// When a node sends reports of what it admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// At least once per period, and immediately when a bucket runs low.
    #[default]
    Eager,
    /// Exactly once per period, for all rules together. The default tolerance is then zero.
    Periodic,
}

/// A cluster: nodes that have the same name and secret, and report to each other what they
/// admitted. docs/cluster.md describes it.
///
/// Wrong values are reported when the throttle is built, so that calls can be chained:
///
/// ```
/// use dthrottle::ClusterConfig;
///
/// let cluster = ClusterConfig::new("web")
///     .secret_file("/etc/dthrottle/secret")
///     .peer("10.0.0.2")
///     .peer("10.0.0.3");
/// # let _ = cluster;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    pub(crate) name: String,
    pub(crate) secret: Option<Secret>,
    /// `None` uses one key that is derived from the secret.
    pub(crate) packet_keys: Option<Vec<SecretBytes>>,
    pub(crate) without_secret: bool,
    /// `None` uses the default of `listen_address`.
    pub(crate) listen: Option<SocketAddr>,
    /// Port 0 stands for the port of `listen`.
    pub(crate) advertise: Option<SocketAddr>,
    pub(crate) peers: Vec<PeerName>,
    pub(crate) multicast: Option<SocketAddr>,
    pub(crate) interface: Option<String>,
    pub(crate) multicast_ttl: Option<u32>,
    pub(crate) period: Duration,
    pub(crate) reports: Reports,
    /// `None` derives it from the measured delays.
    pub(crate) tolerance: Option<Duration>,
    pub(crate) pacing: bool,
    /// `None` uses the default: on for a `BusyThrottle`, off otherwise.
    pub(crate) busy: Option<bool>,
    pub(crate) retention: Duration,
    pub(crate) retention_bytes: usize,
    /// The first error that a method found.
    first_error: Option<ClusterFieldError>,
}

/// An error about a key of the cluster. The key is in snake case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClusterFieldError {
    key: String,
    message: String,
}

impl ClusterConfig {
    /// Creates the configuration of a cluster with this name. Without a secret, all nodes must be
    /// on this machine.
    pub fn new(name: impl Into<String>) -> ClusterConfig {
        ClusterConfig {
            name: name.into(),
            secret: None,
            packet_keys: None,
            without_secret: false,
            listen: None,
            advertise: None,
            peers: Vec::new(),
            multicast: None,
            interface: None,
            multicast_ttl: None,
            period: Duration::from_millis(100),
            reports: Reports::Eager,
            tolerance: None,
            pacing: false,
            busy: None,
            retention: Duration::from_secs(15),
            retention_bytes: 16_000_000,
            first_error: None,
        }
    }

    /// Sets the secret that all nodes share, 16 to 4096 bytes.
    #[must_use]
    pub fn secret(self, secret: impl AsRef<[u8]>) -> ClusterConfig {
        ClusterConfig { secret: Some(Secret::Known(SecretBytes(secret.as_ref().into()))), ..self }
    }

    /// Sets the file that has the secret. It is read when the throttle is built.
    #[must_use]
    pub fn secret_file(self, path: impl Into<PathBuf>) -> ClusterConfig {
        ClusterConfig { secret: Some(Secret::File(path.into())), ..self }
    }

    /// Allows addresses beyond this machine without a secret. Anyone who can send datagrams to a
    /// node can then charge any client until it is refused.
    #[must_use]
    pub fn without_secret(self, without_secret: bool) -> ClusterConfig {
        ClusterConfig { without_secret, ..self }
    }

    /// Sets one to four keys for datagrams, 16 to 4096 bytes each. Nodes seal with the first key,
    /// and accept all of them.
    #[must_use]
    pub fn packet_keys(self, keys: impl IntoIterator<Item: AsRef<[u8]>>) -> ClusterConfig {
        let keys = keys.into_iter().map(|key| SecretBytes(key.as_ref().into())).collect();
        ClusterConfig { packet_keys: Some(keys), ..self }
    }

    /// Sets the address and port of this node, such as `"10.0.0.1:7373"` or `"[::]:7373"`.
    #[must_use]
    pub fn listen(mut self, address: &str) -> ClusterConfig {
        self.listen = self.or_first_error("listen", address::parse_address(address));
        self
    }

    /// Sets the address and port that peers use, if they differ from `listen`, as behind NAT. Port
    /// 0 stands for the port of `listen`.
    #[must_use]
    pub fn advertise(mut self, address: &str) -> ClusterConfig {
        self.advertise = self.or_first_error("advertise", address::parse_address(address));
        self
    }

    /// Adds a peer: `"host:port"` or `"host"`, by name or by address. The default port is 7373.
    #[must_use]
    pub fn peer(mut self, peer: &str) -> ClusterConfig {
        let key = format!("peers[{}]", self.peers.len());
        let peer = self.or_first_error(key, PeerName::parse(peer));
        self.peers.extend(peer);
        self
    }

    /// Sets the multicast group and port for finding peers and sending reports, such as
    /// `"239.73.73.73:7373"`.
    #[must_use]
    pub fn multicast(mut self, group: &str) -> ClusterConfig {
        self.multicast = self.or_first_error("multicast", address::parse_address(group));
        self
    }

    /// Sets the network interface for multicast, by name or by address.
    #[must_use]
    pub fn interface(self, interface: impl Into<String>) -> ClusterConfig {
        ClusterConfig { interface: Some(interface.into()), ..self }
    }

    /// Sets the multicast TTL, 0 to 255. The default is 1, which stays on the local network.
    #[must_use]
    pub fn multicast_ttl(self, ttl: u32) -> ClusterConfig {
        ClusterConfig { multicast_ttl: Some(ttl), ..self }
    }

    /// Sets the longest time between two reports of a rule, 5 ms to 10 s. The default is 100 ms.
    #[must_use]
    pub fn period(self, period: Duration) -> ClusterConfig {
        ClusterConfig { period, ..self }
    }

    /// Sets whether nodes also report before the period ends when a bucket runs low.
    #[must_use]
    pub fn reports(self, reports: Reports) -> ClusterConfig {
        ClusterConfig { reports, ..self }
    }

    /// Sets how late a report may arrive before a client within its limit can be refused, up to 60
    /// s. By default it follows the measured delays.
    #[must_use]
    pub fn tolerance(self, tolerance: Duration) -> ClusterConfig {
        ClusterConfig { tolerance: Some(tolerance), ..self }
    }

    /// Sets whether the requests of a tag over its limit are admitted in equal shares by all nodes.
    #[must_use]
    pub fn pacing(self, pacing: bool) -> ClusterConfig {
        ClusterConfig { pacing, ..self }
    }

    /// Sets whether nodes report busy responses of the services that they call, so that a busy
    /// response to one node slows every node. The default is true for a busy throttle.
    #[must_use]
    pub fn busy(self, busy: bool) -> ClusterConfig {
        ClusterConfig { busy: Some(busy), ..self }
    }

    /// Sets how long reports are kept for peers that missed them, 1 s to 600 s. The default is 15
    /// s.
    #[must_use]
    pub fn retention(self, retention: Duration) -> ClusterConfig {
        ClusterConfig { retention, ..self }
    }

    /// Sets the most bytes of reports to keep, 64 KB to 1 GB. The default is 16 MB.
    #[must_use]
    pub fn retention_bytes(self, bytes: usize) -> ClusterConfig {
        ClusterConfig { retention_bytes: bytes, ..self }
    }

    /// Turns the exchange of busy responses on, unless it was set.
    pub(crate) fn busy_by_default(self) -> ClusterConfig {
        ClusterConfig { busy: self.busy.or(Some(true)), ..self }
    }

    fn or_first_error<T>(&mut self, key: impl Into<String>, value: Result<T, String>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(message) => {
                let error = ClusterFieldError { key: key.into(), message };
                self.first_error.get_or_insert(error);
                None
            }
        }
    }
}

/// Values for the driver, with defaults applied. The configuration must have been checked.
impl ClusterConfig {
    /// Returns the address to listen on. The default without a secret is the loopback address.
    pub(crate) fn listen_address(&self) -> SocketAddr {
        let default = match self.secret {
            Some(_) => Ipv4Addr::UNSPECIFIED,
            None => Ipv4Addr::LOCALHOST,
        };
        self.listen.unwrap_or_else(|| SocketAddr::new(default.into(), PORT))
    }

    /// Returns the secret, after `load`.
    pub(crate) fn secret_bytes(&self) -> Option<&[u8]> {
        match &self.secret {
            Some(Secret::Known(secret)) => Some(&secret.0),
            _ => None,
        }
    }

    /// Returns the packet keys. Datagrams are sealed with the first one.
    pub(crate) fn packet_key_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.packet_keys.iter().flatten().map(|key| key.0.as_slice())
    }

    /// Whether datagrams may only be exchanged with loopback addresses, including addresses that a
    /// peer's host name resolves to.
    pub(crate) fn is_loopback_only(&self) -> bool {
        self.secret.is_none() && !self.without_secret
    }

    /// Returns the time to live of multicast datagrams.
    pub(crate) fn ttl(&self) -> u32 {
        self.multicast_ttl.unwrap_or(1)
    }
}

impl ClusterConfig {
    /// Reads the secret, if it is in a file. Returns a warning if every user can read the file.
    pub(crate) fn load(&mut self) -> Result<Option<String>> {
        self.secret.as_mut().map_or(Ok(None), Secret::load)
    }
}

impl Config {
    /// Sets the cluster that this node belongs to.
    pub fn set_cluster(&mut self, cluster: ClusterConfig) {
        self.cluster = Some(cluster);
        self.table.clustered = true;
    }
}
