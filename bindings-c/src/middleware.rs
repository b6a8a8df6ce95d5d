//! HTTP middleware for servers written in C.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use dthrottle_core::Result;
use dthrottle_core::web::{self, Action, AdapterSettings, Tag, TagSource};

use crate::domain::Domain;
use crate::ffi::{Caller, Flag, ns};
use crate::records::Decision;
use crate::web::{DTHROTTLE_DELAY, DTHROTTLE_PASS, DTHROTTLE_REFUSE, Memory, Response};

/// The cost of a request is the option cost, or 1.
pub const DTHROTTLE_COST_OF_OPTIONS: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// HTTP middleware: checks requests in a domain, as its options say. Made by
/// dthrottle_middleware_new(), released by dthrottle_middleware_free().
pub struct Middleware {
    core: web::Middleware,
    /// Warnings that dthrottle_middleware_warning() has not returned yet.
    warnings: Mutex<VecDeque<String>>,
}

/// A request to the server. Begin with DTHROTTLE_REQUEST_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    /// sizeof(dthrottle_request_t).
    pub size: usize,
    /// Whether the server can serve other requests while it delays this one.
    pub can_delay: Flag,
    /// The address of the other end of the connection, as text. NULL: unknown.
    pub peer: *const c_char,
    /// Its length in bytes.
    pub peer_len: usize,
    /// The X-Forwarded-For field. Join several lines with commas. NULL: the request has none.
    pub forwarded: *const c_char,
    /// Its length in bytes.
    pub forwarded_len: usize,
    /// The tag, if the option tag names a header or is "request". For a header, its value. NULL:
    /// the tag is missing, and the address of the client is used instead.
    pub tag: *const c_void,
    /// Its length in bytes.
    pub tag_len: usize,
    /// A scope, such as the name of a route. Equal tags in different scopes have separate buckets.
    /// NULL: no scope.
    pub scope: *const c_char,
    /// Its length in bytes.
    pub scope_len: usize,
    /// The cost in units, or DTHROTTLE_COST_OF_OPTIONS. A cost above the burst needs a full bucket
    /// and leaves it in debt.
    pub cost: u64,
}

/// Makes middleware that checks requests in this domain. options is TOML with the options of
/// docs/http.md, except rates and rules, which the domain has. The caller compares methods and
/// routes, and reads the tag from the request; with the option tag = "request", it sets the tag of
/// every request. The domain handle may be released before the middleware.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_new(
    domain: *const Domain,
    options: *const c_char,
    options_len: usize,
    out: *mut *mut Middleware,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let out = c.out_handle(out)?;
        let domain: &dthrottle_core::Domain = c.handle(domain)?;
        let setup = AdapterSettings { domain: Some(domain.clone()), ..AdapterSettings::default() };
        let core = web::Middleware::from_toml(c.text(options, options_len)?, setup)?;
        out.set(Middleware { core, warnings: Mutex::default() });
        Ok(())
    })
}

/// Releases middleware. NULL is allowed. Its responses must be released as well, before or after
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_free(middleware: *mut Middleware) {
    guard!(|c| {
        c.take_handle(middleware)?;
        Ok(())
    });
}

/// Decides whether to allow a request. The action of the response says what to do. Its header
/// fields are for the response of the server. decision, unless it is NULL, receives the decision of
/// the throttle. Invalid UTF-8 in the request is not an error, because clients can send it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_decide(
    middleware: *const Middleware,
    request: *const Request,
    response: *mut Response,
    decision: *mut Decision,
) -> i32 {
    guard!(|c| {
        let out = c.out_struct(response)?;
        out.fill(Response::pass());
        let out_decision = (!decision.is_null()).then(|| c.out_struct(decision)).transpose()?;
        let publish = |decided: &dthrottle_core::Decision| {
            out_decision.iter().for_each(|out| out.fill(Decision::of(decided)));
        };
        publish(&dthrottle_core::Decision::unlimited(0));
        let core = &c.handle(middleware)?.core;
        if let Some(decided) = c.read(request)?.decide(c, core)? {
            publish(&decided.decision);
            out.fill(to_response(core, decided));
        }
        Ok(())
    })
}

/// Ends the delay of a request, after delay_ns or when its client leaves, so that another request
/// may be delayed. If is_gone is true, the client left, and its units are refunded. Later calls for
/// the same response do nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_end_delay(
    middleware: *const Middleware,
    response: *const Response,
    is_gone: Flag,
) -> i32 {
    guard!(|c| {
        with_memory(c, middleware, response, |core, memory| {
            // Relaxed, as in `finish`: the swaps order no other memory.
            if memory.is_delayed.swap(false, Ordering::Relaxed) {
                let taken = if is_gone != 0 { memory.taken.swap(0, Ordering::Relaxed) } else { 0 };
                core.end_delay(&memory.tag, taken, is_gone != 0);
            }
        })
    })
}

