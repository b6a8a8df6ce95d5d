//! What a throttle counted.

use pyo3::prelude::*;

use crate::errors::guard;

/// Counts since the throttle was made.
#[pyclass(frozen, get_all, eq, hash, module = "dthrottle")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Stats {
    /// Checks allowed, those that only dry run allowed included.
    allowed: u64,
    /// Checks refused.
    refused: u64,
    /// Checks that were allowed only because of dry run.
    dry_run: u64,
    /// Charges that were not counted, because the table had no room or the bucket no more ticks.
    failed_open: u64,
    /// How often the debt of a bucket went beyond what a bucket can hold.
    clamped: u64,
    /// Buckets that were forgotten before they were full, because the table had no better room
    /// for others.
    evicted: u64,
    /// Buckets that are not full now.
    buckets: u64,
    /// Units admitted that no other node will hear about: of buckets that were forgotten, or more
    /// than one bucket could keep for the next report.
    unreported: u64,
}

impl From<dthrottle::Stats> for Stats {
    fn from(stats: dthrottle::Stats) -> Stats {
        Stats {
            allowed: stats.allowed,
            refused: stats.refused,
            dry_run: stats.dry_run,
            failed_open: stats.failed_open,
            clamped: stats.clamped,
            evicted: stats.evicted,
            buckets: stats.buckets,
            unreported: stats.unreported,
        }
    }
}

#[pymethods]
impl Stats {
    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            Ok(format!(
                "Stats(allowed={}, refused={}, dry_run={}, failed_open={}, clamped={}, evicted={}, \
                 buckets={}, unreported={})",
                self.allowed,
                self.refused,
                self.dry_run,
                self.failed_open,
                self.clamped,
                self.evicted,
                self.buckets,
                self.unreported,
            ))
        })
    }
}
