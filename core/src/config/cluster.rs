//! The cluster's part of the configuration: who belongs to it, where its nodes are, and how they
//! tell each other what they admitted.

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

/// When a node reports what it admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// At least once a period, and at once if a bucket runs low.
    #[default]
    Eager,
    /// Exactly once a period, all rules together. The tolerance is zero unless it is set.
    Periodic,
}

/// A cluster: nodes with one name and secret, each of which knows what the others admitted.
///
/// Mistakes are reported when the throttle is built, so that calls chain:
/// `ClusterConfig::new("web").secret_file("/etc/dthrottle/secret").peer("10.0.0.2")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    pub(crate) name: String,
    pub(crate) secret: Option<Secret>,
    /// Nothing: one that is derived from the secret.
    pub(crate) packet_keys: Option<Vec<SecretBytes>>,
    pub(crate) without_secret: bool,
    /// Nothing: as `listen()` says.
    pub(crate) listen: Option<SocketAddr>,
    /// With port 0 the port of `listen`.
    pub(crate) advertise: Option<SocketAddr>,
    pub(crate) peers: Vec<PeerName>,
    pub(crate) multicast: Option<SocketAddr>,
    pub(crate) interface: Option<String>,
    pub(crate) multicast_ttl: Option<u32>,
    pub(crate) period: Duration,
    pub(crate) reports: Reports,
    /// `None` derives it from the delays that are seen.
    pub(crate) tolerance: Option<Duration>,
    pub(crate) pacing: bool,
    /// Nothing: as it is usual for who exchanges.
    pub(crate) busy: Option<bool>,
    pub(crate) retention: Duration,
    pub(crate) retention_bytes: usize,
    /// The first text that could not be read.
    fault: Option<ClusterFieldError>,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClusterFieldError {
    key: String,
    message: String,
}

