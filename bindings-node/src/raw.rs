//! The hot calls on plain Node-API, because a function made by napi's macros takes several times as
//! long as the check itself. Most calls have one argument, the tag: reading another one would take
//! 5 ns. All other values are in the buffer, the memory of an ArrayBuffer that JavaScript and Rust
//! share. This is the only file of the crate with unsafe code; `hot.rs` has what the calls do.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::{mem, ptr, slice};

use dthrottle::Domain;
use dthrottle::web::Middleware;
use napi::bindgen_prelude::{FromNapiValue, JsObjectValue, Object, Unknown, panic_to_error};
use napi::{Env, JsError, sys};

use crate::calls::{Tag, bytes};
use crate::failure::CallError;
use crate::hot::BUFFER_LENGTH;
use crate::registry::Registry;

/// The maximum number of arguments of a hot call.
const MAX_ARGUMENTS: usize = 4;

/// The size of the memory for a short tag, in UTF-16 units.
const SHORT: usize = 128;

/// A tag that fills this many units may be incomplete, because Node also writes a zero.
const LONG: usize = SHORT - 1;

/// The number of units that are narrowed together.
const CHUNK: usize = 16;

/// The state of the hot calls in one Node environment (the main thread or a worker thread).
pub(crate) struct Environment {
    env: sys::napi_env,
    domains: Rc<Registry<Domain>>,
    middleware: Rc<Registry<Middleware>>,
    /// The buffer, `BUFFER_LENGTH` numbers.
    buffer: *mut f64,
    /// The first UTF-16 units of the tag, if it is a string. The following units are of earlier
    /// tags, because clearing them would take longer than the rest of the conversion.
    units: UnsafeCell<[u16; SHORT]>,
}

/// A call from JavaScript. Its first argument is a tag, or other text. Cold functions take a copy,
/// so that the hot path can keep it in registers.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    environment: &'a Environment,
    arguments: [sys::napi_value; MAX_ARGUMENTS],
    /// The length of the first argument in units, if it is a string.
    length: Option<usize>,
}

/// Memory for the bytes of a tag.
pub(crate) struct TagBuffer<'a> {
    /// The bytes of a short tag that is ASCII or bytes.
    narrowed: [MaybeUninit<[u8; CHUNK]>; SHORT / CHUNK],
    /// Any other tag.
    other: Option<Tag<'a>>,
}

/// The meaning of the characters of a tag.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TagKind {
    Text,
    /// Each character is one byte.
    Bytes,
}

/// A return value for JavaScript.
pub(crate) struct JsReturn(sys::napi_value);

/// Undefined, which takes no time to return.
pub(crate) const UNDEFINED: JsReturn = JsReturn(ptr::null_mut());

/// A function for JavaScript.
pub(crate) trait HotCall {
    const NAME: &str;
    /// The number of its arguments.
    const ARGUMENTS: usize = 1;

