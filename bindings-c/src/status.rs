//! Status numbers, their texts, and the version.

use std::ffi::{CStr, c_char};

use dthrottle_core::ErrorKind;

/// The call did what it was asked.
pub const DTHROTTLE_OK: i32 = 0;
/// A configuration that cannot be: unknown key, bad rate, value out of range, duplicate name.
pub const DTHROTTLE_ERR_CONFIG: i32 = -1;
/// A cost above the burst of a rule: it could never pass.
pub const DTHROTTLE_ERR_COST: i32 = -2;
/// No such domain.
pub const DTHROTTLE_ERR_DOMAIN: i32 = -3;
/// The throttle was closed.
pub const DTHROTTLE_ERR_CLOSED: i32 = -4;
/// Anything else wrong with an argument: NULL, a bad length, text that is not UTF-8, a struct
/// without its size, a clock that is set back.
pub const DTHROTTLE_ERR_ARGUMENT: i32 = -5;
/// A configuration file that cannot be read.
pub const DTHROTTLE_ERR_FILE: i32 = -6;
/// A bug in dthrottle. Please report it.
pub const DTHROTTLE_ERR_INTERNAL: i32 = -7;

/// The limit and remaining of a domain without rules.
pub const DTHROTTLE_UNLIMITED: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// The version of the library that is running, such as "0.1.0". DTHROTTLE_VERSION is the one of
/// the header that the program was compiled with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_version() -> *const c_char {
    guard!(|_c| Ok(VERSION.as_ptr()))
}

/// A few words about a status, never NULL. Static: not to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_status_text(status: i32) -> *const c_char {
    guard!(|_c| Ok(text(status).as_ptr()))
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version with NUL"),
    };

fn text(status: i32) -> &'static CStr {
    if status == DTHROTTLE_OK {
        return c"ok";
    }
    let kind = ErrorKind::ALL.into_iter().find(|kind| kind.number() == status);
    match kind {
        Some(ErrorKind::Config) => c"the configuration cannot be",
        Some(ErrorKind::Cost) => c"the cost is above the burst",
        Some(ErrorKind::Domain) => c"no such domain",
        Some(ErrorKind::Closed) => c"the throttle is closed",
        Some(ErrorKind::Argument) => c"a bad argument",
        Some(ErrorKind::File) => c"the configuration file cannot be read",
        Some(ErrorKind::Internal) => c"a bug in dthrottle",
        _ => c"not a status of dthrottle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_core() {
        let numbers = [
            DTHROTTLE_ERR_CONFIG,
            DTHROTTLE_ERR_COST,
            DTHROTTLE_ERR_DOMAIN,
            DTHROTTLE_ERR_CLOSED,
            DTHROTTLE_ERR_ARGUMENT,
            DTHROTTLE_ERR_FILE,
            DTHROTTLE_ERR_INTERNAL,
        ];
        assert_eq!(numbers, ErrorKind::ALL.map(ErrorKind::number));
        assert_eq!(DTHROTTLE_UNLIMITED, dthrottle_core::UNLIMITED);
    }

    #[test]
    fn every_kind_has_a_text_of_its_own() {
        let unknown = text(1);
        let mut texts: Vec<&CStr> = ErrorKind::ALL.map(|kind| text(kind.number())).to_vec();
        assert!(!texts.contains(&unknown));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ErrorKind::ALL.len());
    }
}