/// Call this when the response to a request has been sent. Refunds the request if the option
/// skip_failed_requests or skip_successful_requests says so and dthrottle_middleware_end_delay()
/// did not. Later calls for the same response do nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_finish(
    middleware: *const Middleware,
    response: *const Response,
    is_success: Flag,
) -> i32 {
    guard!(|c| {
        with_memory(c, middleware, response, |core, memory| {
            let taken = memory.taken.swap(0, Ordering::Relaxed);
            core.finish(&memory.tag, taken, is_success != 0);
        })
    })
}

/// Returns 1 and writes the next warning to text, or returns 0 if there is none. A warning is one
/// line for a log, for example about X-Forwarded-For without trusted proxies. Each cause gives one
/// warning. Call this after dthrottle_middleware_new() and after each decision; it is fast without
/// a warning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_warning(
    middleware: *const Middleware,
    text: *mut c_char,
    text_size: usize,
) -> i32 {
    guard!(|c| {
        let warning = c.handle(middleware)?.next_warning();
        c.copy_text(text, text_size, warning.as_deref().unwrap_or_default());
        Ok(warning.is_some())
    })
}

impl Middleware {
    fn next_warning(&self) -> Option<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let new = self.core.take_warnings();
        warnings.extend(new.into_iter().map(|new| format!("{}: {}", new.code, new.message)));
        warnings.pop_front()
    }
}

impl Request {
    /// Decides about the request. `None` means that it passes without a decision.
    fn decide(self, c: &Caller, core: &web::Middleware) -> Result<Option<web::HttpDecision>> {
        let lossy = |start: *const c_char, len| -> Result<Option<Cow<'_, str>>> {
            let bytes = c.bytes(start.cast(), len)?;
            Ok((!start.is_null()).then(|| String::from_utf8_lossy(bytes)))
        };
        let peer = lossy(self.peer, self.peer_len)?;
        let forwarded = lossy(self.forwarded, self.forwarded_len)?;
        let scope = lossy(self.scope, self.scope_len)?;
        let lines: Vec<&str> = forwarded.as_deref().into_iter().collect();
        let tag = c.bytes(self.tag, self.tag_len)?;
        let request = web::Request {
            peer: peer.as_deref(),
            forwarded: &lines,
            tag: match &core.options().tag {
                TagSource::Address => Tag::Address,
                _ if self.tag.is_null() => Tag::Missing,
                _ => Tag::Value(tag),
            },
            cost: Some(self.cost).filter(|cost| *cost != DTHROTTLE_COST_OF_OPTIONS),
            scope: scope.as_deref().unwrap_or_default(),
            can_delay: self.can_delay != 0,
            ..web::Request::default()
        };
        Ok((!core.is_exempt(&request)).then(|| core.decide(&request)).flatten())
    }
}

/// Makes the response to a request from the decision about it.
fn to_response(core: &web::Middleware, decided: web::HttpDecision) -> Response {
    let (action, delay) = match decided.action {
        Action::Pass => (DTHROTTLE_PASS, None),
        Action::Delay(time) => (DTHROTTLE_DELAY, Some(time)),
        Action::Refuse(time) => (DTHROTTLE_REFUSE, Some(time).filter(|time| !time.is_zero())),
    };
    let delay_ns = delay.map_or(0, ns);
    let (status, fields, body) = match action {
        DTHROTTLE_REFUSE => {
            let refusal = core.refusal(&decided.decision, None);
            (refusal.status.into(), refusal.fields, refusal.body.into_owned())
        }
        _ => (0, core.fields(&decided.decision), Vec::new()),
    };
    let memory = Memory::of_request(&fields, body, decided, delay.is_some());
    Response { action, status, delay_ns, ..Response::pass() }.with(memory)
}

/// Calls `work` with the memory of a response. Does nothing if the response has no memory.
fn with_memory(
    c: &Caller,
    middleware: *const Middleware,
    response: *const Response,
    work: impl FnOnce(&web::Middleware, &Memory),
) -> Result<()> {
    let core = &c.handle(middleware)?.core;
    let memory = c.read(response)?.memory;
    if !memory.is_null() {
        work(core, c.handle(memory)?);
    }
    Ok(())
}
