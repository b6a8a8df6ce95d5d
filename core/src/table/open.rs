//! From a configuration to a table: private, shared with forked children, or named.

use crate::clock::{Clock, FIRST_READING};
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::config::MOST_KEYS;
use crate::config::{Kind, TableConfig};
use crate::error::{Error, Result};
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::os::lock::LockPlace;
use crate::table::rule_users::RuleUsers;
use crate::table::{Geometry, Table};

/// A table's time begins so long before it was made, 39 hours, so that older hits have a place
/// in it.
#[cfg(feature = "os")]
const BEFORE_NS: u64 = 1 << 47;

/// A table that is ready, and what else has to be known.
pub(crate) struct Opened {
    pub(crate) table: Table,
    /// The table's name, if it is shared by one.
    pub(crate) name: Option<String>,
    /// The table's zero, by the clock.
    pub(crate) zero_ns: u64,
    /// The key of the fingerprints.
    pub(crate) key: [u64; 2],
    /// What is not as it was asked for.
    pub(crate) warnings: Vec<String>,
    /// How the users of its rules are known.
    pub(crate) rule_users: RuleUsers,
    /// Where its processes agree on the one that runs the exchange.
    #[cfg(all(feature = "os", target_os = "linux"))]
    pub(crate) lock: LockPlace,
}

/// A table that is to be opened.
#[derive(Clone, Copy)]
struct Wish<'a> {
    config: &'a TableConfig,
    /// The key of the fingerprints, if it is given.
    key: Option<[u64; 2]>,
    /// The table's zero, if it is new.
    zero_ns: u64,
}

/// Opens the table that a checked configuration asks for.
pub(crate) fn open(config: &TableConfig, clock: &Clock, key: Option<[u64; 2]>) -> Result<Opened> {
    match (clock, &config.kind) {
        (Clock::Manual(_), Kind::Named(_)) => {
            let message = "a clock moved by hand needs a table of its own; \
                           leave the name out, or the clock";
            Err(Error::config("table", message))
        }
        (Clock::Manual(_), _) => private(Wish { config, key, zero_ns: FIRST_READING }),
        #[cfg(feature = "os")]
        (Clock::System, kind) => {
            let zero_ns = clock.now_ns().saturating_sub(BEFORE_NS);
            let wish = Wish { config, key, zero_ns };
            match kind {
                Kind::Private => private(wish),
                Kind::Anonymous => shared::anonymous(wish),
                Kind::Named(name) => shared::named(name, wish),
            }
        }
    }
}

fn private(wish: Wish<'_>) -> Result<Opened> {
    let table = private_table(wish.config.shape()).ok_or_else(|| {
        let message = "no memory for a table of this size; ask for fewer tags";
        Error::config("table.size", message)
    })?;
    Ok(wish.fulfilled(table))
}

impl Wish<'_> {
    /// What there is with a new table.
    fn fulfilled(self, table: Table) -> Opened {
        let key = self.key.unwrap_or_else(random_key);
        Opened {
            table,
            name: None,
            zero_ns: self.zero_ns,
            key,
            warnings: Vec::new(),
            rule_users: RuleUsers::counted(),
            #[cfg(all(feature = "os", target_os = "linux"))]
            lock: LockPlace::None,
        }
    }
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

#[cfg(feature = "os")]
mod shared {
    use super::*;
    #[cfg(unix)]
    use crate::os::memory::Map;
    #[cfg(target_os = "linux")]
    use crate::os::named::{self, Asked, Found, Refusal};
    #[cfg(target_os = "linux")]
    use crate::table::Birth;

