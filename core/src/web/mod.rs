//! HTTP policy: the decisions that all adapters for web frameworks and servers have in common.
//!
//! This module owns the options and their names in each language, the address of a client, exempt
//! clients, unusable tags, delayed requests, header fields, refusals, and the throttles that the
//! middlewares of a process share. It does no input or output and never waits. It uses the public
//! calls of a domain, the configuration tree, and of the operating system only the clock and the
//! number of forks.
//!
//! An adapter reads the request, calls the application's functions, waits, and writes the response.
//! [`Middleware`] describes the order of the calls, and has an example.

mod address;
mod body;
mod client;
mod counts;
mod delayed;
mod fields;
mod label;
mod middleware;
mod names;
mod networks;
mod options;
mod read;
mod request;
mod shared;
#[cfg(test)]
mod tests;
mod warnings;

pub use address::{
    AddressTag, ClientAddress, Trusted, address_from_bytes, address_tag, parse_address,
};
pub use body::Body;
pub use client::{BY_ADDRESS, BY_NAME};
pub use counts::Counts;
pub use delayed::delayed;
pub use fields::{Field, HeaderFormat, Headers, Policy, is_list, retry_after};
pub use label::application_table_name;
pub use middleware::Middleware;
pub use names::{nearest, option_names};
pub use networks::Networks;
pub use options::{Cost, Options, TagSource};
pub use read::AdapterSettings;
pub use request::{Action, HttpDecision, Refusal, Request, Tag};
pub use shared::SharedThrottle;
pub use warnings::Warning;
