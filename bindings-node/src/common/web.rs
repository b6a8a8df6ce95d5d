//! The code for HTTP middleware that both JavaScript bindings share: it converts requests, and
//! decisions to numbers and texts. The policy is in core (`dthrottle::web`); `surface.d.ts`
//! describes the calls.

use std::borrow::Cow;
use std::net::IpAddr;

use dthrottle::config::Names;
use dthrottle::web::{
    Action, AdapterSettings, BY_ADDRESS, BY_NAME, Body, Middleware, Options, Request, Tag,
};
use dthrottle::{Decision, Error, Result, convert};

use super::{NUMBERS, numbers, tree};

/// Indexes of the numbers of a request, which follow those of the decision. They must match
/// `web/outcome.js`.
const ACTION: usize = NUMBERS;
const DELAY_MS: usize = ACTION + 1;
const TAKEN: usize = DELAY_MS + 1;
const TAG_KIND: usize = TAKEN + 1;
const HAS_WARNINGS: usize = TAG_KIND + 1;
const ADDRESS_LENGTH: usize = HAS_WARNINGS + 1;
const HAS_FIELDS: usize = ADDRESS_LENGTH + 1;

/// The length of the list of numbers of a request.
pub(crate) const REQUEST_NUMBERS: usize = HAS_FIELDS + 1;

/// The client's own tag, from the application.
const GIVEN: u32 = 0;
/// The client's address, as text.
const ADDRESS: u32 = 1;
/// The address of a client that has no usable tag, as text; empty if the address is unknown.
const BY_ADDRESS_KIND: u32 = 2;
/// The name of a peer that has no address.
const BY_NAME_KIND: u32 = 3;

/// Opens a middleware from its encoded options.
pub(crate) fn open(encoded: Vec<String>, setup: AdapterSettings<'_>) -> Result<Middleware> {
    Middleware::read(&tree::decode(encoded)?, Names::Camel, setup)
}

/// Decodes options that need no throttle, such as those of `dthrottle/address`.
pub(crate) fn options(encoded: Vec<String>) -> Result<Options> {
    Options::read(&tree::decode(encoded)?, Names::Camel)
}

/// The traits that apply to a middleware, by name.
pub(crate) fn traits(middleware: &Middleware) -> Vec<String> {
    let options = middleware.options();
    let all = [
        ("exempts", !options.exempt.is_empty()),
        ("isList", middleware.headers().is_list()),
        ("refunds", middleware.refunds()),
        ("trusts", options.trusts_proxies),
    ];
    all.iter().filter(|(_, holds)| *holds).map(|(name, _)| (*name).into()).collect()
}

/// The names of the fields of every response, in lower case.
pub(crate) fn field_names(middleware: &Middleware) -> Vec<String> {
    let fields = middleware.headers().fields(&any(), || 0);
    fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect()
}

/// The value of the first field, if it is the same in all responses.
pub(crate) fn policy(middleware: &Middleware) -> Option<String> {
    match middleware.headers().fields(&any(), || 0).into_iter().next() {
        Some((_, Cow::Borrowed(value))) => Some(value.into()),
        _ => None,
    }
}

/// Any decision that has header fields.
fn any() -> Decision {
    let mut any = Decision::unlimited(0);
    any.deciding = Some(0);
    any
}

/// The result of the option `tag`, from its kind, and its bytes or the name of its type.
pub(crate) fn tag<'a>(kind: u32, value: &'a [u8]) -> Tag<'a> {
    match kind {
        0 => Tag::Address,
        1 => Tag::Value(value),
        2 => Tag::Missing,
        3 => Tag::Unusable(std::str::from_utf8(value).unwrap_or("other text")),
        _ => Tag::Failed,
    }
}

