//! One throttle for several processes, as far as one process can show it: tables of one name.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use dthrottle::busy::{BusyThrottle, Mode, Recover};
use dthrottle::{BusyConfig, ManualClock, Rule, TableConfig, Throttle};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(format!("/dev/shm/test-busy-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn table(&self) -> TableConfig {
        TableConfig::named("calls").dir(self.0.to_str().unwrap()).tags(1)
    }

    fn busy(&self) -> BusyThrottle {
        BusyThrottle::new(BusyConfig::new().table(self.table())).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn what_one_is_told_all_know() {
    let folder = Folder::new("all");
    let (one, other) = (folder.busy(), folder.busy());
    assert!(other.should_send("a", other.now()));
    one.on_busy("a", one.now(), Some(std::time::Duration::from_secs(60)));
    assert!(!other.should_send("a", other.now()));
    assert!(other.should_send("b", other.now()));
    assert_eq!(one.stats(one.now()).services, 2);
    let third = folder.busy();
    assert!(!third.should_send("a", third.now()), "also who comes later");
}

#[test]
fn who_counts_in_another_way_does_so_alone() {
    let folder = Folder::new("ways");
    let config = BusyConfig::new().table(folder.table());
    let document = config.clone().mode(Mode::Document(Recover::Rate(3.0)));
    let (live, document) = (folder.busy(), BusyThrottle::new(document).unwrap());
    live.on_busy("a", live.now(), Some(std::time::Duration::from_secs(60)));
    assert!(document.should_send("a", document.now()));
}

#[test]
fn it_shares_the_region_with_buckets() {
    let folder = Folder::new("region");
    let rule = Rule::per_hour(1).burst(2);
    let throttle = Throttle::builder().table(folder.table()).rule(rule).build().unwrap();
    let busy = folder.busy();
    assert!(throttle.allow("tag").unwrap());
    for i in 0..5000_u32 {
        busy.on_busy(i.to_le_bytes(), busy.now(), None);
    }
    assert!(throttle.allow("tag").unwrap() && !throttle.allow("tag").unwrap());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "one file");
}

#[test]
fn services_move_to_a_table_of_another_size() {
    let folder = Folder::new("resize");
    let before = folder.busy();
    before.on_busy("a", before.now(), Some(std::time::Duration::from_secs(60)));
    dthrottle::tables::resize("calls", "200000", None, folder.0.to_str()).unwrap();
    let after = folder.busy();
    assert!(!after.should_send("a", after.now()));
}

#[test]
fn a_clock_moved_by_hand_needs_memory_of_its_own() {
    let config = BusyConfig::new().table(TableConfig::named("calls"));
    let error = BusyThrottle::with_clock(config, ManualClock::new()).unwrap_err();
    assert_eq!(error.field(), Some("table"));
}