    fn call(call: &Call<'_>) -> Result<JsReturn, CallError>;
}

impl Environment {
    /// Creates the environment of `env`, which lives as long as `env`, and exports its buffer.
    pub(crate) fn new(env: Env, exports: &mut Object<'_>) -> napi::Result<&'static Environment> {
        let raw = env.raw();
        let (mut buffer, mut value, mut kept) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let size = BUFFER_LENGTH * size_of::<f64>();
        // SAFETY: env is Node's, which is creating the exports.
        let status = unsafe { sys::napi_create_arraybuffer(raw, size, &mut buffer, &mut value) };
        napi::check_status!(status)?;
        // SAFETY: env as above; the value was created just now. The reference keeps the buffer
        // alive as long as env.
        let status = unsafe { sys::napi_create_reference(raw, value, 1, &mut kept) };
        napi::check_status!(status)?;
        let environment = Environment {
            env: raw,
            domains: Registry::current(),
            middleware: Registry::current(),
            buffer: buffer.cast(),
            units: UnsafeCell::new([0; SHORT]),
        };
        let environment = Box::into_raw(Box::new(environment));
        // SAFETY: it comes from a box. Node calls no function of an environment after its hooks.
        env.add_env_cleanup_hook(environment, |it| drop(unsafe { Box::from_raw(it) }))?;
        // SAFETY: the box lives until that hook is called, and only hot calls use it.
        let environment = unsafe { &*environment };
        environment.publish("buffer", value, exports)?;
        Ok(environment)
    }

    /// Exports a hot call.
    pub(crate) fn export<H: HotCall>(&'static self, exports: &mut Object<'_>) -> napi::Result<()> {
        let name = H::NAME.as_ptr().cast();
        let data = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let mut value = ptr::null_mut();
        let (length, enter) = (H::NAME.len() as isize, Some(enter::<H> as _));
        // SAFETY: env is Node's, which is creating the exports. The name has the given length. The
        // data is an `Environment`, as `enter` expects, and lives as long as the function can be
        // called.
        let status =
            unsafe { sys::napi_create_function(self.env, name, length, enter, data, &mut value) };
        napi::check_status!(status)?;
        self.publish(H::NAME, value, exports)
    }

    /// Exports a value that was created just now.
    fn publish(
        &self,
        name: &str,
        value: sys::napi_value,
        exports: &mut Object<'_>,
    ) -> napi::Result<()> {
        // SAFETY: env and value are Node's, which is creating the exports.
        let value = unsafe { Unknown::from_napi_value(self.env, value) }?;
        exports.set_named_property(name, value)
    }
}

/// The function that Node calls. It catches panics.
unsafe extern "C" fn enter<H: HotCall>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let done = catch_unwind(AssertUnwindSafe(|| {
        const { assert!(H::ARGUMENTS <= MAX_ARGUMENTS) };
        let (mut arguments, mut data) = ([ptr::null_mut(); MAX_ARGUMENTS], ptr::null_mut());
        let (mut count, to) = (H::ARGUMENTS, arguments.as_mut_ptr());
        // SAFETY: env and info are Node's, from this callback. `arguments` has `count` places or
        // more; Node writes undefined for an argument that is missing.
        let status =
            unsafe { sys::napi_get_cb_info(env, info, &mut count, to, ptr::null_mut(), &mut data) };
        napi::check_status!(status)?;
        let mut call = Call {
            // SAFETY: the data of this function is an `Environment` that lives as long as `env`.
            environment: unsafe { &*data.cast::<Environment>() },
            arguments,
            length: None,
        };
        call.read_tag();
        H::call(&call)
    }));
    match done {
        Ok(Ok(answer)) => return answer.0,
        // SAFETY: env is valid until this callback returns.
        Ok(Err(fault)) => unsafe { JsError::from(*fault.0).throw_into(env) },
        // SAFETY: as above.
        Err(panic) => unsafe { JsError::from(panic_to_error(panic)).throw_into(env) },
    }
    ptr::null_mut()
}

impl TagBuffer<'_> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        TagBuffer { narrowed: [const { MaybeUninit::uninit() }; SHORT / CHUNK], other: None }
    }
}

impl<'a> Call<'a> {
    /// Reads a tag that is a string. It is converted to bytes later, because the processor stalls
    /// when it reads what was written just before in pieces of another size.
    #[inline(always)]
    fn read_tag(&mut self) {
        let to = self.environment.units.get().cast::<u16>();
        let mut length = 0;
        // SAFETY: env and argument are Node's, from this callback, which still runs. Node writes at
        // most SHORT units, the last of them a zero that `length` does not count. No other call
        // uses `units` at the same time, because hot calls do not nest.
        let status = unsafe {
            sys::napi_get_value_string_utf16(
                self.environment.env,
                self.arguments[0],
                to,
                SHORT,
                &mut length,
            )
        };
        if status == sys::Status::napi_ok {
            self.length = Some(length);
        }
    }

