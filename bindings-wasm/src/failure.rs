//! Converts core's errors to JavaScript errors, whose `code` is parsed by `api/errors.js`.

use dthrottle::convert;
use wasm_bindgen::prelude::*;

use crate::common;

/// The result of every export that can fail.
pub(crate) type Result<T> = std::result::Result<T, JsValue>;

/// Converts core's error to a JavaScript error.
pub(crate) fn failure(error: dthrottle::Error) -> JsValue {
    let thrown = js_sys::Error::new(&error.to_string());
    // Cannot fail, because a new Error accepts any property.
    let _ = js_sys::Reflect::set(&thrown, &"code".into(), &common::code(&error).into());
    thrown.into()
}

/// Throws the error about a cost that is not a number.
#[wasm_bindgen(js_name = badCost)]
pub fn bad_cost(shown: &str) -> Result<()> {
    Err(failure(convert::bad_cost(shown)))
}
