//! Configurations, built by calls or read from TOML.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dthrottle_core::{Error, ErrorKind, ManualClock, Result, TableConfig};

use crate::clock::Clock;
use crate::ffi::{Caller, Flag, bad};
use crate::throttle::as_path;

/// A configuration: domains and their rules, a table, and a clock. Made by dthrottle_config_new(),
/// released by dthrottle_config_free().
pub struct Config(Mutex<Parts>);

#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) core: dthrottle_core::Config,
    pub(crate) clock: Option<ManualClock>,
}

/// A rule: rate and burst. Begin with DTHROTTLE_RULE_INIT and set at least the rate.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rule {
    /// sizeof(dthrottle_rule_t).
    pub size: usize,
    /// Whether refused checks are charged, too.
    pub charge_refused: Flag,
    /// The name, unique in its domain. NULL: "rule1", "rule2", ... by position.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_len: usize,
    /// The rate, such as "100/s" or "5 per 2 minutes". "unlimited" adds no rule. It states that a
    /// domain without rules is intended, which allows every check.
    pub rate: *const c_char,
    /// Its length in bytes.
    pub rate_len: usize,
    /// The burst in units. 0: the count of the rate.
    pub burst: u64,
    /// Alternative to burst: the burst is the units that the rate yields in this time. 0: unused.
    pub burst_time_ns: u64,
}

/// The table of the buckets. Begin with DTHROTTLE_TABLE_INIT: a table for a million tags that is
/// shared with all children forked later.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    /// sizeof(dthrottle_table_t).
    pub size: usize,
    /// Whether only this process uses it. A forked child gets a copy.
    pub is_private: Flag,
    /// The name under which all processes of this user share it. NULL: no name.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_len: usize,
    /// The group, by name or number, whose members may use the named table. NULL: only this user.
    pub group: *const c_char,
    /// Its length in bytes.
    pub group_len: usize,
    /// The directory of the file of the named table. NULL: the default in docs/table.md.
    pub dir: *const c_char,
    /// Its length in bytes.
    pub dir_len: usize,
    /// The number of tags for which it has memory. 0: a million.
    pub tags: u64,
    /// Alternative to tags: its size in bytes. 0: unused.
    pub bytes: u64,
}

/// Makes a configuration with only the default domain, without rules. Add at least one rule before
/// dthrottle_open_config().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_new(out: *mut *mut Config) -> i32 {
    guard!(|c| {
        c.out_handle(out)?.set(Config(Mutex::default()));
        Ok(())
    })
}

/// Releases a configuration. NULL is allowed. Throttles that were opened from it are not affected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_free(config: *mut Config) {
    guard!(|c| {
        c.take_handle(config)?;
        Ok(())
    });
}

/// Replaces everything except the clock with a configuration in TOML. After an error the
/// configuration is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_toml(
    config: *mut Config,
    toml: *const c_char,
    toml_len: usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let config = c.handle(config)?;
        let core = dthrottle_core::Config::from_toml(c.text(toml, toml_len)?)?;
        config.parts().core = core;
        Ok(())
    })
}

/// Like dthrottle_config_toml(), with a file in TOML.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_file(
    config: *mut Config,
    path: *const c_char,
    path_len: usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let config = c.handle(config)?;
        let core = dthrottle_core::Config::from_file(as_path(c.bytes(path.cast(), path_len)?)?)?;
        config.parts().core = core;
        Ok(())
    })
}

/// Adds a rule to a domain, and adds the domain if it is new. If domain is NULL, to the default
/// domain. dthrottle_open_config() reports an invalid rate or burst.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_add_rule(
    config: *mut Config,
    domain: *const c_char,
    domain_len: usize,
    rule: *const Rule,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let domain = c.name(domain, domain_len)?;
        let rule = c.read(rule)?.to_core(c)?;
        let domain = domain.unwrap_or(dthrottle_core::Config::DEFAULT);
        config.parts().core.add_rule(domain, rule);
        Ok(())
    })
}

/// Sets the dry run of a domain, and adds the domain if it is new. In dry run, refusals are
/// counted, but every check is allowed. If domain is NULL, sets the default of all domains.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_set_dry_run(
    config: *mut Config,
    domain: *const c_char,
    domain_len: usize,
    dry_run: Flag,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let domain = c.name(domain, domain_len)?;
        let mut parts = config.parts();
        match domain {
            Some(domain) => parts.core.set_domain_dry_run(domain, dry_run != 0),
            None => parts.core.set_dry_run(dry_run != 0),
        }
        Ok(())
    })
}

