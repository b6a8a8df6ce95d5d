//! Simulates whole clusters in virtual time: the real engine and real buckets on a simulated
//! network. A scenario and its seed determine everything, so every run can be repeated.
//!
//! `docs/simulation.md` describes what is simulated and which properties are checked.
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

/// A time or a duration, in nanoseconds of virtual time.
pub type Ns = u64;

/// Nanoseconds per millisecond.
pub const MS: Ns = 1_000_000;
/// Nanoseconds per second.
pub const SEC: Ns = 1_000_000_000;

/// The random number generator, which gives the same numbers on every machine.
pub type Random = rand::rngs::Xoshiro256PlusPlus;

/// Creates a separate generator for a part of a run, so that a part that draws more numbers does
/// not change the others.
pub fn random(seed: u64, part: u64) -> Random {
    use rand::SeedableRng;
    Random::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.rotate_left(32))
}
