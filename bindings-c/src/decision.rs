//! Every call about a tag: the question, the answer, and the answer when something went wrong.

use std::ffi::c_void;
use std::time::Duration;

use dthrottle_core::Result;

use crate::domain::Domain;
use crate::ffi::{Caller, Flag, VersionedStruct, ns};
use crate::guard::catch_panic;
use crate::records::Decision;

/// What a check asks for. Begin with DTHROTTLE_CHECK_OPTIONS_INIT, which asks for one unit, now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CheckOptions {
    /// sizeof(dthrottle_check_options_t).
    pub size: usize,
    /// Take as many units as there are, if not all; the decision's granted says how many.
    pub partial: Flag,
    /// Units.
    pub cost: u64,
    /// Be allowed also when the turn comes within this time. The units are taken at once, and
    /// the decision's delay_ns says how long to wait. Who gives up calls dthrottle_refund().
    pub max_delay_ns: u64,
    /// 1: allow a cost above the burst. The check then needs a full bucket of that rule and leaves
    /// it in debt, in one atomic step. Has no effect together with partial.
    pub allow_debt: u64,
}

/// How many tags of a batch are given to the core at a time: no fewer than it looks up together.
const PART: usize = 256;

/// Asks for cost units, and takes them if they pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_check(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
    decision: *mut Decision,
) -> i32 {
    guard!(|c| decide(
        c,
        decision,
        || Ok(CheckOptions::cost(cost)),
        |options| {
            let domain = c.handle(domain)?;
            domain.check_with(c.bytes(tag, tag_len)?, options)
        }
    ))
}

/// Checks a tag with these options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_check_with(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    options: *const CheckOptions,
    decision: *mut Decision,
) -> i32 {
    guard!(|c| decide(
        c,
        decision,
        || c.read(options),
        |options| {
            let domain = c.handle(domain)?;
            domain.check_with(c.bytes(tag, tag_len)?, options)
        }
    ))
}

/// The decision that dthrottle_check() would give. Takes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_peek(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
    decision: *mut Decision,
) -> i32 {
    guard!(|c| decide(
        c,
        decision,
        || Ok(CheckOptions::cost(cost)),
        |options| {
            let domain = c.handle(domain)?;
            domain.peek_with(c.bytes(tag, tag_len)?, options)
        }
    ))
}

/// The decision that dthrottle_check_with() would give. Takes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_peek_with(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    options: *const CheckOptions,
    decision: *mut Decision,
) -> i32 {
    guard!(|c| decide(
        c,
        decision,
        || c.read(options),
        |options| {
            let domain = c.handle(domain)?;
            domain.peek_with(c.bytes(tag, tag_len)?, options)
        }
    ))
}

/// Asks for cost units, and takes them if they pass: 1 allowed, 0 refused, negative a status. So
/// "if (dthrottle_allow(...))" goes on also after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_allow(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
) -> i32 {
    guard!(|c| {
        let domain = c.handle(domain)?;
        domain.allow_with(c.bytes(tag, tag_len)?, CheckOptions::cost(cost).into())
    })
}

/// Asks for one unit for each of count tags in turn, and takes what passes: as so many calls of
/// dthrottle_allow(), but faster where tags are many. allowed has room for count answers. All
/// pointers are looked at before anything is taken; after an error, what is not known is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_allow_many(
    domain: *const Domain,
    tags: *const *const c_void,
    tag_lens: *const usize,
    count: usize,
    allowed: *mut Flag,
) -> i32 {
    guard!(|c| {
        let allowed = c.out_flags(allowed, count)?;
        let tags = c.tags(tags, tag_lens, count)?;
        allow_many(c.handle(domain)?, tags, allowed)
    })
}

/// Gives cost units back to every rule: for work that was not done after all, or a wait that was
/// given up. A bucket never rises above its burst.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_refund(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
) -> i32 {
    guard!(|c| {
        let domain = c.handle(domain)?;
        domain.refund(c.bytes(tag, tag_len)?, cost)
    })
}

/// Fills the tag's bucket of every rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_reset(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
) -> i32 {
    guard!(|c| {
        let domain = c.handle(domain)?;
        domain.reset(c.bytes(tag, tag_len)?)
    })
}

/// Charges units that were used elsewhere, the first of them age_ns ago, without asking. May take
/// a bucket below zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_charge_local(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
    age_ns: u64,
) -> i32 {
    guard!(|c| {
        let domain = c.handle(domain)?;
        domain.charge_local(c.bytes(tag, tag_len)?, cost, Duration::from_nanos(age_ns))
    })
}

/// Charges units that were used here, without asking, and tells peers. May take a bucket below zero:
/// debt_ns, unless it is NULL, gets the time until none of the tag's buckets is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_charge(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    cost: u64,
    debt_ns: *mut u64,
) -> i32 {
    guard!(|c| {
        let debt = c.handle(domain)?.charge(c.bytes(tag, tag_len)?, cost)?;
        if debt_ns.is_null() { Ok(()) } else { c.store(debt_ns, ns(debt)) }
    })
}

/// Asks the core in parts that fit the stack, once also for no tags at all.
fn allow_many<'a>(
    domain: &Domain,
    mut tags: impl Iterator<Item = &'a [u8]>,
    mut allowed: &mut [bool],
) -> Result<()> {
    loop {
        let mut part: [&[u8]; PART] = [&[]; PART];
        let (now, later) = allowed.split_at_mut(allowed.len().min(PART));
        part.iter_mut().zip(tags.by_ref().take(now.len())).for_each(|(to, tag)| *to = tag);
        domain.allow_many(&part[..now.len()], now)?;
        if later.is_empty() {
            return Ok(());
        }
        allowed = later;
    }
}

