//! Addresses of clients, as peers and proxies write them. What is done with them is in
//! `python/dthrottle/address.py`; this runs for every request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::guard;

/// IPv6 addresses that stand for an IPv4 address, which is in the last four bytes: mapped, and
/// translated by NAT64 (RFC 6052). By range, never by spelling.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];
const NAT64: [u8; 12] = [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0];

/// Read an address as peers and proxies write it; 4 or 16 bytes, or None if it is none.
///
/// Blanks around it, brackets, a port and a zone do not matter, nor does how it is spelled.
#[pyfunction]
pub(crate) fn parse_address<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guard(|| {
        Ok(of(text).map(|address| match address {
            IpAddr::V4(address) => PyBytes::new(py, &address.octets()),
            IpAddr::V6(address) => PyBytes::new(py, &address.octets()),
        }))
    })
}

/// The same as an address.
pub(crate) fn of(text: &Bound<'_, PyAny>) -> Option<IpAddr> {
    // Text with half a character in it is no address.
    parse(text.cast::<PyString>().ok()?.to_str().ok()?)
}

fn parse(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.into());
    }
    let mut text = text.trim_matches([' ', '\t']);
    if let Some(inner) = text.strip_prefix('[') {
        let (address, port) = inner.split_once(']')?;
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        text = address;
    } else if let Some((address, port)) = text.split_once(':') {
        if !port.contains(':') {
            return is_port(port).then(|| address.parse::<Ipv4Addr>().ok())?.map(Into::into);
        }
    } else {
        return text.parse::<Ipv4Addr>().ok().map(Into::into);
    }
    let address = text.split('%').next()?.parse::<Ipv6Addr>().ok()?;
    Some(unmapped(address).map_or(address.into(), Into::into))
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The IPv4 address that an IPv6 address stands for.
fn unmapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let (prefix, last) = octets.split_last_chunk::<4>()?;
    // Compatible ones (RFC 4291) end with an address that does not begin with zero.
    let stands = prefix == MAPPED || prefix == NAT64 || (prefix == [0; 12] && last[0] != 0);
    stands.then(|| Ipv4Addr::from(*last))
}