/// Decides about a request. Returns the text of the client's address if that is counted, followed
/// by the values of the header fields that differ between responses, separated by line breaks.
/// Writes the numbers to `into`.
pub(crate) fn decide(
    middleware: &Middleware,
    request: &Request<'_>,
    into: &mut [f64],
) -> Result<Option<String>> {
    let into: &mut [f64; REQUEST_NUMBERS] =
        into.try_into().map_err(|_| internal("too few or too many numbers"))?;
    let decided = middleware.decide(request);
    into[HAS_WARNINGS] = f64::from(u8::from(middleware.has_warnings()));
    let Some(decided) = decided else { return Ok(None) };
    into[..NUMBERS].copy_from_slice(&numbers(&decided.decision));
    let (action, delay) = match decided.action {
        Action::Pass => (0.0, std::time::Duration::ZERO),
        Action::Delay(delay) => (1.0, delay),
        Action::Refuse(delay) => (2.0, delay),
    };
    into[ACTION] = action;
    into[DELAY_MS] = convert::millis(delay);
    into[TAKEN] = decided.taken as f64;
    let is_given = matches!(request.tag, Tag::Value(tag) if !tag.is_empty());
    let (kind, mut texts) = if is_given { (GIVEN, String::new()) } else { shown(&decided.tag) };
    into[TAG_KIND] = f64::from(kind);
    into[ADDRESS_LENGTH] = texts.encode_utf16().count() as f64;
    // A single string, because making a list of strings for JavaScript takes longer than the whole
    // decision.
    let fields = middleware.fields(&decided.decision);
    into[HAS_FIELDS] = f64::from(u8::from(!fields.is_empty()));
    let changing = fields.iter().filter(|(_, value)| matches!(value, Cow::Owned(_)));
    for (i, (_, value)) in changing.enumerate() {
        if i > 0 {
            texts.push('\n');
        }
        texts.push_str(value);
    }
    Ok(Some(texts))
}

/// The kind and the text of a tag that was made from an address or the name of a peer.
fn shown(tag: &[u8]) -> (u32, String) {
    if let Some(name) = tag.strip_prefix(BY_NAME) {
        return (BY_NAME_KIND, String::from_utf8_lossy(name).into());
    }
    match address(tag) {
        Some(text) => (ADDRESS, text),
        None => {
            let rest = tag.get(BY_ADDRESS.len()..).unwrap_or_default();
            (BY_ADDRESS_KIND, address(rest).unwrap_or_default())
        }
    }
}

/// An address of 4 or 16 bytes as text.
pub(crate) fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(v4).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| IpAddr::from(v6).to_string())
}

/// The tag of a request, from its kind and its bytes or the text of the address.
pub(crate) fn tag_bytes(kind: u32, value: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(value).ok();
    let address: Vec<u8> = match text.and_then(|text| text.parse::<IpAddr>().ok()) {
        Some(IpAddr::V4(v4)) => v4.octets().into(),
        Some(IpAddr::V6(v6)) => v6.octets().into(),
        None => Vec::new(),
    };
    match kind {
        GIVEN => value.to_vec(),
        ADDRESS => address,
        BY_NAME_KIND => [BY_NAME, value].concat(),
        _ => [BY_ADDRESS, &address].concat(),
    }
}

/// The response to a refusal by the rule of this index: the body, and as text the status and the
/// values of content-type, content-length and, unless an option turns it off, retry-after.
pub(crate) fn refusal(
    middleware: &Middleware,
    body: Option<Vec<String>>,
    rule: f64,
    retry_after_ms: f64,
) -> Result<(Vec<u8>, Vec<String>)> {
    let body = body.map(self::body).transpose()?;
    let mut decision = Decision::unlimited(0);
    decision.rule = (rule >= 0.0).then_some(rule as usize);
    decision.retry_after = convert::duration_from_millis("retryAfterMs", retry_after_ms)?;
    let refusal = middleware.refusal(&decision, body.as_ref());
    let count = 2 + usize::from(middleware.options().retry_after);
    let values = refusal.fields.iter().take(count).map(|(_, value)| value.to_string());
    let texts = std::iter::once(refusal.status.to_string()).chain(values).collect();
    Ok((refusal.body.into_owned(), texts))
}

/// Decodes a body: the option `body`, or the result of its function.
fn body(encoded: Vec<String>) -> Result<Body> {
    let mut all = vec!["t1".into(), "body".into()];
    all.extend(encoded);
    Ok(options(all)?.body)
}

/// The code and the text of each warning since the last call.
pub(crate) fn warnings(middleware: &Middleware) -> Vec<String> {
    let warnings = middleware.take_warnings().into_iter();
    warnings.flat_map(|warning| [warning.code.into(), warning.message]).collect()
}

/// The counts, in the order of `web/middleware.js`.
pub(crate) fn counts(middleware: &Middleware) -> Vec<f64> {
    middleware.counts().values().iter().map(|count| *count as f64).collect()
}

/// The error of a call of a closed middleware.
pub(crate) fn closed() -> Error {
    Error::new(dthrottle::ErrorKind::Closed, "this middleware is closed")
}

fn internal(message: &str) -> Error {
    Error::new(dthrottle::ErrorKind::Internal, message)
}
