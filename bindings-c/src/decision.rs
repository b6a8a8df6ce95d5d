//! The calls about a tag: check, peek, allow, refund, reset and charge.

use std::ffi::c_void;
use std::time::Duration;

use dthrottle_core::Result;

use crate::domain::Domain;
use crate::ffi::{Caller, Flag, VersionedStruct, ns};
use crate::guard::catch_panic;
use crate::records::Decision;

/// Options of a check. Begin with DTHROTTLE_CHECK_OPTIONS_INIT: one unit, without a delay.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CheckOptions {
    /// sizeof(dthrottle_check_options_t).
    pub size: usize,
    /// If the bucket has fewer units than cost, take those that it has. granted of the decision is
    /// their number.
    pub partial: Flag,
    /// Units that the check takes.
    pub cost: u64,
    /// Also allow the check if the units become available within this time. They are taken at once.
    /// delay_ns of the decision is the time to wait before proceeding. A caller that does not wait
    /// calls dthrottle_refund().
    pub max_delay_ns: u64,
    /// If 1, allow a cost above the burst. The check then needs a full bucket and leaves it in
    /// debt, in one atomic step. Has no effect together with partial.
    pub allow_debt: u64,
}

/// How many tags are passed to the core at a time. At least the number that it looks up together.
const PART: usize = 256;

/// Checks a tag, and takes cost units if the check is allowed.
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

/// Checks a tag with options, and takes the units if the check is allowed.
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

/// Like dthrottle_check(), but takes no units.
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

/// Like dthrottle_check_with(), but takes no units.
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

/// Checks a tag, and takes cost units if the check is allowed. Returns 1 if it is allowed, 0 if it
/// is refused, and a negative status after an error. So "if (dthrottle_allow(...))" is also true
/// after an error.
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

/// Checks one unit for each of count tags, like count calls of dthrottle_allow(), but faster if
/// there are many buckets. Writes count results to allowed. If a pointer is invalid, no units are
/// taken. After an error, tags without a result are allowed.
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

/// Gives cost units back to every rule, for example if the work was not done or the caller did not
/// wait. A bucket never rises above its burst.
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

/// Fills the bucket of the tag in every rule.
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

/// Charges cost units that were used elsewhere age_ns ago, without a check. Peers get no report. The
/// balance of a bucket may become negative.
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

/// Charges cost units that were used on this node, without a check, and reports them to peers. The
/// balance of a bucket may become negative. debt_ns, unless it is NULL, receives the time until no
/// bucket of the tag is negative.
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

/// Passes the tags to the core in parts that fit on the stack. Calls it once if there are no tags,
/// so that a closed throttle is still an error.
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

/// Runs a check and writes its decision to `out`. If the check fails or panics, the decision is
/// allowed.
fn decide(
    c: &Caller,
    out: *mut Decision,
    options: impl FnOnce() -> Result<CheckOptions>,
    check: impl FnOnce(dthrottle_core::CheckOptions) -> Result<dthrottle_core::Decision>,
) -> Result<()> {
    // First, so that no units are taken if the decision cannot be written.
    let out = c.out_struct(out)?;
    let mut cost = 0;
    let decision = catch_panic(|| {
        let options = options()?;
        cost = options.cost;
        check(options.into())
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

/// For header fields, which are computed from a decision.
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

    /// Runs a check of 5 units.
    fn decide_five(
        out: &mut Decision,
        check: impl FnOnce(dthrottle_core::CheckOptions) -> Result<dthrottle_core::Decision>,
    ) -> i32 {
        let c = Caller::in_test();
        run_export(|| decide(&c, out, || Ok(CheckOptions::cost(5)), check))
    }

    #[test]
    fn a_decision_is_written_to_the_caller() {
        let mut out = refused();
        let status = decide_five(&mut out, |options| {
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
    fn a_failed_check_writes_an_allowed_decision() {
        let mut out = refused();
        let status = decide_five(&mut out, |_| Err(Error::new(ErrorKind::Closed, "closed")));
        assert_eq!(status, DTHROTTLE_ERR_CLOSED);
        assert_eq!((out.allowed, out.rule, out.granted), (1, -1, 5));
    }

    #[test]
    fn a_check_that_panics_writes_an_allowed_decision() {
        let mut out = refused();
        let status = decide_five(&mut out, |_| panic!("the test panics"));
        assert_eq!(status, DTHROTTLE_ERR_INTERNAL);
        assert_eq!((out.allowed, out.rule, out.granted), (1, -1, 5));
        assert_eq!(out.limit, dthrottle_core::UNLIMITED);
    }

    #[test]
    fn no_check_runs_if_the_decision_cannot_be_written() {
        let c = Caller::in_test();
        let mut small = Decision { size: Decision::MIN_SIZE - 1, ..refused() };
        for out in [std::ptr::null_mut(), &raw mut small] {
            let check = |_| -> Result<dthrottle_core::Decision> { panic!("the check ran") };
            let error = decide(&c, out, || Ok(CheckOptions::cost(1)), check).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument);
        }
        assert_eq!(small.allowed, 0);
    }

    #[test]
    fn the_header_contains_every_field_of_a_decision() {
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
