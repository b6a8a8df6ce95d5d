//! HTTP middleware for servers written in C: decides about requests by its options.

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

/// The cost of a request is that of the options, or 1.
pub const DTHROTTLE_COST_OF_OPTIONS: u64 = 0xFFFF_FFFF_FFFF_FFFF;

/// HTTP middleware on a domain, which decides about requests by its options. Made by
/// dthrottle_middleware_new(), released by dthrottle_middleware_free().
pub struct Middleware {
    core: web::Middleware,
    /// Warnings that dthrottle_middleware_warning() has not returned yet.
    warnings: Mutex<VecDeque<String>>,
}

/// A request, as the server knows it. Begin with DTHROTTLE_REQUEST_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    /// sizeof(dthrottle_request_t).
    pub size: usize,
    /// Whether the server can delay this request, and serve others meanwhile.
    pub can_delay: Flag,
    /// The address at the other end of the connection as text; NULL: unknown.
    pub peer: *const c_char,
    /// Its length in bytes.
    pub peer_len: usize,
    /// X-Forwarded-For; several lines are joined with commas. NULL: the request has none.
    pub forwarded: *const c_char,
    /// Its length in bytes.
    pub forwarded_len: usize,
    /// The tag, if the option tag is a header, whose value it is, or "request". NULL: the header is
    /// missing, and the client's address is counted.
    pub tag: *const c_void,
    /// Its length in bytes.
    pub tag_len: usize,
    /// Tags of different scopes are different clients: the name of a route. NULL: none.
    pub scope: *const c_char,
    /// Its length in bytes.
    pub scope_len: usize,
    /// Units, or DTHROTTLE_COST_OF_OPTIONS. A cost above the burst needs a full bucket and leaves
    /// it in debt.
    pub cost: u64,
}

/// Makes middleware that asks this domain. options is TOML with the options of docs/http.md; rates
/// and rules are the domain's. The caller compares methods and routes, and reads the tag from the
/// request: tag = "request" says that each request brings one. Keeps a reference to the domain.
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

/// Releases middleware; NULL is fine. Release its responses as well, before or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_free(middleware: *mut Middleware) {
    guard!(|c| {
        c.take_handle(middleware)?;
        Ok(())
    });
}

/// Decides about a request. The response says what to do with it, and has its header fields;
/// decision, unless it is NULL, gets the decision of the throttle. Texts that are not UTF-8 are no
/// error: clients write them.
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
        let figures = (!decision.is_null()).then(|| c.out_struct(decision)).transpose()?;
        let publish = |decided: &dthrottle_core::Decision| {
            figures.iter().for_each(|out| out.fill(Decision::of(decided)));
        };
        publish(&dthrottle_core::Decision::unlimited(0));
        let core = &c.handle(middleware)?.core;
        if let Some(decided) = c.read(request)?.decide(c, core)? {
            publish(&decided.decision);
            out.fill(answer(core, decided));
        }
        Ok(())
    })
}

/// Ends the delay of a request, after delay_ns or earlier: another request can be delayed then.
/// is_gone: the client left before its turn, and gets back what it took. Only the first call counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_middleware_end_delay(
    middleware: *const Middleware,
    response: *const Response,
    is_gone: Flag,
) -> i32 {
    guard!(|c| {
        with_memory(c, middleware, response, |core, memory| {
            // Relaxed, as in `finish`: the swaps order nothing else.
            if memory.is_delayed.swap(false, Ordering::Relaxed) {
                let taken = if is_gone != 0 { memory.taken.swap(0, Ordering::Relaxed) } else { 0 };
                core.end_delay(&memory.tag, taken, is_gone != 0);
            }
        })
    })
}

/// To be called when the response to a request has ended: refunds the request, if the options
/// skip_failed_requests or skip_successful_requests say so, and if dthrottle_middleware_end_delay()
/// did not. Only the first call counts.
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

/// Takes the next warning, such as about X-Forwarded-For without trusted proxies, as one line for a
/// log: 1, or 0 if there is none. Each cause gives one warning. To be called after
/// dthrottle_middleware_new() and after each decision; cheap if there is none.
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

/// The response to a request about which this was decided.
fn answer(core: &web::Middleware, decided: web::HttpDecision) -> Response {
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

/// Does something with a response that has memory; without it there is nothing to do.
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
