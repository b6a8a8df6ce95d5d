//! The items of core's module that the protocol needs.

pub(crate) type Tat = u64;

pub(crate) const MAX_TAT: Tat = (1 << 60) - 1;
