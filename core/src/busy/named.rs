//! The memory of busy responses that belongs to a named table: a separate file, whose name ends
//! with `+busy`.

use std::sync::atomic::Ordering;

use super::cell::AtomicU64;
use super::open::{Opened, anonymous, store};
use super::region::{BYTES, BusyRegion};
use super::store::Store;
use crate::clock::Clock;
use crate::config::TableConfig;
use crate::error::Result;
use crate::os::named::{self, NamedMemory, NamedOptions, OpenError};
use crate::os::random;
use crate::table::open::named::other_key;
use crate::table::open::new_zero;
use crate::table::{Memory, Region, RegionError, Table, TableParams};

const MAGIC: u64 = u64::from_be_bytes(*b"dthrBUSY");
const VERSION: u64 = 1;

impl NamedMemory for BusyRegion {
    const SUFFIX: &str = "+busy";
    type Shape = ();

    fn bytes((): ()) -> usize {
        BYTES
    }

    fn create(memory: Box<dyn Memory>, (): (), params: &TableParams) -> Option<BusyRegion> {
        let region = BusyRegion::new(memory)?;
        let header = region.header();
        // Relaxed: the file has no name yet, so no other process can open it.
        header.version.store(VERSION, Ordering::Relaxed);
        header.zero_ns.store(params.zero_ns, Ordering::Relaxed);
        for i in 0..2 {
            header.key[i].store(params.key[i], Ordering::Relaxed);
            header.boot[i].store(params.boot[i], Ordering::Relaxed);
        }
        header.magic.store(MAGIC, Ordering::Relaxed);
        Some(region)
    }

    fn existing(memory: Box<dyn Memory>) -> Result<BusyRegion, RegionError> {
        let is_whole = memory.len() == BYTES;
        let region = BusyRegion::new(memory).filter(|_| is_whole).ok_or(RegionError::NotATable)?;
        let header = region.header();
        if header.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(RegionError::NotATable);
        }
        match header.version.load(Ordering::Relaxed) {
            VERSION => Ok(region),
            found => Err(RegionError::Layout { found, ours: VERSION }),
        }
    }

    fn params(&self) -> TableParams {
        let header = self.header();
        let pair = |words: &[AtomicU64; 2]| words.each_ref().map(|w| w.load(Ordering::Relaxed));
        TableParams {
            zero_ns: header.zero_ns.load(Ordering::Relaxed),
            key: pair(&header.key),
            boot: pair(&header.boot),
        }
    }
}

/// Opens the memory that all processes with this name share, or creates it.
pub(super) fn open(name: &str, config: &TableConfig, key: Option<[u64; 2]>) -> Result<Opened> {
    let why = match Table::can_be_shared() {
        true => {
            let (dir, group) = (config.dir.as_deref(), config.group.as_deref());
            // Without a cluster, the key of the table is used, which comes from its cluster if it
            // has one.
            let table_key = || Some(named::find_named::<Region>(name, group, dir)?.params().key);
            let params = TableParams {
                zero_ns: new_zero(),
                key: key.or_else(table_key).unwrap_or_else(random::key),
                boot: named::boot(),
            };
            match named::open::<BusyRegion>(&NamedOptions { name, dir, group, shape: (), params }) {
                Ok(found) if key.is_some_and(|key| key != found.memory.params().key) => {
                    return Err(other_key(name, config));
                }
                Ok(found) => {
                    return Ok(Opened { store: store_of(found.memory), warnings: Vec::new() });
                }
                Err(OpenError::Invalid(error)) => return Err(error),
                Err(OpenError::Unavailable(why)) => why,
            }
        }
        false => "this processor cannot share memory".into(),
    };
    let mut opened = anonymous(key)?;
    opened.warnings.push(format!(
        "busy responses of the table {name:?} are shared only with forked children, not by its \
         name: {why}"
    ));
    Ok(opened)
}

/// Returns the memory that another process created, if its key is this one.
pub(super) fn existing(table: &TableConfig, key: [u64; 2]) -> Option<Store> {
    let (group, dir) = (table.group.as_deref(), table.dir.as_deref());
    let region: BusyRegion = named::find_named(table.name()?, group, dir)?;
    (region.params().key == key).then(|| store_of(region))
}

fn store_of(region: BusyRegion) -> Store {
    let TableParams { zero_ns, key, .. } = region.params();
    store(region, Clock::System, zero_ns, Some(key))
}
