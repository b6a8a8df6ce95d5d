//! Whole clusters in virtual time: the real engine and the real buckets on a network of the
//! simulator's own. A scenario and its seed decide everything, so every run can be had again.
//!
//! `docs/simulation.md` says what is simulated and what must hold.
#![forbid(unsafe_code)]

pub mod bound;
pub mod clients;
pub mod clock;
mod fault_actions;
pub mod ledger;
mod machine;
pub mod measure;
pub mod network;
pub mod node;
pub mod outcome;
pub mod parallel;
pub mod plots;
pub mod properties;
pub mod queue;
pub mod random;
pub mod report;
pub mod scenario;
pub mod series;
pub mod soak;
pub mod table;
pub mod world;

/// A moment or a span, in nanoseconds of virtual time.
pub type Ns = u64;

/// A millisecond.
pub const MS: Ns = 1_000_000;
/// A second.
pub const SEC: Ns = 1_000_000_000;

/// The generator of all randomness here: the same numbers on every machine.
pub type Random = rand::rngs::Xoshiro256PlusPlus;

/// A generator of its own for each part of a run, so that one part drawing more numbers does not
/// change what the others do.
pub fn random(seed: u64, part: u64) -> Random {
    use rand::SeedableRng;
    Random::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.rotate_left(32))
}
