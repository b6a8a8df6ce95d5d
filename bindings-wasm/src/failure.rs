//! Core's errors as JavaScript's: an Error whose `code` the API takes apart.

use dthrottle::convert;
use wasm_bindgen::prelude::*;

use crate::common;

/// The result of every export that can fail.
pub(crate) type Result<T> = std::result::Result<T, JsValue>;

/// Core's error as JavaScript's.
pub(crate) fn failure(error: dthrottle::Error) -> JsValue {
    let thrown = js_sys::Error::new(&error.to_string());
    // A new Error takes any property.
    let _ = js_sys::Reflect::set(&thrown, &"code".into(), &common::code(&error).into());
    thrown.into()
}

/// Throws the error about a cost that is no number.
#[wasm_bindgen(js_name = badCost)]
pub fn bad_cost(shown: &str) -> Result<()> {
    Err(failure(convert::bad_cost(shown)))
}
