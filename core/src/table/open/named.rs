//! Named tables, which all processes that use the same name share.

use super::shared::{anonymous, fall_back};
use super::{OpenOptions, Opened};
use crate::clock::Clock;
use crate::config::{MAX_NAME_NUMBER, TableConfig};
use crate::error::{Error, Result};
use crate::os::lock::LockFile;
use crate::os::named::{self, NamedOptions, OpenError};
use crate::os::random;
use crate::table::earlier::EarlierBuckets;
use crate::table::rule_users::RuleUsers;
use crate::table::{Region, Table, TableParams};

/// Opens or creates the table of this name.
pub(super) fn named(name: &str, options: OpenOptions<'_>) -> Result<Opened> {
    if !Table::can_be_shared() {
        return fall_back(options, "this processor cannot share a table");
    }
    let names = match options {
        OpenOptions { config, key: Some(key), .. } if config.default_name => {
            default_names(name, config, key)
        }
        _ => vec![name.to_string()],
    };
    for name in names {
        if let Some(opened) = with_our_key(&name, options)? {
            return Ok(opened);
        }
    }
    Err(other_key(name, options.config))
}

/// The error for a named table that has another fingerprint key than this cluster.
pub(crate) fn other_key(name: &str, config: &TableConfig) -> Error {
    let message = format!(
        "must have the fingerprint key of this cluster, but {name:?} has another fingerprint key, \
         because it was created without this cluster or with another secret; use another name, or \
         remove it with `{}`",
        config.remove_command(name)
    );
    Error::config("table", message)
}

/// The candidate names for a table whose name is a default, in the order in which all processes try
/// them. They are numbered and do not reveal the key, because every user can see them. A table that
/// exists with our key comes first, because one with a lower number may have been removed since.
fn default_names(name: &str, config: &TableConfig, key: [u64; 2]) -> Vec<String> {
    let numbered = (2..=MAX_NAME_NUMBER).map(|number| format!("{name}-{number}"));
    let mut names: Vec<String> = std::iter::once(name.to_string()).chain(numbered).collect();
    let (group, dir) = (config.group.as_deref(), config.dir.as_deref());
    let ours = names.iter().position(|name| {
        named::find_named::<Region>(name, group, dir).is_some_and(|found| found.params().key == key)
    });
    names[..=ours.unwrap_or(0)].rotate_right(1);
    names
}

/// Opens the table of this name. Returns `None` if it exists with another key.
fn with_our_key(name: &str, options: OpenOptions<'_>) -> Result<Option<Opened>> {
    let OpenOptions { config, key, zero_ns } = options;
    let shape = config.shape();
    let params = TableParams { zero_ns, key: key.unwrap_or_else(random::key), boot: named::boot() };
    let dir = config.dir.as_deref();
    let group = config.group.as_deref();
    match named::open::<Region>(&NamedOptions { name, dir, group, shape, params }) {
        Ok(found) => {
            let (region, file, path) = (found.memory, found.file, found.path);
            let found = region.params();
            if key.is_some_and(|key| key != found.key) {
                return Ok(None);
            }
            let mut warnings = Vec::new();
            if config.size.is_some() && region.geometry() != shape {
                warnings.push(format!(
                    "the table {name:?} exists with room for {} tags instead of {}; \
                     `dthrottle table resize {name} SIZE` changes its size",
                    region.geometry().tags(),
                    shape.tags()
                ));
            }
            let lock = LockFile::of_table(file, path).map_err(|cause| no_lock(&cause))?;
            let table = Table::new(region);
            let TableParams { zero_ns, key, .. } = found;
            let earlier = match lock.is_used() {
                true => EarlierBuckets::default(),
                false => EarlierBuckets::of(&table, Clock::System.now_ns().saturating_sub(zero_ns)),
            };
            let rule_users = RuleUsers::Locked(lock);
            let name = Some(name.to_string());
            Ok(Some(Opened { table, name, zero_ns, key, warnings, rule_users, earlier }))
        }
        Err(OpenError::Invalid(error)) => Err(error),
        Err(OpenError::Unavailable(why)) => {
            let mut opened = anonymous(options)?;
            opened.warnings.push(format!(
                "the table {name:?} is shared only with forked children and not by name: {why}"
            ));
            Ok(Some(opened))
        }
    }
}

pub(super) fn no_lock(cause: &std::io::Error) -> Error {
    Error::config("table", format!("must have a file that can be locked: {cause}"))
}
