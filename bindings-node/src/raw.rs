//! The border of the hot calls, straight on Node-API: what napi's macros make takes several times as
//! long as the check itself. Most calls have one argument, the tag; every other one would take 5 ns
//! to read. The rest goes by the sheet, memory of an ArrayBuffer that both sides see. The one file of
//! this crate with unsafe code; what the calls do is in `hot.rs`.
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

use crate::ask::{Tag, bytes};
use crate::failure::Fault;
use crate::hot::SHEET;
use crate::seats::Seats;

/// The most arguments of a hot call.
const MOST_ARGUMENTS: usize = 4;

/// Room for a tag on the stack, in units of UTF-16.
const SHORT: usize = 128;

/// Tags of this length or more may be longer than there is room for.
const LONG: usize = SHORT - 1;

/// As many units as are narrowed at once.
const CHUNK: usize = 16;

/// What the hot calls of an environment have at hand.
pub(crate) struct Desk {
    env: sys::napi_env,
    seats: Rc<Seats<Domain>>,
    middleware: Rc<Seats<Middleware>>,
    /// The sheet: as many numbers as `hot.rs` says.
    sheet: *mut f64,
    /// The tag in UTF-16, if it is a string, or the beginning of a long one. Behind it is what was
    /// left by earlier ones: to clear it would take longer than all that is done with it.
    units: UnsafeCell<[u16; SHORT]>,
}

/// A call that JavaScript makes, while it lasts. Its first argument is a tag, or other text. What is
/// rarely called takes a copy of it: then it needs no memory.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    desk: &'a Desk,
    arguments: [sys::napi_value; MOST_ARGUMENTS],
    /// How many units it has, if it is a string.
    length: Option<usize>,
}

/// Room for the bytes of a tag.
pub(crate) struct Room<'a> {
    /// Of one that is short, and ASCII or bytes.
    narrowed: [MaybeUninit<[u8; CHUNK]>; SHORT / CHUNK],
    /// Any other.
    other: Option<Tag<'a>>,
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
    /// How many arguments it has.
    const ARGUMENTS: usize = 1;

    fn call(call: &Call<'_>) -> Result<Answer, Fault>;
}

