//! Everything that asks the operating system: clock, randomness, files.

pub(crate) mod clock;
pub(crate) mod file;
pub(crate) mod random;
