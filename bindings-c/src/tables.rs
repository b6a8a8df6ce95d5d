//! Lists, removes and resizes the named tables of a machine.

use std::ffi::c_char;

use dthrottle_core::Result;

use crate::config::Table;
use crate::ffi::{Caller, VersionedStruct, chars};

/// A named table on this machine. Begin with DTHROTTLE_TABLE_INFO_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TableInfo {
    /// sizeof(dthrottle_table_info_t).
    pub size: usize,
    /// The name of the table.
    pub name: [c_char; 256],
    /// The path of its file.
    pub path: [c_char; 1024],
    /// Why the table cannot be used. Empty if it can.
    pub fault: [c_char; 256],
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of tags for which it has memory.
    pub tags: u64,
    /// The number of buckets that are not full.
    pub buckets: u64,
}

/// Lists the tables of this user in the default directories. If filter is not NULL, lists the
/// tables of its group and in its dir. tables is an array of capacity structs, all of the size that
/// the first one states. count receives the number of tables, which may be above capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_table_list(
    filter: *const Table,
    tables: *mut TableInfo,
    capacity: usize,
    count: *mut usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        c.store(count, 0)?;
        let outs = c.out_structs(tables, capacity)?;
        let table = if filter.is_null() { None } else { Some(c.read(filter)?) };
        let (group, dir) = group_and_dir(c, table.as_ref())?;
        let found = system::list(group, dir)?;
        outs.zip(&found).for_each(|(out, table)| out.fill(*table));
        c.store(count, found.len())
    })
}

/// Removes the table with the name, group and dir of table. Processes that use the table share it
/// until they end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_table_remove(
    table: *const Table,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let table = c.read(table)?;
        let (group, dir) = group_and_dir(c, Some(&table))?;
        system::remove(c.text(table.name, table.name_len)?, group, dir)
    })
}

/// Changes the size of the table with the name, group and dir of table to its tags or bytes. Keeps
/// all buckets that fit. forgotten, unless it is NULL, receives the number of those that did not.
/// Processes that use the old table share it until they are restarted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_table_resize(
    table: *const Table,
    forgotten: *mut u64,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let table = c.read(table)?;
        let (group, dir) = group_and_dir(c, Some(&table))?;
        let size = match (table.tags, table.bytes) {
            (0, bytes) => format!("{bytes} B"),
            (tags, _) => tags.to_string(),
        };
        let count = system::resize(c.text(table.name, table.name_len)?, &size, group, dir)?;
        if forgotten.is_null() { Ok(()) } else { c.store(forgotten, count) }
    })
}

/// Returns the group and the directory of a table, if they are set.
fn group_and_dir<'c>(
    c: &'c Caller,
    table: Option<&Table>,
) -> Result<(Option<&'c str>, Option<&'c str>)> {
    let Some(table) = table else { return Ok((None, None)) };
    Ok((c.name(table.group, table.group_len)?, c.name(table.dir, table.dir_len)?))
}

/// For systems with named tables.
#[cfg(target_os = "linux")]
mod system {
    use super::{Result, TableInfo, VersionedStruct, chars};
    pub(super) use dthrottle_core::tables::{remove, resize};

    pub(super) fn list(group: Option<&str>, dir: Option<&str>) -> Result<Vec<TableInfo>> {
        let found = dthrottle_core::tables::list(group, dir)?;
        Ok(found.iter().map(TableInfo::from).collect())
    }

    impl From<&dthrottle_core::tables::TableInfo> for TableInfo {
        fn from(table: &dthrottle_core::tables::TableInfo) -> TableInfo {
            TableInfo {
                size: TableInfo::MIN_SIZE,
                name: chars(&table.name),
                path: chars(&table.path.to_string_lossy()),
                fault: chars(table.fault.as_deref().unwrap_or_default()),
                bytes: table.bytes,
                tags: table.tags,
                buckets: table.buckets,
            }
        }
    }
}

/// For systems without named tables.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Result, TableInfo};
    use dthrottle_core::{Error, ErrorKind};

    pub(super) fn list(_: Option<&str>, _: Option<&str>) -> Result<Vec<TableInfo>> {
        Ok(Vec::new())
    }

    pub(super) fn remove(_: &str, _: Option<&str>, _: Option<&str>) -> Result<()> {
        Err(Error::new(ErrorKind::File, "there are no named tables on this system"))
    }

    pub(super) fn resize(_: &str, _: &str, _: Option<&str>, _: Option<&str>) -> Result<u64> {
        Err(Error::new(ErrorKind::File, "there are no named tables on this system"))
    }
}
