//! Domain handles, and what can be asked of a domain's make-up.

use std::ffi::{CString, c_char, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

use dthrottle_core::web::Headers;
use dthrottle_core::{ActiveRule, Error, ErrorKind, Result};

use crate::ffi::{at, bad};
use crate::throttle::Throttle;
use crate::web::KINDS;

/// A domain of a throttle: resolved once by its name, then asked at every check. Made by
/// dthrottle_domain(), released by dthrottle_domain_free().
pub struct Domain {
    core: dthrottle_core::Domain,
    /// The names, as C wants them.
    name: CString,
    rule_names: Vec<CString>,
    /// Writers of header fields, by their kind: made by the first response.
    pub(crate) headers: [OnceLock<Headers>; KINDS.len()],
}

/// Resolves a domain by its name; name NULL and name_len 0 is the default domain.
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
            // The throttle itself stands for the default domain.
            None => throttle.deref().clone(),
        };
        out.set(Domain::new(domain)?);
        Ok(())
    })
}

/// Releases a domain handle; NULL is fine. The domain itself goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_free(domain: *mut Domain) {
    guard!(|c| {
        c.take_handle(domain)?;
        Ok(())
    });
}

/// The domain's name, or NULL without a domain. Lives as long as the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_name(domain: *const Domain) -> *const c_char {
    guard!(|c| Ok(c.handle(domain)?.name.as_ptr()))
}

/// Whether nothing is refused or told to wait in this domain, only counted: 1, 0, or a negative
/// status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_is_dry_run(domain: *const Domain) -> i32 {
    guard!(|c| Ok(c.handle(domain)?.core.is_dry_run()))
}

/// How many rules the domain has, or a negative status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_count(domain: *const Domain) -> i32 {
    guard!(|c| {
        let count = c.handle(domain)?.core.rules().len();
        i32::try_from(count).map_err(|_| bad("too many rules"))
    })
}

/// The name of a rule by its index from 0, as in a decision; NULL if there is no such rule, as for
/// -1. Lives as long as the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_name(domain: *const Domain, index: i32) -> *const c_char {
    guard!(|c| {
        let names = &c.handle(domain)?.rule_names;
        Ok(at(names, index)?.as_ptr())
    })
}

/// The burst of a rule by its index from 0, as in a decision; 0 if there is no such rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_limit(domain: *const Domain, index: i32) -> u64 {
    guard!(|c| {
        let rules = c.handle(domain)?.core.rules();
        Ok(at(rules, index)?.burst())
    })
}

/// The nanoseconds in which an empty bucket of a rule fills, by the rule's index from 0; 0 if there
/// is no such rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_rule_window(domain: *const Domain, index: i32) -> u64 {
    guard!(|c| {
        let rules = c.handle(domain)?.core.rules();
        Ok(u64::try_from(at(rules, index)?.window().as_nanos()).unwrap_or(u64::MAX))
    })
}

/// Gives a warning for the log if a bucket of this tag still misses units that an earlier process
/// took from a named table: 1, 0 if not, or a negative status. To be called when a check was
/// refused. A throttle gives this warning once; it names the table and the command that removes
/// it. text, unless it is NULL, gets the warning, cut to text_size bytes with the NUL at its end.
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

/// All calls about a tag are the core's.
impl Deref for Domain {
    type Target = dthrottle_core::Domain;

    fn deref(&self) -> &dthrottle_core::Domain {
        &self.core
    }
}

/// The core accepts no name with a control character, so there is no NUL in it.
fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::new(ErrorKind::Internal, "a name with NUL"))
}
