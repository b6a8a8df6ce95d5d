//! As in core, so that its files find `crate::limit::bucket`.

pub(crate) mod bucket;
