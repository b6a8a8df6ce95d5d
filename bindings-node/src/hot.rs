//! The hot calls: ask for a tag. They name the domain by its seat, and a decision goes back as
//! numbers in memory of the caller, so that no JavaScript values are made.

use dthrottle::{Ask, Decision, Domain};
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::common;
use crate::failure::Fault;
use crate::raw::{Answer, Call, Hot, NOTHING, export};
use crate::seats;

/// Adds the hot calls to what the macros export.
#[napi(module_exports)]
pub fn hot_calls(mut exports: Object<'_>, env: Env) -> napi::Result<()> {
    #[cfg(debug_assertions)]
    export::<Panic>(env, &mut exports)?;
    export::<Allow>(env, &mut exports)?;
    export::<Check>(env, &mut exports)?;
    export::<Peek>(env, &mut exports)
}

/// Asks and takes: seat, tag, cost. Undefined for yes, false for no.
struct Allow;

impl Hot for Allow {
    const NAME: &str = "allow";

    fn call(call: &Call) -> Result<Answer, Fault> {
        let (seat, kind) = call.seat(0)?;
        let ask = common::ask(call.number(2)?, None, None)?;
        let allow = |tag: &[u8]| seats::with(seat, |domain| Ok(domain.allow_with(tag, ask)?));
        call.answer(call.with_tag(kind, allow)?)
    }
}

/// Asks and takes: seat, tag, answer, cost, longest wait in milliseconds, partial.
struct Check;

impl Hot for Check {
    const NAME: &str = "check";

    fn call(call: &Call) -> Result<Answer, Fault> {
        decide(call, |domain, tag, ask| domain.check_with(tag, ask))
    }
}

/// Asks only: the arguments of check.
struct Peek;

impl Hot for Peek {
    const NAME: &str = "peek";

    fn call(call: &Call) -> Result<Answer, Fault> {
        decide(call, |domain, tag, ask| domain.peek_with(tag, ask))
    }
}

fn decide(
    call: &Call,
    core: impl FnOnce(&Domain, &[u8], Ask) -> dthrottle::Result<Decision>,
) -> Result<Answer, Fault> {
    let (seat, kind) = call.seat(0)?;
    let ask = common::ask(call.number(3)?, call.number(4)?, call.truth(5)?)?;
    let decide = |tag: &[u8]| {
        seats::with(seat, |domain| call.write(2, &common::numbers(&core(domain, tag, ask)?)))
    };
    call.with_tag(kind, decide)?;
    Ok(NOTHING)
}

/// Panics. Only debug builds have it: the tests see there what becomes of a panic.
#[cfg(debug_assertions)]
struct Panic;

#[cfg(debug_assertions)]
impl Hot for Panic {
    const NAME: &str = "panicHot";

    fn call(_: &Call) -> Result<Answer, Fault> {
        panic!("asked to panic");
    }
}
