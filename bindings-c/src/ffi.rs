//! Every pointer that C gives or gets, and all unsafe code of this crate.
//!
//! An export's body is `guard!(|c| ..)`. `c`, the [`Caller`], is the only way from a pointer to
//! what it points at, and answers an `argument` error where it can see that there is no way.

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

/// A `bool` of C. A byte here, because C may hand over any byte.
pub(crate) type Flag = u8;

/// The body of every export, and of nothing else (`export_checks.rs` reads the source for it).
macro_rules! guard {
    (|$caller:ident| $body:expr) => {{
        // SAFETY: this is the body of an export; whoever calls it promises what the header asks.
        let caller = unsafe { $crate::ffi::Caller::new() };
        let $caller = &caller;
        $crate::guard::run_export(|| $body)
    }};
    // With a buffer for the text of the error.
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

/// The promises of the caller of one export, as the head of the header states them: what is not
/// NULL points at what the export says, for as long as the call lasts; a handle comes from the
/// call that makes such handles and was not released; nothing that is written to is used by
/// another thread meanwhile.
pub(crate) struct Caller(());

impl Caller {
    /// # Safety
    ///
    /// To be called by an export, which gives it only what its own caller gave.
    pub(crate) unsafe fn new() -> Caller {
        Caller(())
    }

    /// What a handle stands for.
    pub(crate) fn handle<T>(&self, handle: *const T) -> Result<&T> {
        if handle.is_null() || !handle.is_aligned() {
            return Err(bad("a handle is NULL or not a handle"));
        }
        // SAFETY: the caller promises that the handle is one of ours and alive until the call
        // ends, which `self` does not outlive. Handles are only ever shared.
        Ok(unsafe { &*handle })
    }

    /// Any bytes.
    pub(crate) fn bytes(&self, start: *const c_void, len: usize) -> Result<&[u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if start.is_null() {
            return Err(bad("a string is NULL but has a length"));
        }
        if isize::try_from(len).is_err() {
            return Err(bad("a length is more than memory can hold"));
        }
        // SAFETY: the caller promises `len` bytes that nobody changes until the call ends.
        Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
    }

    /// As many values as the caller says.
    fn list<T: Copy>(&self, start: *const T, count: usize) -> Result<&[T]> {
        if count == 0 {
            return Ok(&[]);
        }
        self.check_list(start, count)?;
        // SAFETY: the caller promises `count` of them, which nobody changes until the call ends.
        Ok(unsafe { slice::from_raw_parts(start, count) })
    }

    /// Tags, all looked at before the first is used.
    pub(crate) fn tags(
        &self,
        starts: *const *const c_void,
        lens: *const usize,
        count: usize,
    ) -> Result<impl Iterator<Item = &[u8]> + Clone> {
        let pairs = self.list(starts, count)?.iter().zip(self.list(lens, count)?);
        pairs.clone().try_for_each(|(start, len)| self.bytes(*start, *len).map(drop))?;
        // None of them is an error any more.
        Ok(pairs.map(|(start, len)| self.bytes(*start, *len).unwrap_or_default()))
    }

    /// Room for as many answers, all of them yes until they are known.
    #[expect(clippy::mut_from_ref, reason = "the memory is the caller's, and given out once")]
    pub(crate) fn out_flags(&self, start: *mut Flag, count: usize) -> Result<&mut [bool]> {
        if count == 0 {
            return Ok(&mut []);
        }
        self.check_list(start, count)?;
        // SAFETY: the caller promises room for `count` of them.
        unsafe { ptr::write_bytes(start, 1, count) };
        // SAFETY: as above, and that nobody else uses them until the call ends; each is a 1.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast(), count) })
    }

    fn check_list<T>(&self, start: *const T, count: usize) -> Result<()> {
        if start.is_null() || !start.is_aligned() {
            return Err(bad("a list is NULL or not aligned"));
        }
        match count.checked_mul(size_of::<T>()).map(isize::try_from) {
            Some(Ok(_)) => Ok(()),
            _ => Err(bad("a count is more than memory can hold")),
        }
    }

    /// Bytes that are text.
    pub(crate) fn text(&self, start: *const c_char, len: usize) -> Result<&str> {
        let bytes = self.bytes(start.cast(), len)?;
        str::from_utf8(bytes).map_err(|_| bad("a text is not UTF-8"))
    }

    /// Text that may be left out: NULL.
    pub(crate) fn name(&self, start: *const c_char, len: usize) -> Result<Option<&str>> {
        let text = self.text(start, len)?;
        Ok((!start.is_null()).then_some(text))
    }

    /// A struct that the caller filled in.
    pub(crate) fn read<T: VersionedStruct>(&self, from: *const T) -> Result<T> {
        let size = self.size_of(from)?.min(size_of::<T>());
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: the caller promises that `from` has as many bytes as its size says, of which
        // this is no more; `value` is as large; and the two are not the same.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast(), size) };
        // SAFETY: all bits are fine for a `T`, and all were set.
        Ok(unsafe { value.assume_init() })
    }

    /// Room for a struct that the caller wants filled in.
    pub(crate) fn out_struct<T: VersionedStruct>(&self, to: *mut T) -> Result<OutStruct<'_, T>> {
        let size = self.size_of(to)?;
        Ok(OutStruct { to, size, caller: PhantomData })
    }

    /// Room for as many structs that the caller wants filled in, one after the other. All are as
    /// large as the first says.
    pub(crate) fn out_structs<T: VersionedStruct>(
        &self,
        to: *mut T,
        count: usize,
    ) -> Result<impl Iterator<Item = OutStruct<'_, T>>> {
        let size = if count == 0 { 0 } else { self.size_of(to)? };
        match count.checked_mul(size).map(isize::try_from) {
            Some(Ok(_)) => {}
            _ => return Err(bad("a count is more than memory can hold")),
        }
        let out =
            move |at| OutStruct { to: to.wrapping_byte_add(at * size), size, caller: PhantomData };
        Ok((0..count).map(out))
    }

    fn size_of<T: VersionedStruct>(&self, at: *const T) -> Result<usize> {
        if at.is_null() {
            return Err(bad("a struct is NULL"));
        }
        // SAFETY: the caller promises a struct, and every struct that grows begins with its size.
        let size = unsafe { at.cast::<usize>().read_unaligned() };
        if size < T::MIN_SIZE {
            return Err(bad("the size of a struct is not set"));
        }
        Ok(size)
    }

    /// Where a new handle goes. It is NULL until there is one.
    pub(crate) fn out_handle<T>(&self, to: *mut *mut T) -> Result<OutHandle<'_, T>> {
        let out = OutHandle { to, caller: PhantomData };
        self.store(to, ptr::null_mut())?;
        Ok(out)
    }

    /// Writes a value where the caller wants it.
    pub(crate) fn store<T>(&self, to: *mut T, value: T) -> Result<()> {
        if to.is_null() {
            return Err(bad("a pointer for the answer is NULL"));
        }
        // SAFETY: the caller promises room for a `T`.
        unsafe { to.write_unaligned(value) };
        Ok(())
    }

    /// Takes a handle back, to be dropped; none if it is NULL.
    pub(crate) fn take_handle<T>(&self, handle: *mut T) -> Result<Option<Box<T>>> {
        if handle.is_null() {
            return Ok(None);
        }
        if !handle.is_aligned() {
            return Err(bad("not a handle"));
        }
        // SAFETY: `OutHandle::set` made it from a box, and the caller promises to release it once and
        // to use it no more.
        Ok(Some(unsafe { Box::from_raw(handle) }))
    }

    /// Writes the text of the error into a buffer, if there is one; empty after a success.
    pub(crate) fn write_error<R>(&self, buffer: *mut c_char, size: usize, result: &Result<R>) {
        if !buffer.is_null() && size > 0 {
            let text = result.as_ref().err().map(ToString::to_string);
            self.copy_text(buffer, size, &text.unwrap_or_default());
        }
    }

    /// Writes text into a buffer, if there is one: always with a NUL at the end, never with half
    /// a character.
    pub(crate) fn copy_text(&self, buffer: *mut c_char, size: usize, text: &str) {
        if buffer.is_null() || size == 0 {
            return;
        }
        let end = text.floor_char_boundary(size - 1);
        // SAFETY: the caller promises `size` bytes, and `end` is below it.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), end) };
        // SAFETY: as above.
        unsafe { buffer.wrapping_add(end).write(0) };
    }
}

