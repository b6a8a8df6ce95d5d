//! Addresses of clients as tags.

use dthrottle::web;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::convert::{lines, read, text};
use crate::args::Arg;
use crate::errors::guard;

/// Finds the address of the client behind trusted proxies: 4 bytes for IPv4, 16 for IPv6.
///
/// Only the first ipv6_prefix bits of an IPv6 address are used, because one client usually has all
/// addresses that begin with them.
#[pyclass(frozen, module = "dthrottle.address")]
pub(crate) struct ClientAddress(web::ClientAddress);

#[pymethods]
impl ClientAddress {
    #[new]
    #[pyo3(
        signature = (*, trusted_proxies=Arg::ABSENT, ipv6_prefix=Arg::ABSENT),
        text_signature = "(*, trusted_proxies=0, ipv6_prefix=64)"
    )]
    fn new(trusted_proxies: Arg<'_, '_>, ipv6_prefix: Arg<'_, '_>) -> PyResult<ClientAddress> {
        guard(|| {
            // Middleware treats None as the default, but here it is an error.
            for (name, arg, right) in [
                ("trusted_proxies", &trusted_proxies, "a number of proxies, or a list of networks"),
                ("ipv6_prefix", &ipv6_prefix, "a number of bits from 1 to 128"),
            ] {
                if arg.value().is_some_and(PyAnyMethods::is_none) {
                    let message = format!("must be {right}, got None");
                    return Err(dthrottle::Error::config(name, message).into());
                }
            }
            let options = read(&[
                ("trusted_proxies", trusted_proxies.value()),
                ("ipv6_prefix", ipv6_prefix.value()),
            ])?;
            Ok(ClientAddress(options.address))
        })
    }

    /// Returns the tag of the client that sent a request, or None if its address is unknown.
    #[pyo3(signature = (peer, forwarded_for=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        peer: &Bound<'py, PyAny>,
        forwarded_for: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guard(|| {
            let (peer, lines) = (text(peer), lines(forwarded_for)?);
            let forwarded: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
            let found = self.0.find(peer.as_deref(), &forwarded);
            Ok(found.map(|address| PyBytes::new(py, self.0.tag(address).as_ref())))
        })
    }
}

/// Returns the client's address as a tag, or None if it is unknown.
///
/// peer is the address at the other end of the connection. forwarded_for is the header
/// X-Forwarded-For, as one string or several; it is read only if proxies are trusted. A ClientAddress
/// is faster for many calls.
#[pyfunction]
#[pyo3(
    signature = (
        peer, forwarded_for=None, *, trusted_proxies=Arg::ABSENT, ipv6_prefix=Arg::ABSENT
    ),
    text_signature = "(peer, forwarded_for=None, *, trusted_proxies=0, ipv6_prefix=64)"
)]
pub(crate) fn client_address<'py>(
    py: Python<'py>,
    peer: &Bound<'py, PyAny>,
    forwarded_for: Option<&Bound<'py, PyAny>>,
    trusted_proxies: Arg<'_, '_>,
    ipv6_prefix: Arg<'_, '_>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    ClientAddress::new(trusted_proxies, ipv6_prefix)?.__call__(py, peer, forwarded_for)
}

/// Parses an address as servers and proxies write it. Returns 4 or 16 bytes, or None if the text is
/// not an address.
///
/// Surrounding blanks, brackets, a port and a zone are ignored. All spellings give the same bytes.
#[pyfunction]
pub(crate) fn parse_address<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guard(|| {
        let found = self::text(text).and_then(|text| web::parse_address(&text));
        let whole = web::ClientAddress::new(web::Trusted::Count(0), 128);
        Ok(found.map(|address| PyBytes::new(py, whole.tag(address).as_ref())))
    })
}
