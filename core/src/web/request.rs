//! The types that an adapter passes and receives: a request, the decision about it, and the
//! response to a refusal.

use std::borrow::Cow;
use std::time::Duration;

use super::fields::Field;
use crate::limit::decision::Decision;

/// A request, as the adapter sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The address at the other end of the connection, as text.
    pub peer: Option<&'a str>,
    /// The client's address as the framework finds it by its own rules. Used if the application
    /// did not say which proxies to trust; `None`: the peer.
    pub client: Option<&'a str>,
    /// The lines of `X-Forwarded-For`, in their order.
    pub forwarded: &'a [&'a str],
    /// The result of the option `tag`.
    pub tag: Tag<'a>,
    /// The result of the option `cost`; `None`: the fixed cost, or 1.
    pub cost: Option<u64>,
    /// Tags of different scopes are different clients: the name of a route.
    pub scope: &'a str,
    /// Whether the server can serve other requests while it delays this one.
    pub can_delay: bool,
    /// Whether the client has left already, so that its address may be unknown.
    pub is_gone: bool,
}

/// The result of the option `tag` for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag<'a> {
    /// The client's address is the tag.
    #[default]
    Address,
    /// A tag. An empty one is unusable.
    Value(&'a [u8]),
    /// The header with the tag is missing, or was sent twice.
    Missing,
    /// A value that is not usable as a tag, by the name of its type.
    Unusable(&'a str),
    /// The function failed, which the adapter has reported.
    Failed,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let it pass.
    Pass,
    /// Delay it by this time, call [`Middleware::end_delay`], and let it pass.
    Delay(Duration),
    /// Refuse it. If the time is not zero: delay it first, and call [`Middleware::end_delay`].
    Refuse(Duration),
}

/// The decision about a request.
#[derive(Clone, Debug)]
pub struct HttpDecision {
    /// What to do.
    pub action: Action,
    /// The throttle's decision.
    pub decision: Decision,
    /// The tag that was counted.
    pub tag: Vec<u8>,
    /// Units that were taken. A refund gives them back.
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
