//! From a configuration to a table: private, shared with forked children, or named.

use crate::clock::Clock;
use crate::config::{Kind, TableConfig};
use crate::error::{Error, Result};
use crate::table::{Geometry, Table};

/// A table's time begins so long before it was made, 39 hours, so that older hits have a place
/// in it.
#[cfg(feature = "os")]
const BEFORE_NS: u64 = 1 << 47;

/// A table that is ready, and what else has to be known.
pub(crate) struct Opened {
    pub(crate) table: Table,
    /// The table's zero, by the clock.
    pub(crate) zero_ns: u64,
    /// The key of the fingerprints.
    pub(crate) key: [u64; 2],
    /// What is not as it was asked for.
    pub(crate) warnings: Vec<String>,
}

/// Opens the table that a checked configuration asks for.
pub(crate) fn open(config: &TableConfig, clock: &Clock, key: Option<[u64; 2]>) -> Result<Opened> {
    match (clock, &config.kind) {
        (Clock::Manual(_), Kind::Named(_)) => {
            let message = "a clock moved by hand needs a table of its own; \
                           leave the name out, or the clock";
            Err(Error::config("table", message))
        }
        (Clock::Manual(_), _) => private(config, key, 0),
        #[cfg(feature = "os")]
        (Clock::System, kind) => {
            let zero_ns = clock.now_ns().saturating_sub(BEFORE_NS);
            match kind {
                Kind::Private => private(config, key, zero_ns),
                Kind::Anonymous => shared::anonymous(config, key, zero_ns),
                Kind::Named(name) => shared::named(name, config, key, zero_ns),
            }
        }
    }
}

fn private(config: &TableConfig, key: Option<[u64; 2]>, zero_ns: u64) -> Result<Opened> {
    let table = private_table(config.shape()).ok_or_else(|| {
        let message = "no memory for a table of this size; ask for fewer tags";
        Error::config("table.size", message)
    })?;
    Ok(Opened { table, zero_ns, key: key.unwrap_or_else(random_key), warnings: Vec::new() })
}

#[cfg(all(feature = "os", unix))]
fn private_table(geometry: Geometry) -> Option<Table> {
    Table::in_memory(crate::os::memory::Map::private(geometry.bytes()).ok()?, geometry)
}

#[cfg(not(all(feature = "os", unix)))]
fn private_table(geometry: Geometry) -> Option<Table> {
    Table::in_memory(crate::table::Heap::new(geometry.bytes()), geometry)
}

#[cfg(feature = "os")]
fn random_key() -> [u64; 2] {
    crate::os::random::key()
}

#[cfg(not(feature = "os"))]
fn random_key() -> [u64; 2] {
    [0; 2]
}

#[cfg(all(feature = "os", not(unix)))]
mod shared {
    use super::*;

    pub(super) fn anonymous(
        config: &TableConfig,
        key: Option<[u64; 2]>,
        zero_ns: u64,
    ) -> Result<Opened> {
        private(config, key, zero_ns)
    }

    pub(super) fn named(
        _: &str,
        config: &TableConfig,
        key: Option<[u64; 2]>,
        zero_ns: u64,
    ) -> Result<Opened> {
        let mut opened = private(config, key, zero_ns)?;
        opened.warnings.push("named tables need Linux; this one is private".into());
        Ok(opened)
    }
}

#[cfg(all(feature = "os", unix))]
mod shared {
    use super::*;
    use crate::os::memory::Map;
    use crate::os::named::{self, Asked, Refusal};
    use crate::table::Birth;

    /// A table for this process and its children.
    pub(super) fn anonymous(
        config: &TableConfig,
        key: Option<[u64; 2]>,
        zero_ns: u64,
    ) -> Result<Opened> {
        let geometry = config.shape();
        if !Table::can_be_shared() {
            return fall_back(config, key, zero_ns, "this processor cannot share a table");
        }
        let map = Map::anonymous(geometry.bytes()).ok();
        let Some(table) = map.and_then(|map| Table::in_memory(map, geometry)) else {
            return fall_back(config, key, zero_ns, "the system gave no shared memory");
        };
        let key = key.unwrap_or_else(random_key);
        Ok(Opened { table, zero_ns, key, warnings: Vec::new() })
    }

    /// A table for every process that gives this name.
    pub(super) fn named(
        name: &str,
        config: &TableConfig,
        key: Option<[u64; 2]>,
        zero_ns: u64,
    ) -> Result<Opened> {
        if !Table::can_be_shared() {
            return fall_back(config, key, zero_ns, "this processor cannot share a table");
        }
        let geometry = config.shape();
        let birth = Birth { zero_ns, key: key.unwrap_or_else(random_key), boot: named::boot() };
        let dir = config.dir.as_deref();
        let group = config.group.as_deref();
        match named::open(&Asked { name, dir, group, geometry, birth }) {
            Ok(region) => {
                let found = region.birth();
                if key.is_some_and(|key| key != found.key) {
                    let message = format!("the table {name:?} has another fingerprint key");
                    return Err(Error::config("table", message));
                }
                let mut warnings = Vec::new();
                if config.size.is_some() && region.geometry() != geometry {
                    warnings.push(format!(
                        "the table {name:?} is there already, with room for {} tags and not for \
                         {} as asked; `dthrottle table resize {name} SIZE` changes that",
                        region.geometry().tags(),
                        geometry.tags()
                    ));
                }
                let table = Table::new(region);
                Ok(Opened { table, zero_ns: found.zero_ns, key: found.key, warnings })
            }
            Err(Refusal::Wrong(error)) => Err(error),
            Err(Refusal::Nowhere(why)) => {
                let mut opened = anonymous(config, key, zero_ns)?;
                opened.warnings.push(format!(
                    "the table {name:?} is shared only with forked children, not by its name: \
                     {why}"
                ));
                Ok(opened)
            }
        }
    }

    fn fall_back(
        config: &TableConfig,
        key: Option<[u64; 2]>,
        zero_ns: u64,
        why: &str,
    ) -> Result<Opened> {
        let mut opened = private(config, key, zero_ns)?;
        opened.warnings.push(format!("{why}: this process counts for itself"));
        Ok(opened)
    }
}
