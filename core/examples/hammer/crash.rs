//! Children that are killed at random while they use a small table, and are replaced by others.
//! Every unit that they counted must have been charged, except for the operation that each kill
//! interrupted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dthrottle::internals;
use dthrottle::internals::access::Exchange;
use dthrottle::{Domain, Rule, Throttle};

use super::TaskResult;
use super::options::{Options, slow};
use super::process::{Child, Random, fork, join, shared, wait_for_killed, yield_now};

const KEYS: usize = 8;
/// Units that are left in each bucket for the final race.
const LAST_UNITS: u64 = 1000;
/// The fewest kills, however slow the machine.
const MIN_KILLS: u64 = 100;
/// Killed children are waited for in groups, because waiting for each would make kills rare on a
/// busy machine.
const MAX_UNREAPED: usize = 20;
/// Far more tags than slots.
const FLOOD_TAGS: usize = 10_000;
/// Tags with hits to report. There are few, because their slots are not replaced.
const REPORTED_TAGS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Takes units of the counted tags, and floods the table with other tags.
    Hammer,
    /// Charges the counted tags for units that were used elsewhere.
    LocalCharge,
    /// Drains pending hits, as the exchanging process does.
    Drain,
}

const ROLES: [Role; 5] = [Role::Hammer, Role::Hammer, Role::Hammer, Role::LocalCharge, Role::Drain];

/// The state that all children share.
struct Shared {
    throttle: Throttle,
    flood: Domain,
    /// Units taken and charged for each key. Each is counted right after its call.
    counted: &'static [AtomicU64],
    local: &'static [AtomicU64],
    drained: &'static AtomicU64,
    /// Number of loop iterations of each child.
    rounds: &'static [AtomicU64],
    stop: &'static AtomicU64,
    /// The ID of the counted rule.
    rule: u64,
    /// The burst of the counted rule.
    burst: u64,
}

/// `exchanger` is `none`, `not-killed` or `killed`. `units` is the burst of the counted tags.
pub(crate) fn run(options: &Options) -> TaskResult {
    let exchanger = options.get("exchanger").ok_or("exchanger is missing")?;
    let time = Duration::from_millis(options.number("ms")?);
    let flood = Rule::per_second(options.number("flood-rate")?);
    let flood = flood.burst(options.number("flood-burst")?);
    let burst = options.number("units")?;
    let builder = options.builder()?.rule(slow(burst));
    let throttle = builder.domain("flood", [flood]).domain("fresh", [slow(1000)]).build()?;
    let test = Shared::new(throttle, burst, exchanger != "none")?;
    let roles: Vec<Role> = match exchanger {
        "none" => ROLES.into_iter().filter(|role| *role != Role::Drain).collect(),
        _ => ROLES.to_vec(),
    };
    let can_die = |role: Role| role != Role::Drain || exchanger == "killed";
    let kills = test.kill_at_random(&roles, can_die, time)?;

    // A full drain finds the hits of lines that a killed child left unmarked.
    let is_exchanged = exchanger != "none";
    if is_exchanged {
        test.drain(true);
    }
    println!("kills {kills}");
    println!("rounds {}", sum(test.rounds));
    println!("drained {}", test.drained.load(Ordering::Relaxed));
    test.report()?;
    test.finish(is_exchanged)
}

impl Shared {
    fn new(
        throttle: Throttle,
        burst: u64,
        exchanged: bool,
    ) -> Result<Shared, Box<dyn std::error::Error>> {
        let flood = throttle.domain("flood")?;
        let [drained, stop] = shared(2)? else {
            return Err("shared memory must have two words".into());
        };
        let (counted, local) = (shared(KEYS)?, shared(KEYS)?);
        let mut rule = 0;
        let exchange = exchanged.then(|| exchange(&throttle));
        for key in 0..KEYS {
            // Half of each burst is used from the start, so that these buckets never have the
            // lowest eviction cost.
            throttle.charge_local(tag(key), burst / 2, Duration::ZERO)?;
            local[key].store(burst / 2, Ordering::Relaxed);
            counted[key].store(u64::from(throttle.allow(tag(key))?), Ordering::Relaxed);
        }
        if let Some(exchange) = exchange {
            rule = exchange.rules().first().ok_or("a rule")?.id;
        }
        let rounds = shared(ROLES.len())?;
        Ok(Shared { throttle, flood, counted, local, drained, rounds, stop, rule, burst })
    }

