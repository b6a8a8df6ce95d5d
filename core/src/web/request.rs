//! The types that an adapter exchanges with [`Middleware`](super::Middleware): a request, the
//! decision about it, and the response to a refused request.

use std::borrow::Cow;
use std::time::Duration;

use super::fields::Field;
use crate::limit::decision::Decision;

/// A request, as the adapter sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The address of the connection's other end, as text. `None` for a Unix socket.
    pub peer: Option<&'a str>,
    /// The client's address as the framework determines it. Only used without the option
    /// `trusted_proxies`. `None` means that `peer` is the client.
    pub client: Option<&'a str>,
    /// The lines of `X-Forwarded-For`, in their order.
    pub forwarded: &'a [&'a str],
    /// The tag of the request.
    pub tag: Tag<'a>,
    /// The result of the application's function `cost`. `None` uses the fixed cost, or 1.
    pub cost: Option<u64>,
    /// Separates the buckets of requests, such as the name of a route. May be empty.
    pub scope: &'a str,
    /// Whether the server can serve other requests while it delays this one.
    pub can_delay: bool,
    /// Whether the client has disconnected, so that its address may be unknown.
    pub is_gone: bool,
}

/// The result of the option `tag` for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag<'a> {
    /// The tag is the client's address.
    #[default]
    Address,
    /// The tag. An empty tag is unusable.
    Value(&'a [u8]),
    /// The header that has the tag is missing, or was sent twice.
    Missing,
    /// The value cannot be a tag. Holds the name of its type.
    Unusable(&'a str),
    /// The application's function failed. The adapter has reported the error.
    Failed,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let it pass.
    Pass,
    /// Delay it by this time, call [`Middleware::end_delay`](super::Middleware::end_delay), and let
    /// it pass.
    Delay(Duration),
    /// Refuse it. If the time is not zero: delay it first, and call
    /// [`Middleware::end_delay`](super::Middleware::end_delay).
    Refuse(Duration),
}

/// The decision about a request.
#[derive(Clone, Debug)]
pub struct HttpDecision {
    /// What to do with the request.
    pub action: Action,
    /// The decision of the throttle.
    pub decision: Decision,
    /// The tag that was charged.
    pub tag: Vec<u8>,
    /// The units that were charged, for a refund.
    pub taken: u64,
}

/// The response to a refused request.
#[derive(Clone, Debug)]
pub struct Refusal<'a> {
    /// The HTTP status.
    pub status: u16,
    /// All header fields, including the content type.
    pub fields: Vec<Field<'a>>,
    /// The body.
    pub body: Cow<'a, [u8]>,
}
