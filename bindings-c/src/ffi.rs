//! Reads and writes every pointer that C passes. Contains all unsafe code of this crate.
//!
//! The body of an export is `guard!(|c| ..)`. Only `c`, the [`Caller`], can dereference a pointer.
//! It returns an `argument` error if it can see that the pointer is invalid.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::SocketAddr;
use std::ptr;
use std::slice;
use std::time::Duration;

use dthrottle_core::{Error, ErrorKind, Result};

use crate::client::{ClientCounts, ClientOptions};
use crate::config::{Rule, Table};
use crate::decision::CheckOptions;
use crate::inspect::Bucket;
use crate::middleware::Request;
use crate::tables::TableInfo;
use crate::web::Response;

/// A C `bool`. A byte in Rust, because a C caller may pass any byte.
pub(crate) type Flag = u8;

/// The body of every export. `export_checks.rs` checks that no other code uses this macro.
macro_rules! guard {
    (|$caller:ident| $body:expr) => {{
        // SAFETY: this is the body of an export, and its caller keeps the promises of the header.
        let caller = unsafe { $crate::ffi::Caller::new() };
        let $caller = &caller;
        $crate::guard::run_export(|| $body)
    }};
    // For exports with a buffer for the error message.
    ($error:ident, $error_size:ident, |$caller:ident| $body:expr) => {{
        // SAFETY: as above.
        let caller = unsafe { $crate::ffi::Caller::new() };
        let $caller = &caller;
        $crate::guard::run_export(|| {
            let result = $crate::guard::catch_panic(|| $body);
            $caller.write_error($error, $error_size, &result);
            result
        })
    }};
}

/// Stands for the promises that the caller of one export makes, as the start of the header states
/// them. A pointer that is not NULL points to what the export expects until the call ends. A handle
/// was made by the matching call and was not released. No other thread uses memory that the call
/// writes.
pub(crate) struct Caller(());

impl Caller {
    /// # Safety
    ///
    /// Only an export may call this, and it may pass only pointers that its own caller passed.
    pub(crate) unsafe fn new() -> Caller {
        Caller(())
    }

    /// Returns the value behind a handle.
    pub(crate) fn handle<T>(&self, handle: *const T) -> Result<&T> {
        if handle.is_null() || !handle.is_aligned() {
            return Err(bad("a handle must not be NULL, and must come from the library"));
        }
        // SAFETY: the caller promises that this library made the handle, and that it is valid until
        // the call ends. `self` does not outlive the call. Handles are only used as shared
        // references.
        Ok(unsafe { &*handle })
    }

    /// Returns the bytes of a pointer and a length.
    pub(crate) fn bytes(&self, start: *const c_void, len: usize) -> Result<&[u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if start.is_null() {
            return Err(bad("a string that is NULL must have the length 0"));
        }
        if isize::try_from(len).is_err() {
            return Err(bad("a length must be at most PTRDIFF_MAX"));
        }
        // SAFETY: the caller promises `len` bytes, which no thread changes until the call ends.
        Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
    }

