//! The border of the hot calls, straight on Node-API: what napi's macros make takes several times as
//! long as the check itself. The one file of this crate with unsafe code; what the calls do is in
//! `hot.rs`.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use napi::bindgen_prelude::{FromNapiValue, JsObjectValue, Object, panic_to_error};
use napi::{Env, JsError, sys};

use crate::ask::{Tag, bytes};
use crate::failure::Fault;

/// The most arguments that a hot call has.
const MOST: usize = 6;

/// Which of them is the tag.
const TAG: usize = 1;

/// Room for a tag on the stack, in units of UTF-16.
const SHORT: usize = 128;

/// Tags of this length or more may be longer than there is room for.
const LONG: usize = SHORT - 1;

/// In the number of a seat: the tag is a string whose units are bytes.
const BYTES: u32 = 1 << 30;

/// As many units as are narrowed at once.
const CHUNK: usize = 16;

/// A call that JavaScript makes, while it lasts. Its second argument is a tag.
pub(crate) struct Call {
    env: sys::napi_env,
    arguments: [sys::napi_value; MOST],
    given: usize,
    /// The tag in UTF-16, if it is a string, or the beginning of a long one.
    units: [MaybeUninit<u16>; SHORT + CHUNK],
    /// How many there are, without the zeros that follow.
    length: Option<usize>,
}

/// What a string stands for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Text,
    Bytes,
}

/// A value for JavaScript; `NOTHING` is undefined, and takes no time to make.
pub(crate) struct Answer(sys::napi_value);

pub(crate) const NOTHING: Answer = Answer(ptr::null_mut());

/// What a hot call does.
pub(crate) trait Hot {
    const NAME: &str;

    fn call(call: &Call) -> Result<Answer, Fault>;
}

/// Puts a hot call among the exports.
pub(crate) fn export<H: Hot>(env: Env, exports: &mut Object<'_>) -> napi::Result<()> {
    let function = env.create_function::<(), ()>(H::NAME, enter::<H>)?;
    exports.set_named_property(H::NAME, function)
}

/// Where JavaScript comes in. Nothing unwinds out of here.
unsafe extern "C" fn enter<H: Hot>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut call = Call {
            env,
            arguments: [ptr::null_mut(); MOST],
            given: MOST,
            units: [MaybeUninit::uninit(); SHORT + CHUNK],
            length: None,
        };
        call.read_arguments(info)?;
        call.read_tag();
        H::call(&call)
    }));
    match done {
        Ok(Ok(answer)) => return answer.0,
        // SAFETY: Node gave this callback an env that is good until it returns.
        Ok(Err(fault)) => unsafe { JsError::from(*fault.0).throw_into(env) },
        // SAFETY: the same.
        Err(panic) => unsafe { JsError::from(panic_to_error(panic)).throw_into(env) },
    }
    ptr::null_mut()
}

impl Call {
    fn read_arguments(&mut self, info: sys::napi_callback_info) -> Result<(), Fault> {
        let to = self.arguments.as_mut_ptr();
        let (no_this, no_data) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: env and info are Node's, from this callback. `given` says how many values there
        // is room for; Node fills them all, with undefined where there was no argument.
        let status =
            unsafe { sys::napi_get_cb_info(self.env, info, &mut self.given, to, no_this, no_data) };
        Ok(napi::check_status!(status)?)
    }

    /// Reads a tag that is a string. The bytes are made of it later: the processor stalls on what
    /// was written just before in pieces of another size.
    fn read_tag(&mut self) {
        let to = self.units.as_mut_ptr().cast::<u16>();
        let mut length = 0;
        // SAFETY: env and argument are Node's, from this callback, which still runs. Node writes at
        // most SHORT units, the last of them a zero that `length` does not count.
        let status = unsafe {
            sys::napi_get_value_string_utf16(self.env, self.arguments[TAG], to, SHORT, &mut length)
        };
        if status == sys::Status::napi_ok {
            self.units[length..][..CHUNK].fill(MaybeUninit::new(0));
            self.length = Some(length);
        }
    }

