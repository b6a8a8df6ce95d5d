//! The hot calls: ask for a tag. Nearly all else that they are told, and a decision, are on a sheet
//! that JavaScript and they both see (`raw.rs`), so that no JavaScript values are made or read.

use dthrottle::web::Request;
use dthrottle::{Ask, DEFAULT_COST, Decision, Domain};
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::ask::{Tag, bytes};
use crate::common;
use crate::failure::Fault;
use crate::raw::{Answer, Call, Desk, Hot, Kind, NOTHING, Room};

/// In the number of a seat: the tag is a string whose units are bytes.
const BYTES: u32 = 1 << 30;
/// In the number of a seat, where only a cost can be told: it is on the sheet.
const PRICED: u32 = 1 << 29;

/// What is where on the sheet, after the seat; `native.js` has the same.
const COST: usize = 1;
const MAX_WAIT_MS: usize = 2;
const PARTIAL: usize = 3;
const ALLOW_DEBT: usize = 4;
const DECISION: usize = 5;

/// How many numbers a sheet has.
pub(crate) const SHEET: usize = DECISION + common::web::REQUEST_NUMBERS;

/// Adds the hot calls, and the sheet, to what the macros export.
#[napi(module_exports)]
pub fn hot_calls(mut exports: Object<'_>, env: Env) -> napi::Result<()> {
    let desk = Desk::new(env, &mut exports)?;
    #[cfg(debug_assertions)]
    desk.export::<Panic>(&mut exports)?;
    desk.export::<Allow>(&mut exports)?;
    desk.export::<Check>(&mut exports)?;
    desk.export::<Peek>(&mut exports)?;
    desk.export::<Decide>(&mut exports)
}

/// Asks and takes: seat, cost if the seat says so. Undefined for yes, false for no.
struct Allow;

impl Hot for Allow {
    const NAME: &str = "allow";

    #[inline(always)]
    fn call(call: &Call<'_>) -> Result<Answer, Fault> {
        let seat = call.seat();
        if seat >= PRICED {
            return allow_otherwise(*call);
        }
        let mut room = Room::new();
        let tag = call.tag(Kind::Text, &mut room)?;
        let allow = |domain: &Domain| Ok(domain.allow(tag)?);
        call.answer(call.seats().with(seat, allow)?)
    }
}

/// The same for bytes, or at any cost.
#[inline(never)]
fn allow_otherwise(call: Call<'_>) -> Result<Answer, Fault> {
    let (seat, kind) = seat(&call);
    let ask = match call.seat() & PRICED {
        0 => Ask::default(),
        _ => ask(call.number(COST), 0.0, false, false)?,
    };
    let mut room = Room::new();
    let tag = call.tag(kind, &mut room)?;
    call.answer(call.seats().with(seat, |domain| Ok(domain.allow_with(tag, ask)?))?)
}

/// Asks and takes: seat, cost, longest wait in milliseconds, partial, allow debt. The decision is on
/// the sheet.
struct Check;

impl Hot for Check {
    const NAME: &str = "check";

    fn call(call: &Call<'_>) -> Result<Answer, Fault> {
        decide(call, |domain, tag, ask| domain.check_with(tag, ask))
    }
}

/// Asks only: as check.
struct Peek;

impl Hot for Peek {
    const NAME: &str = "peek";

    fn call(call: &Call<'_>) -> Result<Answer, Fault> {
        decide(call, |domain, tag, ask| domain.peek_with(tag, ask))
    }
}

#[inline(always)]
fn decide(
    call: &Call<'_>,
    core: impl FnOnce(&Domain, &[u8], Ask) -> dthrottle::Result<Decision>,
) -> Result<Answer, Fault> {
    let (seat, kind) = seat(call);
    let ask = asked(call)?;
    let mut room = Room::new();
    answer(call, seat, call.tag(kind, &mut room)?, ask, core)
}

