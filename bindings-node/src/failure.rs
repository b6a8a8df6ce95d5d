//! Core's errors as JavaScript's: an Error whose `code` the API takes apart.

use dthrottle::convert;
use napi_derive::napi;

use crate::common;

/// The result of every export that can fail. (The macro knows it by this name.)
pub type Result<T> = std::result::Result<T, napi::Error<Code>>;

/// The `code` of an Error.
pub struct Code(String);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Core's error as JavaScript's.
pub(crate) fn failure(error: dthrottle::Error) -> napi::Error<Code> {
    napi::Error::new(Code(common::code(&error)), error.to_string())
}

/// The error of a hot call, in a box: results are passed on as they are, and large ones take time.
pub(crate) struct Fault(pub(crate) Box<napi::Error<Code>>);

impl From<dthrottle::Error> for Fault {
    #[cold]
    fn from(error: dthrottle::Error) -> Fault {
        Fault(Box::new(failure(error)))
    }
}

/// About an argument of the wrong type. The API lets none through.
impl From<napi::Error> for Fault {
    #[cold]
    fn from(error: napi::Error) -> Fault {
        Fault(Box::new(napi::Error::new(Code(error.status.to_string()), error.reason)))
    }
}

/// Throws the error about a cost that is no number.
#[napi(catch_unwind)]
pub fn bad_cost(shown: String) -> Result<()> {
    Err(failure(convert::bad_cost(shown)))
}

/// Panics. Only debug builds have it: the tests see there what becomes of a panic.
#[cfg(debug_assertions)]
#[napi(catch_unwind)]
pub fn panic_now() {
    panic!("asked to panic");
}
