//! What becomes of a result or a panic at the border. Touches no pointers.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dthrottle_core::{Error, ErrorKind, Result};

use crate::records::DTHROTTLE_OK;

/// What an export can answer with, and what C sees of it.
pub(crate) trait ExportResult {
    /// The type in C.
    type C;

    /// What C sees of a success.
    fn into_c(self) -> Self::C;

    /// What C sees of an error.
    fn from_error(kind: ErrorKind) -> Self::C;
}

/// A status.
impl ExportResult for () {
    type C = i32;

    fn into_c(self) -> i32 {
        DTHROTTLE_OK
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// 1, 0, or a negative status.
impl ExportResult for bool {
    type C = i32;

    fn into_c(self) -> i32 {
        self.into()
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// A number from 0 up, or a negative status.
impl ExportResult for i32 {
    type C = i32;

    fn into_c(self) -> i32 {
        self
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// A number above 0, or 0.
impl ExportResult for u64 {
    type C = u64;

    fn into_c(self) -> u64 {
        self
    }

    fn from_error(_: ErrorKind) -> u64 {
        0
    }
}

/// A string, or NULL.
impl ExportResult for *const c_char {
    type C = *const c_char;

    fn into_c(self) -> *const c_char {
        self
    }

    fn from_error(_: ErrorKind) -> *const c_char {
        std::ptr::null()
    }
}

/// Runs the work of an export; a panic in it is an `internal` error.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    // Unwind safe: every step on a bucket is whole, whatever happens around it, and the rest
    // belongs to this call.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let error = internal(cause.as_ref());
        // To drop it could panic again.
        std::mem::forget(cause);
        Err(error)
    })
}

/// Runs the work of an export and answers as C sees it.
pub(crate) fn run_export<R: ExportResult>(work: impl FnOnce() -> Result<R>) -> R::C {
    // Only what C sees leaves the part that may panic: an error is large, and would be copied.
    let work = || match work() {
        Ok(reply) => reply.into_c(),
        Err(error) => R::from_error(error.kind()),
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        // To drop it could panic again.
        std::mem::forget(cause);
        R::from_error(ErrorKind::Internal)
    })
}

#[cold]
fn internal(cause: &(dyn Any + Send)) -> Error {
    let text = cause.downcast_ref::<&str>().copied();
    let text = text.or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    let message =
        format!("a bug in dthrottle, please report it: {}", text.unwrap_or("unknown cause"));
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{DTHROTTLE_ERR_COST, DTHROTTLE_ERR_INTERNAL};

    fn panics<R>() -> Result<R> {
        panic!("wanted by a test")
    }

    fn fails<R>() -> Result<R> {
        Err(Error::new(ErrorKind::Cost, "wanted by a test"))
    }

    #[test]
    fn a_result_becomes_a_status() {
        assert_eq!(run_export(|| Ok(())), DTHROTTLE_OK);
        assert_eq!(run_export(|| Ok(true)), 1);
        assert_eq!(run_export(|| Ok(false)), 0);
        assert_eq!(run_export(|| Ok(7_i32)), 7);
        assert_eq!(run_export(|| Ok(7_u64)), 7);
        assert_eq!(run_export(|| Ok(c"text".as_ptr())), c"text".as_ptr());
    }

    #[test]
    fn an_error_becomes_its_number_or_nothing() {
        assert_eq!(run_export(fails::<()>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<bool>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<i32>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<u64>), 0);
        assert!(run_export(fails::<*const c_char>).is_null());
    }

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(run_export(panics::<()>), DTHROTTLE_ERR_INTERNAL);
        assert_eq!(run_export(panics::<bool>), DTHROTTLE_ERR_INTERNAL);
        assert_eq!(run_export(panics::<u64>), 0);
        assert!(run_export(panics::<*const c_char>).is_null());
        let error = catch_panic(panics::<()>).unwrap_err();
        assert!(error.to_string().ends_with("wanted by a test"), "{error}");
    }

    #[test]
    fn a_panic_of_any_kind_is_caught() {
        struct PanicsOnDrop;
        impl Drop for PanicsOnDrop {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let work = || -> Result<()> { std::panic::panic_any(PanicsOnDrop) };
        assert_eq!(run_export(work), DTHROTTLE_ERR_INTERNAL);
        let work = || -> Result<()> { std::panic::panic_any(format!("{}", 5)) };
        assert!(catch_panic(work).unwrap_err().to_string().ends_with(": 5"));
    }
}
