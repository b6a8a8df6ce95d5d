//! Rates, rules and the decision about one check.
//!
//! Owns the arithmetic of a bucket and the order of steps of a check. It may use `table` (where the
//! buckets are) and `error`; it knows nothing of configuration, clusters or the operating system.

pub(crate) mod batch;
pub(crate) mod bucket;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod pacing;
pub(crate) mod rate;
pub(crate) mod rule;
