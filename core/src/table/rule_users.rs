//! Tracks which rules of a table are in use, so that the index of an unused rule can be reused.
//!
//! Slots and throttles name rules by index. So an index is reused only when no bucket names it
//! (`table/reclaim.rs`) and no throttle of a live process holds it. In a table of one process,
//! holds are counted. In a shared table they are file locks that end with the process
//! (`os/rule_lock.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crate::error::Result;
use crate::limit::bucket::Scale;
use crate::os::lock::LockFile;
use crate::os::rule_lock::{RuleListLock, RuleLock, is_transient};
use crate::table::{RULES, Table};

/// How often to retry while another thread changes the list. All retries take about a second.
const TRIES: usize = 1_000_000;

/// How the table knows which rules are in use.
#[derive(Debug)]
pub(crate) enum RuleUsers {
    /// The table belongs to this process only.
    Counted(Arc<Counts>),
    Locked(Arc<LockFile>),
    /// The users are unknown, so no index is ever reused.
    Unknown,
}

/// A hold on the rules of a throttle. Their indexes are not reused until it is dropped, both here
/// and in every forked child.
#[derive(Debug)]
pub(crate) enum RuleHold {
    /// The throttle has no rules, or the rules of the table are pinned.
    None,
    Counted(Arc<Counts>, Vec<u16>),
    Locked(RuleLock),
}

/// The lock that is needed to change the list of rules.
enum ListLock {
    Counted(Arc<Counts>),
    Locked(RuleListLock),
}

/// The number of holds on each rule.
#[derive(Debug)]
pub(crate) struct Counts {
    holds: Box<[AtomicU32]>,
    /// True while a thread changes the list.
    is_locked: AtomicBool,
}

/// Replaces the count while no throttle may hold the rule.
const EXCLUDED: u32 = u32::MAX;

impl RuleUsers {
    pub(crate) fn counted() -> RuleUsers {
        let holds = (0..RULES).map(|_| AtomicU32::new(0)).collect();
        RuleUsers::Counted(Arc::new(Counts { holds, is_locked: AtomicBool::new(false) }))
    }

    /// Holds these rules, and returns the hold and their indexes in the same order. Returns `None`
    /// if the list is full and all of its rules are in use. Calls `now` only if the list is full,
    /// because the first reading of a manual clock sets the zero of the table.
    ///
    /// # Errors
    ///
    /// If the system currently has too few descriptors or too little memory for a lock.
    pub(crate) fn hold(
        &self,
        table: &Table,
        now: impl Fn() -> u64,
        rules: &[(u64, Scale)],
    ) -> Result<Option<(RuleHold, Vec<u16>)>> {
        if rules.is_empty() {
            return Ok(Some((RuleHold::None, Vec::new())));
        }
        let (mut hold, list) = (self.new_hold(table)?, self.lock_list(table)?);
        let index_of = |(id, scale): &(u64, Scale)| {
            let found = table.find_rule(*id, scale).filter(|index| hold.add(table, *index));
            let mut add =
                || table.add_rule(*id, scale, list.is_some(), |index| hold.add(table, index));
            found.or_else(&mut add).or_else(|| {
                list.as_ref()?.reclaim(table, now());
                add()
            })
        };
        let Some(indexes) = rules.iter().map(index_of).collect() else { return Ok(None) };
        hold.keep(table)?;
        Ok(Some((hold, indexes)))
    }

    /// Holds one rule for one operation. Returns `None` if the index now names another rule, or if
    /// the system cannot lock it at the moment.
    pub(crate) fn hold_one(
        &self,
        table: &Table,
        index: u16,
        rule: (u64, Scale),
    ) -> Option<RuleHold> {
        let mut hold = self.new_hold(table).ok()?;
        (hold.add(table, index) && table.rule(index) == Some(rule)).then_some(hold)
    }

    /// Returns a hold without rules. If this process can never lock rules, it pins the rules of the
    /// table instead.
    fn new_hold(&self, table: &Table) -> Result<RuleHold> {
        let hold = match self {
            // Pinned rules are never freed, so they need no hold.
            _ if table.are_rules_pinned() => None,
            RuleUsers::Counted(counts) => Some(RuleHold::Counted(Arc::clone(counts), Vec::new())),
            RuleUsers::Locked(file) => if_possible(RuleLock::new(file))?.map(RuleHold::Locked),
            RuleUsers::Unknown => None,
        };
        Ok(hold.unwrap_or_else(|| {
            // Also if they are already pinned, because of the fence: see `reclaim_rules`.
            table.pin_rules();
            RuleHold::None
        }))
    }

