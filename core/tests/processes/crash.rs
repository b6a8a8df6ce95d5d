//! Processes that are killed at random instructions.

use crate::tasks::{numbers, run};

/// Total duration of the kills in milliseconds.
fn total_ms() -> u64 {
    if std::env::var_os("DTHROTTLE_DEEP").is_some() { 60_000 } else { 10_000 }
}

/// A small table. The buckets of the flood are full again at once, and their bursts are so large
/// that their eviction cost is always lower than that of a counted tag.
const CRASH: [&str; 4] = ["crash", "tags=128", "flood-rate=1000000", "flood-burst=600000000"];

/// More units than a test can use. One hit is 256 of them.
const MANY: &str = "units=16777216";
/// Units of which each is one hit. They are used up before the test ends.
const FEW: &str = "units=65536";

struct Figures {
    kills: i64,
    counted: i64,
    drained: i64,
}

/// Kills processes for a third of the time, and checks the results.
fn crash(exchanger: &str, units: &str) -> Figures {
    let time = format!("ms={}", total_ms() / 3);
    let exchanger = format!("exchanger={exchanger}");
    let lines = run(&[&CRASH[..], &[&exchanger, &time, units]].concat());
    let one = |name: &str| numbers(&lines, name)[0][0];
    let (kills, rounds) = (one("kills"), one("rounds"));
    let keys = numbers(&lines, "key");
    assert_eq!(keys.len(), 8);
    let mut over = 0;
    for key in &keys {
        let [counted, local, charged] = key[..] else { panic!("{key:?}") };
        assert!(charged >= counted + local, "{key:?}: admitted, but not charged");
        over += charged - counted - local;
    }
    assert!(over <= kills, "{over} charged units were not counted, with only {kills} kills");
    assert_eq!(
        numbers(&lines, "last"),
        vec![[1000]; 8],
        "after the kills, a race admits exactly the burst"
    );
    let [slots, emptied, taken] = numbers(&lines, "slots")[0][..] else { panic!("{lines:?}") };
    assert_eq!((emptied, taken), (0, slots), "every slot can be released and claimed again");
    let counted = keys.iter().map(|key| key[0]).sum();
    println!(
        "{exchanger}, {units}: {kills} kills, {rounds} rounds, {counted} admitted, {over} cut off"
    );
    Figures { kills, counted, drained: one("drained") }
}

#[test]
fn each_kill_interrupts_at_most_one_operation() {
    let Figures { drained, .. } = crash("none", MANY);
    assert_eq!(drained, 0);
}

#[test]
fn kills_lose_no_hits() {
    let Figures { kills, counted, drained } = crash("not-killed", FEW);
    assert!(drained >= counted, "{drained} of {counted} hits were reported");
    assert!(drained <= counted + kills, "{drained} hits were reported, {counted} counted");
}

/// One hit is many units, so it is random whether an admission or a local charge completes it.
#[test]
fn kills_lose_no_hits_when_a_hit_is_many_units() {
    let Figures { counted, drained, .. } = crash("not-killed", MANY);
    assert!((drained - counted).abs() < counted / 20, "{drained} of {counted} were reported");
}

/// A killed exchanging process loses the hits that it had drained, but no hit is reported twice.
#[test]
fn killing_the_exchanging_process_reports_no_hit_twice() {
    let Figures { kills, counted, drained } = crash("killed", FEW);
    assert!(drained <= counted + kills, "{drained} hits were reported, {counted} counted");
    assert!(drained > 0);
}

/// The slots of services are reassigned all the time.
#[test]
fn kills_never_mix_up_reports_of_services() {
    let time = format!("ms={}", total_ms() / 3);
    let lines = run(&["services", &time]);
    let [received, wrong] = numbers(&lines, "received")[0][..] else { panic!("{lines:?}") };
    println!("{} kills, {received} received", numbers(&lines, "kills")[0][0]);
    assert!(received > 1000 && wrong == 0, "{wrong} of {received} reports are wrong");
    let [asked, held] = numbers(&lines, "quiet")[0][..] else { panic!("{lines:?}") };
    // A kill at the one instruction between claim and reset may leave a stale limit.
    assert!(
        asked > 1000 && held <= 2,
        "{held} of {asked} requests to services that were never busy were delayed"
    );
    assert_eq!(numbers(&lines, "last"), [[100, 100]], "new busy responses are reported and obeyed");
}
