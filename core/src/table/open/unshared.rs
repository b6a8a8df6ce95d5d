//! Stands for `shared.rs` and `named.rs` where nothing can share memory: a table belongs to its
//! process.

use super::{Opened, Wish, private};
use crate::error::Result;
use crate::table::heap::Heap;
use crate::table::{Geometry, Table};

pub(super) fn private_table(geometry: Geometry) -> Option<Table> {
    Table::in_memory(Heap::new(geometry.bytes()), geometry)
}

pub(super) fn anonymous(wish: Wish<'_>) -> Result<Opened> {
    private(wish)
}

pub(super) fn named(_: &str, wish: Wish<'_>) -> Result<Opened> {
    let why = match cfg!(feature = "shared") {
        true => "Linux",
        false => "the feature `shared` of the crate dthrottle",
    };
    let mut opened = private(wish)?;
    opened.warnings.push(format!("named tables need {why}; this one belongs to its process"));
    Ok(opened)
}