    fn kill_at_random(
        &self,
        roles: &[Role],
        can_die: impl Fn(Role) -> bool,
        time: Duration,
    ) -> io::Result<u64> {
        let mut random = Random::new(u64::from(std::process::id()));
        let mut children = Vec::new();
        for (index, role) in roles.iter().enumerate() {
            children.push(self.start(index, *role, index as u64)?);
        }
        let (start, mut kills) = (Instant::now(), 0);
        let mut killed = Vec::new();
        while start.elapsed() < time || kills < MIN_KILLS {
            sleep(Duration::from_micros(random.below(4000) as u64));
            let index = random.below(children.len());
            if can_die(roles[index]) {
                kills += 1;
                let next = self.start(index, roles[index], 1000 + kills)?;
                let child = std::mem::replace(&mut children[index], next);
                child.kill();
                killed.push(child);
            }
            if killed.len() > MAX_UNREAPED {
                wait_for_killed(killed.drain(..))?;
            }
        }
        wait_for_killed(killed.drain(..))?;
        self.wait_for_progress(roles.len());
        self.stop.store(1, Ordering::Relaxed);
        join(children)?;
        Ok(kills)
    }

    /// Asserts that no child waits for a killed one: every child continues its loop.
    fn wait_for_progress(&self, children: usize) {
        for round in &self.rounds[..children] {
            let before = round.load(Ordering::Relaxed);
            while round.load(Ordering::Relaxed) < before + 100 {
                yield_now();
            }
        }
    }

    fn start(&self, index: usize, role: Role, seed: u64) -> io::Result<Child> {
        fork(|| {
            let mut random = Random::new(seed);
            while self.stop.load(Ordering::Relaxed) == 0 {
                let key = random.below(KEYS);
                let other = random.below(FLOOD_TAGS);
                match role {
                    Role::Hammer => {
                        if self.throttle.allow(tag(key)).expect("the throttle is open") {
                            self.counted[key].fetch_add(1, Ordering::Relaxed);
                        }
                        self.flood
                            .allow((other % REPORTED_TAGS).to_le_bytes())
                            .expect("the throttle is open");
                    }
                    Role::LocalCharge => {
                        self.throttle
                            .charge_local(tag(key), 1, Duration::ZERO)
                            .expect("the throttle is open");
                        self.local[key].fetch_add(1, Ordering::Relaxed);
                    }
                    Role::Drain => self.drain(false),
                }
                if role != Role::Drain {
                    self.flood
                        .charge_local(other.to_le_bytes(), 1, Duration::ZERO)
                        .expect("the throttle is open");
                }
                self.rounds[index].fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    fn drain(&self, all: bool) {
        let exchange = exchange(&self.throttle);
        exchange.drain(
            exchange.now(),
            all,
            |_, _| true,
            |entry| {
                if entry.rule == self.rule {
                    self.drained.fetch_add(entry.hits * entry.quantum, Ordering::Relaxed);
                }
            },
        );
    }

    /// Prints for every key the units counted, the units charged locally, and the units missing in
    /// the bucket.
    fn report(&self) -> TaskResult {
        for key in 0..KEYS {
            let charged = self.burst as i64 - self.throttle.peek(tag(key))?.balance;
            let counted = self.counted[key].load(Ordering::Relaxed);
            let local = self.local[key].load(Ordering::Relaxed);
            println!("key {counted} {local} {charged}");
        }
        Ok(())
    }

    /// Checks that the table still works: a race takes exactly the burst, and every slot can be
    /// claimed.
    fn finish(&self, is_exchanged: bool) -> TaskResult {
        for key in 0..KEYS {
            self.throttle.reset(tag(key))?;
            self.throttle.charge_local(tag(key), self.burst - LAST_UNITS, Duration::ZERO)?;
            self.counted[key].store(0, Ordering::Relaxed);
        }
        let mut children = Vec::new();
        for _ in 0..4 {
            children.push(fork(|| {
                for (key, counted) in self.counted.iter().enumerate() {
                    while self.throttle.allow(tag(key)).expect("the throttle is open") {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?);
        }
        join(children)?;
        for counted in self.counted {
            println!("last {}", counted.load(Ordering::Relaxed));
        }
        if is_exchanged {
            self.drain(true);
        }
        // Wait until all buckets of the flood are full again.
        while self.throttle.stats().buckets > KEYS as u64 {
            yield_now();
        }
        let slots = internals::table_size(&self.throttle).1;
        let fresh = self.throttle.domain("fresh")?;
        for key in 0..KEYS {
            self.throttle.reset(tag(key))?;
        }
        let emptied = self.throttle.stats().buckets;
        for tag in 0..100 * slots {
            fresh.allow(tag.to_le_bytes())?;
        }
        println!("slots {slots} {emptied} {}", self.throttle.stats().buckets);
        Ok(())
    }
}

/// The exchange of the table, which from now on counts every hit as pending.
fn exchange(throttle: &Throttle) -> Exchange {
    let exchange = internals::exchange(throttle);
    exchange.keep_alive(exchange.now());
    exchange
}

fn tag(key: usize) -> [u8; 9] {
    let mut tag = [b'k'; 9];
    tag[..8].copy_from_slice(&key.to_le_bytes());
    tag
}

fn sum(numbers: &[AtomicU64]) -> u64 {
    numbers.iter().map(|number| number.load(Ordering::Relaxed)).sum()
}