    /// Returns the values of an array.
    fn list<T: Copy>(&self, start: *const T, count: usize) -> Result<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        self.check_list(start, count)?;
        // SAFETY: the caller promises `count` values, which no thread changes until the call ends.
        Ok(unsafe { slice::from_raw_parts(start, count) })
    }

    /// Returns the tags of two arrays. Checks all pointers before it returns the first tag.
    pub(crate) fn tags(
        &self,
        starts: *const *const c_void,
        lens: *const usize,
        count: usize,
    ) -> Result<impl Iterator<Item = &[u8]> + Clone> {
        let pairs = self.list(starts, count)?.iter().zip(self.list(lens, count)?);
        pairs.clone().try_for_each(|(start, len)| self.bytes(*start, *len).map(drop))?;
        // All of them were checked above, so none is an error here.
        Ok(pairs.map(|(start, len)| self.bytes(*start, *len).unwrap_or_default()))
    }

    /// Returns an array for the results of checks. All are set to true, so that the checks that are
    /// not made fail open.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory belongs to the caller, and each call borrows it once"
    )]
    pub(crate) fn out_flags(&self, start: *mut Flag, count: usize) -> Result<&mut [bool]> {
        if count == 0 {
            return Ok(&mut []);
        }
        self.check_list(start, count)?;
        // SAFETY: the caller promises memory for `count` flags.
        unsafe { ptr::write_bytes(start, 1, count) };
        // SAFETY: as above. No other thread uses them until the call ends, and each is a valid
        // `bool`, 1.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast(), count) })
    }

    fn check_list<T>(&self, start: *const T, count: usize) -> Result<()> {
        if start.is_null() || !start.is_aligned() {
            return Err(bad("an array must not be NULL, and must be aligned"));
        }
        match count.checked_mul(size_of::<T>()).map(isize::try_from) {
            Some(Ok(_)) => Ok(()),
            _ => Err(bad("the size of an array must be at most PTRDIFF_MAX")),
        }
    }

    /// Returns a string as UTF-8.
    pub(crate) fn text(&self, start: *const c_char, len: usize) -> Result<&str> {
        let bytes = self.bytes(start.cast(), len)?;
        str::from_utf8(bytes).map_err(|_| bad("a string must be UTF-8"))
    }

    /// Returns an optional string: `None` if it is NULL.
    pub(crate) fn name(&self, start: *const c_char, len: usize) -> Result<Option<&str>> {
        let text = self.text(start, len)?;
        Ok((!start.is_null()).then_some(text))
    }

    /// Copies a struct that the caller filled in. Fields that the caller does not know are zero.
    pub(crate) fn read<T: VersionedStruct>(&self, from: *const T) -> Result<T> {
        let size = self.size_of(from)?.min(size_of::<T>());
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: the caller promises that `from` has as many bytes as its `size` says, and `size`
        // is at most that. `value` has at least as many, and the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast(), size) };
        // SAFETY: any bits are a valid `T`, and all of them were set.
        Ok(unsafe { value.assume_init() })
    }

    /// Returns a struct that the export fills in for the caller.
    pub(crate) fn out_struct<T: VersionedStruct>(&self, to: *mut T) -> Result<OutStruct<'_, T>> {
        let size = self.size_of(to)?;
        Ok(OutStruct { to, size, caller: PhantomData })
    }

    /// Returns an array of structs that the export fills in for the caller. All of them have the
    /// size that the first one states.
    pub(crate) fn out_structs<T: VersionedStruct>(
        &self,
        to: *mut T,
        count: usize,
    ) -> Result<impl Iterator<Item = OutStruct<'_, T>>> {
        let size = if count == 0 { 0 } else { self.size_of(to)? };
        match count.checked_mul(size).map(isize::try_from) {
            Some(Ok(_)) => {}
            _ => return Err(bad("the size of an array must be at most PTRDIFF_MAX")),
        }
        let out =
            move |at| OutStruct { to: to.wrapping_byte_add(at * size), size, caller: PhantomData };
        Ok((0..count).map(out))
    }

    fn size_of<T: VersionedStruct>(&self, at: *const T) -> Result<usize> {
        if at.is_null() {
            return Err(bad("a struct must not be NULL"));
        }
        // SAFETY: the caller promises a struct, and every versioned struct begins with its size.
        let size = unsafe { at.cast::<usize>().read_unaligned() };
        if size < T::MIN_SIZE {
            return Err(bad("the size of a struct must be set; begin with its INIT macro"));
        }
        Ok(size)
    }

    /// Returns the caller's pointer for a new handle, which is NULL until `OutHandle::set`.
    pub(crate) fn out_handle<T>(&self, to: *mut *mut T) -> Result<OutHandle<'_, T>> {
        let out = OutHandle { to, caller: PhantomData };
        self.store(to, ptr::null_mut())?;
        Ok(out)
    }

    /// Writes a result to the memory of the caller.
    pub(crate) fn store<T>(&self, to: *mut T, value: T) -> Result<()> {
        if to.is_null() {
            return Err(bad("a pointer to a result must not be NULL"));
        }
        // SAFETY: the caller promises memory for a `T`.
        unsafe { to.write_unaligned(value) };
        Ok(())
    }

    /// Takes a handle back, so that its value can be dropped. `None` if it is NULL.
    pub(crate) fn take_handle<T>(&self, handle: *mut T) -> Result<Option<Box<T>>> {
        if handle.is_null() {
            return Ok(None);
        }
        if !handle.is_aligned() {
            return Err(bad("a handle must come from the library"));
        }
        // SAFETY: `OutHandle::set` made it from a box. The caller promises to release it once, and
        // not to use it afterwards.
        Ok(Some(unsafe { Box::from_raw(handle) }))
    }

    /// Writes the error message into a buffer, or an empty string after a success. Does nothing if
    /// the buffer is NULL.
    pub(crate) fn write_error<R>(&self, buffer: *mut c_char, size: usize, result: &Result<R>) {
        if !buffer.is_null() && size > 0 {
            let text = result.as_ref().err().map(ToString::to_string);
            self.copy_text(buffer, size, &text.unwrap_or_default());
        }
    }

    /// Writes text into a buffer, with a NUL at the end. Cuts it between two characters if it is
    /// too long. Does nothing if the buffer is NULL.
    pub(crate) fn copy_text(&self, buffer: *mut c_char, size: usize, text: &str) {
        if buffer.is_null() || size == 0 {
            return;
        }
        let end = text.floor_char_boundary(size - 1);
        // SAFETY: the caller promises `size` bytes, and `end` is less.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), end) };
        // SAFETY: as above.
        unsafe { buffer.wrapping_add(end).write(0) };
    }
}

