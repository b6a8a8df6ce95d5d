//! Converts core's errors to JavaScript errors, whose `code` is parsed by `api/errors.js`.

use dthrottle::convert;
use napi_derive::napi;

use crate::common;

/// The result of every export that can fail. The macro requires this name.
pub type Result<T> = std::result::Result<T, napi::Error<Code>>;

/// The `code` of an Error.
pub struct Code(String);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Converts core's error to a JavaScript error.
pub(crate) fn failure(error: dthrottle::Error) -> napi::Error<Code> {
    napi::Error::new(Code(common::code(&error)), error.to_string())
}

/// The error of a hot call. It is boxed, because copying a large result takes time.
pub(crate) struct CallError(pub(crate) Box<napi::Error<Code>>);

impl From<dthrottle::Error> for CallError {
    #[cold]
    fn from(error: dthrottle::Error) -> CallError {
        CallError(Box::new(failure(error)))
    }
}

/// An argument of the wrong type, which the API never passes.
impl From<napi::Error> for CallError {
    #[cold]
    fn from(error: napi::Error) -> CallError {
        CallError(Box::new(napi::Error::new(Code(error.status.to_string()), error.reason)))
    }
}

/// Throws the error about a cost that is not a number.
#[napi(catch_unwind)]
pub fn bad_cost(shown: String) -> Result<()> {
    Err(failure(convert::bad_cost(shown)))
}

/// Panics. Exists only in debug builds, for tests.
#[cfg(debug_assertions)]
#[napi(catch_unwind)]
pub fn panic_now() {
    panic!("a panic for tests");
}
