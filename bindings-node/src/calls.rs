//! The calls about a tag, except `allow`, `check` and `peek`, which are in `hot.rs`.

use dthrottle::convert;
use napi::Either;
use napi::bindgen_prelude::{External, Uint8ArraySlice};
use napi_derive::napi;

use crate::common;
use crate::failure::{Result, failure};
use crate::open::Handle;

/// A tag: text or bytes.
pub(crate) type Tag<'a> = Either<String, Uint8ArraySlice<'a>>;

/// Checks one unit for each tag in order.
#[napi(catch_unwind)]
pub fn allow_many(handle: &External<Handle>, tags: Vec<Tag<'_>>) -> Result<Vec<bool>> {
    let tags: Vec<&[u8]> = tags.iter().map(bytes).collect();
    let mut allowed = vec![false; tags.len()];
    handle.domain.allow_many(&tags, &mut allowed).map_err(failure)?;
    Ok(allowed)
}

/// Gives units back.
#[napi(catch_unwind)]
pub fn refund(handle: &External<Handle>, tag: Tag<'_>, cost: Option<f64>) -> Result<()> {
    let cost = common::units(cost).map_err(failure)?;
    handle.domain.refund(bytes(&tag), cost).map_err(failure)
}

/// Fills the buckets of a tag.
#[napi(catch_unwind)]
pub fn reset(handle: &External<Handle>, tag: Tag<'_>) -> Result<()> {
    handle.domain.reset(bytes(&tag)).map_err(failure)
}

/// Charges units that were used elsewhere.
#[napi(catch_unwind)]
pub fn charge_local(
    handle: &External<Handle>,
    tag: Tag<'_>,
    cost: f64,
    age_ms: Option<f64>,
) -> Result<()> {
    let cost = convert::cost_from_f64(cost).map_err(failure)?;
    let age = common::age(age_ms).map_err(failure)?;
    handle.domain.charge_local(bytes(&tag), cost, age).map_err(failure)
}

/// Charges units that were used here, and reports them to peers. Returns the debt in milliseconds.
#[napi(catch_unwind)]
pub fn charge(handle: &External<Handle>, tag: Tag<'_>, cost: f64) -> Result<f64> {
    let cost = convert::cost_from_f64(cost).map_err(failure)?;
    let debt = handle.domain.charge(bytes(&tag), cost).map_err(failure)?;
    Ok(convert::millis(debt))
}

/// The bytes of a tag.
pub(crate) fn bytes<'a>(tag: &'a Tag<'_>) -> &'a [u8] {
    match tag {
        Either::A(text) => text.as_bytes(),
        Either::B(bytes) => bytes,
    }
}
