//! A configuration built up call by call, or read from TOML, before a throttle is opened from it.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dthrottle_core::{Error, ErrorKind, ManualClock, Result, TableConfig};

use crate::clock::Clock;
use crate::ffi::{Caller, Flag, bad};
use crate::throttle::as_path;

/// A configuration: domains and their rules, a table, and a clock. Made by
/// dthrottle_config_new(), released by dthrottle_config_free().
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
    /// Whether refused checks are charged to this rule as well.
    pub charge_refused: Flag,
    /// The name, unique in its domain; NULL: "rule1", "rule2", ... by position.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_len: usize,
    /// The rate, such as "100/s" or "5 per 2 minutes". "unlimited" adds no rule: it says that a
    /// domain without rules is meant to allow everything.
    pub rate: *const c_char,
    /// Its length in bytes.
    pub rate_len: usize,
    /// The burst in units; 0: the count of the rate.
    pub burst: u64,
    /// Or the burst as the units that the rate gives in this time; 0: not so.
    pub burst_time_ns: u64,
}

/// Where the buckets live. Begin with DTHROTTLE_TABLE_INIT: shared with all children forked later,
/// and with room for a million tags.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    /// sizeof(dthrottle_table_t).
    pub size: usize,
    /// Whether it is of this process alone; a forked child goes on with a copy.
    pub is_private: Flag,
    /// The name under which every process of this user shares it; NULL: none.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_len: usize,
    /// The group, by name or number, whose members may all use the named table; NULL: this user
    /// alone.
    pub group: *const c_char,
    /// Its length in bytes.
    pub group_len: usize,
    /// The directory for the named table's file; NULL: the default of docs/table.md.
    pub dir: *const c_char,
    /// Its length in bytes.
    pub dir_len: usize,
    /// How many tags it has room for; 0: a million.
    pub tags: u64,
    /// Or how many bytes it may take; 0: not so.
    pub bytes: u64,
}

/// Makes a configuration: the default domain, without rules. Add at least one rule before
/// dthrottle_open_config().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_new(out: *mut *mut Config) -> i32 {
    guard!(|c| {
        c.out_handle(out)?.set(Config(Mutex::default()));
        Ok(())
    })
}

/// Releases a configuration; NULL is fine. Throttles that were opened from it go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_free(config: *mut Config) {
    guard!(|c| {
        c.take_handle(config)?;
        Ok(())
    });
}

/// Replaces all domains, rules, dry runs and the table by those of a configuration in TOML. The
/// clock stays. After an error nothing has changed.
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

/// The same with a configuration file in TOML.
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

/// Adds a rule to a domain, which is made if it is not there; domain NULL is the default domain.
/// A bad rate or burst is an error of dthrottle_open_config(), which says what would be right.
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

/// Whether refusals are only counted, not enforced, in a domain, which is made if it is not
/// there; domain NULL is every domain for which nothing else was said.
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

/// Says where the buckets live. A bad name or size is an error of dthrottle_open_config(), which
/// says what would be right.
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

/// Names the table, if nothing was said of whose it is: for hosts whose processes open the
/// throttle each for itself, such as a server's workers. A bad name is told as above. In a
/// cluster, a table of that name that has the key of another, or of none, is left alone: `name-2`
/// or so is taken.
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

/// How many rules a domain of the configuration has, or DTHROTTLE_ERR_DOMAIN if there is no such
/// domain; domain NULL is the default domain.
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

/// Looks at everything that dthrottle_open_config() would look at, and opens nothing: for tests of
/// a configuration. Reads the secret of the cluster, if it is in a file, and keeps it: a process
/// that has given up its rights can open the throttle later. Starts no thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_config_check(
    config: *mut Config,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    guard!(error, error_size, |c| c.handle(config)?.parts().core.prepare())
}

/// Makes throttles of this configuration run by a clock that is moved by hand. The caller keeps
/// the clock handle, and may release it at any time.
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
    /// No setter panics half way, so a poisoned lock is as good as any.
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
            _ => return Err(bad("a rule has both a burst and a burst time")),
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
            (true, Some(_)) => return Err(bad("a private table has a name")),
        };
        let table = match (self.tags, self.bytes) {
            (0, 0) => table,
            (tags, 0) => table.tags(tags),
            (0, bytes) => table.bytes(bytes),
            _ => return Err(bad("a table has both a number of tags and of bytes")),
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
