//! The lock of the process that runs the exchange of a table. It ends with its process.

use std::fs::File;
use std::io;

use super::fork::{self, Guarded};
use super::lock::{EXCHANGE, try_change};
use crate::table::rule_users::RuleUsers;

/// The right to run the exchange. It is released on drop and never inherited by a fork.
#[derive(Debug)]
pub struct Lock(Option<Guarded<File>>);

impl Lock {
    /// Takes the lock of a table. Returns `None` if another process holds it.
    pub(crate) fn try_new(table: &RuleUsers) -> io::Result<Option<Lock>> {
        // The table belongs to this process only.
        let RuleUsers::Locked(lock_file) = table else { return Ok(Some(Lock(None))) };
        let guarded = fork::guard(|| lock_file.open_again())?;
        let Some(file) = guarded.get() else { return Ok(None) };
        let is_free = try_change(file, libc::F_WRLCK, EXCHANGE, 1)?;
        Ok(is_free.then_some(Lock(Some(guarded))))
    }

    /// Returns true if this process holds the lock. A forked child has a copy of this value but
    /// does not hold the lock.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_none_or(|guarded| guarded.get().is_some())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.0.as_ref().and_then(Guarded::get) {
            // Unlocks explicitly, because a child that is being forked may keep the descriptor
            // open. Cannot fail, because the descriptor is open.
            let _ = try_change(file, libc::F_UNLCK, EXCHANGE, 1);
        }
    }
}