/// Where a new handle goes.
pub(crate) struct OutHandle<'c, T> {
    to: *mut *mut T,
    caller: PhantomData<&'c Caller>,
}

impl<T> OutHandle<'_, T> {
    /// Gives the caller a handle, to be released with `Caller::take_handle`.
    pub(crate) fn set(self, value: T) {
        let handle = owned(value);
        // SAFETY: `Caller::out_handle` wrote there before.
        unsafe { self.to.write_unaligned(handle) };
    }
}

/// A handle inside a struct that the caller gets, to be released with `Caller::take_handle`.
pub(crate) fn owned<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Room for a struct of the caller's size.
pub(crate) struct OutStruct<'c, T> {
    to: *mut T,
    size: usize,
    caller: PhantomData<&'c Caller>,
}

impl<T: VersionedStruct> OutStruct<'_, T> {
    /// Fills in what both sides know; the size stays the caller's.
    pub(crate) fn fill(&self, mut value: T) {
        *value.size_mut() = self.size;
        let from = (&raw const value).cast::<u8>();
        let size = self.size.min(size_of::<T>());
        // SAFETY: the caller promises as many bytes as the struct's size says, or the first one's
        // where there are several, of which this is no more, nor more than `value` has; and
        // `value` is not theirs.
        unsafe { ptr::copy_nonoverlapping(from, self.to.cast(), size) };
    }
}

