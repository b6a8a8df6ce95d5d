//! Listing, removing and resizing tables while processes use them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dthrottle::internals;
use dthrottle::{ErrorKind, tables};

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::{balance, file, open, take, user, web};

fn resize(folder: &Folder, size: &str) -> dthrottle::Result<u64> {
    tables::resize("web", size, None, Some(folder.path()))
}

/// Writes a file of this user that is not a table.
fn write_invalid_file(path: &Path) {
    fs::write(path, "x").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn all_tables_are_listed_including_unusable_ones() {
    let folder = Folder::new();
    let dir = Some(folder.path());
    assert_eq!(tables::list(None, dir).unwrap(), []);
    let throttle = open(web(&folder), 10).unwrap();
    take(&throttle, "one", 1);
    take(&throttle, "other", 1);
    let broken = file(&folder, "broken");
    write_invalid_file(&broken);
    fs::write(format!("{}/something-else", folder.path()), "x").unwrap();
    let listed = tables::list(None, dir).unwrap();
    let [fault, table] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((fault.name.as_str(), &fault.path), ("broken", &broken));
    assert!(fault.fault.as_ref().is_some_and(|why| why.contains("not a table")), "{fault:?}");
    assert_eq!((table.name.as_str(), &table.path), ("web", &file(&folder, "web")));
    assert_eq!((table.buckets, &table.fault), (2, &None));
    assert_eq!(table.bytes, internals::table_size(&throttle).0 as u64);
    assert!(table.tags > 100_000);
}

#[test]
fn processes_keep_sharing_a_table_that_was_removed() {
    let folder = Folder::new();
    let dir = Some(folder.path());
    let old = open(web(&folder), 10).unwrap();
    take(&old, "tag", 3);
    tables::remove("web", None, dir).unwrap();
    assert_eq!(folder.files(), [""; 0]);
    assert_eq!(balance(&old, "tag"), 7);
    let new = open(web(&folder), 10).unwrap();
    take(&new, "tag", 1);
    assert_eq!((balance(&old, "tag"), balance(&new, "tag")), (7, 9));
    tables::remove("web", None, dir).unwrap();
    let error = tables::remove("web", None, dir).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::File);
    assert!(error.to_string().contains("unknown table \"web\""), "{error}");
    // A file that is not a table can be removed like one.
    write_invalid_file(&file(&folder, "web"));
    tables::remove("web", None, dir).unwrap();
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn resizing_keeps_every_debt() {
    let folder = Folder::new();
    let old = open(web(&folder), 10).unwrap();
    for i in 0..1000_u64 {
        take(&old, &i.to_string(), i % 10);
    }
    old.charge_local("deep", 50, std::time::Duration::ZERO).unwrap();
    for size in ["500000", "200000 tags", "20 MB"] {
        resize(&folder, size).unwrap();
        assert_eq!(folder.files(), [format!("dthrottle-{}-web", user())]);
        let new = open(web(&folder), 10).unwrap();
        assert_ne!(internals::table_size(&new), internals::table_size(&old));
        for i in 0..1000_u64 {
            assert_eq!(balance(&new, &i.to_string()), 10 - (i % 10) as i64);
        }
        assert_eq!(balance(&new, "deep"), -40);
    }
    let listed = tables::list(None, Some(folder.path())).unwrap();
    assert!(listed[0].bytes <= 20_000_000 && listed[0].bytes > 19_000_000, "{listed:?}");
}

/// A process keeps using the old table until it ends. The new table has everything that was
/// admitted before the change.
#[test]
fn resize_returns_the_number_of_buckets_that_do_not_fit() {
    let folder = Folder::new();
    let leftover = format!("{}/.dthrottle-{}-web", folder.path(), crate::user());
    std::fs::write(&leftover, "left by a process that was killed").unwrap();
    let throttle = open(web(&folder).tags(500_000), 10).unwrap();
    for tag in 0..400_000_u32 {
        throttle.allow(tag.to_le_bytes()).unwrap();
    }
    let before = throttle.stats().buckets;
    let forgotten = resize(&folder, "1").unwrap();
    let after = open(web(&folder), 10).unwrap().stats().buckets;
    assert!(forgotten > 0);
    assert_eq!(after + forgotten, before);
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn a_process_can_check_while_its_table_is_resized() {
    let folder = Folder::new();
    let dir = format!("dir={}", folder.path());
    let words = ["name=web", "burst=1000000", "tags=1", &dir];
    let mut old = Worker::open(&words).unwrap();
    assert_eq!(old.request("allow before 300"), 300);
    old.send("allow during 200000");
    resize(&folder, "300000").unwrap();
    assert_eq!(old.read_answer(), [200_000]);
    let mut new = Worker::open(&["name=web", "burst=1000000", &dir]).unwrap();
    assert_eq!(new.warnings, [""; 0]);
    assert_eq!(new.request("balance before"), 999_700);
    let during = new.request("balance during");
    assert!((800_000..=1_000_000).contains(&during), "{during}");
    assert_eq!(old.request("balance during"), 800_000);
    assert_eq!((new.request("allow before 5"), old.request("balance before")), (5, 999_700));
}

#[test]
fn an_invalid_size_changes_nothing() {
    let folder = Folder::new();
    let error = resize(&folder, "5000").unwrap_err();
    assert!(error.to_string().contains("unknown table \"web\""), "{error}");
    let throttle = open(web(&folder), 10).unwrap();
    take(&throttle, "tag", 3);
    for size in ["many", "0", "1 KB", "99999999999999"] {
        let error = resize(&folder, size).unwrap_err();
        assert_eq!(error.field(), Some("table.size"), "{size}: {error}");
    }
    assert_eq!(balance(&open(web(&folder), 10).unwrap(), "tag"), 7);
    assert_eq!(folder.files().len(), 1);
}
