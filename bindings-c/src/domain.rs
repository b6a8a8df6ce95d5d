//! Domain handles, and the names and limits of their rules.

use std::ffi::{CString, c_char, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

use dthrottle_core::web::Headers;
use dthrottle_core::{ActiveRule, Error, ErrorKind, Result};

use crate::ffi::{at, bad};
use crate::throttle::Throttle;
use crate::web::KINDS;

/// A domain of a throttle. Look it up once by its name, and use the handle for every check. Made by
/// dthrottle_domain(), released by dthrottle_domain_free().
pub struct Domain {
    core: dthrottle_core::Domain,
    /// Names as C strings.
    name: CString,
    rule_names: Vec<CString>,
    /// Writers of header fields, by their kind. The first response of a kind makes the writer.
    pub(crate) headers: [OnceLock<Headers>; KINDS.len()],
}

/// Looks up a domain by its name. NULL with a name_len of 0 stands for the default domain. Returns
/// DTHROTTLE_ERR_DOMAIN if the throttle has no such domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain(
    throttle: *const Throttle,
    name: *const c_char,
    name_len: usize,
    out: *mut *mut Domain,
) -> i32 {
    guard!(|c| {
        let out = c.out_handle(out)?;
        let throttle = &c.handle(throttle)?.core;
        let domain = match c.name(name, name_len)? {
            Some(name) => throttle.domain(name)?,
            // A throttle dereferences to its default domain.
            None => throttle.deref().clone(),
        };
        out.set(Domain::new(domain)?);
        Ok(())
    })
}

/// Releases a domain handle. NULL is allowed. The domain itself is not affected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_free(domain: *mut Domain) {
    guard!(|c| {
        c.take_handle(domain)?;
        Ok(())
    });
}

/// Returns the name of a domain, or NULL if the handle is NULL. The string is valid until the
/// handle is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_name(domain: *const Domain) -> *const c_char {
    guard!(|c| Ok(c.handle(domain)?.name.as_ptr()))
}

/// Returns 1 if the domain is in dry run, else 0, or a negative status. In dry run, refusals and
/// delays are counted, but every check is allowed at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_is_dry_run(domain: *const Domain) -> i32 {
    guard!(|c| Ok(c.handle(domain)?.core.is_dry_run()))
}

/// Returns the number of rules of the domain, or a negative status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_count(domain: *const Domain) -> i32 {
    guard!(|c| {
        let count = c.handle(domain)?.core.rules().len();
        i32::try_from(count).map_err(|_| bad("the domain must have at most INT32_MAX rules"))
    })
}

/// Returns the name of a rule by its index from 0, as in a decision, or NULL if there is no such
/// rule, for example for -1. The string is valid until the handle is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_name(domain: *const Domain, index: i32) -> *const c_char {
    guard!(|c| {
        let names = &c.handle(domain)?.rule_names;
        Ok(at(names, index)?.as_ptr())
    })
}

/// Returns the burst of a rule by its index from 0, as in a decision, or 0 if there is no such
/// rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_limit(domain: *const Domain, index: i32) -> u64 {
    guard!(|c| {
        let rules = c.handle(domain)?.core.rules();
        Ok(at(rules, index)?.burst())
    })
}

/// Returns the time in which an empty bucket of a rule fills, in nanoseconds, by the index of the
/// rule from 0. Returns 0 if there is no such rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_window(domain: *const Domain, index: i32) -> u64 {
    guard!(|c| {
        let rules = c.handle(domain)?.core.rules();
        Ok(u64::try_from(at(rules, index)?.window().as_nanos()).unwrap_or(u64::MAX))
    })
}

/// Returns 1 if a bucket of this tag is still charged with units that an earlier process took from a
/// named table, and writes a warning for the log to text. Returns 0 if not, or a negative status.
/// Call this after a refused check. A throttle returns this warning once; it names the table and the
/// command that removes it. text, unless it is NULL, is cut to text_size bytes and ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_earlier_process_warning(
    domain: *const Domain,
    tag: *const c_void,
    tag_len: usize,
    text: *mut c_char,
    text_size: usize,
) -> i32 {
    guard!(|c| {
        let domain = c.handle(domain)?;
        let warning = domain.earlier_process_warning(c.bytes(tag, tag_len)?);
        c.copy_text(text, text_size, warning.as_deref().unwrap_or_default());
        Ok(warning.is_some())
    })
}

impl Domain {
    fn new(core: dthrottle_core::Domain) -> Result<Domain> {
        let rule_names = core.rules().iter().map(ActiveRule::name);
        Ok(Domain {
            name: c_string(core.name())?,
            rule_names: rule_names.map(c_string).collect::<Result<_>>()?,
            headers: Default::default(),
            core,
        })
    }
}

/// The calls about a tag are those of the core.
impl Deref for Domain {
    type Target = dthrottle_core::Domain;

    fn deref(&self) -> &dthrottle_core::Domain {
        &self.core
    }
}

/// Makes a C string. The core accepts no control characters in names, so there is no NUL.
fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::new(ErrorKind::Internal, "a name contains a NUL"))
}