/// Sets the table. dthrottle_open_config() reports an invalid name or size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_set_table(
    config: *mut Config,
    table: *const Table,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let table = c.read(table)?.to_core(c)?;
        config.parts().core.set_table(table);
        Ok(())
    })
}

/// Sets a default name of the table, used if the configuration sets neither a name nor private. For
/// programs whose processes open the throttle separately, such as the workers of a server.
/// dthrottle_open_config() reports an invalid name. If the table of that name belongs to another
/// cluster or to none, a name such as "name-2" is used instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_name_table(
    config: *mut Config,
    name: *const c_char,
    name_len: usize,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let name = c.text(name, name_len)?;
        config.parts().core.name_table(name, true);
        Ok(())
    })
}

/// Sets the cluster from settings such as "name=web" or "peer=10.0.0.1": the keys of [cluster] in
/// docs/configuration.md. `peer` and `packet_key` may be repeated, `secret_file` is a path, and a
/// flag is on or off. A configuration that has a cluster already is an error. After an error
/// nothing has changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_set_cluster(
    config: *mut Config,
    settings: *const *const c_char,
    setting_lens: *const usize,
    count: usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| {
        let config = c.handle(config)?;
        let settings = c.tags(settings.cast(), setting_lens, count)?.map(str::from_utf8);
        let settings: Vec<&str> =
            settings.collect::<Result<_, _>>().map_err(|_| bad("a setting is not UTF-8"))?;
        config.parts().core.set_cluster_settings(settings)
    })
}

/// Returns the number of rules of a domain, or DTHROTTLE_ERR_DOMAIN if the configuration has no
/// such domain. If domain is NULL, of the default domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_rule_count(
    config: *const Config,
    domain: *const c_char,
    domain_len: usize,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let domain = c.name(domain, domain_len)?.unwrap_or(dthrottle_core::Config::DEFAULT);
        let count = config.parts().core.rule_count(domain);
        let count = count.ok_or_else(|| Error::new(ErrorKind::Domain, "no such domain"))?;
        Ok(i32::try_from(count).unwrap_or(i32::MAX))
    })
}

/// Checks everything that dthrottle_open_config() checks, but opens no throttle and starts no
/// thread. If the secret of the cluster is in a file, reads the file and keeps the secret, so that
/// the throttle can be opened after the process has dropped its privileges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_check(
    config: *mut Config,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| c.handle(config)?.parts().core.prepare())
}

/// Sets a manual clock for the throttles of this configuration. The caller keeps the clock handle,
/// and may release it at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_set_clock(
    config: *mut Config,
    clock: *const Clock,
) -> i32 {
    guard!(|c| {
        let config = c.handle(config)?;
        let clock = c.handle(clock)?.0.clone();
        config.parts().clock = Some(clock);
        Ok(())
    })
}

impl Config {
    /// Locks the configuration. Ignores poisoning, because no setter can panic between two changes.
    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn to_core(self, c: &Caller) -> Result<dthrottle_core::Rule> {
        let rule = dthrottle_core::Rule::parse(c.text(self.rate, self.rate_len)?);
        let rule = match (self.burst, self.burst_time_ns) {
            (0, 0) => rule,
            (units, 0) => rule.burst(units),
            (0, time) => rule.burst_time(Duration::from_nanos(time)),
            _ => return Err(bad("a rule must not have both burst and burst_time_ns")),
        };
        let rule = rule.charge_refused(self.charge_refused != 0);
        Ok(match c.name(self.name, self.name_len)? {
            Some(name) => rule.name(name),
            None => rule,
        })
    }
}

impl Table {
    fn to_core(self, c: &Caller) -> Result<TableConfig> {
        let name = c.name(self.name, self.name_len)?;
        let table = match (self.is_private != 0, name) {
            (false, None) => TableConfig::anonymous(),
            (false, Some(name)) => TableConfig::named(name),
            (true, None) => TableConfig::private(),
            (true, Some(_)) => return Err(bad("a private table must not have a name")),
        };
        let table = match (self.tags, self.bytes) {
            (0, 0) => table,
            (tags, 0) => table.tags(tags),
            (0, bytes) => table.bytes(bytes),
            _ => return Err(bad("a table must not have both tags and bytes")),
        };
        let table = match c.name(self.group, self.group_len)? {
            Some(group) => table.group(group),
            None => table,
        };
        Ok(match c.name(self.dir, self.dir_len)? {
            Some(dir) => table.dir(dir),
            None => table,
        })
    }
}
