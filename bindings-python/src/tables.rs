//! The named tables of this machine: list and remove them.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::{CallError, guard};
use crate::records::ClusterStats;

/// A named table of this machine.
#[pyclass(frozen, get_all, eq, hash, module = "dthrottle")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct TableInfo {
    /// Its name.
    name: String,
    /// Its file.
    path: PathBuf,
    /// Bytes of memory.
    bytes: u64,
    /// How many tags fit.
    tags: u64,
    /// Buckets that are not full now.
    buckets: u64,
    /// The cluster, if an exchange has begun.
    cluster: Option<ClusterStats>,
    /// Why the table cannot be used; None if it can.
    fault: Option<String>,
}

#[pymethods]
impl TableInfo {
    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(format!("<TableInfo {:?}, buckets={}>", self.name, self.buckets)))
    }
}

/// Lists the tables of this user, or of a group, in the default directories or in dir.
#[pyfunction]
#[pyo3(signature = (*, group = None, dir = None))]
pub(crate) fn tables(group: Option<String>, dir: Option<String>) -> PyResult<Vec<TableInfo>> {
    guard(|| {
        let found = dthrottle::tables::list(group.as_deref(), dir.as_deref());
        let tables = found.map_err(CallError::from)?.into_iter().map(|table| TableInfo {
            name: table.name,
            path: table.path,
            bytes: table.bytes,
            tags: table.tags,
            buckets: table.buckets,
            cluster: table.cluster.map(ClusterStats),
            fault: table.fault,
        });
        Ok(tables.collect())
    })
}

/// Removes a table. Processes that have it open share it until they end.
#[pyfunction]
#[pyo3(signature = (name, *, group = None, dir = None))]
pub(crate) fn remove_table(
    name: String,
    group: Option<String>,
    dir: Option<String>,
) -> PyResult<()> {
    guard(|| Ok(dthrottle::tables::remove(&name, group.as_deref(), dir.as_deref())?))
}
