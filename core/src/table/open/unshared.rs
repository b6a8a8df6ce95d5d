//! Replaces `shared.rs` and `named.rs` on platforms without shared memory: every table is private.

use super::{OpenOptions, Opened, private};
use crate::error::Result;
use crate::table::Memory;
use crate::table::heap::Heap;

pub(crate) fn private_memory(bytes: usize) -> Option<Box<dyn Memory>> {
    Some(Box::new(Heap::new(bytes)))
}

pub(crate) fn anonymous_memory(bytes: usize) -> Option<Box<dyn Memory>> {
    private_memory(bytes)
}

pub(super) fn anonymous(options: OpenOptions<'_>) -> Result<Opened> {
    private(options)
}

pub(super) fn named(_: &str, options: OpenOptions<'_>) -> Result<Opened> {
    let why = match cfg!(feature = "shared") {
        true => "Linux",
        false => "the feature `shared` of the crate dthrottle",
    };
    let mut opened = private(options)?;
    let warning = format!("named tables need {why}, so this process does not share its counts");
    opened.warnings.push(warning);
    Ok(opened)
}
