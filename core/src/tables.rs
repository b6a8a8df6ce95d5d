//! Maintenance of named tables: listing, removing and resizing them.
//!
//! Each function works on the tables of the current user, or of a group if `group` names one. `dir`
//! is the directory of the tables; by default it is the one that throttles use, which
//! `docs/table.md` describes.

use std::path::PathBuf;

#[cfg(feature = "busy")]
use crate::busy::BusyRegion;
use crate::cluster::ClusterStats;
use crate::config::DomainConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::os::clock;
use crate::os::named;
use crate::os::owner::Owner;
use crate::table::fingerprint::rule_id;
use crate::table::{Region, Table, TableParams};
use crate::{Config, TableConfig, config};

/// A named table on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The table's name.
    pub name: String,
    /// The table's file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of tags that the table has room for. 0 if it stores only busy responses.
    pub tags: u64,
    /// Number of buckets that are not full now.
    pub buckets: u64,
    /// The cluster that the table belongs to, if a process has begun the exchange.
    pub cluster: Option<ClusterStats>,
    /// Why the table cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// Lists the named tables, sorted by name. Includes tables that cannot be used.
///
/// # Errors
///
/// [`ErrorKind::Config`] if the group does not exist.
///
/// ```no_run
/// for table in dthrottle::tables::list(None, None)? {
///     println!("{}: {} of {} tags in use", table.name, table.buckets, table.tags);
/// }
/// # Ok::<(), dthrottle::Error>(())
/// ```
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

/// Adds tables that store busy responses and have no buckets.
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

/// The file with the busy responses of a table.
#[cfg(feature = "busy")]
fn find_busy(name: &str, owner: Owner, dir: Option<&str>) -> Option<PathBuf> {
    let mut files = named::files::<BusyRegion>(owner, dir).into_iter();
    files.find(|(known, _)| known == name).map(|(_, path)| path)
}

#[cfg(not(feature = "busy"))]
fn find_busy(_: &str, _: Owner, _: Option<&str>) -> Option<PathBuf> {
    None
}

/// Removes a table and the busy responses of the same name.
///
/// Processes that have the table open continue to share it until they end.
///
/// # Errors
///
/// [`ErrorKind::File`] if there is no such table or its file cannot be removed,
/// [`ErrorKind::Config`] if the group does not exist.
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

/// Changes the size of a table, given as a number of tags such as `"500000"` or as bytes such as
/// `"20 MB"`. Copies all buckets that fit, and returns the number of those that do not.
///
/// Processes that have the table open continue to share the old one until they are restarted.
///
/// # Errors
///
/// [`ErrorKind::File`] if there is no such table or the new file cannot be created,
/// [`ErrorKind::Config`] if the size is invalid or the group does not exist.
pub fn resize(name: &str, size: &str, group: Option<&str>, dir: Option<&str>) -> Result<u64> {
    let size = Some(config::Size::parse(size));
    let wanted = TableConfig { size, ..TableConfig::named(name) };
    wanted.check(config::Names::Snake)?;
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

/// The first domain of a configuration with a rule that its table does not have, with this name,
/// rate and burst. A check by such a rule would change the table. A table without rules has no such
/// domain.
pub fn changed_domain(config: &Config) -> Option<String> {
    let (group, dir) = (config.table.group.as_deref(), config.table.dir.as_deref());
    let region = named::find_named::<Region>(config.table_name()?, group, dir)?;
    let known: Vec<_> = Table::new(region).rules().map(|(_, id, scale)| (id, scale)).collect();
    let is_changed = |domain: &&DomainConfig| {
        let mut rules = domain.rules.iter().zip(domain.rule_names());
        rules.any(|(rule, name)| {
            let id = rule_id(&domain.name, &name);
            !known.is_empty() && rule.scale().is_ok_and(|scale| !known.contains(&(id, scale)))
        })
    };
    config.domains.iter().find(is_changed).map(|domain| domain.name.clone())
}

fn find(name: &str, owner: Owner, dir: Option<&str>) -> Result<PathBuf> {
    let mut files = named::files::<Region>(owner, dir).into_iter();
    files.find(|(known, _)| known == name).map(|(_, path)| path).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(
        ErrorKind::File,
        format!("unknown table {name:?}; `dthrottle table list` shows all tables"),
    )
}
