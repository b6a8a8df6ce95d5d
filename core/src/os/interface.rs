//! The network interfaces of this host.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// One address of one interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) address: IpAddr,
}

/// All addresses of all interfaces that are up.
pub(crate) fn all() -> io::Result<Vec<Interface>> {
    let mut first = ptr::null_mut();
    // SAFETY: the system writes the start of a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut at = first;
    while !at.is_null() {
        // SAFETY: an entry of the list, which is not changed before it is freed.
        let entry = unsafe { &*at };
        found.extend(read(entry));
        at = entry.ifa_next;
    }
    // SAFETY: came from getifaddrs, and no reference to it is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

fn read(entry: &libc::ifaddrs) -> Option<Interface> {
    let up = entry.ifa_flags & (libc::IFF_UP as libc::c_uint) != 0;
    if !up || entry.ifa_addr.is_null() || entry.ifa_name.is_null() {
        return None;
    }
    // SAFETY: not null, so it points to an address that begins with its family.
    let family = unsafe { (*entry.ifa_addr).sa_family };
    let address = match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family determines the type. The read is unaligned, because the alignment
            // is unknown.
            let v4 = unsafe { ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in>()) };
            IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in6>()) };
            IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr))
        }
        _ => return None,
    };
    // SAFETY: not null, so it points to a name that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    // SAFETY: reads a name that ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    // 0: the interface was removed in the meantime.
    (index != 0).then(|| Interface { name: name.to_string_lossy().into_owned(), index, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed() {
        let all = all().unwrap();
        let loopback = all.iter().find(|i| i.address == IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert!(loopback.name.starts_with("lo"), "{all:?}");
        assert!(loopback.index > 0);
        let same = |i: &&Interface| i.name == loopback.name && i.address.is_ipv6();
        if let Some(v6) = all.iter().find(same) {
            assert_eq!((v6.address, v6.index), (Ipv6Addr::LOCALHOST.into(), loopback.index));
        }
    }
}
