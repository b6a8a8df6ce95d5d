//! Directories in which no other user can occupy a table's name: `/run/dthrottle` for root, and its
//! subdirectories for other users. In other directories, an occupied name is an error that names
//! the file's owner.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use crate::hammer::Worker;
use crate::is_root;

const NOBODY: u32 = 65_534;
const ALICE: u32 = 54_321;
const STAFF: u32 = 54_400;
/// `/run` as on a machine with systemd.
const RUN: &str = "mount=/run:64m:755";
/// A `/run` that every user can write to.
const OPEN_RUN: &str = "mount=/run:64m:1777";
const SHM: &str = "mount=/dev/shm:64m";

/// A file in the real `/dev/shm`, created by the user nobody, and removed after the test.
struct ForeignFile(PathBuf);

impl ForeignFile {
    fn new(name: &str) -> ForeignFile {
        let path = PathBuf::from("/dev/shm").join(name);
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "touch"];
        assert!(Command::new("setpriv").args(user).arg(&path).status().unwrap().success());
        assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY);
        ForeignFile(path)
    }
}

impl Drop for ForeignFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A name that no other test uses.
fn name(what: &str) -> String {
    format!("protected-{}-{what}", std::process::id())
}

fn open(name: &str, more: &[&str]) -> Result<Worker, String> {
    Worker::open(&[&["burst=10", &format!("name={name}")], more].concat())
}

/// A path in the worker's file system.
fn seen_by(worker: &Worker, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{path}", worker.hammer.child.id()))
}

/// Starts a worker whose table is at this path, and checks that it works.
fn at(path: &str, name: &str, more: &[&str]) -> Worker {
    let mut worker = open(name, more).unwrap_or_else(|error| panic!("{more:?}: {error}"));
    assert_eq!(worker.warnings, [""; 0], "{more:?}");
    assert_eq!(worker.request("allow tag 20"), 10);
    assert!(seen_by(&worker, path).exists(), "{more:?}: not at {path}");
    worker
}

#[test]
fn an_occupied_name_is_an_error_that_names_file_owner_and_setting() {
    if !is_root() {
        return;
    }
    let name = name("taken");
    for (uid, words) in [(0, vec![OPEN_RUN]), (ALICE, vec![OPEN_RUN, "uid=54321"])] {
        let foreign = ForeignFile::new(&format!("dthrottle-{uid}-{name}"));
        let Err(error) = open(&name, &words) else { panic!("user {uid} opened the table") };
        let path = foreign.0.to_str().unwrap();
        for part in [path, "belongs to user 65534 (nobody), not to user", "set `dir`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let foreign = ForeignFile::new(&format!("dthrottle-g{STAFF}-{name}"));
    let words = [OPEN_RUN, "uid=54321", "group=54400", "member=54400"];
    let Err(error) = open(&name, &words) else { panic!("the group opened the table") };
    for part in [foreign.0.to_str().unwrap(), "user 65534 (nobody)", "not to group 54400", "`dir`"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn root_uses_run_although_another_user_occupies_the_name() {
    if !is_root() {
        return;
    }
    let name = name("root");
    let _planted = ForeignFile::new(&format!("dthrottle-0-{name}"));
    let worker = at(&format!("/run/dthrottle/dthrottle-0-{name}"), &name, &[RUN]);
    let meta = fs::metadata(seen_by(&worker, "/run/dthrottle")).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o755));
}

#[test]
fn a_user_uses_the_directory_that_root_created() {
    if !is_root() {
        return;
    }
    let name = name("user");
    let _planted = ForeignFile::new(&format!("dthrottle-{ALICE}-{name}"));
    let own = ["own=/run/dthrottle:0:0:755", "own=/run/dthrottle/app:54321:54321:700"];
    let words = [&[RUN, "uid=54321"], &own[..]].concat();
    at(&format!("/run/dthrottle/app/dthrottle-{ALICE}-{name}"), &name, &words);
}

#[test]
fn a_group_uses_the_directory_that_root_created() {
    if !is_root() {
        return;
    }
    let name = name("group");
    let own = ["own=/run/dthrottle:0:0:755", "own=/run/dthrottle/web:0:54400:2770"];
    let user = ["uid=54321", "group=54400", "member=54400"];
    let words = [&[RUN, SHM], &own[..], &user].concat();
    at(&format!("/run/dthrottle/web/dthrottle-g{STAFF}-{name}"), &name, &words);
}

#[test]
fn a_directory_that_others_control_is_not_used() {
    if !is_root() {
        return;
    }
    let (name, alice, mine) = (name("open"), "uid=54321", "own=/run/dthrottle/app:54321:54321:700");
    for (uid, words) in [
        (0, vec![OPEN_RUN]),
        (0, vec![RUN, "own=/run/dthrottle:65534:65534:755"]),
        (0, vec![RUN, "own=/run/dthrottle:0:0:777"]),
        (ALICE, vec![RUN, "own=/run/dthrottle:0:0:777", mine, alice]),
        (
            ALICE,
            vec![RUN, "own=/run/dthrottle:0:0:755", "own=/run/dthrottle/app:54321:0:770", alice],
        ),
        (ALICE, vec![RUN, "own=/run/dthrottle:0:0:755", "own=/run/dthrottle/app:0:0:777", alice]),
    ] {
        let path = format!("/dev/shm/dthrottle-{uid}-{name}");
        at(&path, &name, &[&[SHM], &words[..]].concat());
    }
}

/// The rest of the system needs `/run`.
#[test]
fn a_table_takes_at_most_half_of_the_free_space_of_run() {
    if !is_root() {
        return;
    }
    let name = name("half");
    let path = format!("/dev/shm/dthrottle-0-{name}");
    at(&path, &name, &["mount=/run:40m:755", SHM]);
}

/// A process that cannot write to a table which others use must not silently count in another one.
#[test]
fn a_read_only_table_is_not_replaced_in_another_directory() {
    if !is_root() {
        return;
    }
    let name = name("readonly");
    let path = format!("/dev/shm/dthrottle-0-{name}");
    at(&path, &name, &[OPEN_RUN]);
    let worker = open(&name, &[OPEN_RUN, "readonly=/dev/shm"]);
    fs::remove_file(&path).unwrap();
    let worker = worker.unwrap();
    let [warning] = &worker.warnings[..] else { panic!("{:?}", worker.warnings) };
    assert!(warning.contains("shared only with forked children"), "{warning}");
    assert!(warning.contains(&path) && warning.contains("Read-only file system"), "{warning}");
}
