//! The named tables of this machine.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::{Fault, guard};
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
    /// How many tags it has room for.
    tags: u64,
    /// Buckets that are not full now.
    buckets: u64,
    /// The cluster that it belongs to, if an exchange has begun.
    cluster: Option<ClusterStats>,
    /// Why it cannot be used, if it cannot.
    fault: Option<String>,
}

#[pymethods]
impl TableInfo {
    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(format!("<TableInfo {:?}, buckets={}>", self.name, self.buckets)))
    }
}

/// List the tables of this user, or of a group, in the usual folders or in this one.
#[pyfunction]
#[pyo3(signature = (*, group = None, dir = None))]
pub(crate) fn tables(group: Option<String>, dir: Option<String>) -> PyResult<Vec<TableInfo>> {
    guard(|| {
        let found = dthrottle::tables::list(group.as_deref(), dir.as_deref());
        let tables = found.map_err(Fault::from)?.into_iter().map(|table| TableInfo {
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