/// The caller's pointer that receives a new handle.
pub(crate) struct OutHandle<'c, T> {
    to: *mut *mut T,
    caller: PhantomData<&'c Caller>,
}

impl<T> OutHandle<'_, T> {
    /// Makes a handle and writes it to the memory of the caller. `Caller::take_handle` releases it.
    pub(crate) fn set(self, value: T) {
        let handle = owned(value);
        // SAFETY: `Caller::out_handle` already wrote to this pointer.
        unsafe { self.to.write_unaligned(handle) };
    }
}

/// Makes a handle for a field of a struct. `Caller::take_handle` releases it.
pub(crate) fn owned<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// A struct in the memory of the caller, of the size that the caller states.
pub(crate) struct OutStruct<'c, T> {
    to: *mut T,
    size: usize,
    caller: PhantomData<&'c Caller>,
}

impl<T: VersionedStruct> OutStruct<'_, T> {
    /// Writes the fields that both caller and library know. Keeps the size that the caller set.
    pub(crate) fn fill(&self, mut value: T) {
        *value.size_mut() = self.size;
        let from = (&raw const value).cast::<u8>();
        let size = self.size.min(size_of::<T>());
        // SAFETY: the caller promises as many bytes as the size of the struct says; in an array,
        // the size of the first struct. `size` is at most that, and at most the size of `value`,
        // which does not overlap.
        unsafe { ptr::copy_nonoverlapping(from, self.to.cast(), size) };
    }
}

/// A struct of the header that begins with its size. Fields are only added at the end, so caller
/// and library may know different versions of it.
///
/// # Safety
///
/// The struct is `repr(C)`, begins with the size, and any bits are a valid value. It has no padding
/// at its end: a later field could be there, and an older caller leaves padding uninitialised.
pub(crate) unsafe trait VersionedStruct: Copy {
    /// The size of its first version, which every caller knows.
    const MIN_SIZE: usize;

    /// Returns the field `size`.
    fn size_mut(&mut self) -> &mut usize;
}

macro_rules! versioned_structs {
    ($($type:ident ends with $last:ident: $kind:ty, first version $first:expr;)*) => {$(
        const _: () = assert!(offset_of!($type, size) == 0);
        const _: () = assert!(offset_of!($type, $last) + size_of::<$kind>() == size_of::<$type>());

        // SAFETY: it is `repr(C)` and consists of integers, arrays of integers and raw pointers.
        // The assertions above check the rest.
        unsafe impl $crate::ffi::VersionedStruct for $type {
            const MIN_SIZE: usize = $first;

            fn size_mut(&mut self) -> &mut usize {
                &mut self.size
            }
        }
    )*};
}

// To add a field to a struct, write its first version as the `offset_of!` the new field.
versioned_structs! {
    CheckOptions ends with allow_debt: u64, first version offset_of!(CheckOptions, allow_debt);
    Rule ends with burst_time_ns: u64, first version size_of::<Rule>();
    Table ends with bytes: u64, first version size_of::<Table>();
    ClientOptions ends with token_len: usize, first version size_of::<ClientOptions>();
    ClientCounts ends with failures: u64, first version size_of::<ClientCounts>();
    Bucket ends with reset_after_ns: u64, first version size_of::<Bucket>();
    TableInfo ends with buckets: u64, first version size_of::<TableInfo>();
    Request ends with cost: u64, first version size_of::<Request>();
    Response ends with delay_ns: u64, first version size_of::<Response>();
}

/// Returns a text with a NUL at its end, cut to `SIZE` bytes.
pub(crate) fn chars<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut chars = [0; SIZE];
    for (to, from) in chars[..SIZE - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    chars
}

