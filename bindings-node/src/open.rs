//! A throttle from its making to its end, and what it says about itself.

use dthrottle::{Builder, Config, Domain, ManualClock, Throttle};
use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::common;
use crate::failure::{Result, failure};
use crate::registry::Entry;

/// About what an empty throttle takes, so that the garbage collector knows what a handle holds.
const SIZE_HINT: usize = 32_768;

/// A throttle, seen through one of its domains.
pub struct Handle {
    pub(crate) throttle: Throttle,
    pub(crate) domain: Domain,
    entry: Entry<Domain>,
}

impl Handle {
    pub(crate) fn new(throttle: Throttle, domain: Domain) -> Handle {
        let entry = Entry::new(domain.clone());
        Handle { throttle, domain, entry }
    }
}

type Clock<'a> = Option<&'a External<ManualClock>>;
type Words = Option<Vec<String>>;

/// Opens a throttle from a configuration object, as the words of `common/tree.rs`.
#[napi(catch_unwind)]
pub fn from_words(words: Vec<String>, clock: Clock<'_>) -> Result<External<Handle>> {
    open(common::config(words), clock)
}

/// Opens a throttle from TOML. A table, as the words of `common/tree.rs`, is added to it.
#[napi(catch_unwind)]
pub fn from_toml(text: String, clock: Clock<'_>, table: Words) -> Result<External<Handle>> {
    open(common::with_table(Config::from_toml(&text), table), clock)
}

/// Opens a throttle from a file of TOML, with a table as above.
#[napi(catch_unwind)]
pub fn from_file(path: String, clock: Clock<'_>, table: Words) -> Result<External<Handle>> {
    open(common::with_table(Config::from_file(path), table), clock)
}

fn open(config: dthrottle::Result<Config>, clock: Clock<'_>) -> Result<External<Handle>> {
    let mut builder = Builder::from(config.map_err(failure)?);
    if let Some(clock) = clock {
        builder = builder.clock((**clock).clone());
    }
    let throttle = builder.build().map_err(failure)?;
    let domain = (*throttle).clone();
    Ok(External::new_with_size_hint(Handle::new(throttle, domain), SIZE_HINT))
}

/// Another domain of the same throttle.
#[napi(catch_unwind)]
pub fn domain(handle: &External<Handle>, name: String) -> Result<External<Handle>> {
    let throttle = handle.throttle.clone();
    let domain = throttle.domain(&name).map_err(failure)?;
    Ok(External::new(Handle::new(throttle, domain)))
}

/// The id by which the hot calls find the domain, valid as long as the handle lives.
#[napi(catch_unwind)]
pub fn domain_id(handle: &External<Handle>) -> u32 {
    handle.entry.id()
}

/// The domain's name.
#[napi(catch_unwind)]
pub fn name(handle: &External<Handle>) -> String {
    handle.domain.name().to_string()
}

/// The names of the domain's rules.
#[napi(catch_unwind)]
pub fn rule_names(handle: &External<Handle>) -> Vec<String> {
    common::rule_names(&handle.domain)
}

/// The bursts of the domain's rules.
#[napi(catch_unwind)]
pub fn rule_limits(handle: &External<Handle>) -> Vec<f64> {
    common::rule_limits(&handle.domain)
}

/// The milliseconds in which the buckets of the domain's rules fill.
#[napi(catch_unwind)]
pub fn rule_windows(handle: &External<Handle>) -> Vec<f64> {
    common::rule_windows(&handle.domain)
}

/// The table's name, if it is shared by one.
#[napi(catch_unwind)]
pub fn table_name(handle: &External<Handle>) -> Option<String> {
    handle.throttle.table_name().map(Into::into)
}

/// What is not as it was asked for.
#[napi(catch_unwind)]
pub fn warnings(handle: &External<Handle>) -> Vec<String> {
    handle.throttle.warnings().to_vec()
}

/// The counts of the throttle.
#[napi(catch_unwind)]
pub fn stats(handle: &External<Handle>) -> Vec<f64> {
    common::counts(&handle.throttle.stats())
}

/// Starts the exchange with the cluster, unless it has started.
#[napi(catch_unwind)]
pub fn start(handle: &External<Handle>) -> Result<()> {
    handle.throttle.start().map_err(failure)
}

/// The cluster, as JSON.
#[napi(catch_unwind)]
pub fn cluster_stats(handle: &External<Handle>) -> String {
    common::json(&handle.throttle.cluster_stats())
}

/// What happened in the cluster after the event of a number, as JSON.
#[napi(catch_unwind)]
pub fn events(handle: &External<Handle>, after: f64) -> String {
    // The API has seen to it that it is a whole number.
    common::json(&handle.throttle.events(after as u64))
}

/// Ends the throttle.
#[napi(catch_unwind)]
pub fn close(handle: &External<Handle>) {
    handle.throttle.close();
}
