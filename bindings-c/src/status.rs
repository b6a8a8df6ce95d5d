//! The texts of the status numbers, and the version of the library.

use std::ffi::{CStr, c_char};

use crate::records::DTHROTTLE_OK;

/// limit and remaining of a decision in a domain without rules.
pub const DTHROTTLE_UNLIMITED: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// Returns the version of the loaded library, such as "0.1.0". DTHROTTLE_VERSION is the version of
/// the header with which the program was compiled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_version() -> *const c_char {
    guard!(|_c| Ok(VERSION.as_ptr()))
}

/// Describes a status in a few words. Never returns NULL. Do not free the string.
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
        Err(_) => panic!("a text contains a NUL"),
    }
}

#[cfg(test)]
mod tests {
    use dthrottle_core::ErrorKind;

    use super::*;

    #[test]
    fn every_error_kind_has_its_own_text() {
        let unknown = text(1);
        let mut texts: Vec<&CStr> = ErrorKind::ALL.map(|kind| text(kind.number())).to_vec();
        assert!(!texts.contains(&unknown));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ErrorKind::ALL.len());
    }
}
