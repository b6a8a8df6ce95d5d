//! The calls of HTTP middleware, except `webDecide`, which is in `hot.rs`. The policy is in core,
//! and `common/web.rs` has the code that both JavaScript bindings share.

use std::net::IpAddr;

use dthrottle::web::{AdapterSettings, ClientAddress, Middleware, Request, application_table_name};
use dthrottle::{ManualClock, web};
use napi::bindgen_prelude::{Buffer, External};
use napi_derive::napi;

use crate::calls::{Tag, bytes};
use crate::common::web as common;
use crate::failure::{Result, failure};
use crate::open::Handle;
use crate::registry::Entry;

/// A middleware, until it is closed. Its throttle is closed with the last middleware that uses it.
pub struct Web {
    middleware: Entry<Middleware>,
    /// The warnings of the throttle that was opened.
    warnings: Vec<String>,
}

impl Web {
    fn with<R>(&self, call: impl FnOnce(&Middleware) -> dthrottle::Result<R>) -> Result<R> {
        self.middleware.find(call).unwrap_or_else(|| Err(common::closed())).map_err(failure)
    }
}

/// Opens a middleware from its encoded options (`common/tree.rs`), and its throttle.
#[napi(catch_unwind)]
pub fn web_open(
    encoded: Vec<String>,
    throttle: Option<&External<Handle>>,
    clock: Option<&External<ManualClock>>,
    within: Option<&External<Web>>,
    application: Option<String>,
    name_part: String,
    is_template: bool,
) -> Result<External<Web>> {
    let shared = within.and_then(|web| web.middleware.find(|parent| parent.shared().cloned()));
    let shared = shared.flatten();
    let setup = AdapterSettings {
        domain: throttle.map(|handle| handle.domain.clone()),
        clock: clock.map(|clock| (**clock).clone().into()),
        application: application.as_deref(),
        name_part: &name_part,
        is_template,
        within: shared.as_ref(),
        ..AdapterSettings::default()
    };
    let middleware = common::open(encoded, setup).map_err(failure)?;
    let throttle = middleware.open().map_err(failure)?;
    let warnings = throttle.map_or(Vec::new(), |throttle| throttle.warnings().to_vec());
    Ok(External::new(Web { middleware: Entry::new(middleware), warnings }))
}

/// The warnings of the throttle that was opened.
#[napi(catch_unwind)]
pub fn web_throttle_warnings(handle: &External<Web>) -> Vec<String> {
    handle.warnings.clone()
}

/// The id by which `webDecide` finds the middleware.
#[napi(catch_unwind)]
pub fn web_id(handle: &External<Web>) -> u32 {
    handle.middleware.id()
}

/// Checks that every entry of `allow` can name a client.
#[napi(catch_unwind)]
pub fn web_check_allow(handle: &External<Web>) -> Result<()> {
    handle.with(|middleware| middleware.options().check_allow())
}

/// The traits that apply to the middleware, by name.
#[napi(catch_unwind)]
pub fn web_traits(handle: &External<Web>) -> Result<Vec<String>> {
    handle.with(|middleware| Ok(common::traits(middleware)))
}

/// The names of the fields of every response, in lower case.
#[napi(catch_unwind)]
pub fn web_field_names(handle: &External<Web>) -> Result<Vec<String>> {
    handle.with(|middleware| Ok(common::field_names(middleware)))
}

/// The value of the first field, if it is the same in all responses.
#[napi(catch_unwind)]
pub fn web_policy(handle: &External<Web>) -> Result<Option<String>> {
    handle.with(|middleware| Ok(common::policy(middleware)))
}

/// The methods that are limited. `None` is all methods.
#[napi(catch_unwind)]
pub fn web_methods(handle: &External<Web>) -> Result<Option<Vec<String>>> {
    handle.with(|middleware| Ok(middleware.options().methods.clone()))
}

/// The name of the domain in which requests are counted.
#[napi(catch_unwind)]
pub fn web_domain_name(handle: &External<Web>) -> Result<String> {
    handle.with(|middleware| Ok(middleware.domain_name().into()))
}

/// The name of the table, if the throttle was made for middleware and has one.
#[napi(catch_unwind)]
pub fn web_table_name(handle: &External<Web>) -> Result<Option<String>> {
    handle.with(|middleware| Ok(middleware.table_name()))
}

/// The domain of a throttle that was made for middleware.
#[napi(catch_unwind)]
pub fn web_domain(handle: &External<Web>) -> Result<External<Handle>> {
    handle.with(|middleware| {
        let throttle = middleware.open()?.ok_or_else(common::closed)?;
        Ok(External::new(Handle::new(throttle, middleware.domain()?.clone())))
    })
}