    /// The bytes of the tag, in `buffer` or in Node's own memory.
    #[inline(always)]
    pub(crate) fn tag<'r>(
        self,
        kind: TagKind,
        buffer: &'r mut TagBuffer<'a>,
    ) -> Result<&'r [u8], CallError> {
        let TagBuffer { narrowed, other } = buffer;
        let Some(length @ ..LONG) = self.length else {
            return Ok(bytes(other.insert(self.other()?)));
        };
        // SAFETY: the next call is the first to write there again.
        let units = unsafe { &*self.environment.units.get() };
        if narrow(units, length, narrowed) || kind == TagKind::Bytes {
            // SAFETY: `narrow` has written all chunks that hold the first `length` bytes.
            return Ok(unsafe { slice::from_raw_parts(narrowed.as_ptr().cast::<u8>(), length) });
        }
        Ok(bytes(other.insert(Tag::A(self.encode(length)))))
    }

    /// The tag in UTF-8. A lone surrogate becomes U+FFFD, as in all other conversions.
    #[cold]
    fn encode(self, length: usize) -> String {
        // SAFETY: the tag has been read, and there is no other reference to it now.
        let units = unsafe { &mut *self.environment.units.get() };
        let text = String::from_utf16_lossy(&units[..length]);
        // Otherwise `narrow` would read these units after shorter tags, and return false for them.
        units.fill(0);
        text
    }

    /// The tag as napi converts it, or napi's error.
    #[cold]
    fn other(self) -> Result<Tag<'a>, CallError> {
        self.argument(0)
    }

    /// An argument as napi converts it, or napi's error. `index` must be below the call's
    /// `ARGUMENTS`.
    pub(crate) fn argument<T: FromNapiValue>(self, index: usize) -> Result<T, CallError> {
        // SAFETY: env and argument are Node's, from this callback, which still runs; the value
        // borrows from it for no longer.
        Ok(unsafe { T::from_napi_value(self.environment.env, self.arguments[index]) }?)
    }

    pub(crate) fn domains(&self) -> &Registry<Domain> {
        &self.environment.domains
    }

    pub(crate) fn middleware(&self) -> &Registry<Middleware> {
        &self.environment.middleware
    }

    /// The integer in the first four bytes of the buffer.
    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        // SAFETY: as in `number`.
        unsafe { self.environment.buffer.cast::<u32>().read_unaligned() }
    }

    /// The integer in the next four bytes.
    #[inline(always)]
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: as in `number`.
        unsafe { self.environment.buffer.cast::<u32>().wrapping_add(1).read_unaligned() }
    }

    /// A number of the buffer.
    #[inline(always)]
    pub(crate) fn number(&self, index: usize) -> f64 {
        assert!(index < BUFFER_LENGTH);
        // SAFETY: the buffer has BUFFER_LENGTH numbers. Only JavaScript of this thread can reach
        // it, which does not run during this call; `native.js` never transfers it to another
        // thread.
        unsafe { self.environment.buffer.wrapping_add(index).read_unaligned() }
    }

    /// Writes a number into the buffer.
    #[inline(always)]
    pub(crate) fn write(&self, index: usize, number: f64) {
        assert!(index < BUFFER_LENGTH);
        // SAFETY: as in `number`.
        unsafe { self.environment.buffer.wrapping_add(index).write_unaligned(number) };
    }

    /// A string for JavaScript. For ASCII, which is the usual case, the conversion from latin1 is
    /// the fastest.
    pub(crate) fn text(&self, text: &str) -> Result<JsReturn, CallError> {
        let (from, length) = (text.as_ptr().cast(), text.len() as isize);
        let mut value = ptr::null_mut();
        let create = match text.is_ascii() {
            true => sys::napi_create_string_latin1,
            false => sys::napi_create_string_utf8,
        };
        // SAFETY: env is Node's, from this callback, which still runs. The text has this length.
        let status = unsafe { create(self.environment.env, from, length, &mut value) };
        napi::check_status!(status)?;
        Ok(JsReturn(value))
    }

    /// Undefined if a check was allowed, which is the fastest value to return, otherwise false.
    #[inline(always)]
    pub(crate) fn allowed(&self, allowed: bool) -> Result<JsReturn, CallError> {
        if allowed {
            return Ok(UNDEFINED);
        }
        let mut value = ptr::null_mut();
        // SAFETY: env is Node's, from this callback, which still runs.
        let status = unsafe { sys::napi_get_boolean(self.environment.env, false, &mut value) };
        napi::check_status!(status)?;
        Ok(JsReturn(value))
    }
}

/// Writes the low byte of each unit to `narrowed`. Returns true if all units are ASCII. May return
/// false for ASCII, because it checks whole chunks, which the compiler does with a few wide
/// instructions. Most tags have one chunk.
#[inline(always)]
fn narrow(
    units: &[u16; SHORT],
    length: usize,
    narrowed: &mut [MaybeUninit<[u8; CHUNK]>; SHORT / CHUNK],
) -> bool {
    let chunks = units.as_chunks().0;
    let mut seen = narrow_one(&chunks[0], &mut narrowed[0]);
    if length > CHUNK {
        for (from, to) in chunks[..length.div_ceil(CHUNK)].iter().zip(narrowed).skip(1) {
            seen |= narrow_one(from, to);
        }
    }
    seen & 0xff80_ff80_ff80_ff80 == 0
}

/// Narrows one chunk, and returns its units combined by `|`, four in a word.
#[inline(always)]
fn narrow_one(from: &[u16; CHUNK], to: &mut MaybeUninit<[u8; CHUNK]>) -> u64 {
    to.write(from.map(|unit| unit as u8));
    // SAFETY: both have the same size, and any bytes are valid in both.
    let words = unsafe { mem::transmute::<[u16; CHUNK], [u64; CHUNK / 4]>(*from) };
    words.iter().fold(0, |all, word| all | word)
}
