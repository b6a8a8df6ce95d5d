//! Client addresses as tags, and header fields of responses, for servers that check tags
//! themselves.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64};

use dthrottle_core::web::{
    Field as CoreField, HeaderFormat, Headers, address_from_bytes, address_tag,
};
use dthrottle_core::{Result, web};

use crate::domain::Domain;
use crate::ffi::{VersionedStruct, bad, owned};
use crate::records::Decision;

/// Let the request pass.
pub const DTHROTTLE_PASS: i32 = 0;
/// Delay the request by delay_ns, call dthrottle_middleware_end_delay(), and let it pass.
pub const DTHROTTLE_DELAY: i32 = 1;
/// Refuse the request. If delay_ns is not 0, first delay the refusal by that time and call
/// dthrottle_middleware_end_delay().
pub const DTHROTTLE_REFUSE: i32 = 2;

/// No header fields except Retry-After.
pub const DTHROTTLE_HEADERS_NONE: i32 = 0;
/// RateLimit-Policy and RateLimit as structured fields: drafts 08 to 11 of
/// draft-ietf-httpapi-ratelimit-headers.
pub const DTHROTTLE_HEADERS_STANDARD: i32 = 1;
/// RateLimit-Policy and RateLimit of draft 07.
pub const DTHROTTLE_HEADERS_DRAFT_7: i32 = 2;
/// RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of draft 06, and RateLimit-Policy.
pub const DTHROTTLE_HEADERS_DRAFT_6: i32 = 3;
/// X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset.
pub const DTHROTTLE_HEADERS_X_RATELIMIT: i32 = 4;

/// The maximum number of bytes of a client address as a tag.
pub const DTHROTTLE_ADDRESS_SIZE: usize = 16;

/// The kinds of header fields. The index is the number in C.
pub(crate) const KINDS: [HeaderFormat; 5] = [
    HeaderFormat::None,
    HeaderFormat::Standard,
    HeaderFormat::Draft7,
    HeaderFormat::Draft6,
    HeaderFormat::XRateLimit,
];

/// A header field of a response. Both strings end with NUL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Field {
    /// The name, such as "RateLimit".
    pub name: *const c_char,
    /// The value.
    pub value: *const c_char,
}

/// The action for a request, and the header fields and body of the response. Begin with
/// DTHROTTLE_RESPONSE_INIT. The calls that fill it in allocate its memory. All pointers are valid
/// until dthrottle_response_free(). After an error the action is DTHROTTLE_PASS, and there is no
/// memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Response {
    /// sizeof(dthrottle_response_t).
    pub size: usize,
    /// DTHROTTLE_PASS, DTHROTTLE_DELAY or DTHROTTLE_REFUSE.
    pub action: i32,
    /// The status of a refusal, such as 429. Otherwise 0.
    pub status: i32,
    /// The header fields. Add them to the response for every action.
    pub fields: *const Field,
    /// The number of header fields.
    pub field_count: usize,
    /// The body of a refusal. Otherwise NULL.
    pub body: *const c_void,
    /// Its length in bytes.
    pub body_len: usize,
    /// The tag that was checked. NULL if the request passed without a check.
    pub tag: *const c_void,
    /// Its length in bytes.
    pub tag_len: usize,
    /// The memory that dthrottle_response_free() releases.
    pub memory: *mut Memory,
    /// How long to delay the request or its refusal. 0: no delay.
    pub delay_ns: u64,
}

/// The memory of a response, released by dthrottle_response_free().
pub struct Memory {
    pub(crate) tag: Vec<u8>,
    body: Vec<u8>,
    /// Names and values, each followed by a NUL.
    #[expect(dead_code, reason = "the fields point into it")]
    text: Vec<u8>,
    fields: Vec<Field>,
    /// Units to refund. The first call that may refund sets them to 0.
    pub(crate) taken: AtomicU64,
    /// Whether the request counts as one of the delayed requests.
    pub(crate) is_delayed: AtomicBool,
}

/// Converts the address of a client to a tag: the 4 bytes of an IPv4 address, or 16 bytes with the
/// first ipv6_prefix bits of an IPv6 address and zeros. address is the 4 or 16 bytes of a socket
/// address. An IPv4-mapped IPv6 address is converted like its IPv4 address. tag is a buffer of
/// DTHROTTLE_ADDRESS_SIZE bytes, and tag_len receives the number of bytes written. Most networks
/// assign a prefix of 64 bits to one client; ipv6_prefix may be from 1 to 128.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_address_tag(
    address: *const c_void,
    address_len: usize,
    ipv6_prefix: u32,
    tag: *mut u8,
    tag_len: *mut usize,
) -> i32 {
    guard!(|c| {
        c.store(tag_len, 0)?;
        let found = address_from_bytes(c.bytes(address, address_len)?)
            .filter(|_| (1..=128).contains(&ipv6_prefix))
            .ok_or_else(|| {
                bad("an address must have 4 or 16 bytes, and ipv6_prefix must be from 1 to 128")
            })?;
        let found = address_tag(found, ipv6_prefix);
        let bytes = found.as_ref();
        let mut padded = [0; DTHROTTLE_ADDRESS_SIZE];
        padded[..bytes.len()].copy_from_slice(bytes);
        c.store(tag.cast(), padded)?;
        c.store(tag_len, bytes.len())
    })
}

