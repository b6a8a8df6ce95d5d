//! What nearly every request comes to: one unit, or some, for whoever opened the connection. One
//! call instead of the several that a gate otherwise makes, which cost more than the check.

use std::net::IpAddr;

use dthrottle::Ask;
use pyo3::prelude::*;

use crate::address;
use crate::args;
use crate::decision::Decision;
use crate::domain::Domain;
use crate::errors::guard;

/// Asks for the same cost each time, for the client with this address.
#[pyclass(frozen, module = "dthrottle._dthrottle")]
pub(crate) struct Quick {
    domain: Py<Domain>,
    ask: Ask,
    ipv6_mask: u128,
}

#[pymethods]
impl Quick {
    #[new]
    fn new(domain: Py<Domain>, cost: &Bound<'_, PyAny>, ipv6_prefix: u32) -> PyResult<Quick> {
        guard(|| {
            let ask = Ask::cost(args::cost(cost)?);
            let ipv6_mask = u128::MAX.checked_shl(128 - ipv6_prefix.min(128)).unwrap_or(0);
            Ok(Quick { domain, ask, ipv6_mask })
        })
    }

    /// The decision; None, and nothing asked, if the address is none.
    fn check(&self, py: Python<'_>, peer: &Bound<'_, PyAny>) -> PyResult<Option<Decision>> {
        guard(|| {
            let domain = self.domain.bind(py).get();
            Ok(match address::of(peer) {
                Some(IpAddr::V4(address)) => Some(domain.asked(&address.octets(), self.ask)?),
                Some(IpAddr::V6(address)) => {
                    let kept = address.to_bits() & self.ipv6_mask;
                    Some(domain.asked(&kept.to_be_bytes(), self.ask)?)
                }
                None => None,
            })
        })
    }
}