impl Desk {
    /// The desk of an environment, which ends with it. Its sheet is among the exports.
    pub(crate) fn new(env: Env, exports: &mut Object<'_>) -> napi::Result<&'static Desk> {
        let raw = env.raw();
        let (mut sheet, mut value, mut kept) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let size = SHEET * size_of::<f64>();
        // SAFETY: env is Node's, from the making of the exports, which still goes on.
        let status = unsafe { sys::napi_create_arraybuffer(raw, size, &mut sheet, &mut value) };
        napi::check_status!(status)?;
        // SAFETY: the same; the value was made just now. The reference keeps the buffer as long as
        // the environment lives.
        let status = unsafe { sys::napi_create_reference(raw, value, 1, &mut kept) };
        napi::check_status!(status)?;
        let desk = Desk {
            env: raw,
            seats: Seats::here(),
            middleware: Seats::here(),
            sheet: sheet.cast(),
            units: UnsafeCell::new([0; SHORT]),
        };
        let desk = Box::into_raw(Box::new(desk));
        // SAFETY: it comes from a box. Nothing of an environment is called after its hooks.
        env.add_env_cleanup_hook(desk, |desk| drop(unsafe { Box::from_raw(desk) }))?;
        // SAFETY: the box lives until that hook is called, and only its calls use it.
        let desk = unsafe { &*desk };
        desk.publish("sheet", value, exports)?;
        Ok(desk)
    }

    /// Puts a hot call among the exports.
    pub(crate) fn export<H: Hot>(&'static self, exports: &mut Object<'_>) -> napi::Result<()> {
        let name = H::NAME.as_ptr().cast();
        let data = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let mut value = ptr::null_mut();
        let (length, enter) = (H::NAME.len() as isize, Some(enter::<H> as _));
        // SAFETY: env is Node's, from the making of the exports. The name has the length that is
        // given. The data is a desk, as `enter` expects, which lives as long as anybody can call the
        // function.
        let status =
            unsafe { sys::napi_create_function(self.env, name, length, enter, data, &mut value) };
        napi::check_status!(status)?;
        self.publish(H::NAME, value, exports)
    }

    /// Puts a value that was made just now among the exports.
    fn publish(
        &self,
        name: &str,
        value: sys::napi_value,
        exports: &mut Object<'_>,
    ) -> napi::Result<()> {
        // SAFETY: env and value are Node's, from the making of the exports, which still goes on.
        let value = unsafe { Unknown::from_napi_value(self.env, value) }?;
        exports.set_named_property(name, value)
    }
}

/// Where JavaScript comes in. Nothing unwinds out of here.
unsafe extern "C" fn enter<H: Hot>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let done = catch_unwind(AssertUnwindSafe(|| {
        const { assert!(H::ARGUMENTS <= MOST_ARGUMENTS) };
        let (mut arguments, mut desk) = ([ptr::null_mut(); MOST_ARGUMENTS], ptr::null_mut());
        let (mut count, to) = (H::ARGUMENTS, arguments.as_mut_ptr());
        // SAFETY: env and info are Node's, from this callback. There is room for as many arguments;
        // Node writes undefined where there was none.
        let status =
            unsafe { sys::napi_get_cb_info(env, info, &mut count, to, ptr::null_mut(), &mut desk) };
        napi::check_status!(status)?;
        let mut call = Call {
            // SAFETY: the data of this function is a desk that lives as long as its environment.
            desk: unsafe { &*desk.cast::<Desk>() },
            arguments,
            length: None,
        };
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

impl Room<'_> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Room { narrowed: [const { MaybeUninit::uninit() }; SHORT / CHUNK], other: None }
    }
}

impl<'a> Call<'a> {
    /// Reads a tag that is a string. The bytes are made of it later: the processor stalls on what
    /// was written just before in pieces of another size.
    #[inline(always)]
    fn read_tag(&mut self) {
        let to = self.desk.units.get().cast::<u16>();
        let mut length = 0;
        // SAFETY: env and argument are Node's, from this callback, which still runs. Node writes at
        // most SHORT units, the last of them a zero that `length` does not count. There is only this
        // call: none is made during another.
        let status = unsafe {
            sys::napi_get_value_string_utf16(
                self.desk.env,
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

    /// The bytes of the tag. They are in the room that is given, or belong to Node.
    #[inline(always)]
    pub(crate) fn tag<'r>(self, kind: Kind, room: &'r mut Room<'a>) -> Result<&'r [u8], Fault> {
        let Room { narrowed, other } = room;
        // With no unit to spare, there may be more of it.
        let Some(length @ ..LONG) = self.length else {
            return Ok(bytes(other.insert(self.other()?)));
        };
        // SAFETY: nobody writes there until the next call.
        let units = unsafe { &*self.desk.units.get() };
        if narrow(units, length, narrowed) || kind == Kind::Bytes {
            // SAFETY: `narrow` has written as many whole chunks as `length` reaches into.
            return Ok(unsafe { slice::from_raw_parts(narrowed.as_ptr().cast::<u8>(), length) });
        }
        Ok(bytes(other.insert(Tag::A(self.encode(length)))))
    }

    /// The tag in UTF-8. Halves of surrogate pairs become U+FFFD, as in all other conversions.
    #[cold]
    fn encode(self, length: usize) -> String {
        // SAFETY: the tag has been read, and nobody else looks at it now.
        let units = unsafe { &mut *self.desk.units.get() };
        let text = String::from_utf16_lossy(&units[..length]);
        // What is left behind shorter ones shall not look like this.
        units.fill(0);
        text
    }

    /// The tag as napi reads it, with its errors.
    #[cold]
    fn other(self) -> Result<Tag<'a>, Fault> {
        self.argument(0)
    }

    /// An argument as napi reads it, with its errors. One that the call does not have is none of
    /// its `ARGUMENTS`.
    pub(crate) fn argument<T: FromNapiValue>(self, index: usize) -> Result<T, Fault> {
        // SAFETY: env and argument are Node's, from this callback, which still runs, and so does
        // what the value borrows.
        Ok(unsafe { T::from_napi_value(self.desk.env, self.arguments[index]) }?)
    }

    pub(crate) fn seats(&self) -> &Seats<Domain> {
        &self.desk.seats
    }

    pub(crate) fn middleware(&self) -> &Seats<Middleware> {
        &self.desk.middleware
    }

    /// The whole number in the first bytes of the sheet.
    #[inline(always)]
    pub(crate) fn seat(&self) -> u32 {
        // SAFETY: as in `number`.
        unsafe { self.desk.sheet.cast::<u32>().read_unaligned() }
    }

    /// The whole number behind that.
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: as in `number`.
        unsafe { self.desk.sheet.cast::<u32>().wrapping_add(1).read_unaligned() }
    }

    /// A number of the sheet.
    #[inline(always)]
    pub(crate) fn number(&self, index: usize) -> f64 {
        assert!(index < SHEET);
        // SAFETY: the sheet has so many numbers, and JavaScript, whose thread this is, does not run
        // now. `native.js` alone knows the buffer, and does not give it away.
        unsafe { self.desk.sheet.wrapping_add(index).read_unaligned() }
    }

    /// Writes a number on the sheet.
    #[inline(always)]
    pub(crate) fn write(&self, index: usize, number: f64) {
        assert!(index < SHEET);
        // SAFETY: as in `number`.
        unsafe { self.desk.sheet.wrapping_add(index).write_unaligned(number) };
    }

    /// Text, which is rarely anything but ASCII.
    pub(crate) fn text(&self, text: &str) -> Result<Answer, Fault> {
        let (from, length) = (text.as_ptr().cast(), text.len() as isize);
        let mut value = ptr::null_mut();
        let create = match text.is_ascii() {
            true => sys::napi_create_string_latin1,
            false => sys::napi_create_string_utf8,
        };
        // SAFETY: env is Node's, from this callback, which still runs. The text has this length.
        let status = unsafe { create(self.desk.env, from, length, &mut value) };
        napi::check_status!(status)?;
        Ok(Answer(value))
    }

    /// Nothing for true, which is hot, or false.
    #[inline(always)]
    pub(crate) fn answer(&self, truth: bool) -> Result<Answer, Fault> {
        if truth {
            return Ok(NOTHING);
        }
        let mut value = ptr::null_mut();
        // SAFETY: env is Node's, from this callback, which still runs.
        let status = unsafe { sys::napi_get_boolean(self.desk.env, false, &mut value) };
        napi::check_status!(status)?;
        Ok(Answer(value))
    }
}

/// Whether all units are ASCII, or else perhaps. Their lower halves are in `narrowed`. Whole chunks, so
/// that the compiler makes a few wide instructions of each; most tags have one.
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

/// All units laid over each other, four in a word.
#[inline(always)]
fn narrow_one(from: &[u16; CHUNK], to: &mut MaybeUninit<[u8; CHUNK]>) -> u64 {
    to.write(from.map(|unit| unit as u8));
    // SAFETY: as many bytes, and any of them make a word.
    let words = unsafe { mem::transmute::<[u16; CHUNK], [u64; CHUNK / 4]>(*from) };
    words.iter().fold(0, |all, word| all | word)
}
