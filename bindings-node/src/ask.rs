//! The calls about a tag. A decision goes back as numbers in an array that the caller brings, so
//! that the hot calls make no JavaScript values.

use dthrottle::{Decision, convert};
use napi::Either;
use napi::bindgen_prelude::{External, Uint8ArraySlice};
use napi_derive::napi;

use crate::common;
use crate::failure::{Result, failure};
use crate::open::Handle;

/// Text, or bytes.
type Tag<'a> = Either<String, Uint8ArraySlice<'a>>;

/// A Float64Array of the caller.
type Numbers<'a> = &'a mut [f64];

/// Asks and takes.
#[napi(catch_unwind)]
pub fn check(
    handle: &External<Handle>,
    tag: Tag<'_>,
    cost: Option<f64>,
    max_wait_ms: Option<f64>,
    partial: Option<bool>,
    answer: Numbers<'_>,
) -> Result<()> {
    let ask = common::ask(cost, max_wait_ms, partial).map_err(failure)?;
    write(answer, handle.domain.check_with(bytes(&tag), ask))
}

/// Asks only.
#[napi(catch_unwind)]
pub fn peek(
    handle: &External<Handle>,
    tag: Tag<'_>,
    cost: Option<f64>,
    max_wait_ms: Option<f64>,
    partial: Option<bool>,
    answer: Numbers<'_>,
) -> Result<()> {
    let ask = common::ask(cost, max_wait_ms, partial).map_err(failure)?;
    write(answer, handle.domain.peek_with(bytes(&tag), ask))
}

/// Asks and takes: yes or no.
#[napi(catch_unwind)]
pub fn allow(handle: &External<Handle>, tag: Tag<'_>, cost: Option<f64>) -> Result<bool> {
    let ask = common::ask(cost, None, None).map_err(failure)?;
    handle.domain.allow_with(bytes(&tag), ask).map_err(failure)
}

/// Gives units back.
#[napi(catch_unwind)]
pub fn refund(handle: &External<Handle>, tag: Tag<'_>, cost: Option<f64>) -> Result<()> {
    let units = common::units(cost).map_err(failure)?;
    handle.domain.refund(bytes(&tag), units).map_err(failure)
}

/// Fills the tag's buckets.
#[napi(catch_unwind)]
pub fn reset(handle: &External<Handle>, tag: Tag<'_>) -> Result<()> {
    handle.domain.reset(bytes(&tag)).map_err(failure)
}

/// Charges what was used elsewhere.
#[napi(catch_unwind)]
pub fn debit(
    handle: &External<Handle>,
    tag: Tag<'_>,
    hits: f64,
    age_ms: Option<f64>,
) -> Result<()> {
    let hits = convert::cost_from_f64(hits).map_err(failure)?;
    let age = common::age(age_ms).map_err(failure)?;
    handle.domain.debit(bytes(&tag), hits, age).map_err(failure)
}

fn write(answer: Numbers<'_>, decision: dthrottle::Result<Decision>) -> Result<()> {
    let numbers = common::numbers(&decision.map_err(failure)?);
    answer.copy_from_slice(&numbers);
    Ok(())
}

fn bytes<'a>(tag: &'a Tag<'_>) -> &'a [u8] {
    match tag {
        Either::A(text) => text.as_bytes(),
        Either::B(bytes) => bytes,
    }
}