/// A struct of the header that begins with its size, so that it can grow at the end: caller and
/// library may know different versions of it.
///
/// # Safety
///
/// It is `repr(C)`, begins with the size, may consist of any bits, and has no padding at its end,
/// where a later field would meet the garbage of a caller who does not know it.
pub(crate) unsafe trait VersionedStruct: Copy {
    /// How large it was in its first version, which every caller knows.
    const MIN_SIZE: usize;

    /// The size.
    fn size_mut(&mut self) -> &mut usize;
}

macro_rules! versioned_structs {
    ($($type:ident ends with $last:ident: $kind:ty, first version $first:expr;)*) => {$(
        const _: () = assert!(offset_of!($type, size) == 0);
        const _: () = assert!(offset_of!($type, $last) + size_of::<$kind>() == size_of::<$type>());

        // SAFETY: `repr(C)` and made of integers, arrays of them, and raw pointers; the rest is
        // asserted above.
        unsafe impl $crate::ffi::VersionedStruct for $type {
            const MIN_SIZE: usize = $first;

            fn size_mut(&mut self) -> &mut usize {
                &mut self.size
            }
        }
    )*};
}

// A struct that grows keeps as its first version the `offset_of!` its first new field.
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

/// A text with a NUL at its end, cut to the size.
pub(crate) fn chars<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut chars = [0; SIZE];
    for (to, from) in chars[..SIZE - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    chars
}

/// Nanoseconds, as far as they go.
pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Where a peer is; empty: that is not known.
pub(crate) fn address<const SIZE: usize>(address: Option<SocketAddr>) -> [c_char; SIZE] {
    chars(&address.map(|address| address.to_string()).unwrap_or_default())
}

/// The index of a rule; -1: there is none. A domain has few.
pub(crate) fn index(rule: Option<usize>) -> i64 {
    rule.map_or(-1, |rule| rule as i64)
}

/// What an index of C means in a list.
pub(crate) fn at<T>(list: &[T], index: i32) -> Result<&T> {
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    found.ok_or_else(|| bad("nothing has this index"))
}

/// The error about an argument that only this border can see.
#[cold]
pub(crate) fn bad(message: &str) -> Error {
    Error::new(ErrorKind::Argument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Caller {
        /// A caller that keeps its promises: the tests of this crate.
        pub(crate) fn in_test() -> Caller {
            Caller(())
        }
    }

    fn tells(error: *mut c_char, error_size: usize, result: Result<()>) -> i32 {
        guard!(error, error_size, |_c| result)
    }

    fn panics(error: *mut c_char, error_size: usize) -> i32 {
        guard!(error, error_size, |_c| if error_size > 0 { panic!("wanted") } else { Ok(()) })
    }

    /// The text in a buffer of this size.
    fn told(size: usize, tell: impl Fn(*mut c_char, usize) -> i32) -> (i32, String) {
        let mut buffer = vec![b'#'; size + 1];
        let status = tell(buffer.as_mut_ptr().cast(), size);
        assert_eq!(buffer.pop(), Some(b'#'), "written beyond the end");
        let end = buffer.iter().position(|byte| *byte == 0).unwrap();
        (status, String::from_utf8(buffer[..end].to_vec()).unwrap())
    }

    #[test]
    fn an_error_is_told_and_cut_between_letters() {
        let error = Error::new(ErrorKind::Config, "aé€🦀");
        let tell = |start, size| tells(start, size, Err(error.clone()));
        let cuts = ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€🦀", "aé€🦀"];
        for (i, cut) in cuts.into_iter().enumerate() {
            assert_eq!(told(i + 1, tell), (-1, cut.to_string()));
        }
        assert_eq!(tell(ptr::null_mut(), 10), -1);
        assert_eq!(told(5, |start, size| tells(start, size, Ok(()))), (0, String::new()));
    }

    #[test]
    fn a_panic_is_told() {
        let (status, text) = told(100, panics);
        assert_eq!(status, ErrorKind::Internal.number());
        assert!(text.ends_with(": wanted"), "{text}");
    }

    #[test]
    fn pointers_that_cannot_be_are_errors() {
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
    fn a_name_left_out_is_not_an_empty_one() {
        let c = Caller::in_test();
        assert_eq!(c.name(ptr::null(), 0).unwrap(), None);
        assert_eq!(c.name(c"".as_ptr(), 0).unwrap(), Some(""));
        assert_eq!(c.name(c"api".as_ptr(), 3).unwrap(), Some("api"));
        assert!(c.name(ptr::null(), 3).is_err());
        assert!(c.name(c"\xff".as_ptr(), 1).is_err());
    }
}
