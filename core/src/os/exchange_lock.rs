//! Which process of a table runs the exchange: the one that holds a lock, which ends with it.

use std::fs::File;
use std::io;

use super::fork::{self, Guarded};
use super::lock::{EXCHANGE, try_change};
use crate::table::rule_users::RuleUsers;

/// The right to run the exchange. Given back when it is dropped, and never inherited.
#[derive(Debug)]
pub struct Lock(Option<Guarded<File>>);

impl Lock {
    /// The lock of a table, unless another process has it.
    pub(crate) fn try_new(table: &RuleUsers) -> io::Result<Option<Lock>> {
        // The table is this process's own.
        let RuleUsers::Locked(place) = table else { return Ok(Some(Lock(None))) };
        let guarded = fork::guard(|| place.open_again())?;
        let Some(file) = guarded.get() else { return Ok(None) };
        let is_free = try_change(file, libc::F_WRLCK, EXCHANGE, 1)?;
        Ok(is_free.then_some(Lock(Some(guarded))))
    }

    /// Whether it is still this process's: a forked child has only a shadow of it.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_none_or(|guarded| guarded.get().is_some())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.0.as_ref().and_then(Guarded::get) {
            // Not by closing alone: a child that is forked just now may keep the descriptor for a
            // moment, or for ever. It cannot fail: the descriptor is ours.
            let _ = try_change(file, libc::F_UNLCK, EXCHANGE, 1);
        }
    }
}
