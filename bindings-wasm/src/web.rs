//! The calls of HTTP middleware, as in `bindings-node/src/web.rs`, with tags as bytes. The policy
//! is in core.

use std::cell::RefCell;

use dthrottle::web::{AdapterSettings, Middleware, Request};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::clock::Clock;
use crate::common::web as common;
use crate::failure::{Result, failure};
use crate::open::{Handle, random_key};

/// A middleware, until it is closed.
#[wasm_bindgen]
pub struct Web {
    middleware: RefCell<Option<Middleware>>,
    unix_ms: Option<fn() -> u64>,
}

impl Web {
    fn with<R>(&self, call: impl FnOnce(&Middleware) -> dthrottle::Result<R>) -> Result<R> {
        let middleware = self.middleware.borrow();
        middleware.as_ref().ok_or_else(common::closed).and_then(call).map_err(failure)
    }
}

fn open(encoded: Vec<String>, setup: AdapterSettings<'_>) -> Result<Web> {
    let unix_ms = setup.unix_ms;
    let middleware = common::open(encoded, setup).map_err(failure)?;
    middleware.open().map_err(failure)?;
    Ok(Web { middleware: RefCell::new(Some(middleware)), unix_ms })
}

/// A middleware for a throttle of the application.
#[wasm_bindgen(js_name = webOpenThrottle)]
pub fn web_open_throttle(
    encoded: Vec<String>,
    throttle: &Handle,
    name_part: &str,
    is_template: bool,
) -> Result<Web> {
    let (domain, unix_ms) = (Some(throttle.domain.clone()), throttle.unix_ms);
    open(
        encoded,
        AdapterSettings { domain, unix_ms, name_part, is_template, ..AdapterSettings::default() },
    )
}

/// A middleware with a throttle of its own.
#[wasm_bindgen(js_name = webOpenClock)]
pub fn web_open_clock(
    encoded: Vec<String>,
    clock: &Clock,
    name_part: &str,
    is_template: bool,
) -> Result<Web> {
    let setup = AdapterSettings {
        clock: Some(clock.clock.clone().into()),
        unix_ms: clock.unix_ms(),
        fingerprint_key: Some(random_key()?),
        name_part,
        is_template,
        ..AdapterSettings::default()
    };
    open(encoded, setup)
}

/// Checks that every entry of `allow` can name a client.
#[wasm_bindgen(js_name = webCheckAllow)]
pub fn web_check_allow(web: &Web) -> Result<()> {
    web.with(|middleware| middleware.options().check_allow())
}

/// The traits that apply to the middleware, by name.
#[wasm_bindgen(js_name = webTraits)]
pub fn web_traits(web: &Web) -> Result<Vec<String>> {
    web.with(|middleware| Ok(common::traits(middleware)))
}

/// The names of the fields of every response, in lower case.
#[wasm_bindgen(js_name = webFieldNames)]
pub fn web_field_names(web: &Web) -> Result<Vec<String>> {
    web.with(|middleware| Ok(common::field_names(middleware)))
}

/// The value of the first field, if it is the same in all responses.
#[wasm_bindgen(js_name = webPolicy)]
pub fn web_policy(web: &Web) -> Result<Option<String>> {
    web.with(|middleware| Ok(common::policy(middleware)))
}

/// The methods that are limited. `None` is all methods.
#[wasm_bindgen(js_name = webMethods)]
pub fn web_methods(web: &Web) -> Result<Option<Vec<String>>> {
    web.with(|middleware| Ok(middleware.options().methods.clone()))
}

/// The name of the domain in which requests are counted.
#[wasm_bindgen(js_name = webDomainName)]
pub fn web_domain_name(web: &Web) -> Result<String> {
    web.with(|middleware| Ok(middleware.domain_name().into()))
}

/// Always `None`, because tables in WebAssembly have no names.
#[wasm_bindgen(js_name = webTableName)]
pub fn web_table_name(web: &Web) -> Result<Option<String>> {
    web.with(|middleware| Ok(middleware.table_name()))
}

/// The domain of a throttle that was made for middleware.
#[wasm_bindgen(js_name = webDomain)]
pub fn web_domain(web: &Web) -> Result<Handle> {
    web.with(|middleware| {
        let throttle = middleware.open()?.ok_or_else(common::closed)?;
        Ok(Handle { throttle, domain: middleware.domain()?.clone(), unix_ms: web.unix_ms })
    })
}

