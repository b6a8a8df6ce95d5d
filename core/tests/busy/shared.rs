//! One throttle for several processes, as far as one process can show it: tables of one name.
#![cfg(target_os = "linux")]

use dthrottle::busy::{BusyThrottle, Mode, Recover};
use dthrottle::{BusyConfig, ManualClock, Rule, TableConfig, Throttle};

use crate::folder::Folder;

fn table(folder: &Folder) -> TableConfig {
    TableConfig::named("calls").dir(folder.path()).tags(1)
}

fn shared(folder: &Folder) -> BusyThrottle {
    BusyThrottle::new(BusyConfig::new().table(table(folder))).unwrap()
}

#[test]
fn what_one_is_told_all_know() {
    let folder = Folder::new();
    let (one, other) = (shared(&folder), shared(&folder));
    assert!(other.should_send("a", other.now()));
    one.on_busy("a", one.now(), Some(std::time::Duration::from_secs(60)));
    assert!(!other.should_send("a", other.now()));
    assert!(other.should_send("b", other.now()));
    assert_eq!(one.stats(one.now()).services, 2);
    let third = shared(&folder);
    assert!(!third.should_send("a", third.now()), "also who comes later");
}

#[test]
fn who_counts_in_another_way_does_so_alone() {
    let folder = Folder::new();
    let config = BusyConfig::new().table(table(&folder));
    let document = config.clone().mode(Mode::Document(Recover::Rate(3.0)));
    let (live, document) = (shared(&folder), BusyThrottle::new(document).unwrap());
    live.on_busy("a", live.now(), Some(std::time::Duration::from_secs(60)));
    assert!(document.should_send("a", document.now()));
}

#[test]
fn it_shares_the_region_with_buckets() {
    let folder = Folder::new();
    let rule = Rule::per_hour(1).burst(2);
    let throttle = Throttle::builder().table(table(&folder)).rule(rule).build().unwrap();
    let busy = shared(&folder);
    assert!(throttle.allow("tag").unwrap());
    for i in 0..5000_u32 {
        busy.on_busy(i.to_le_bytes(), busy.now(), None);
    }
    assert!(throttle.allow("tag").unwrap() && !throttle.allow("tag").unwrap());
    assert_eq!(folder.files().len(), 1, "one file");
}

#[test]
fn services_move_to_a_table_of_another_size() {
    let folder = Folder::new();
    let before = shared(&folder);
    before.on_busy("a", before.now(), Some(std::time::Duration::from_secs(60)));
    dthrottle::tables::resize("calls", "200000", None, Some(folder.path())).unwrap();
    let after = shared(&folder);
    assert!(!after.should_send("a", after.now()));
}

#[test]
fn a_clock_moved_by_hand_needs_memory_of_its_own() {
    let config = BusyConfig::new().table(TableConfig::named("calls"));
    let error = BusyThrottle::with_clock(config, ManualClock::new()).unwrap_err();
    assert_eq!(error.field(), Some("table"));
}