impl ClusterConfig {
    /// The cluster of this name, on this machine only: a secret lets it go beyond.
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
            fault: None,
        }
    }

    /// The secret that all nodes have, of at least 16 bytes.
    #[must_use]
    pub fn secret(self, secret: impl AsRef<[u8]>) -> ClusterConfig {
        ClusterConfig { secret: Some(Secret::Known(SecretBytes(secret.as_ref().into()))), ..self }
    }

    /// The file with the secret, read when the throttle is built.
    #[must_use]
    pub fn secret_file(self, path: impl Into<PathBuf>) -> ClusterConfig {
        ClusterConfig { secret: Some(Secret::File(path.into())), ..self }
    }

    /// Whether addresses beyond this machine may be used without a secret: whoever can send to
    /// them can then charge and refuse every client.
    #[must_use]
    pub fn without_secret(self, without_secret: bool) -> ClusterConfig {
        ClusterConfig { without_secret, ..self }
    }

    /// Keys for the datagrams: all are accepted, the first is used.
    #[must_use]
    pub fn packet_keys(self, keys: impl IntoIterator<Item: AsRef<[u8]>>) -> ClusterConfig {
        let keys = keys.into_iter().map(|key| SecretBytes(key.as_ref().into())).collect();
        ClusterConfig { packet_keys: Some(keys), ..self }
    }

    /// The address and port of this node, such as `"10.0.0.1:7373"` or `"[::]:7373"`.
    #[must_use]
    pub fn listen(mut self, address: &str) -> ClusterConfig {
        self.listen = self.or_first_error("listen", address::parse_address(address));
        self
    }

    /// The address and port that peers shall use, if it is another; port 0 is that of `listen`.
    #[must_use]
    pub fn advertise(mut self, address: &str) -> ClusterConfig {
        self.advertise = self.or_first_error("advertise", address::parse_address(address));
        self
    }

    /// One more peer: `"host:port"` or `"host"`, by name or by address.
    #[must_use]
    pub fn peer(mut self, peer: &str) -> ClusterConfig {
        let key = format!("peers[{}]", self.peers.len());
        let peer = self.or_first_error(key, PeerName::parse(peer));
        self.peers.extend(peer);
        self
    }

    /// The group and port where peers are found and reports go, such as `"239.73.73.73:7373"`.
    #[must_use]
    pub fn multicast(mut self, group: &str) -> ClusterConfig {
        self.multicast = self.or_first_error("multicast", address::parse_address(group));
        self
    }

    /// The network interface for multicast, by name or by address.
    #[must_use]
    pub fn interface(self, interface: impl Into<String>) -> ClusterConfig {
        ClusterConfig { interface: Some(interface.into()), ..self }
    }

    /// How many routers multicast passes, and one: 1 by default, the local network.
    #[must_use]
    pub fn multicast_ttl(self, ttl: u32) -> ClusterConfig {
        ClusterConfig { multicast_ttl: Some(ttl), ..self }
    }

    /// How often a rule is reported at least; 100 ms by default.
    #[must_use]
    pub fn period(self, period: Duration) -> ClusterConfig {
        ClusterConfig { period, ..self }
    }

    /// Whether nodes report early where it matters, or exactly once a period.
    #[must_use]
    pub fn reports(self, reports: Reports) -> ClusterConfig {
        ClusterConfig { reports, ..self }
    }

    /// How late reports may come without a wrong refusal, instead of what is found out by itself.
    #[must_use]
    pub fn tolerance(self, tolerance: Duration) -> ClusterConfig {
        ClusterConfig { tolerance: Some(tolerance), ..self }
    }

    /// Whether the share of a tag that is over its limit is spread evenly over the nodes.
    #[must_use]
    pub fn pacing(self, pacing: bool) -> ClusterConfig {
        ClusterConfig { pacing, ..self }
    }

    /// Whether the nodes tell each other of busy answers of the services that they call, so that
    /// one that a node is told slows all. By default a busy throttle does, and others do not.
    #[must_use]
    pub fn busy(self, busy: bool) -> ClusterConfig {
        ClusterConfig { busy: Some(busy), ..self }
    }

    /// How long reports are kept for peers that missed them; 15 s by default.
    #[must_use]
    pub fn retention(self, retention: Duration) -> ClusterConfig {
        ClusterConfig { retention, ..self }
    }

    /// How many bytes of reports are kept at most; 16 MB by default.
    #[must_use]
    pub fn retention_bytes(self, bytes: usize) -> ClusterConfig {
        ClusterConfig { retention_bytes: bytes, ..self }
    }

    /// As a busy throttle has it.
    pub(crate) fn busy_by_default(self) -> ClusterConfig {
        ClusterConfig { busy: self.busy.or(Some(true)), ..self }
    }

    fn or_first_error<T>(&mut self, key: impl Into<String>, value: Result<T, String>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(message) => {
                let fault = ClusterFieldError { key: key.into(), message };
                self.fault.get_or_insert(fault);
                None
            }
        }
    }
}

/// What a driver asks of a checked configuration.
impl ClusterConfig {
    /// Where to listen: without a secret, for this machine only.
    pub(crate) fn listen_address(&self) -> SocketAddr {
        let default = match self.secret {
            Some(_) => Ipv4Addr::UNSPECIFIED,
            None => Ipv4Addr::LOCALHOST,
        };
        self.listen.unwrap_or_else(|| SocketAddr::new(default.into(), PORT))
    }

    /// The secret, once it was loaded.
    pub(crate) fn secret_bytes(&self) -> Option<&[u8]> {
        match &self.secret {
            Some(Secret::Known(secret)) => Some(&secret.0),
            _ => None,
        }
    }

    /// The packet keys, the one to use first.
    pub(crate) fn packet_key_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.packet_keys.iter().flatten().map(|key| key.0.as_slice())
    }

    /// Whether no datagram may go beyond this machine, or come from there: also not to what a
    /// name turns out to mean.
    pub(crate) fn is_loopback_only(&self) -> bool {
        self.secret.is_none() && !self.without_secret
    }

    /// The time to live of multicast.
    pub(crate) fn ttl(&self) -> u32 {
        self.multicast_ttl.unwrap_or(1)
    }
}

impl ClusterConfig {
    /// Reads the secret, if it is in a file. Returns a warning if every user can read it.
    pub(crate) fn load(&mut self) -> Result<Option<String>> {
        self.secret.as_mut().map_or(Ok(None), Secret::load)
    }
}

impl Config {
    /// The cluster that this node belongs to.
    pub fn set_cluster(&mut self, cluster: ClusterConfig) {
        self.cluster = Some(cluster);
        self.table.clustered = true;
    }
}