/// Converts to nanoseconds, at most `u64::MAX`.
pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the address of a peer as text; empty if it is unknown.
pub(crate) fn address<const SIZE: usize>(address: Option<SocketAddr>) -> [c_char; SIZE] {
    chars(&address.map(|address| address.to_string()).unwrap_or_default())
}

/// Returns the index of a rule, or -1 for `None`.
pub(crate) fn index(rule: Option<usize>) -> i64 {
    rule.map_or(-1, |rule| rule as i64)
}

/// Returns the element of a list at an index that C passed.
pub(crate) fn at<T>(list: &[T], index: i32) -> Result<&T> {
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    found.ok_or_else(|| bad("an index must be below the number of entries"))
}

/// Makes an `argument` error. For arguments that exist only in C.
#[cold]
pub(crate) fn bad(message: &str) -> Error {
    Error::new(ErrorKind::Argument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Caller {
        /// Makes a caller for tests, which keep the promises.
        pub(crate) fn in_test() -> Caller {
            Caller(())
        }
    }

    fn export_with_error(error: *mut c_char, error_size: usize, result: Result<()>) -> i32 {
        guard!(error, error_size, |_c| result)
    }

    fn panicking_export(error: *mut c_char, error_size: usize) -> i32 {
        guard!(error, error_size, |_c| if error_size > 0 { panic!("wanted") } else { Ok(()) })
    }

    /// Calls an export with a buffer of this size. Returns its status and the message.
    fn message_of(size: usize, export: impl Fn(*mut c_char, usize) -> i32) -> (i32, String) {
        let mut buffer = vec![b'#'; size + 1];
        let status = export(buffer.as_mut_ptr().cast(), size);
        assert_eq!(buffer.pop(), Some(b'#'), "the export wrote beyond the end of the buffer");
        let end = buffer.iter().position(|byte| *byte == 0).unwrap();
        (status, String::from_utf8(buffer[..end].to_vec()).unwrap())
    }

    #[test]
    fn an_error_message_is_cut_between_characters() {
        let error = Error::new(ErrorKind::Config, "aé€🦀");
        let export = |start, size| export_with_error(start, size, Err(error.clone()));
        let cuts = ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€🦀", "aé€🦀"];
        for (i, cut) in cuts.into_iter().enumerate() {
            assert_eq!(message_of(i + 1, export), (-1, cut.to_string()));
        }
        assert_eq!(export(ptr::null_mut(), 10), -1);
        assert_eq!(
            message_of(5, |start, size| export_with_error(start, size, Ok(()))),
            (0, String::new())
        );
    }

    #[test]
    fn a_panic_writes_its_message_into_the_buffer() {
        let (status, text) = message_of(100, panicking_export);
        assert_eq!(status, ErrorKind::Internal.number());
        assert!(text.ends_with(": wanted"), "{text}");
    }

    #[test]
    fn null_and_unaligned_pointers_are_argument_errors() {
        let c = Caller::in_test();
        let kind = |error: Error| assert_eq!(error.kind(), ErrorKind::Argument);
        kind(c.handle(ptr::null::<u64>()).unwrap_err());
        kind(c.handle(ptr::without_provenance::<u64>(12)).unwrap_err());
        kind(c.take_handle(ptr::without_provenance_mut::<u64>(12)).unwrap_err());
        assert!(c.take_handle(ptr::null_mut::<u64>()).unwrap().is_none());
        kind(c.bytes(ptr::null(), 1).unwrap_err());
        kind(c.bytes([0_u8].as_ptr().cast(), isize::MAX as usize + 1).unwrap_err());
        assert_eq!(c.bytes(ptr::null(), 0).unwrap(), b"");
        kind(c.store(ptr::null_mut::<u64>(), 1).unwrap_err());
        assert!(c.out_handle(ptr::null_mut::<*mut u64>()).is_err());
        assert!(c.out_struct(ptr::null_mut::<CheckOptions>()).is_err());
    }

    #[test]
    fn a_null_name_differs_from_an_empty_name() {
        let c = Caller::in_test();
        assert_eq!(c.name(ptr::null(), 0).unwrap(), None);
        assert_eq!(c.name(c"".as_ptr(), 0).unwrap(), Some(""));
        assert_eq!(c.name(c"api".as_ptr(), 3).unwrap(), Some("api"));
        assert!(c.name(ptr::null(), 3).is_err());
        assert!(c.name(c"\xff".as_ptr(), 1).is_err());
    }
}
