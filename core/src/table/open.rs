//! Opens the table that a configuration describes: private, shared with forked children, or named.

#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod named;
#[cfg(all(feature = "shared", unix))]
mod shared;
#[cfg(not(all(feature = "shared", unix)))]
#[path = "open/unshared.rs"]
mod shared;

pub(crate) use self::shared::{anonymous_memory, private_memory};
use crate::clock::{Clock, FIRST_READING};
use crate::config::{TableConfig, TableKind};
use crate::error::{Error, Result};
use crate::os::random;
use crate::table::earlier::EarlierBuckets;
use crate::table::rule_users::RuleUsers;
use crate::table::{Geometry, Region, Table};

/// A table's time begins this long before its creation, 39 hours, so that earlier hits have valid
/// times.
const BEFORE_NS: u64 = 1 << 47;

/// An open table with its properties.
pub(crate) struct Opened {
    pub(crate) table: Table,
    /// The table's name, if it is shared by name.
    pub(crate) name: Option<String>,
    /// The reading of the clock at the table's time 0.
    pub(crate) zero_ns: u64,
    /// The key of the fingerprints.
    pub(crate) key: [u64; 2],
    /// Settings that could not be followed, as messages for the log.
    pub(crate) warnings: Vec<String>,
    /// Tracks which rules are in use.
    pub(crate) rule_users: RuleUsers,
    pub(crate) earlier: EarlierBuckets,
}

/// How to open a table.
#[derive(Clone, Copy)]
struct OpenOptions<'a> {
    config: &'a TableConfig,
    /// The key of the fingerprints, or `None` for a random one.
    key: Option<[u64; 2]>,
    /// The reading of the clock at the time 0 of a new table.
    zero_ns: u64,
}

/// Opens the table of a checked configuration.
pub(crate) fn open(config: &TableConfig, clock: &Clock, key: Option<[u64; 2]>) -> Result<Opened> {
    check_clock(clock, &config.kind)?;
    match (clock, &config.kind) {
        (Clock::Manual(_), _) => private(OpenOptions { config, key, zero_ns: FIRST_READING }),
        (Clock::System, kind) => {
            let zero_ns = new_zero();
            let options = OpenOptions { config, key, zero_ns };
            match kind {
                TableKind::Private => private(options),
                TableKind::Anonymous => shared::anonymous(options),
                TableKind::Named(name) => shared::named(name, options),
            }
        }
    }
}

/// Returns an error if processes with separate clocks would share the table.
pub(crate) fn check_clock(clock: &Clock, kind: &TableKind) -> Result<()> {
    match (clock, kind) {
        (Clock::Manual(_), TableKind::Named(_)) => {
            let message = "must not be a named table with a manual clock; \
                           remove the name or the clock";
            Err(Error::config("table", message))
        }
        _ => Ok(()),
    }
}

/// The reading of the system's clock at the time 0 of a table that is created now.
pub(crate) fn new_zero() -> u64 {
    Clock::System.now_ns().saturating_sub(BEFORE_NS)
}

fn private(options: OpenOptions<'_>) -> Result<Opened> {
    let table = private_table(options.config.shape()).ok_or_else(|| {
        let message = "needs more memory than is available; use fewer tags";
        Error::config("table.size", message)
    })?;
    Ok(options.opened_with(table))
}

fn private_table(geometry: Geometry) -> Option<Table> {
    Region::new(private_memory(geometry.bytes())?, geometry).map(Table::new)
}

impl OpenOptions<'_> {
    /// The result for a new table of this process.
    fn opened_with(self, table: Table) -> Opened {
        let key = self.key.unwrap_or_else(random::key);
        Opened {
            table,
            name: None,
            zero_ns: self.zero_ns,
            key,
            warnings: Vec::new(),
            rule_users: RuleUsers::counted(),
            earlier: EarlierBuckets::default(),
        }
    }
}
