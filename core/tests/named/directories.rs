//! The directory of a table, and the fallback if no directory can be used: the table is shared with
//! forked children only, and one warning says so.

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::{balance, is_root, open, take, web};

/// Asserts that a table works, with one warning that names the reasons why it is not shared by
/// name.
fn falls_back(words: &[&str], reasons: &[&str]) {
    let mut worker = Worker::open(words).unwrap();
    let [warning] = &worker.warnings[..] else { panic!("{:?}", worker.warnings) };
    assert!(warning.contains("shared only with forked children"), "{warning}");
    for reason in reasons {
        assert!(warning.contains(reason), "{reason}: {warning}");
    }
    assert_eq!(worker.request("allow tag 20"), 10);
    // Touches every page of a table that is larger than the file system.
    assert_eq!(worker.request("fill 200000"), 200_001);
    assert_eq!(worker.request("balance tag"), 0);
}

#[test]
fn a_full_directory_is_not_used() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let (dir, mount) = (format!("dir={}", folder.path()), format!("mount={}:4m", folder.path()));
    let reasons = ["No space left on device", folder.path()];
    falls_back(&["name=web", "burst=10", &dir, &mount], &reasons);
}

#[test]
fn a_read_only_directory_is_not_used() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let (dir, mount) =
        (format!("dir={}", folder.path()), format!("mount={}:64m:ro", folder.path()));
    let reasons = ["Read-only file system", folder.path()];
    falls_back(&["name=web", "burst=10", &dir, &mount], &reasons);
}

/// The table exists, but cannot be written to.
#[test]
fn a_read_only_table_is_not_used() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    take(&open(web(&folder), 10).unwrap(), "tag", 3);
    let (dir, readonly) = (format!("dir={}", folder.path()), format!("readonly={}", folder.path()));
    falls_back(&["name=web", "burst=10", &dir, &readonly], &["Read-only file system"]);
    assert_eq!(folder.files().len(), 1);
}

/// A process that cannot read the boot ID uses an existing table.
#[test]
fn a_table_is_used_if_the_boot_id_cannot_be_read() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let throttle = open(web(&folder), 10).unwrap();
    take(&throttle, "tag", 3);
    let dir = format!("dir={}", folder.path());
    let hide = "hide=/proc/sys/kernel/random/boot_id";
    let mut worker = Worker::open(&["name=web", "burst=10", "rule=limit", &dir, hide]).unwrap();
    assert_eq!(worker.request("allow tag 20"), 7);
    assert_eq!(balance(&throttle, "tag"), 0, "the same table");
}

#[test]
fn a_missing_directory_is_not_used() {
    let folder = Folder::new();
    let dir = format!("dir={}/missing", folder.path());
    falls_back(&["name=web", "burst=10", &dir], &["No such file or directory", &dir[4..]]);
    assert_eq!(folder.files(), [""; 0]);
}

/// The size of `/dev/shm` in a container.
#[test]
fn the_default_table_fits_into_64_megabytes() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let (dir, mount) = (format!("dir={}", folder.path()), format!("mount={}:64m", folder.path()));
    let mut worker = Worker::open(&["name=web", "burst=10", &dir, &mount]).unwrap();
    assert_eq!(worker.warnings, [""; 0]);
    assert_eq!(worker.request("fill 200000"), 200_000);
}

/// Without the setting `dir` and without `/run/dthrottle`, a table is created in /dev/shm or in
/// /tmp.
#[test]
fn default_directories_are_tried_in_order() {
    if !is_root() {
        return;
    }
    let name = format!("name=places-{}", std::process::id());
    let words = [name.as_str(), "burst=10", "mount=/run:64m:1777"];
    let shm = ["mount=/dev/shm:64m", "mount=/tmp:4m"];
    let tmp = ["mount=/dev/shm:4m", "mount=/tmp:64m"];
    for mounts in [shm, tmp] {
        let mut worker = Worker::open(&[&words[..], &mounts].concat()).unwrap();
        assert_eq!(worker.warnings, [""; 0]);
        assert_eq!(worker.request("allow tag 20"), 10);
    }
    let none = ["mount=/dev/shm:4m", "mount=/tmp:64m:ro"];
    let reasons = ["/dev/shm/", "No space left on device", "/tmp/", "Read-only file system"];
    falls_back(&[&words[..], &none].concat(), &reasons);
}

#[test]
fn a_table_is_listed_from_its_default_directory() {
    let name = format!("places-{}-default", std::process::id());
    let throttle = open(dthrottle::TableConfig::named(&name).tags(1), 10).unwrap();
    assert_eq!(throttle.warnings(), [""; 0]);
    let tables = dthrottle::tables::list(None, None).unwrap();
    let found: Vec<_> = tables.iter().filter(|table| table.name == name).collect();
    let [table] = found[..] else { panic!("{tables:?}") };
    let dir = table.path.parent().unwrap();
    let known = ["/run/dthrottle", "/dev/shm"].map(std::path::Path::new);
    assert!(known.contains(&dir), "{table:?}");
    dthrottle::tables::remove(&name, None, None).unwrap();
}

#[test]
fn tables_of_one_name_in_two_directories_are_separate() {
    let (one, other) = (Folder::new(), Folder::new());
    let (first, second) = (open(web(&one), 10).unwrap(), open(web(&other), 10).unwrap());
    take(&first, "tag", 4);
    assert_eq!((balance(&first, "tag"), balance(&second, "tag")), (6, 10));
}
