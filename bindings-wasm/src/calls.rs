//! The calls about a tag, each for text and for bytes, because a parameter for either would take
//! longer than the check itself. A decision is stored as numbers that JavaScript reads from the
//! memory of this module.

use std::cell::Cell;

use dthrottle::{Decision, convert};
use wasm_bindgen::prelude::*;

use crate::common::{self, NUMBERS};
use crate::failure::{Result, failure};
use crate::open::Handle;

thread_local! {
    static ANSWER: Cell<[f64; NUMBERS]> = const { Cell::new([0.0; NUMBERS]) };
}

/// The memory of this module. The name `memory` is in use.
#[wasm_bindgen(js_name = memoryOfModule)]
pub fn memory_of_module() -> JsValue {
    wasm_bindgen::memory()
}

/// The address of the last decision in this memory.
#[wasm_bindgen(js_name = answerAt)]
pub fn answer_at() -> usize {
    ANSWER.with(|answer| answer.as_ptr() as usize)
}

/// Checks units and takes them if they are available. Stores the decision.
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

/// Checks units and takes them if they are available. Stores the decision.
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

/// Checks units without taking them. Stores the decision.
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

/// Checks units without taking them. Stores the decision.
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

/// Checks units and takes them if they are available.
#[wasm_bindgen]
pub fn allow(handle: &Handle, tag: &str, cost: Option<f64>) -> Result<bool> {
    allow_bytes(handle, tag.as_bytes(), cost)
}

/// Checks units and takes them if they are available.
#[wasm_bindgen(js_name = allowBytes)]
pub fn allow_bytes(handle: &Handle, tag: &[u8], cost: Option<f64>) -> Result<bool> {
    let options = common::check_options(cost, None, None, None).map_err(failure)?;
    handle.domain.allow_with(tag, options).map_err(failure)
}

/// Checks one unit for each tag in order. `tags` has the bytes of all tags, `lengths` their
/// lengths.
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

/// Fills the buckets of a tag.
#[wasm_bindgen]
pub fn reset(handle: &Handle, tag: &str) -> Result<()> {
    reset_bytes(handle, tag.as_bytes())
}

/// Fills the buckets of a tag.
#[wasm_bindgen(js_name = resetBytes)]
pub fn reset_bytes(handle: &Handle, tag: &[u8]) -> Result<()> {
    handle.domain.reset(tag).map_err(failure)
}

/// Charges units that were used elsewhere.
#[wasm_bindgen(js_name = chargeLocal)]
pub fn charge_local(handle: &Handle, tag: &str, cost: f64, age_ms: Option<f64>) -> Result<()> {
    charge_local_bytes(handle, tag.as_bytes(), cost, age_ms)
}

/// Charges units that were used elsewhere.
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

/// Charges units that were used here, and reports them to peers. Returns the debt in milliseconds.
#[wasm_bindgen]
pub fn charge(handle: &Handle, tag: &str, cost: f64) -> Result<f64> {
    charge_bytes(handle, tag.as_bytes(), cost)
}

/// Charges units that were used here, and reports them to peers. Returns the debt in milliseconds.
#[wasm_bindgen(js_name = chargeBytes)]
pub fn charge_bytes(handle: &Handle, tag: &[u8], cost: f64) -> Result<f64> {
    let cost = convert::cost_from_f64(cost).map_err(failure)?;
    let debt = handle.domain.charge(tag, cost).map_err(failure)?;
    Ok(convert::millis(debt))
}