/// Whether the client is exempt by its address.
#[wasm_bindgen(js_name = webIsExempt)]
pub fn web_is_exempt(
    web: &Web,
    peer: Option<String>,
    client: Option<String>,
    forwarded: Option<String>,
) -> Result<bool> {
    let forwarded = forwarded.as_deref();
    let (peer, client) = (peer.as_deref(), client.as_deref());
    let request = Request { peer, client, forwarded: forwarded.as_slice(), ..Request::default() };
    web.with(|middleware| Ok(middleware.is_exempt(&request)))
}

/// Decides about a request. Writes numbers to `into` and returns texts, or `None` if the request
/// passes without fields.
#[wasm_bindgen(js_name = webDecide)]
#[expect(clippy::too_many_arguments, reason = "as in the addon")]
pub fn web_decide(
    web: &Web,
    peer: Option<String>,
    client: Option<String>,
    forwarded: Option<String>,
    tag_kind: u32,
    tag: &[u8],
    cost: Option<f64>,
    is_gone: bool,
    into: &mut [f64],
) -> Result<Option<String>> {
    let forwarded = forwarded.as_deref();
    let request = Request {
        peer: peer.as_deref(),
        client: client.as_deref(),
        forwarded: forwarded.as_slice(),
        tag: common::tag(tag_kind, tag),
        cost: cost.map(|cost| cost as u64),
        can_delay: true,
        is_gone,
        ..Request::default()
    };
    web.with(|middleware| common::decide(middleware, &request, into))
}

/// Ends the delay of a request or of a refusal.
#[wasm_bindgen(js_name = webEndDelay)]
pub fn web_end_delay(web: &Web, kind: u32, tag: &[u8], taken: f64, is_gone: bool) -> Result<()> {
    let tag = common::tag_bytes(kind, tag);
    web.with(|middleware| {
        middleware.end_delay(&tag, taken as u64, is_gone);
        Ok(())
    })
}

/// Reports that the response to a request has ended, which may refund it.
#[wasm_bindgen(js_name = webFinish)]
pub fn web_finish(web: &Web, kind: u32, tag: &[u8], taken: f64, is_success: bool) -> Result<()> {
    let tag = common::tag_bytes(kind, tag);
    web.with(|middleware| {
        middleware.finish(&tag, taken as u64, is_success);
        Ok(())
    })
}

/// The body of a refusal, and its status and fields.
#[wasm_bindgen(js_name = webRefusal)]
pub fn web_refusal(
    web: &Web,
    body: Option<Vec<String>>,
    rule: f64,
    retry_after_ms: f64,
) -> Result<Array> {
    let (body, texts) =
        web.with(|middleware| common::refusal(middleware, body, rule, retry_after_ms))?;
    let texts: Array = texts.into_iter().map(JsValue::from).collect();
    Ok(Array::of2(&Uint8Array::from(body.as_slice()), &texts))
}

/// The bytes of a decision's tag.
#[wasm_bindgen(js_name = webTag)]
pub fn web_tag(kind: u32, tag: &[u8]) -> Vec<u8> {
    common::tag_bytes(kind, tag)
}

/// Fills the buckets of a tag, or of a client by its address.
#[wasm_bindgen(js_name = webReset)]
pub fn web_reset(web: &Web, tag: &[u8]) -> Result<()> {
    web.with(|middleware| middleware.reset(tag))
}

/// Counts a failure of the application's functions.
#[wasm_bindgen(js_name = webCountFailure)]
pub fn web_count_failure(web: &Web) -> Result<()> {
    web.with(|middleware| {
        middleware.count_failure();
        Ok(())
    })
}

/// The counts.
#[wasm_bindgen(js_name = webCounts)]
pub fn web_counts(web: &Web) -> Result<Vec<f64>> {
    web.with(|middleware| Ok(common::counts(middleware)))
}

/// The code and the text of each warning since the last call.
#[wasm_bindgen(js_name = webWarnings)]
pub fn web_warnings(web: &Web) -> Result<Vec<String>> {
    web.with(|middleware| Ok(common::warnings(middleware)))
}

/// Closes the middleware.
#[wasm_bindgen(js_name = webClose)]
pub fn web_close(web: &Web) {
    let middleware = web.middleware.borrow_mut().take();
    drop(middleware);
}
