//! The named tables of this user, or of a group: to list them, remove one, or give one another
//! size.

use std::path::PathBuf;

#[cfg(feature = "busy")]
use crate::busy::BusyRegion;
use crate::cluster::ClusterStats;
use crate::error::{Error, ErrorKind, Result};
use crate::os::clock;
use crate::os::named;
use crate::os::owner::Owner;
use crate::table::{Region, Table, TableParams};
use crate::{TableConfig, config};

/// A named table on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of memory.
    pub bytes: u64,
    /// How many tags it has room for; zero if it has only busy answers.
    pub tags: u64,
    /// Buckets that are not full now.
    pub buckets: u64,
    /// The cluster that it belongs to, if an exchange has begun.
    pub cluster: Option<ClusterStats>,
    /// Why it cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// The tables of this user, or of a group, in the usual folders or in this one.
pub fn list(group: Option<&str>, dir: Option<&str>) -> Result<Vec<TableInfo>> {
    let owner = Owner::of(group)?;
    let mut tables = Vec::new();
    for (name, path) in named::files::<Region>(owner, dir) {
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        let mut info =
            TableInfo { name, path, bytes, tags: 0, buckets: 0, cluster: None, fault: None };
        match named::inspect::<Region>(&info.path, owner) {
            Ok(Some(region)) => {
                info.tags = region.geometry().tags();
                let now = clock::now_ns().saturating_sub(region.params().zero_ns);
                let table = Table::new(region);
                info.buckets = table.live(now) as u64;
                info.cluster = ClusterStats::if_begun(&table, now);
            }
            Ok(None) => continue,
            Err(error) => info.fault = Some(error.to_string()),
        }
        tables.push(info);
    }
    #[cfg(feature = "busy")]
    list_busy(&mut tables, owner, dir);
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tables)
}

/// Adds tables that have busy answers and no buckets.
#[cfg(feature = "busy")]
fn list_busy(tables: &mut Vec<TableInfo>, owner: Owner, dir: Option<&str>) {
    for (name, path) in named::files::<BusyRegion>(owner, dir) {
        if tables.iter().any(|table| table.name == name) {
            continue;
        }
        let fault = match named::inspect::<BusyRegion>(&path, owner) {
            Ok(Some(_)) => None,
            Ok(None) => continue,
            Err(error) => Some(error.to_string()),
        };
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        tables.push(TableInfo { name, path, bytes, tags: 0, buckets: 0, cluster: None, fault });
    }
}

/// The file of a table's busy answers.
#[cfg(feature = "busy")]
fn find_busy(name: &str, owner: Owner, dir: Option<&str>) -> Option<PathBuf> {
    let mut files = named::files::<BusyRegion>(owner, dir).into_iter();
    files.find(|(known, _)| known == name).map(|(_, path)| path)
}

#[cfg(not(feature = "busy"))]
fn find_busy(_: &str, _: Owner, _: Option<&str>) -> Option<PathBuf> {
    None
}

/// Removes a table and its busy answers, or the one of them that exists. Processes that have it open
/// keep it among themselves until they end.
pub fn remove(name: &str, group: Option<&str>, dir: Option<&str>) -> Result<()> {
    let owner = Owner::of(group)?;
    let busy = find_busy(name, owner, dir);
    let table = find(name, owner, dir);
    if let Some(path) = &busy {
        named::remove(path, owner)?;
    }
    match (table, busy) {
        (Err(_), Some(_)) => Ok(()),
        (table, _) => named::remove(&table?, owner),
    }
}

/// Gives a table another size, with all its buckets that fit; how many did not. Processes that
/// have it open keep the old one among themselves until they are restarted.
pub fn resize(name: &str, size: &str, group: Option<&str>, dir: Option<&str>) -> Result<u64> {
    let size = Some(config::Size::parse(size));
    let wanted = TableConfig { size, ..TableConfig::named(name) };
    wanted.check()?;
    let owner = Owner::of(group)?;
    let path = find(name, owner, dir)?;
    let Some(old) = named::inspect::<Region>(&path, owner)? else { return Err(missing(name)) };
    let params: TableParams = old.params();
    let old = Table::new(old);
    let mut forgotten = 0;
    named::replace(&path, owner, wanted.shape(), &params, |new| {
        let new = Table::new(new);
        new.copy_from(&old, clock::now_ns().saturating_sub(params.zero_ns));
        forgotten = new.evicted.get();
    })?;
    Ok(forgotten)
}

fn find(name: &str, owner: Owner, dir: Option<&str>) -> Result<PathBuf> {
    let mut files = named::files::<Region>(owner, dir).into_iter();
    files.find(|(known, _)| known == name).map(|(_, path)| path).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::File, format!("no table {name:?}; `dthrottle table list` shows all"))
}