/// Writes the decision about a tag on the sheet.
#[inline(always)]
fn answer<'t>(
    call: &Call<'_>,
    seat: u32,
    tag: &'t [u8],
    ask: Ask,
    core: impl FnOnce(&Domain, &'t [u8], Ask) -> dthrottle::Result<Decision>,
) -> Result<Answer, Fault> {
    let decision = call.seats().with(seat, |domain| Ok(core(domain, tag, ask)?))?;
    for (i, number) in common::numbers(&decision).into_iter().enumerate() {
        call.write(DECISION + i, number);
    }
    Ok(NOTHING)
}

/// Decides about a request to middleware: peer, client, lines of X-Forwarded-For, tag. The first
/// whole number of the sheet is that of the middleware, the second says which of these there are, and
/// whether the cost is on the sheet. The decision is on the sheet; the answer is `common::web`'s text.
struct Decide;

/// In the second whole number, behind the kind of the tag.
const PEER: u32 = 1 << 3;
const CLIENT: u32 = 1 << 4;
const FORWARDED: u32 = 1 << 5;
const TAG: u32 = 1 << 6;
const OWN_COST: u32 = 1 << 7;
const IS_GONE: u32 = 1 << 8;

impl Hot for Decide {
    const NAME: &str = "webDecide";
    const ARGUMENTS: usize = 4;

    fn call(call: &Call<'_>) -> Result<Answer, Fault> {
        let flags = call.flags();
        let has = |flag| flags & flag != 0;
        let mut room = Room::new();
        let peer = if has(PEER) { Some(call.tag(Kind::Text, &mut room)?) } else { None };
        let client: Option<String> = if has(CLIENT) { call.argument(1)? } else { None };
        let forwarded: Option<String> = if has(FORWARDED) { call.argument(2)? } else { None };
        let tag: Option<Tag<'_>> = if has(TAG) { call.argument(3)? } else { None };
        let forwarded = forwarded.as_deref();
        let request = Request {
            // Text is UTF-8; bytes are not what the face gives here.
            peer: peer.and_then(|peer| std::str::from_utf8(peer).ok()),
            client: client.as_deref(),
            forwarded: forwarded.as_slice(),
            tag: common::web::tag(flags & (PEER - 1), tag.as_ref().map_or(&[], bytes)),
            cost: has(OWN_COST).then(|| call.number(COST) as u64),
            can_wait: true,
            is_gone: has(IS_GONE),
            ..Request::default()
        };
        let mut numbers = [0.0; common::web::REQUEST_NUMBERS];
        let text = call
            .middleware()
            .find(call.seat(), |middleware| common::web::decide(middleware, &request, &mut numbers))
            .unwrap_or_else(|| Err(common::web::closed()))?;
        for (i, number) in numbers.into_iter().enumerate() {
            call.write(DECISION + i, number);
        }
        text.map_or(Ok(NOTHING), |text| call.text(&text))
    }
}

/// What the sheet says that is asked for.
#[inline(always)]
fn asked(call: &Call<'_>) -> Result<Ask, Fault> {
    let flag = |place| call.number(place) != 0.0;
    ask(call.number(COST), call.number(MAX_WAIT_MS), flag(PARTIAL), flag(ALLOW_DEBT))
}

/// What is asked for.
#[inline(always)]
fn ask(cost: f64, max_wait_ms: f64, partial: bool, allow_debt: bool) -> Result<Ask, Fault> {
    // What most ask for needs no look at the numbers.
    if cost == DEFAULT_COST as f64 && max_wait_ms == 0.0 && !partial && !allow_debt {
        return Ok(Ask::default());
    }
    Ok(common::ask(Some(cost), Some(max_wait_ms), Some(partial), Some(allow_debt))?)
}

/// The number of a seat, and what the tag is.
#[inline]
fn seat(call: &Call<'_>) -> (u32, Kind) {
    let number = call.seat();
    let kind = if number & BYTES == 0 { Kind::Text } else { Kind::Bytes };
    (number & !(BYTES | PRICED), kind)
}

/// Panics. Only debug builds have it: the tests see there what becomes of a panic.
#[cfg(debug_assertions)]
struct Panic;

#[cfg(debug_assertions)]
impl Hot for Panic {
    const NAME: &str = "panicHot";

    fn call(_: &Call<'_>) -> Result<Answer, Fault> {
        panic!("asked to panic");
    }
}
