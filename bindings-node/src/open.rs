//! Opens, inspects and closes throttles.

use dthrottle::{Builder, Config, Domain, ManualClock, Throttle};
use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::common;
use crate::failure::{Result, failure};
use crate::registry::Entry;

/// The approximate memory of an empty throttle, for the garbage collector.
const SIZE_HINT: usize = 32_768;

/// A throttle and one of its domains.
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
type EncodedConfig = Option<Vec<String>>;

/// Opens a throttle from an encoded configuration object (`common/tree.rs`).
#[napi(catch_unwind)]
pub fn from_config(encoded: Vec<String>, clock: Clock<'_>) -> Result<External<Handle>> {
    open(common::config(encoded), clock)
}

/// Opens a throttle from TOML, to which an encoded table (`common/tree.rs`) is added.
#[napi(catch_unwind)]
pub fn from_toml(text: String, clock: Clock<'_>, table: EncodedConfig) -> Result<External<Handle>> {
    open(common::with_table(Config::from_toml(&text), table), clock)
}

/// Opens a throttle from a TOML file, to which an encoded table is added.
#[napi(catch_unwind)]
pub fn from_file(path: String, clock: Clock<'_>, table: EncodedConfig) -> Result<External<Handle>> {
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

/// Returns another domain of the same throttle.
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

/// The windows of the domain's rules in milliseconds: the times in which empty buckets fill.
#[napi(catch_unwind)]
pub fn rule_windows(handle: &External<Handle>) -> Vec<f64> {
    common::rule_windows(&handle.domain)
}

/// The name of the table, if it has one.
#[napi(catch_unwind)]
pub fn table_name(handle: &External<Handle>) -> Option<String> {
    handle.throttle.table_name().map(Into::into)
}

/// The warnings about problems that are no errors.
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

/// The statistics of the cluster, as JSON.
#[napi(catch_unwind)]
pub fn cluster_stats(handle: &External<Handle>) -> String {
    common::json(&handle.throttle.cluster_stats())
}

/// The events of the cluster after the one with a number, as JSON.
#[napi(catch_unwind)]
pub fn events(handle: &External<Handle>, after: f64) -> String {
    // The API has checked that it is a whole number.
    common::json(&handle.throttle.events(after as u64))
}

/// Closes the throttle.
#[napi(catch_unwind)]
pub fn close(handle: &External<Handle>) {
    handle.throttle.close();
}
