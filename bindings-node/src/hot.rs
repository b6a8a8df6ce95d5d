//! The hot calls: `allow`, `check`, `peek`, and the decision about a request to middleware. Their
//! tag is an argument. All other values, and the decision, are in a buffer that JavaScript and Rust
//! share (`raw.rs`), because creating and reading JavaScript values takes longer than the check.

use dthrottle::web::Request;
use dthrottle::{CheckOptions, DEFAULT_COST, Decision, Domain};
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::calls::{Tag, bytes};
use crate::common;
use crate::failure::CallError;
use crate::raw::{Call, Environment, HotCall, JsReturn, TagBuffer, TagKind, UNDEFINED};

// The layout of the buffer, which must match `native.js`. The first 8 bytes are two integers: the
// id of a domain or middleware, and flags.
const COST: usize = 1;
const MAX_DELAY_MS: usize = 2;
const DECISION: usize = 3;

/// The length of the buffer, in numbers.
pub(crate) const BUFFER_LENGTH: usize = DECISION + common::web::REQUEST_NUMBERS;

// Flags of `allow`, `check` and `peek`.
/// The tag is bytes, given as a string of characters up to U+00FF.
const TAG_IS_BYTES: u32 = 1;
const PARTIAL: u32 = 1 << 1;
const ALLOW_DEBT: u32 = 1 << 2;

// Flags of `webDecide`: the lowest three bits are the kind of the tag.
const TAG_KIND: u32 = (1 << 3) - 1;
const HAS_PEER: u32 = 1 << 3;
const HAS_CLIENT: u32 = 1 << 4;
const HAS_FORWARDED: u32 = 1 << 5;
const HAS_TAG: u32 = 1 << 6;
const HAS_COST: u32 = 1 << 7;
const IS_GONE: u32 = 1 << 8;

/// Adds the hot calls and the buffer to the exports.
#[napi(module_exports)]
pub fn hot_calls(mut exports: Object<'_>, env: Env) -> napi::Result<()> {
    let environment = Environment::new(env, &mut exports)?;
    #[cfg(debug_assertions)]
    environment.export::<Panic>(&mut exports)?;
    environment.export::<Allow>(&mut exports)?;
    environment.export::<Check>(&mut exports)?;
    environment.export::<Peek>(&mut exports)?;
    environment.export::<Decide>(&mut exports)
}

/// Checks a tag: undefined if it is allowed, false if not. Reads the id, the flag `TAG_IS_BYTES`
/// and the cost.
struct Allow;

impl HotCall for Allow {
    const NAME: &str = "allow";

    #[inline(always)]
    fn call(call: &Call<'_>) -> Result<JsReturn, CallError> {
        let cost = call.number(COST);
        if call.flags() != 0 || cost != DEFAULT_COST as f64 {
            return allow_bytes_or_cost(*call);
        }
        let mut buffer = TagBuffer::new();
        let tag = call.tag(TagKind::Text, &mut buffer)?;
        call.allowed(call.domains().with(call.id(), |domain| Ok(domain.allow(tag)?))?)
    }
}

/// `allow` for a tag of bytes, or with a cost other than 1.
#[inline(never)]
fn allow_bytes_or_cost(call: Call<'_>) -> Result<JsReturn, CallError> {
    let options = common::check_options(Some(call.number(COST)), None, None, None)?;
    let mut buffer = TagBuffer::new();
    let tag = call.tag(tag_kind(&call), &mut buffer)?;
    call.allowed(call.domains().with(call.id(), |domain| Ok(domain.allow_with(tag, options)?))?)
}

/// Checks a tag, and writes the decision into the buffer.
struct Check;

impl HotCall for Check {
    const NAME: &str = "check";

    fn call(call: &Call<'_>) -> Result<JsReturn, CallError> {
        decide(call, |domain, tag, options| domain.check_with(tag, options))
    }
}

/// Like `check`, but takes no units.
struct Peek;

impl HotCall for Peek {
    const NAME: &str = "peek";

