//! Opens, inspects and closes throttles.

use dthrottle::{Builder, Config, Domain, Error, ErrorKind, Throttle};
use wasm_bindgen::prelude::*;

use crate::clock::Clock;
use crate::common;
use crate::failure::{Result, failure};

/// A throttle and one of its domains.
#[wasm_bindgen]
pub struct Handle {
    pub(crate) throttle: Throttle,
    pub(crate) domain: Domain,
    pub(crate) unix_ms: Option<fn() -> u64>,
}

#[wasm_bindgen]
extern "C" {
    /// The secure random source of the host.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn get_random_values(into: &mut [u8]) -> Result<()>;
}

/// Opens a throttle from an encoded configuration object (`common/tree.rs`).
#[wasm_bindgen(js_name = fromConfig)]
pub fn from_config(encoded: Vec<String>, clock: &Clock) -> Result<Handle> {
    open(common::config(encoded), clock)
}

/// Opens a throttle from TOML, to which an encoded table (`common/tree.rs`) is added.
#[wasm_bindgen(js_name = fromToml)]
pub fn from_toml(text: &str, clock: &Clock, table: Option<Vec<String>>) -> Result<Handle> {
    open(common::with_table(Config::from_toml(text), table), clock)
}

/// Returns an error, because there are no files in WebAssembly.
#[wasm_bindgen(js_name = fromFile)]
pub fn from_file(path: &str, _clock: &Clock) -> Result<Handle> {
    let message = format!("cannot read {path}: no files in WebAssembly; read it, then fromToml");
    Err(failure(Error::new(ErrorKind::File, message)))
}

fn open(config: dthrottle::Result<Config>, clock: &Clock) -> Result<Handle> {
    let builder = Builder::from(config.map_err(failure)?).clock(clock.clock.clone());
    let throttle = builder.fingerprint_key(random_key()?).build().map_err(failure)?;
    let domain = (*throttle).clone();
    Ok(Handle { throttle, domain, unix_ms: clock.unix_ms() })
}

/// Two random numbers from a secure source.
pub(crate) fn random_key() -> Result<[u64; 2]> {
    let mut bytes = [0; 16];
    get_random_values(&mut bytes)?;
    let key = u128::from_le_bytes(bytes);
    Ok([key as u64, (key >> 64) as u64])
}

/// Returns another domain of the same throttle.
#[wasm_bindgen]
pub fn domain(handle: &Handle, name: &str) -> Result<Handle> {
    let throttle = handle.throttle.clone();
    let domain = throttle.domain(name).map_err(failure)?;
    Ok(Handle { throttle, domain, unix_ms: handle.unix_ms })
}

/// The domain's name.
#[wasm_bindgen]
pub fn name(handle: &Handle) -> String {
    handle.domain.name().to_string()
}

/// The names of the domain's rules.
#[wasm_bindgen(js_name = ruleNames)]
pub fn rule_names(handle: &Handle) -> Vec<String> {
    common::rule_names(&handle.domain)
}

/// The bursts of the domain's rules.
#[wasm_bindgen(js_name = ruleLimits)]
pub fn rule_limits(handle: &Handle) -> Vec<f64> {
    common::rule_limits(&handle.domain)
}

/// The windows of the domain's rules in milliseconds: the times in which empty buckets fill.
#[wasm_bindgen(js_name = ruleWindows)]
pub fn rule_windows(handle: &Handle) -> Vec<f64> {
    common::rule_windows(&handle.domain)
}

/// Always `None`, because tables in WebAssembly have no names.
#[wasm_bindgen(js_name = tableName)]
pub fn table_name(handle: &Handle) -> Option<String> {
    handle.throttle.table_name().map(Into::into)
}

/// The counts of the throttle.
#[wasm_bindgen]
pub fn stats(handle: &Handle) -> Vec<f64> {
    common::counts(&handle.throttle.stats())
}

/// Does nothing, because the host carries the datagrams (`link.rs`).
#[wasm_bindgen]
pub fn start(handle: &Handle) -> Result<()> {
    handle.throttle.start().map_err(failure)
}

/// The statistics of the cluster, as JSON.
#[wasm_bindgen(js_name = clusterStats)]
pub fn cluster_stats(handle: &Handle) -> String {
    common::json(&handle.throttle.cluster_stats())
}

/// The events of the cluster after the one with a number, as JSON.
#[wasm_bindgen]
pub fn events(handle: &Handle, after: f64) -> String {
    // The API has checked that it is a whole number.
    common::json(&handle.throttle.events(after as u64))
}

/// Closes the throttle.
#[wasm_bindgen]
pub fn close(handle: &Handle) {
    handle.throttle.close();
}
