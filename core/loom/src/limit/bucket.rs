//! What the protocol knows of buckets, in the place of core's module.

pub(crate) type Tat = u64;

pub(crate) const LAST: Tat = (1 << 60) - 1;
