//! The texts of status numbers, and the version.

use std::ffi::{CStr, c_char};

use crate::records::DTHROTTLE_OK;

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

const VERSION: &CStr = c_text(concat!(env!("CARGO_PKG_VERSION"), "\0"));

fn text(status: i32) -> &'static CStr {
    if status == DTHROTTLE_OK {
        return c"ok";
    }
    let found = TEXTS.iter().find(|(number, _)| *number == status);
    found.map_or(c"not a status of dthrottle", |(_, text)| text)
}

macro_rules! texts {
    ($($(#[$doc:meta])+ $kind:ident = $number:literal, $name:literal, $code:ident,
        $class:ident($base:ident), $text:literal;)*) => {
        const TEXTS: &[(i32, &CStr)] = &[$(($number, c_text(concat!($text, "\0")))),*];
    };
}

dthrottle_core::error_kinds!(texts);

const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a text with NUL"),
    }
}

#[cfg(test)]
mod tests {
    use dthrottle_core::ErrorKind;

    use super::*;

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