    /// Asks with the bytes of the tag.
    pub(crate) fn with_tag<R>(
        &self,
        kind: Kind,
        ask: impl FnOnce(&[u8]) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        // With no unit to spare, there may be more of it.
        if let Some(length @ ..LONG) = self.length {
            let units = self.units.as_ptr().cast::<u16>();
            // SAFETY: Node has written `length` units, and `read_tag` a chunk of zeros after them.
            let units = unsafe { slice::from_raw_parts(units, length.next_multiple_of(CHUNK)) };
            let mut narrowed = [0; SHORT];
            if narrow(units, &mut narrowed) || kind == Kind::Bytes {
                return ask(&narrowed[..length]);
            }
            // Halves of surrogate pairs become U+FFFD, as in all other conversions.
            return ask(String::from_utf16_lossy(&units[..length]).as_bytes());
        }
        let tag: Tag<'_> = self.other(TAG)?;
        ask(bytes(&tag))
    }

    /// The number of a seat, and what the tag is.
    pub(crate) fn seat(&self, index: usize) -> Result<(u32, Kind), Fault> {
        let mut number = 0;
        // SAFETY: env and argument are Node's, from this callback, which still runs.
        let status =
            unsafe { sys::napi_get_value_uint32(self.env, self.arguments[index], &mut number) };
        napi::check_status!(status)?;
        Ok(if number < BYTES { (number, Kind::Text) } else { (number - BYTES, Kind::Bytes) })
    }

    /// A number, if one is given.
    pub(crate) fn number(&self, index: usize) -> Result<Option<f64>, Fault> {
        if index >= self.given {
            return Ok(None);
        }
        let mut number = 0.0;
        // SAFETY: env and argument are Node's, from this callback, which still runs.
        let status =
            unsafe { sys::napi_get_value_double(self.env, self.arguments[index], &mut number) };
        if status == sys::Status::napi_ok { Ok(Some(number)) } else { self.other(index) }
    }

    /// A truth, if one is given.
    pub(crate) fn truth(&self, index: usize) -> Result<Option<bool>, Fault> {
        if index >= self.given { Ok(None) } else { self.other(index) }
    }

    /// Writes numbers into an ArrayBuffer of the caller that has just their size.
    pub(crate) fn write(&self, index: usize, numbers: &[f64]) -> Result<(), Fault> {
        let mut to = ptr::null_mut();
        let mut length = 0;
        // SAFETY: env and argument are Node's, from this callback, which still runs.
        let status = unsafe {
            sys::napi_get_arraybuffer_info(self.env, self.arguments[index], &mut to, &mut length)
        };
        napi::check_status!(status)?;
        if length != size_of_val(numbers) {
            return Err(napi::Error::from_reason("the answer has another size").into());
        }
        // SAFETY: Node says that `length` bytes are there, and that no other thread sees them.
        // Bytes need no alignment.
        unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), to.cast::<u8>(), length) };
        Ok(())
    }

    /// Nothing for true, which is hot, or false.
    pub(crate) fn answer(&self, truth: bool) -> Result<Answer, Fault> {
        if truth {
            return Ok(NOTHING);
        }
        let mut value = ptr::null_mut();
        // SAFETY: env is Node's, from this callback, which still runs.
        let status = unsafe { sys::napi_get_boolean(self.env, false, &mut value) };
        napi::check_status!(status)?;
        Ok(Answer(value))
    }

    /// An argument as napi reads it, with its errors.
    #[cold]
    fn other<T: FromNapiValue>(&self, index: usize) -> Result<T, Fault> {
        // SAFETY: env and argument are Node's, from this callback, which still runs, and so does
        // what the value borrows.
        Ok(unsafe { T::from_napi_value(self.env, self.arguments[index]) }?)
    }
}

/// Whether all units are ASCII. Their lower halves are in `narrowed`. Whole chunks, so that the compiler makes
/// a few wide instructions of each.
#[inline]
fn narrow(units: &[u16], narrowed: &mut [u8; SHORT]) -> bool {
    let mut seen = [0; CHUNK];
    for (from, to) in units.as_chunks::<CHUNK>().0.iter().zip(narrowed.as_chunks_mut::<CHUNK>().0) {
        for (seen, unit) in seen.iter_mut().zip(from) {
            *seen |= unit;
        }
        *to = from.map(|unit| unit as u8);
    }
    seen.iter().all(|unit| *unit < 0x80)
}
