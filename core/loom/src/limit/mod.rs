//! Provides the path `crate::limit::bucket`, which core's files use.

pub(crate) mod bucket;