    /// Where processes are not forked there is nobody to share it with.
    #[cfg(not(unix))]
    pub(super) fn anonymous(wish: Wish<'_>) -> Result<Opened> {
        private(wish)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn named(_: &str, wish: Wish<'_>) -> Result<Opened> {
        let mut opened = anonymous(wish)?;
        opened.warnings.push("named tables need Linux; this one has no name".into());
        Ok(opened)
    }

    /// A table for this process and its children.
    #[cfg(unix)]
    pub(super) fn anonymous(wish: Wish<'_>) -> Result<Opened> {
        let geometry = wish.config.shape();
        if !Table::can_be_shared() {
            return fall_back(wish, "this processor cannot share a table");
        }
        let map = Map::anonymous(geometry.bytes()).ok();
        let Some(table) = map.and_then(|map| Table::in_memory(map, geometry)) else {
            return fall_back(wish, "the system gave no shared memory");
        };
        let mut opened = wish.fulfilled(table);
        opened.rule_users = RuleUsers::Unknown;
        #[cfg(target_os = "linux")]
        match LockPlace::of_memory() {
            Ok(lock) => (opened.rule_users, opened.lock) = (lock.rule_users(), lock),
            Err(cause) if wish.config.clustered => return Err(no_lock(cause)),
            // Without a lock no rule index is reused; everything else works.
            Err(_) => {}
        }
        Ok(opened)
    }

    /// A table for every process that gives this name.
    #[cfg(target_os = "linux")]
    pub(super) fn named(name: &str, wish: Wish<'_>) -> Result<Opened> {
        if !Table::can_be_shared() {
            return fall_back(wish, "this processor cannot share a table");
        }
        let names = match wish {
            Wish { config, key: Some(key), .. } if config.usual => usual_names(name, config, key),
            _ => vec![name.to_string()],
        };
        for name in names {
            if let Some(opened) = with_our_key(&name, wish)? {
                return Ok(opened);
            }
        }
        let option = |flag, value: &Option<String>| {
            value.as_ref().map_or(String::new(), |value| format!(" --{flag} {value}"))
        };
        let (group, dir) = (&wish.config.group, &wish.config.dir);
        let place = option("group", group) + &option("dir", dir);
        let message = format!(
            "the table {name:?} has another fingerprint key: it was made without this cluster, or \
             with another secret; give another name, or remove it with \
             `dthrottle table remove {name}{place}`"
        );
        Err(Error::config("table", message))
    }

    /// The names of a table that nobody chose, in the order in which all its processes try them. They
    /// are numbered, and tell nothing of the key: everybody can see them. One that is in use comes
    /// first: an older one may have been removed since.
    #[cfg(target_os = "linux")]
    fn usual_names(name: &str, config: &TableConfig, key: [u64; 2]) -> Vec<String> {
        let numbered = (2..=MOST_KEYS).map(|number| format!("{name}-{number}"));
        let mut names: Vec<String> = std::iter::once(name.to_string()).chain(numbered).collect();
        let (group, dir) = (config.group.as_deref(), config.dir.as_deref());
        let ours = names.iter().position(|name| named::key(name, group, dir) == Some(key));
        names[..=ours.unwrap_or(0)].rotate_right(1);
        names
    }

    /// The table of this name; nothing: it is there, with another key.
    #[cfg(target_os = "linux")]
    fn with_our_key(name: &str, wish: Wish<'_>) -> Result<Option<Opened>> {
        let Wish { config, key, zero_ns } = wish;
        let geometry = config.shape();
        let birth = Birth { zero_ns, key: key.unwrap_or_else(random_key), boot: named::boot() };
        let dir = config.dir.as_deref();
        let group = config.group.as_deref();
        match named::open(&Asked { name, dir, group, geometry, birth }) {
            Ok(Found { region, file, path }) => {
                let found = region.birth();
                if key.is_some_and(|key| key != found.key) {
                    return Ok(None);
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
                let lock = LockPlace::of_table(file, path).map_err(no_lock)?;
                let rule_users = lock.rule_users();
                let table = Table::new(region);
                let Birth { zero_ns, key, .. } = found;
                let name = Some(name.to_string());
                Ok(Some(Opened { table, name, zero_ns, key, warnings, rule_users, lock }))
            }
            Err(Refusal::Wrong(error)) => Err(error),
            Err(Refusal::Nowhere(why)) => {
                let mut opened = anonymous(wish)?;
                opened.warnings.push(format!(
                    "the table {name:?} is shared only with forked children, not by its name: \
                     {why}"
                ));
                Ok(Some(opened))
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn no_lock(cause: std::io::Error) -> Error {
        Error::config("table", format!("cannot lock the table's file: {cause}"))
    }

    #[cfg(unix)]
    fn fall_back(wish: Wish<'_>, why: &str) -> Result<Opened> {
        let mut opened = private(wish)?;
        opened.warnings.push(format!("{why}: this process counts for itself"));
        Ok(opened)
    }
}
