//! The client of a request: its address, its tag, and the tag that replaces an unusable one.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering;

use super::address::parse_address;
use super::middleware::{Middleware, once};
use super::names::spell;
use super::options::TagSource;
use super::request::{Request, Tag};
use crate::error::Result;

/// How many requests are inspected for signs of misuse. Misuse shows in the first requests.
const MAX_INSPECTED: u32 = 100;

/// The prefix of tags for clients that are counted by address because they have no usable tag.
/// UTF-8 text never contains the last byte. Tags from requests that have this prefix are unusable.
pub const BY_ADDRESS: &[u8] = b"address\xff";

/// The prefix of tags for clients whose peer has a name instead of an address. Reserved like
/// [`BY_ADDRESS`].
pub const BY_NAME: &[u8] = b"peer\xff";

impl Middleware {
    /// Whether the address of a request's client is exempt.
    pub fn is_exempt(&self, request: &Request<'_>) -> bool {
        !self.options.exempt.is_empty()
            && self.address(request).is_some_and(|found| self.options.exempt.contains(found))
    }

    /// Fills the buckets of a tag. If the tag is the text of an address, also fills the buckets of
    /// the client that is counted by this address.
    ///
    /// # Errors
    ///
    /// If the throttle is closed or cannot be opened.
    pub fn reset(&self, tag: &[u8]) -> Result<()> {
        let domain = self.domain()?;
        domain.reset(tag)?;
        let text = std::str::from_utf8(tag).ok();
        if let Some(address) = text.and_then(parse_address) {
            let address = self.options.address.tag(address);
            match self.options.tag {
                TagSource::Address => domain.reset(address)?,
                _ => domain.reset([BY_ADDRESS, address.as_ref()].concat())?,
            }
        } else if let Some(name) = peer_name(text) {
            domain.reset([BY_NAME, name.as_bytes()].concat())?;
        }
        Ok(())
    }

    /// Returns the client's address, by the option `trusted_proxies` or else as the framework found
    /// it.
    fn address(&self, request: &Request<'_>) -> Option<IpAddr> {
        let address = &self.options.address;
        if self.options.trusts_proxies {
            return address.find(request.peer, request.forwarded);
        }
        let client = request.client.and_then(parse_address);
        // The framework's value may not be an address.
        client.or_else(|| request.peer.and_then(parse_address))
    }

    /// Returns the tag of a request, or `None` if the request passes without a decision.
    pub(super) fn tag(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        match request.tag {
            Tag::Value([]) => self.unusable("empty text"),
            // A header may have any bytes, and must not name another client's bucket.
            Tag::Value(tag) if tag.starts_with(BY_ADDRESS) || tag.starts_with(BY_NAME) => {
                self.unusable("reserved bytes");
            }
            Tag::Value(tag) => return Some(tag.to_vec()),
            Tag::Address => {
                if let Some(address) = self.address(request) {
                    return Some(self.options.address.tag(address).as_ref().to_vec());
                }
                if let Some(name) = peer_name(request.peer) {
                    return Some([BY_NAME, name.as_bytes()].concat());
                }
                // The address may be unknown because the client has disconnected. Then the tag
                // below is charged.
                if !request.is_gone {
                    self.counters.untagged.add_one();
                    let message = format!(
                        "the address of a client is unknown, so its requests pass (behind a proxy on a \
                         Unix socket, set {})",
                        self.proxies_option()
                    );
                    self.warnings.add("DTHROTTLE_NO_TAG", "address", once(message));
                    return None;
                }
            }
            Tag::Missing => {}
            Tag::Failed => self.counters.untagged.add_one(),
            Tag::Unusable(kind) => self.unusable(kind),
        }
        let mut tag = BY_ADDRESS.to_vec();
        match (self.address(request), peer_name(request.peer)) {
            (Some(address), _) => tag.extend_from_slice(self.options.address.tag(address).as_ref()),
            (None, Some(name)) => return Some([BY_NAME, name.as_bytes()].concat()),
            // Letting these requests pass would allow clients to bypass the limit.
            (None, None) if !request.is_gone => {
                let message = format!(
                    "clients without a tag and a known address share one bucket (behind a proxy on a \
                     Unix socket, set {})",
                    self.proxies_option()
                );
                self.warnings.add("DTHROTTLE_NO_TAG", "together", once(message));
            }
            (None, None) => {}
        }
        Some(tag)
    }

    /// Returns the name of the option `trusted_proxies` in the user's language.
    fn proxies_option(&self) -> &'static str {
        spell("trusted_proxies", self.options.names)
    }

    fn unusable(&self, kind: &str) {
        self.counters.untagged.add_one();
        let message = format!(
            "tag must return text (not empty, valid Unicode), bytes or a whole number, got {kind}; \
             the client is counted by its address"
        );
        self.warnings.add("DTHROTTLE_NO_TAG", "tag", once(message));
    }

    /// Warns about signs of misuse in the first requests.
    pub(super) fn inspect(&self, request: &Request<'_>) {
        // Relaxed: the count need not be exact.
        if self.inspected.load(Ordering::Relaxed) >= MAX_INSPECTED {
            return;
        }
        self.inspected.fetch_add(1, Ordering::Relaxed);
        if self.options.tag == TagSource::Function {
            if let Tag::Value(tag) = request.tag
                && std::str::from_utf8(tag).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
            {
                let message = "the tag is an IPv6 address as text, and one client has many addresses; \
                               use dthrottle's client address, or remove the option tag";
                self.warnings.add("DTHROTTLE_IPV6_TAG", "ipv6", message);
            }
        } else if !self.options.trusts_proxies && !request.forwarded.is_empty() {
            let peer = request.peer.and_then(parse_address);
            let is_framework = request.client.is_some() && request.client != request.peer;
            if !is_framework && peer.is_none_or(is_internal) {
                let message = format!(
                    "a request has X-Forwarded-For, which is ignored because no proxy is trusted; \
                     behind a proxy all clients share one bucket; set {}, such as [\"10.0.0.0/8\"]",
                    self.proxies_option()
                );
                self.warnings.add("DTHROTTLE_FORWARDED", "forwarded", message);
            }
        }
    }
}

/// Returns the peer's name if it has a name instead of an address, such as `testclient` in tests of
/// Starlette. A peer on a Unix socket has no name: usually it is a proxy for all clients. Waitress
/// reports such a peer as `localhost`, and Werkzeug as `<local>`.
fn peer_name(peer: Option<&str>) -> Option<&str> {
    let name = peer?;
    let is_unix = matches!(name, "unix" | "localhost" | "<local>")
        || name.starts_with("unix:")
        || name.starts_with(['/', '@', '\0']);
    let is_name = !name.trim().is_empty() && !is_unix && parse_address(name).is_none();
    is_name.then_some(name)
}

/// Whether an address is likely to be a proxy: private, loopback, link-local or carrier-grade NAT.
fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_carrier = v4.octets()[0] == 100 && v4.octets()[1] & 0xC0 == 64;
            v4.is_private() || v4.is_loopback() || is_carrier
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
