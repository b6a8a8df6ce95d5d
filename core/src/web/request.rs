//! What an adapter tells of a request, and what it gets: a decision, and the response to a refusal.

use std::borrow::Cow;
use std::time::Duration;

use super::fields::Field;
use crate::limit::decision::Decision;

/// What an adapter knows of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The address at the other end of the connection, as text.
    pub peer: Option<&'a str>,
    /// The client's address as the framework finds it by its own rules. Used if the application
    /// did not say which proxies to trust; `None`: the peer.
    pub client: Option<&'a str>,
    /// The lines of `X-Forwarded-For`, in their order.
    pub forwarded: &'a [&'a str],
    /// What the option `tag` gave.
    pub tag: Tag<'a>,
    /// What the option `cost` gave; `None`: the fixed cost, or 1.
    pub cost: Option<u64>,
    /// Tags of different scopes are different clients: the name of a route.
    pub scope: &'a str,
    /// Whether the server can serve other requests while it holds this one.
    pub can_wait: bool,
    /// Whether the client has left already, so that its address may be unknown.
    pub is_gone: bool,
}

/// What the option `tag` gave for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag<'a> {
    /// The client's address is the tag.
    #[default]
    Address,
    /// A tag. An empty one is unusable.
    Value(&'a [u8]),
    /// The header that has the tag is missing, or there twice.
    Missing,
    /// A value that cannot be a tag, by the name of its type.
    Unusable(&'a str),
    /// The function failed, which the adapter has reported.
    Failed,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let it pass.
    Pass,
    /// Hold it for this time, call [`Middleware::end_hold`], and let it pass.
    Hold(Duration),
    /// Refuse it. If the time is not zero: hold it first, and call [`Middleware::end_hold`].
    Refuse(Duration),
}

/// The decision about a request.
#[derive(Clone, Debug)]
pub struct HttpDecision {
    /// What to do.
    pub action: Action,
    /// The throttle's decision.
    pub decision: Decision,
    /// Who was counted.
    pub tag: Vec<u8>,
    /// Units that were taken, and that a refund gives back.
    pub taken: u64,
}

/// The response to a refused request.
#[derive(Clone, Debug)]
pub struct Refusal<'a> {
    /// The status.
    pub status: u16,
    /// The content type, and all other fields.
    pub fields: Vec<Field<'a>>,
    /// The content.
    pub body: Cow<'a, [u8]>,
}
