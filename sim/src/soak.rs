//! Runs and checks the scenarios of many seeds.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::parallel;
use crate::properties::{Violation, check};
use crate::random::scenario;
use crate::world::run;

/// The violated properties of a seed.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The name of its scenario.
    pub name: String,
    /// The violations.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} ({}):", self.seed, self.name)?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n    {violation}"))
    }
}

/// Runs seeds. Calls `done` after each with the number of finished ones.
pub fn soak(seeds: Range<u64>, done: impl Fn(u64) + Sync) -> Vec<Failure> {
    let count = AtomicU64::new(0);
    let seeds: Vec<u64> = seeds.collect();
    let results = parallel::each(&seeds, |seed| {
        let scenario = scenario(*seed);
        let violations = check(&scenario, &run(&scenario));
        done(count.fetch_add(1, Ordering::Relaxed) + 1);
        (!violations.is_empty()).then_some(Failure { seed: *seed, name: scenario.name, violations })
    });
    results.into_iter().flatten().collect()
}