    /// Waits until no other thread or process changes the list. Returns `None` if the rules of the
    /// table are pinned, or if this process can never lock the list, in which case it pins them.
    fn lock_list(&self, table: &Table) -> Result<Option<ListLock>> {
        let lock = match self {
            // Pinned rules are never reused, so no lock is needed. A stopped process might hold it
            // for long.
            _ if table.are_rules_pinned() => None,
            RuleUsers::Counted(counts) => {
                counts.lock().then(|| ListLock::Counted(Arc::clone(counts)))
            }
            RuleUsers::Locked(file) => {
                if_possible(RuleListLock::new(file))?.flatten().map(ListLock::Locked)
            }
            RuleUsers::Unknown => None,
        };
        if lock.is_none() {
            table.pin_rules();
        }
        Ok(lock)
    }
}

/// Returns `None` for an error that this process will always get. Fails for a temporary error.
fn if_possible<T>(result: std::io::Result<T>) -> Result<Option<T>> {
    match result {
        Err(cause) if is_transient(&cause) => {
            let message = format!("must have a file that can be locked: {cause}");
            Err(crate::Error::config("table", message))
        }
        result => Ok(result.ok()),
    }
}

impl RuleHold {
    /// Adds a rule to the hold. Returns false while another thread or process excludes its users.
    /// If the system has no such locks, the rules of the table are pinned instead.
    fn add(&mut self, table: &Table, index: u16) -> bool {
        match self {
            RuleHold::None => true,
            RuleHold::Counted(counts, indexes) => {
                let is_held = counts.add(index);
                indexes.extend(is_held.then_some(index));
                is_held
            }
            RuleHold::Locked(lock) => lock.add(index).unwrap_or_else(|_| {
                table.pin_rules();
                *self = RuleHold::None;
                true
            }),
        }
    }

    /// Keeps the hold until it is dropped, also in children that are forked in the meantime.
    fn keep(&mut self, table: &Table) -> Result<()> {
        if let RuleHold::Locked(lock) = self
            && if_possible(lock.keep())?.is_none()
        {
            table.pin_rules();
        }
        Ok(())
    }
}

impl Drop for RuleHold {
    fn drop(&mut self) {
        if let RuleHold::Counted(counts, indexes) = self {
            indexes.iter().for_each(|index| counts.remove(*index));
        }
    }
}

impl ListLock {
    /// Frees all rules that are not in use.
    fn reclaim(&self, table: &Table, now: u64) {
        match self {
            ListLock::Counted(counts) => {
                table.reclaim_rules(now, |index| counts.exclude(index));
                counts.readmit();
            }
            ListLock::Locked(lock) => {
                table.reclaim_rules(now, |index| lock.exclude(index));
                lock.readmit();
            }
        }
    }
}

impl Drop for ListLock {
    fn drop(&mut self) {
        match self {
            // Release: publishes the changes of the list to the next owner of the lock.
            ListLock::Counted(counts) => counts.is_locked.store(false, Ordering::Release),
            ListLock::Locked(_) => {}
        }
    }
}

impl Counts {
    /// Returns false if the lock stays taken. A fork may have left it locked in this process.
    fn lock(&self) -> bool {
        (0..TRIES).any(|_| {
            let is_free = !self.is_locked.swap(true, Ordering::Acquire);
            if !is_free {
                thread::yield_now();
            }
            is_free
        })
    }

    fn add(&self, index: u16) -> bool {
        let held = |holds: u32| holds.checked_add(1).filter(|holds| *holds != EXCLUDED);
        // Acquire: pairs with `readmit`, so that a freed rule is seen as free.
        self.change(index, |holds| holds.fetch_update(Ordering::Acquire, Ordering::Relaxed, held))
    }

    fn remove(&self, index: u16) {
        // Release: pairs with `exclude`, so that all buckets of this user are visible there.
        self.change(index, |holds| {
            holds.fetch_update(Ordering::Release, Ordering::Relaxed, |n| n.checked_sub(1))
        });
    }

    fn exclude(&self, index: u16) -> bool {
        self.change(index, |holds| {
            holds.compare_exchange(0, EXCLUDED, Ordering::Acquire, Ordering::Relaxed)
        })
    }

    fn readmit(&self) {
        for holds in &self.holds {
            // Only the owner of the list's lock excludes rules.
            if holds.load(Ordering::Relaxed) == EXCLUDED {
                holds.store(0, Ordering::Release);
            }
        }
    }

    fn change(&self, index: u16, step: impl FnOnce(&AtomicU32) -> Result<u32, u32>) -> bool {
        self.holds.get(usize::from(index)).is_some_and(|holds| step(holds).is_ok())
    }
}
