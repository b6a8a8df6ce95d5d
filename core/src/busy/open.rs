//! Opens the memory of busy responses for the settings of a table: private, shared with forked
//! children, or named (`named.rs`).

use super::region::{BYTES, BusyRegion};
use super::store::Store;
use crate::clock::{Clock, FIRST_READING, TableClock};
use crate::config::{TableConfig, TableKind};
use crate::error::{Error, Result};
use crate::os::random;
use crate::table::open::{anonymous_memory, check_clock, new_zero, private_memory};

/// The opened memory, and warnings if it differs from the settings.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) warnings: Vec<String>,
}

/// Opens the memory for a checked configuration. `key` is the key of fingerprints from the cluster;
/// without one, the key is random.
pub(super) fn open(config: &TableConfig, clock: Clock, key: Option<[u64; 2]>) -> Result<Opened> {
    check_clock(&clock, &config.kind)?;
    match (&clock, &config.kind) {
        (Clock::Manual(_), _) => private(clock, FIRST_READING, key),
        (Clock::System, TableKind::Private) => private(clock, new_zero(), key),
        (Clock::System, TableKind::Anonymous) => anonymous(key),
        #[cfg(all(feature = "shared", target_os = "linux"))]
        (Clock::System, TableKind::Named(name)) => super::named::open(name, config, key),
        #[cfg(not(all(feature = "shared", target_os = "linux")))]
        (Clock::System, TableKind::Named(_)) => {
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
        Error::config(
            "table",
            format!("needs {BYTES} bytes for busy responses, which are not available"),
        )
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

/// Opens memory that is shared with children forked from now on, with the system clock.
pub(super) fn anonymous(key: Option<[u64; 2]>) -> Result<Opened> {
    if let Some(region) = anonymous_memory(BYTES).and_then(BusyRegion::new) {
        let store = store(region, Clock::System, new_zero(), key);
        return Ok(Opened { store, warnings: Vec::new() });
    }
    let mut opened = private(Clock::System, new_zero(), key)?;
    let warning = "shared memory is not available, so this process does not share its limits";
    opened.warnings.push(warning.into());
    Ok(opened)
}
