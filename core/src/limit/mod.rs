//! Rates, rules and the decision about one check.
//!
//! This module owns the arithmetic of a bucket and the steps of a check. It uses `table`, which
//! stores the buckets, and `error`. It does not depend on configuration, clusters or the operating
//! system.

pub(crate) mod batch;
pub(crate) mod bucket;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod pacing;
pub(crate) mod rate;
pub(crate) mod rule;
