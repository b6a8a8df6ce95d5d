//! Many seeds on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::judge::{Breach, judge};
use crate::random::scenario;
use crate::world::run;

/// What a seed broke.
#[derive(Debug)]
pub struct Failure {
    /// Run it again with it.
    pub seed: u64,
    /// What its scenario is called.
    pub name: String,
    /// What broke.
    pub breaches: Vec<Breach>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} ({}):", self.seed, self.name)?;
        self.breaches.iter().try_for_each(|breach| write!(f, "\n    {breach}"))
    }
}

/// Runs seeds, and says after each how many are done.
pub fn soak(seeds: std::ops::Range<u64>, done: impl Fn(u64) + Sync) -> Vec<Failure> {
    let failures = Mutex::new(Vec::new());
    let (next, count) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds.end {
            break;
        }
        let scenario = scenario(seed);
        let outcome = run(&scenario);
        let breaches = judge(&scenario, &outcome);
        if std::env::var("STAT").is_ok() {
            for (kind, meter) in &outcome.tags {
                let bound = crate::bound::excess(&scenario, &outcome, meter);
                let kind = format!("{kind:?}");
                println!(
                    "STAT {} {seed} {} {} {:.1} {bound:.1} {:.3} {}",
                    scenario.name.replace(' ', "_"),
                    kind.split(' ').next().unwrap(),
                    scenario.nodes,
                    meter.excess(),
                    meter.excess() / bound,
                    outcome.slowest / 1_000_000
                );
            }
        }
        if !breaches.is_empty() {
            let failure = Failure { seed, name: scenario.name, breaches };
            failures.lock().expect("nobody panics with it").push(failure);
        }
        done(count.fetch_add(1, Ordering::Relaxed) + 1);
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("nobody panics with it");
    failures.sort_by_key(|failure| failure.seed);
    failures
}