/// Returns the DTHROTTLE_HEADERS_ number of a kind of header fields: "standard" (or "draft-8",
/// "on"), "draft-7", "draft-6", "x-ratelimit" or "none" (or "off"). For configuration files of
/// servers. Returns DTHROTTLE_ERR_CONFIG if there is no such kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_header_kind(name: *const c_char, name_len: usize) -> i32 {
    guard!(|c| {
        let kind = match c.text(name, name_len)? {
            "on" => HeaderFormat::Standard,
            "off" => HeaderFormat::None,
            name => HeaderFormat::parse(name).ok_or_else(|| unknown_kind(name))?,
        };
        Ok(KINDS.iter().position(|known| *known == kind).unwrap_or(0) as i32)
    })
}

/// Writes the header fields for a decision of a domain to fields of the response, with Retry-After
/// if the decision is not allowed. kind is a DTHROTTLE_HEADERS_ number. The response has nothing
/// else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_header_fields(
    domain: *const Domain,
    kind: i32,
    decision: *const Decision,
    response: *mut Response,
) -> i32 {
    guard!(|c| {
        let out = c.out_struct(response)?;
        out.fill(Response::pass());
        let (domain, decision) = (c.handle(domain)?, c.read(decision)?);
        let fields = domain.headers(kind)?.of_response(domain, &decision.into());
        if !fields.is_empty() {
            out.fill(Response::pass().with(Memory::new(&fields)));
        }
        Ok(())
    })
}

/// Releases the memory of a response, which may then be used again. NULL and a response without
/// memory are allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_response_free(response: *mut Response) {
    guard!(|c| {
        if !response.is_null() {
            let memory = c.read(response)?.memory;
            c.out_struct(response)?.fill(Response::pass());
            c.take_handle(memory)?;
        }
        Ok(())
    });
}

impl Response {
    /// Makes the response of a request that passes, without fields.
    pub(crate) fn pass() -> Response {
        Response {
            size: Response::MIN_SIZE,
            action: DTHROTTLE_PASS,
            status: 0,
            fields: ptr::null(),
            field_count: 0,
            body: ptr::null(),
            body_len: 0,
            tag: ptr::null(),
            tag_len: 0,
            memory: ptr::null_mut(),
            delay_ns: 0,
        }
    }

    /// Sets the pointers of the response to this memory.
    pub(crate) fn with(self, memory: Memory) -> Response {
        // The pointers stay valid when the vectors move into the box.
        let start = |bytes: &[u8]| match bytes {
            [] => ptr::null(),
            _ => bytes.as_ptr().cast(),
        };
        Response {
            fields: memory.fields.as_ptr(),
            field_count: memory.fields.len(),
            body: start(&memory.body),
            body_len: memory.body.len(),
            tag: start(&memory.tag),
            tag_len: memory.tag.len(),
            memory: owned(memory),
            ..self
        }
    }
}

impl Memory {
    pub(crate) fn new(fields: &[CoreField<'_>]) -> Memory {
        let mut text = Vec::with_capacity(64 * fields.len());
        let mut starts = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            starts.push((text.len(), text.len() + name.len() + 1));
            text.extend_from_slice(name.as_bytes());
            text.push(0);
            // No value contains a NUL, because all are printable ASCII.
            text.extend_from_slice(value.as_bytes());
            text.push(0);
        }
        let at = |start: usize| text[start..].as_ptr().cast();
        let fields =
            starts.iter().map(|(name, value)| Field { name: at(*name), value: at(*value) });
        Memory {
            fields: fields.collect(),
            text,
            tag: Vec::new(),
            body: Vec::new(),
            taken: 0.into(),
            is_delayed: false.into(),
        }
    }

    /// Makes the memory of a response of middleware.
    pub(crate) fn of_request(
        fields: &[CoreField<'_>],
        body: Vec<u8>,
        decided: web::HttpDecision,
        is_delayed: bool,
    ) -> Memory {
        let (tag, taken) = (decided.tag, decided.taken.into());
        Memory { tag, taken, body, is_delayed: is_delayed.into(), ..Memory::new(fields) }
    }
}

impl Domain {
    /// Returns the writer of a kind of header fields.
    fn headers(&self, kind: i32) -> Result<&Headers> {
        let number = usize::try_from(kind).ok().filter(|number| *number < KINDS.len());
        let number = number.ok_or_else(|| bad("kind must be a DTHROTTLE_HEADERS_ number"))?;
        let make = || Headers::of_domain(KINDS[number], false, self);
        Ok(self.headers[number].get_or_init(make))
    }
}

#[cold]
fn unknown_kind(name: &str) -> dthrottle_core::Error {
    let message = format!(
        "a kind of header fields must be one of {}, got {name:?}",
        HeaderFormat::NAMES.join(", ")
    );
    dthrottle_core::Error::new(dthrottle_core::ErrorKind::Config, message)
}
