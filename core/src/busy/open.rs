//! From the settings of a table to the memory of busy answers beside it: private, shared with forked
//! children, or named (`named.rs`).

use super::region::{BYTES, BusyRegion};
use super::store::Store;
use crate::clock::{Clock, FIRST_READING, TableClock};
use crate::config::{Kind, TableConfig};
use crate::error::{Error, Result};
use crate::os::random;
use crate::table::open::{anonymous_memory, check_clock, new_zero, private_memory};

/// Memory that was asked for, and warnings if it is not as asked.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) warnings: Vec<String>,
}

/// Opens the memory that a checked configuration asks for. `key` is the key of the fingerprints if
/// the cluster gives one; else it is random.
pub(super) fn open(config: &TableConfig, clock: Clock, key: Option<[u64; 2]>) -> Result<Opened> {
    check_clock(&clock, &config.kind)?;
    match (&clock, &config.kind) {
        (Clock::Manual(_), _) => private(clock, FIRST_READING, key),
        (Clock::System, Kind::Private) => private(clock, new_zero(), key),
        (Clock::System, Kind::Anonymous) => anonymous(key),
        #[cfg(all(feature = "shared", target_os = "linux"))]
        (Clock::System, Kind::Named(name)) => super::named::open(name, config, key),
        #[cfg(not(all(feature = "shared", target_os = "linux")))]
        (Clock::System, Kind::Named(_)) => {
            let mut opened = anonymous(key)?;
            let warning = "named tables need Linux and the feature `shared` of the crate \
                           dthrottle; this one has no name";
            opened.warnings.push(warning.into());
            Ok(opened)
        }
    }
}

fn private(clock: Clock, zero_ns: u64, key: Option<[u64; 2]>) -> Result<Opened> {
    let region = private_memory(BYTES).and_then(BusyRegion::new).ok_or_else(|| {
        Error::config("table", format!("no memory for busy answers ({BYTES} bytes)"))
    })?;
    Ok(Opened { store: store(region, clock, zero_ns, key), warnings: Vec::new() })
}

pub(super) fn store(
    region: BusyRegion,
    clock: Clock,
    zero_ns: u64,
    key: Option<[u64; 2]>,
) -> Store {
    let key = key.unwrap_or_else(random::key);
    Store { region, clock: TableClock::new(clock, zero_ns), key }
}

/// Memory of this process and the children forked from now on, by the system's clock.
pub(super) fn anonymous(key: Option<[u64; 2]>) -> Result<Opened> {
    if let Some(region) = anonymous_memory(BYTES).and_then(BusyRegion::new) {
        let store = store(region, Clock::System, new_zero(), key);
        return Ok(Opened { store, warnings: Vec::new() });
    }
    let mut opened = private(Clock::System, new_zero(), key)?;
    let warning = "the system gave no shared memory: this process limits its requests alone";
    opened.warnings.push(warning.into());
    Ok(opened)
}