    fn call(call: &Call<'_>) -> Result<JsReturn, CallError> {
        decide(call, |domain, tag, options| domain.peek_with(tag, options))
    }
}

#[inline(always)]
fn decide(
    call: &Call<'_>,
    core: impl FnOnce(&Domain, &[u8], CheckOptions) -> dthrottle::Result<Decision>,
) -> Result<JsReturn, CallError> {
    let options = check_options(call)?;
    let mut buffer = TagBuffer::new();
    let tag = call.tag(tag_kind(call), &mut buffer)?;
    let decision = call.domains().with(call.id(), |domain| Ok(core(domain, tag, options)?))?;
    for (i, number) in common::numbers(&decision).into_iter().enumerate() {
        call.write(DECISION + i, number);
    }
    Ok(UNDEFINED)
}

/// Decides about a request to middleware. Its arguments are the peer, the client, the lines of
/// X-Forwarded-For and the tag; the flags say which of them were given. Writes the numbers of the
/// decision into the buffer, and returns the text that `common::web::decide` makes.
struct Decide;

impl HotCall for Decide {
    const NAME: &str = "webDecide";
    const ARGUMENTS: usize = 4;

    fn call(call: &Call<'_>) -> Result<JsReturn, CallError> {
        let flags = call.flags();
        let has = |flag| flags & flag != 0;
        let mut buffer = TagBuffer::new();
        let peer = if has(HAS_PEER) { Some(call.tag(TagKind::Text, &mut buffer)?) } else { None };
        let client: Option<String> = if has(HAS_CLIENT) { call.argument(1)? } else { None };
        let forwarded: Option<String> = if has(HAS_FORWARDED) { call.argument(2)? } else { None };
        let tag: Option<Tag<'_>> = if has(HAS_TAG) { call.argument(3)? } else { None };
        let forwarded = forwarded.as_deref();
        let request = Request {
            peer: peer.and_then(|peer| std::str::from_utf8(peer).ok()),
            client: client.as_deref(),
            forwarded: forwarded.as_slice(),
            tag: common::web::tag(flags & TAG_KIND, tag.as_ref().map_or(&[], bytes)),
            cost: has(HAS_COST).then(|| call.number(COST) as u64),
            can_delay: true,
            is_gone: has(IS_GONE),
            ..Request::default()
        };
        let mut numbers = [0.0; common::web::REQUEST_NUMBERS];
        let text = call
            .middleware()
            .find(call.id(), |middleware| common::web::decide(middleware, &request, &mut numbers))
            .unwrap_or_else(|| Err(common::web::closed()))?;
        for (i, number) in numbers.into_iter().enumerate() {
            call.write(DECISION + i, number);
        }
        text.map_or(Ok(UNDEFINED), |text| call.text(&text))
    }
}

/// The options in the buffer.
#[inline(always)]
fn check_options(call: &Call<'_>) -> Result<CheckOptions, CallError> {
    let (cost, max_delay_ms) = (call.number(COST), call.number(MAX_DELAY_MS));
    let flag = |flag| call.flags() & flag != 0;
    // Default options need no conversion.
    if cost == DEFAULT_COST as f64 && max_delay_ms == 0.0 && call.flags() & !TAG_IS_BYTES == 0 {
        return Ok(CheckOptions::default());
    }
    Ok(common::check_options(
        Some(cost),
        Some(max_delay_ms),
        Some(flag(PARTIAL)),
        Some(flag(ALLOW_DEBT)),
    )?)
}

#[inline(always)]
fn tag_kind(call: &Call<'_>) -> TagKind {
    if call.flags() & TAG_IS_BYTES == 0 { TagKind::Text } else { TagKind::Bytes }
}

/// Panics. Exists only in debug builds, for tests.
#[cfg(debug_assertions)]
struct Panic;

#[cfg(debug_assertions)]
impl HotCall for Panic {
    const NAME: &str = "panicHot";

    fn call(_: &Call<'_>) -> Result<JsReturn, CallError> {
        panic!("a panic for tests");
    }
}