/// Whether the client is exempt by its address.
#[napi(catch_unwind)]
pub fn web_is_exempt(
    handle: &External<Web>,
    peer: Option<String>,
    client: Option<String>,
    forwarded: Option<String>,
) -> Result<bool> {
    let lines: Vec<&str> = forwarded.as_deref().into_iter().collect();
    let (peer, client) = (peer.as_deref(), client.as_deref());
    let request = Request { peer, client, forwarded: &lines, ..Request::default() };
    handle.with(|middleware| Ok(middleware.is_exempt(&request)))
}

/// Ends the delay of a request or of a refusal.
#[napi(catch_unwind)]
pub fn web_end_delay(
    handle: &External<Web>,
    tag_kind: u32,
    tag: Tag<'_>,
    taken: f64,
    is_gone: bool,
) -> Result<()> {
    let tag = common::tag_bytes(tag_kind, bytes(&tag));
    handle.with(|middleware| {
        middleware.end_delay(&tag, taken as u64, is_gone);
        Ok(())
    })
}

/// Reports that the response to a request has ended, which may refund it.
#[napi(catch_unwind)]
pub fn web_finish(
    handle: &External<Web>,
    tag_kind: u32,
    tag: Tag<'_>,
    taken: f64,
    is_success: bool,
) -> Result<()> {
    let tag = common::tag_bytes(tag_kind, bytes(&tag));
    handle.with(|middleware| {
        middleware.finish(&tag, taken as u64, is_success);
        Ok(())
    })
}

/// The body of a refusal; its status and fields are pushed to `texts`.
#[napi(catch_unwind)]
pub fn web_refusal(
    handle: &External<Web>,
    body: Option<Vec<String>>,
    rule: f64,
    retry_after_ms: f64,
) -> Result<(Buffer, Vec<String>)> {
    handle.with(|middleware| {
        let (body, texts) = common::refusal(middleware, body, rule, retry_after_ms)?;
        Ok((body.into(), texts))
    })
}

/// The bytes of a decision's tag.
#[napi(catch_unwind)]
pub fn web_tag(tag_kind: u32, tag: Tag<'_>) -> Buffer {
    common::tag_bytes(tag_kind, bytes(&tag)).into()
}

/// Fills the buckets of a tag, or of a client by its address.
#[napi(catch_unwind)]
pub fn web_reset(handle: &External<Web>, tag: Tag<'_>) -> Result<()> {
    handle.with(|middleware| middleware.reset(bytes(&tag)))
}

/// Counts a failure of the application's functions.
#[napi(catch_unwind)]
pub fn web_count_failure(handle: &External<Web>) -> Result<()> {
    handle.with(|middleware| {
        middleware.count_failure();
        Ok(())
    })
}

/// The counts.
#[napi(catch_unwind)]
pub fn web_counts(handle: &External<Web>) -> Result<Vec<f64>> {
    handle.with(|middleware| Ok(common::counts(middleware)))
}

/// The code and the text of each warning since the last call.
#[napi(catch_unwind)]
pub fn web_warnings(handle: &External<Web>) -> Result<Vec<String>> {
    handle.with(|middleware| Ok(common::warnings(middleware)))
}

/// Closes the middleware.
#[napi(catch_unwind)]
pub fn web_close(handle: &External<Web>) {
    drop(handle.middleware.take());
}

/// The name of an application's table.
#[napi(catch_unwind)]
pub fn application_table(shown: Vec<String>, identity: Vec<String>) -> String {
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
    application_table_name(&shown, &identity)
}

/// The rules that find clients behind proxies.
#[napi(catch_unwind)]
pub fn new_client_address(encoded: Vec<String>) -> Result<External<ClientAddress>> {
    Ok(External::new(common::options(encoded).map_err(failure)?.address))
}

/// The bytes of the client's address, shortened to its prefix if it is to be a tag.
#[napi(catch_unwind)]
pub fn find_client(
    rules: &External<ClientAddress>,
    peer: Option<String>,
    forwarded: Vec<String>,
    is_tag: bool,
) -> Option<Buffer> {
    let lines: Vec<&str> = forwarded.iter().map(String::as_str).collect();
    let found = rules.find(peer.as_deref(), &lines)?;
    Some(if is_tag { rules.tag(found).as_ref().into() } else { octets(found) })
}

/// The bytes of an address in any spelling.
#[napi(catch_unwind)]
pub fn parse_address(text: String) -> Option<Buffer> {
    web::parse_address(&text).map(octets)
}

fn octets(address: IpAddr) -> Buffer {
    match address {
        IpAddr::V4(v4) => v4.octets().as_slice().into(),
        IpAddr::V6(v6) => v6.octets().as_slice().into(),
    }
}
