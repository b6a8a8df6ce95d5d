//! What the protocol knows of buckets, in the place of core's module.

pub(crate) type Tat = u64;

pub(crate) const MAX_TAT: Tat = (1 << 60) - 1;
