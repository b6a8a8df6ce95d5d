//! Converts the result or the panic of an export to its return value. Uses no pointers.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dthrottle_core::{Error, ErrorKind, Result};

use crate::records::DTHROTTLE_OK;

/// A type that an export can return, and its type in C.
pub(crate) trait ExportResult {
    /// The return type in C.
    type C;

    /// Converts a success.
    fn into_c(self) -> Self::C;

    /// Converts an error.
    fn from_error(kind: ErrorKind) -> Self::C;
}

/// Returns a status.
impl ExportResult for () {
    type C = i32;

    fn into_c(self) -> i32 {
        DTHROTTLE_OK
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// Returns 1, 0, or a negative status.
impl ExportResult for bool {
    type C = i32;

    fn into_c(self) -> i32 {
        self.into()
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// Returns a number from 0, or a negative status.
impl ExportResult for i32 {
    type C = i32;

    fn into_c(self) -> i32 {
        self
    }

    fn from_error(kind: ErrorKind) -> i32 {
        kind.number()
    }
}

/// Returns a number, or 0 after an error.
impl ExportResult for u64 {
    type C = u64;

    fn into_c(self) -> u64 {
        self
    }

    fn from_error(_: ErrorKind) -> u64 {
        0
    }
}

/// Returns a string, or NULL after an error.
impl ExportResult for *const c_char {
    type C = *const c_char;

    fn into_c(self) -> *const c_char {
        self
    }

    fn from_error(_: ErrorKind) -> *const c_char {
        std::ptr::null()
    }
}

/// Runs the work of an export. Returns an `internal` error if it panics.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    // Unwind safe: every change of a bucket is one atomic step, and all other state belongs to this
    // call.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let error = internal(cause.as_ref());
        // Dropping it could panic again.
        std::mem::forget(cause);
        Err(error)
    })
}

/// Runs the work of an export and converts its result.
pub(crate) fn run_export<R: ExportResult>(work: impl FnOnce() -> Result<R>) -> R::C {
    // The result is converted inside `catch_unwind`, because copying an `Error` out of it is slow.
    let work = || match work() {
        Ok(result) => result.into_c(),
        Err(error) => R::from_error(error.kind()),
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        // Dropping it could panic again.
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
        panic!("the test panics")
    }

    fn fails<R>() -> Result<R> {
        Err(Error::new(ErrorKind::Cost, "the test fails"))
    }

    #[test]
    fn each_type_of_result_is_converted() {
        assert_eq!(run_export(|| Ok(())), DTHROTTLE_OK);
        assert_eq!(run_export(|| Ok(true)), 1);
        assert_eq!(run_export(|| Ok(false)), 0);
        assert_eq!(run_export(|| Ok(7_i32)), 7);
        assert_eq!(run_export(|| Ok(7_u64)), 7);
        assert_eq!(run_export(|| Ok(c"text".as_ptr())), c"text".as_ptr());
    }

    #[test]
    fn an_error_becomes_a_status_zero_or_null() {
        assert_eq!(run_export(fails::<()>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<bool>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<i32>), DTHROTTLE_ERR_COST);
        assert_eq!(run_export(fails::<u64>), 0);
        assert!(run_export(fails::<*const c_char>).is_null());
    }

    #[test]
    fn a_panic_becomes_an_internal_error() {
        assert_eq!(run_export(panics::<()>), DTHROTTLE_ERR_INTERNAL);
        assert_eq!(run_export(panics::<bool>), DTHROTTLE_ERR_INTERNAL);
        assert_eq!(run_export(panics::<u64>), 0);
        assert!(run_export(panics::<*const c_char>).is_null());
        let error = catch_panic(panics::<()>).unwrap_err();
        assert!(error.to_string().ends_with("the test panics"), "{error}");
    }

    #[test]
    fn a_panic_with_any_payload_is_caught() {
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
