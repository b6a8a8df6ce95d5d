//! Processes that are killed at any instruction.

use crate::tasks::{numbers, run};

/// How long the killing goes on, in all: longer where time does not matter.
fn total_ms() -> u64 {
    if std::env::var_os("DTHROTTLE_DEEP").is_some() { 60_000 } else { 10_000 }
}

/// A small table. The tags that flood it are full again at once, and their bursts are so large that
/// they are always cheaper to forget than a tag that is counted.
const CRASH: [&str; 4] = ["crash", "tags=128", "flood-rate=1000000", "flood-burst=600000000"];

/// Units for longer than a test runs. Peers hear of 256 of them at a time.
const MANY: &str = "units=16777216";
/// Units of which every one is a hit. They last for a part of the time only.
const FEW: &str = "units=65536";

struct Figures {
    kills: i64,
    counted: i64,
    drained: i64,
}

/// Kills for a third of the time, and checks all that must hold whoever is killed.
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
    assert!(over <= kills, "{over} units were charged to nobody, by {kills} kills");
    assert_eq!(numbers(&lines, "last"), vec![[1000]; 8], "exact again");
    let [slots, emptied, taken] = numbers(&lines, "slots")[0][..] else { panic!("{lines:?}") };
    assert_eq!((emptied, taken), (0, slots), "every slot can be given up and taken again");
    let counted = keys.iter().map(|key| key[0]).sum();
    println!(
        "{exchanger}, {units}: {kills} kills, {rounds} rounds, {counted} admitted, {over} cut off"
    );
    Figures { kills, counted, drained: one("drained") }
}

#[test]
fn kills_cut_off_one_operation_each() {
    let Figures { drained, .. } = crash("none", MANY);
    assert_eq!(drained, 0);
}

#[test]
fn kills_lose_no_hits() {
    let Figures { kills, counted, drained } = crash("not-killed", FEW);
    assert!(drained >= counted, "{drained} of {counted} hits were reported");
    assert!(drained <= counted + kills, "{drained} hits were reported, {counted} counted");
}

/// The same where a hit is many units: who makes it full, an admission or a local charge, is chance.
#[test]
fn kills_lose_no_large_hits() {
    let Figures { counted, drained, .. } = crash("not-killed", MANY);
    assert!((drained - counted).abs() < counted / 20, "{drained} of {counted} were reported");
}

/// A killed exchanger takes with it what it had in its hands; nothing is ever reported twice.
#[test]
fn kills_of_the_exchanger_report_nothing_twice() {
    let Figures { kills, counted, drained } = crash("killed", FEW);
    assert!(drained <= counted + kills, "{drained} hits were reported, {counted} counted");
    assert!(drained > 0);
}

/// Places of services go from one to another all the time.
#[test]
fn kills_tell_of_no_service_what_another_said() {
    let time = format!("ms={}", total_ms() / 3);
    let lines = run(&["services", &time]);
    let [received, wrong] = numbers(&lines, "received")[0][..] else { panic!("{lines:?}") };
    println!("{} kills, {received} received", numbers(&lines, "kills")[0][0]);
    assert!(received > 1000 && wrong == 0, "{wrong} of {received}");
    let [asked, held] = numbers(&lines, "quiet")[0][..] else { panic!("{lines:?}") };
    // A kill at the one instruction in between may leave one.
    assert!(asked > 1000 && held <= 2, "{held} of {asked} were never said to be busy");
    assert_eq!(numbers(&lines, "last"), [[100, 100]], "it works as before");
}