/// Puts the answer to a question into `out`. Whatever goes wrong, even a panic: if there is room
/// for an answer, it is yes.
fn decide(
    c: &Caller,
    out: *mut Decision,
    options: impl FnOnce() -> Result<CheckOptions>,
    question: impl FnOnce(dthrottle_core::CheckOptions) -> Result<dthrottle_core::Decision>,
) -> Result<()> {
    // First, so that nothing is taken for a caller who could not be told.
    let out = c.out_struct(out)?;
    let mut cost = 0;
    let decision = catch_panic(|| {
        let options = options()?;
        cost = options.cost;
        question(options.into())
    });
    let answer = match &decision {
        Ok(decision) => *decision,
        Err(_) => dthrottle_core::Decision::unlimited(cost),
    };
    out.fill(Decision::of(&answer));
    decision.map(drop)
}

impl CheckOptions {
    pub(crate) fn cost(cost: u64) -> CheckOptions {
        CheckOptions {
            size: CheckOptions::MIN_SIZE,
            partial: 0,
            cost,
            max_delay_ns: 0,
            allow_debt: 0,
        }
    }
}

impl From<CheckOptions> for dthrottle_core::CheckOptions {
    fn from(options: CheckOptions) -> dthrottle_core::CheckOptions {
        dthrottle_core::CheckOptions::cost(options.cost)
            .max_delay(Duration::from_nanos(options.max_delay_ns))
            .partial(options.partial != 0)
            .allow_debt(options.allow_debt != 0)
    }
}

/// What header fields are written from.
impl From<Decision> for dthrottle_core::Decision {
    fn from(decision: Decision) -> dthrottle_core::Decision {
        let time = Duration::from_nanos;
        let mut core = dthrottle_core::Decision::unlimited(decision.granted);
        core.allowed = decision.allowed != 0;
        core.dry_run = decision.dry_run != 0;
        core.rule = usize::try_from(decision.rule).ok();
        core.deciding = usize::try_from(decision.deciding).ok();
        (core.limit, core.remaining) = (decision.limit, decision.remaining);
        core.balance = decision.balance;
        core.delay = time(decision.delay_ns);
        core.retry_after = time(decision.retry_after_ns);
        core.reset_after = time(decision.reset_after_ns);
        core
    }
}

#[cfg(test)]
mod tests {
    use dthrottle_core::{Error, ErrorKind};

    use super::*;
    use crate::guard::run_export;
    use crate::records::{DTHROTTLE_ERR_CLOSED, DTHROTTLE_ERR_INTERNAL, DTHROTTLE_OK};

    fn refused() -> Decision {
        let open = Decision::of(&dthrottle_core::Decision::unlimited(0));
        Decision { allowed: 0, rule: 3, limit: 1, ..open }
    }

    /// Asks for 5 units.
    fn decided(
        out: &mut Decision,
        question: impl FnOnce(dthrottle_core::CheckOptions) -> Result<dthrottle_core::Decision>,
    ) -> i32 {
        let c = Caller::in_test();
        run_export(|| decide(&c, out, || Ok(CheckOptions::cost(5)), question))
    }

    #[test]
    fn an_answer_is_filled_in() {
        let mut out = refused();
        let status = decided(&mut out, |options| {
            assert_eq!(options, dthrottle_core::CheckOptions::cost(5));
            let mut answer = dthrottle_core::Decision::unlimited(0);
            answer.allowed = false;
            answer.rule = Some(1);
            answer.retry_after = Duration::from_millis(3);
            Ok(answer)
        });
        assert_eq!(status, DTHROTTLE_OK);
        assert_eq!((out.allowed, out.rule, out.retry_after_ns), (0, 1, 3_000_000));
    }

    #[test]
    fn an_error_leaves_the_decision_open() {
        let mut out = refused();
        let status = decided(&mut out, |_| Err(Error::new(ErrorKind::Closed, "closed")));
        assert_eq!(status, DTHROTTLE_ERR_CLOSED);
        assert_eq!((out.allowed, out.rule, out.granted), (1, -1, 5));
    }

    #[test]
    fn a_panic_leaves_the_decision_open() {
        let mut out = refused();
        let status = decided(&mut out, |_| panic!("wanted by a test"));
        assert_eq!(status, DTHROTTLE_ERR_INTERNAL);
        assert_eq!((out.allowed, out.rule, out.granted), (1, -1, 5));
        assert_eq!(out.limit, dthrottle_core::UNLIMITED);
    }

    #[test]
    fn nothing_is_asked_without_room_for_the_answer() {
        let c = Caller::in_test();
        let mut small = Decision { size: Decision::MIN_SIZE - 1, ..refused() };
        for out in [std::ptr::null_mut(), &raw mut small] {
            let asked = |_| -> Result<dthrottle_core::Decision> { panic!("asked") };
            let error = decide(&c, out, || Ok(CheckOptions::cost(1)), asked).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument);
        }
        assert_eq!(small.allowed, 0);
    }

    #[test]
    fn the_header_has_every_field() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../include/dthrottle.h");
        let header = std::fs::read_to_string(path).unwrap();
        for end in ["} dthrottle_decision_t;", "} dthrottle_client_decision_t;"] {
            let body = header.split(end).next().unwrap().rsplit("typedef struct").next().unwrap();
            for field in dthrottle_core::Decision::FIELDS {
                let found = ["", "_ns"].iter().any(|unit| {
                    let name = format!(" {}{unit}", field.name);
                    body.contains(&format!("{name};")) || body.contains(&format!("{name}["))
                });
                assert!(found, "{end} {}", field.name);
            }
        }
    }
}
