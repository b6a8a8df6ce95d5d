//! A table belongs to one user, or to a group that the configuration names.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use crate::folder::Folder;
use crate::hammer::Worker;
use crate::{balance, file, is_root, open, take, web};

/// User and group IDs that the system does not use.
const ALICE: u32 = 54_321;
const BOB: u32 = 54_322;
const STAFF: u32 = 54_400;

/// Starts a worker as this user, on the table `web`.
fn worker(folder: &Folder, uid: u32, more: &[&str]) -> Result<Worker, String> {
    let (dir, uid) = (format!("dir={}", folder.path()), format!("uid={uid}"));
    Worker::open(&[&["name=web", "burst=10", "tags=1", &dir, &uid], more].concat())
}

#[test]
fn a_table_is_accessible_to_its_user_only() {
    let folder = Folder::new();
    let throttle = open(web(&folder), 10).unwrap();
    take(&throttle, "tag", 1);
    let path = file(&folder, "web");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    for mode in [0o660, 0o604, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let message = open(web(&folder), 10).unwrap_err().to_string();
        let reason =
            format!("it must have mode 600, because other users can access it, got {mode:o}");
        assert!(message.contains(&reason), "{message}");
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(balance(&open(web(&folder), 10).unwrap(), "tag"), 9);
}

/// Another user created a file with the name of our table, to read its contents or to make us fail.
#[test]
fn a_file_of_another_user_is_an_error() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    drop(open(web(&folder), 10).unwrap());
    let path = file(&folder, "web");
    chown(&path, Some(ALICE), Some(ALICE)).unwrap();
    let message = open(web(&folder), 10).unwrap_err().to_string();
    assert!(message.contains("it belongs to user 54321, not to user 0"), "{message}");
    assert!(message.contains(path.to_str().unwrap()), "{message}");

    // A file that we cannot even open.
    let theirs = path.with_file_name(format!("dthrottle-{BOB}-web"));
    fs::rename(&path, &theirs).unwrap();
    let Err(message) = worker(&folder, BOB, &[]) else { panic!("the table was opened") };
    assert!(message.contains(theirs.to_str().unwrap()), "{message}");
    assert!(message.contains("it belongs to user 54321, not to user 54322"), "{message}");
}

#[test]
fn users_without_a_common_group_have_separate_tables() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let mut alice = worker(&folder, ALICE, &[]).unwrap();
    let mut bob = worker(&folder, BOB, &[]).unwrap();
    assert_eq!((alice.request("allow tag 20"), bob.request("allow tag 20")), (10, 10));
    assert_eq!(folder.files(), ["dthrottle-54321-web", "dthrottle-54322-web"]);
}

#[test]
fn members_of_a_group_share_its_table() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let (group, member) = (format!("group={STAFF}"), format!("member={STAFF}"));
    let shared = [group.as_str(), &member];
    let mut alice = worker(&folder, ALICE, &shared).unwrap();
    let mut bob = worker(&folder, BOB, &shared).unwrap();
    for worker in [&alice, &bob] {
        assert_eq!(worker.warnings, [""; 0]);
    }
    assert_eq!((alice.request("allow tag 7"), bob.request("allow tag 7")), (7, 3));
    assert_eq!(folder.files(), ["dthrottle-g54400-web"]);
    let path = format!("{}/dthrottle-g54400-web", folder.path());
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.gid()), (0o660, STAFF));

    // A user who is not a member of the group is refused.
    let Err(message) = worker(&folder, BOB, &[&group]) else { panic!("the table was opened") };
    assert!(message.contains(&path) && message.contains("Permission denied"), "{message}");
    // A file that is open to everybody is refused, and so is one of another group.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let Err(message) = worker(&folder, BOB, &shared) else { panic!("the table was opened") };
    assert!(
        message.contains("it must have mode 660, because other users can access it, got 666"),
        "{message}"
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
    chown(&path, None, Some(BOB)).unwrap();
    let Err(message) = worker(&folder, BOB, &shared) else { panic!("the table was opened") };
    assert!(message.contains("and to group 54322, not to group 54400"), "{message}");
}

#[test]
fn an_unknown_group_is_an_error_that_names_it() {
    let folder = Folder::new();
    let error = open(web(&folder).group("no-such-group"), 10).unwrap_err();
    assert_eq!(error.field(), Some("table.group"));
    assert!(error.to_string().contains("no-such-group"), "{error}");
}
