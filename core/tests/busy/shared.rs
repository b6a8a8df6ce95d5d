//! Several throttles with the same named table, which stand for several processes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests may call the operating system")]

use std::path::PathBuf;

use dthrottle::busy::{BusyThrottle, Mode, Recover};
use dthrottle::{BusyConfig, ClusterConfig, ManualClock, Rule, TableConfig, Throttle};

use crate::folder::Folder;

fn table(folder: &Folder) -> TableConfig {
    TableConfig::named("calls").dir(folder.path()).tags(1)
}

fn shared(folder: &Folder) -> BusyThrottle {
    BusyThrottle::new(BusyConfig::new().table(table(folder))).unwrap()
}

#[test]
fn a_pause_applies_to_all_throttles_with_the_same_table() {
    let folder = Folder::new();
    let (one, other) = (shared(&folder), shared(&folder));
    assert!(other.should_send("a", other.now()));
    one.on_busy("a", one.now(), Some(std::time::Duration::from_secs(60)));
    assert!(!other.should_send("a", other.now()));
    assert!(other.should_send("b", other.now()));
    assert_eq!(one.stats(one.now()).services, 2);
    let third = shared(&folder);
    assert!(!third.should_send("a", third.now()), "also for a throttle opened later");
}

#[test]
fn throttles_with_different_settings_have_separate_limits() {
    let folder = Folder::new();
    let config = BusyConfig::new().table(table(&folder));
    let document = config.clone().mode(Mode::Document(Recover::Rate(3.0)));
    let (live, document) = (shared(&folder), BusyThrottle::new(document).unwrap());
    live.on_busy("a", live.now(), Some(std::time::Duration::from_secs(60)));
    assert!(document.should_send("a", document.now()));
}

#[test]
fn busy_responses_do_not_change_the_buckets_of_the_table() {
    let folder = Folder::new();
    let rule = Rule::per_hour(1).burst(2);
    let throttle = Throttle::builder().table(table(&folder)).rule(rule).build().unwrap();
    let busy = shared(&folder);
    assert!(throttle.allow("tag").unwrap());
    for i in 0..5000_u32 {
        busy.on_busy(i.to_le_bytes(), busy.now(), None);
    }
    assert!(throttle.allow("tag").unwrap() && !throttle.allow("tag").unwrap());
    assert_eq!(folder.files().len(), 2, "one file for the buckets and one for busy responses");
    let tables = dthrottle::tables::list(None, Some(folder.path())).unwrap();
    assert!(tables.len() == 1 && tables[0].tags > 0, "{tables:?}");
}

#[test]
fn busy_responses_remain_when_a_table_is_resized() {
    let folder = Folder::new();
    Throttle::builder().table(table(&folder)).rule(Rule::per_hour(1)).build().unwrap();
    let before = shared(&folder);
    before.on_busy("a", before.now(), Some(std::time::Duration::from_secs(60)));
    dthrottle::tables::resize("calls", "200000", None, Some(folder.path())).unwrap();
    let after = shared(&folder);
    assert!(!after.should_send("a", after.now()));
}

#[test]
fn a_manual_clock_with_a_named_table_is_an_error() {
    let config = BusyConfig::new().table(TableConfig::named("calls"));
    let error = BusyThrottle::with_clock(config, ManualClock::new()).unwrap_err();
    assert_eq!(error.field(), Some("table"));
}

#[test]
fn a_busy_throttle_alone_makes_no_bucket_table() {
    let folder = Folder::new();
    let busy = shared(&folder);
    busy.on_busy("a", busy.now(), Some(std::time::Duration::from_secs(60)));
    let files = folder.files();
    assert!(files.len() == 1 && files[0].ends_with("-calls+busy"), "{files:?}");
    let tables = dthrottle::tables::list(None, Some(folder.path())).unwrap();
    let [table] = tables.as_slice() else { panic!("{tables:?}") };
    assert_eq!((table.name.as_str(), table.tags, &table.fault), ("calls", 0, &None));
    assert!(table.bytes > 128 << 10, "{} bytes", table.bytes);
}

#[test]
fn removing_a_table_removes_its_busy_responses() {
    for has_buckets in [false, true] {
        let folder = Folder::new();
        let busy = shared(&folder);
        busy.on_busy("a", busy.now(), Some(std::time::Duration::from_secs(60)));
        if has_buckets {
            let builder = Throttle::builder().table(table(&folder)).rule(Rule::per_hour(1));
            builder.build().unwrap();
        }
        dthrottle::tables::remove("calls", None, Some(folder.path())).unwrap();
        assert!(folder.files().is_empty());
        assert!(dthrottle::tables::remove("calls", None, Some(folder.path())).is_err());
        let later = shared(&folder);
        assert!(later.should_send("a", later.now()));
        assert!(!busy.should_send("a", busy.now()), "memory that is open remains valid");
    }
}

/// The file of busy responses has the name of its table with `+busy` appended.
#[test]
fn a_name_with_a_plus_is_refused() {
    let config = BusyConfig::new().table(TableConfig::named("calls+busy"));
    assert_eq!(BusyThrottle::new(config).unwrap_err().field(), Some("table.name"));
}

/// Processes that give only the name share memory with those that also have the cluster.
#[test]
fn busy_responses_use_the_key_of_an_existing_table() {
    let folder = Folder::new();
    let cluster = || ClusterConfig::new("web").secret(b"correct horse battery staple");
    let builder = Throttle::builder().table(table(&folder)).rule(Rule::per_hour(1));
    let _throttle = builder.cluster(cluster()).build().unwrap();
    let busy = shared(&folder);
    busy.on_busy("a", busy.now(), Some(std::time::Duration::from_secs(60)));
    let config = BusyConfig::new().table(table(&folder)).cluster(cluster());
    let clustered = BusyThrottle::new(config).unwrap();
    assert!(!clustered.should_send("a", clustered.now()));
}

#[test]
fn memory_with_another_key_or_version_is_refused() {
    let folder = Folder::new();
    let cluster = ClusterConfig::new("web").secret(b"correct horse battery staple");
    let config = || BusyConfig::new().table(table(&folder));
    let _random_key = shared(&folder);
    let error = BusyThrottle::new(config().cluster(cluster.clone())).unwrap_err();
    assert!(error.to_string().contains("another fingerprint key"), "{error}");
    let with = Throttle::builder().table(table(&folder)).rule(Rule::per_hour(1));
    let error = with.cluster(cluster.busy(true)).build().unwrap_err();
    assert!(error.to_string().contains("another fingerprint key"), "{error}");
    let path = PathBuf::from(folder.path())
        .join(folder.files().into_iter().find(|name| name.ends_with("+busy")).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] += 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = BusyThrottle::new(config()).unwrap_err();
    assert!(error.to_string().contains("another version of dthrottle"), "{error}");
    std::fs::write(&path, &bytes[..4096]).unwrap();
    let error = BusyThrottle::new(config()).unwrap_err();
    assert!(error.to_string().contains("not a table"), "{error}");
}
