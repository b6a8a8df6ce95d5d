//! The calls about a tag, each for text and for bytes: a parameter that takes either would cost the
//! hot calls more than they take themselves. A decision stays here, as numbers that JavaScript reads
//! from this module's memory.

use std::cell::Cell;

use dthrottle::{Decision, convert};
use wasm_bindgen::prelude::*;

use crate::common::{self, NUMBERS};
use crate::failure::{Result, failure};
use crate::open::Handle;

thread_local! {
    static ANSWER: Cell<[f64; NUMBERS]> = const { Cell::new([0.0; NUMBERS]) };
}

/// This module's memory. (The name `memory` is taken.)
#[wasm_bindgen(js_name = memoryOfModule)]
pub fn memory_of_module() -> JsValue {
    wasm_bindgen::memory()
}

/// Where in the memory the last decision stands.
#[wasm_bindgen(js_name = answerAt)]
pub fn answer_at() -> usize {
    ANSWER.with(|answer| answer.as_ptr() as usize)
}

/// Asks and takes.
#[wasm_bindgen]
pub fn check(
    handle: &Handle,
    tag: &str,
    cost: Option<f64>,
    max_delay_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<()> {
    check_bytes(handle, tag.as_bytes(), cost, max_delay_ms, partial, allow_debt)
}

/// Asks and takes.
#[wasm_bindgen(js_name = checkBytes)]
pub fn check_bytes(
    handle: &Handle,
    tag: &[u8],
    cost: Option<f64>,
    max_delay_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<()> {
    let options =
        common::check_options(cost, max_delay_ms, partial, allow_debt).map_err(failure)?;
    write(handle.domain.check_with(tag, options))
}

/// Asks only.
#[wasm_bindgen]
pub fn peek(
    handle: &Handle,
    tag: &str,
    cost: Option<f64>,
    max_delay_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<()> {
    peek_bytes(handle, tag.as_bytes(), cost, max_delay_ms, partial, allow_debt)
}

/// Asks only.
#[wasm_bindgen(js_name = peekBytes)]
pub fn peek_bytes(
    handle: &Handle,
    tag: &[u8],
    cost: Option<f64>,
    max_delay_ms: Option<f64>,
    partial: Option<bool>,
    allow_debt: Option<bool>,
) -> Result<()> {
    let options =
        common::check_options(cost, max_delay_ms, partial, allow_debt).map_err(failure)?;
    write(handle.domain.peek_with(tag, options))
}

fn write(decision: dthrottle::Result<Decision>) -> Result<()> {
    ANSWER.set(common::numbers(&decision.map_err(failure)?));
    Ok(())
}

/// Asks and takes: yes or no.
#[wasm_bindgen]
pub fn allow(handle: &Handle, tag: &str, cost: Option<f64>) -> Result<bool> {
    allow_bytes(handle, tag.as_bytes(), cost)
}

/// Asks and takes: yes or no.
#[wasm_bindgen(js_name = allowBytes)]
pub fn allow_bytes(handle: &Handle, tag: &[u8], cost: Option<f64>) -> Result<bool> {
    let options = common::check_options(cost, None, None, None).map_err(failure)?;
    handle.domain.allow_with(tag, options).map_err(failure)
}

/// Asks and takes for each tag in turn, yes or no: all tags one after the other, and their lengths.
#[wasm_bindgen(js_name = allowMany)]
pub fn allow_many(handle: &Handle, mut tags: &[u8], lengths: &[u32]) -> Result<Vec<u8>> {
    let mut list = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (tag, rest) = tags.split_at(tags.len().min(*length as usize));
        list.push(tag);
        tags = rest;
    }
    let mut allowed = vec![false; list.len()];
    handle.domain.allow_many(&list, &mut allowed).map_err(failure)?;
    Ok(allowed.into_iter().map(u8::from).collect())
}

/// Gives units back.
#[wasm_bindgen]
pub fn refund(handle: &Handle, tag: &str, cost: Option<f64>) -> Result<()> {
    refund_bytes(handle, tag.as_bytes(), cost)
}

/// Gives units back.
#[wasm_bindgen(js_name = refundBytes)]
pub fn refund_bytes(handle: &Handle, tag: &[u8], cost: Option<f64>) -> Result<()> {
    let cost = common::units(cost).map_err(failure)?;
    handle.domain.refund(tag, cost).map_err(failure)
}

/// Fills the tag's buckets.
#[wasm_bindgen]
pub fn reset(handle: &Handle, tag: &str) -> Result<()> {
    reset_bytes(handle, tag.as_bytes())
}

/// Fills the tag's buckets.
#[wasm_bindgen(js_name = resetBytes)]
pub fn reset_bytes(handle: &Handle, tag: &[u8]) -> Result<()> {
    handle.domain.reset(tag).map_err(failure)
}

/// Charges what was used elsewhere.
#[wasm_bindgen(js_name = chargeLocal)]
pub fn charge_local(handle: &Handle, tag: &str, cost: f64, age_ms: Option<f64>) -> Result<()> {
    charge_local_bytes(handle, tag.as_bytes(), cost, age_ms)
}

/// Charges what was used elsewhere.
#[wasm_bindgen(js_name = chargeLocalBytes)]
pub fn charge_local_bytes(
    handle: &Handle,
    tag: &[u8],
    cost: f64,
    age_ms: Option<f64>,
) -> Result<()> {
    let cost = convert::cost_from_f64(cost).map_err(failure)?;
    let age = common::age(age_ms).map_err(failure)?;
    handle.domain.charge_local(tag, cost, age).map_err(failure)
}

/// Charges what was used here, and tells peers: the milliseconds of debt.
#[wasm_bindgen]
pub fn charge(handle: &Handle, tag: &str, cost: f64) -> Result<f64> {
    charge_bytes(handle, tag.as_bytes(), cost)
}

/// Charges what was used here, and tells peers: the milliseconds of debt.
#[wasm_bindgen(js_name = chargeBytes)]
pub fn charge_bytes(handle: &Handle, tag: &[u8], cost: f64) -> Result<f64> {
    let cost = convert::cost_from_f64(cost).map_err(failure)?;
    let debt = handle.domain.charge(tag, cost).map_err(failure)?;
    Ok(convert::millis(debt))
}
