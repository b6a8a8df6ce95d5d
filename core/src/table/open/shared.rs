//! Tables in mapped memory, which forked children share.

use super::{OpenOptions, Opened, private};
use crate::error::Result;
use crate::os::memory::Map;
use crate::table::rule_users::RuleUsers;
use crate::table::{Memory, Table};

#[cfg(target_os = "linux")]
use super::named;
#[cfg(target_os = "linux")]
pub(super) use super::named::named;

/// Zeroed memory of this process.
pub(crate) fn private_memory(bytes: usize) -> Option<Box<dyn Memory>> {
    Some(Box::new(Map::private(bytes).ok()?))
}

/// Zeroed memory of this process and the children that are forked from now on.
pub(crate) fn anonymous_memory(bytes: usize) -> Option<Box<dyn Memory>> {
    if !Table::can_be_shared() {
        return None;
    }
    Some(Box::new(Map::anonymous(bytes).ok()?))
}

/// Creates a table for this process and its children.
pub(super) fn anonymous(options: OpenOptions<'_>) -> Result<Opened> {
    let geometry = options.config.shape();
    if !Table::can_be_shared() {
        return fall_back(options, "this processor cannot share a table");
    }
    let map = Map::anonymous(geometry.bytes()).ok();
    let Some(table) = map.and_then(|map| Table::in_memory(map, geometry)) else {
        return fall_back(options, "shared memory is not available");
    };
    let mut opened = options.opened_with(table);
    opened.rule_users = RuleUsers::Unknown;
    #[cfg(target_os = "linux")]
    match crate::os::lock::LockFile::of_memory() {
        Ok(file) => opened.rule_users = RuleUsers::Locked(file),
        Err(cause) if options.config.clustered => return Err(named::no_lock(&cause)),
        // Without a lock no rule index is reused. Everything else works.
        Err(_) => {}
    }
    Ok(opened)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn named(_: &str, options: OpenOptions<'_>) -> Result<Opened> {
    let mut opened = anonymous(options)?;
    let warning = "named tables need Linux, so the table is shared only with forked children";
    opened.warnings.push(warning.into());
    Ok(opened)
}

pub(super) fn fall_back(options: OpenOptions<'_>, why: &str) -> Result<Opened> {
    let mut opened = private(options)?;
    opened.warnings.push(format!("{why}, so this process does not share its counts"));
    Ok(opened)
}
