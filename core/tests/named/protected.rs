//! Directories in which no other user can take a table's name: `/run/dthrottle` for root, and those
//! in it for others. Elsewhere a name that is taken is an error that says who has it.

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
/// `/run` as nobody can rely on it.
const OPEN_RUN: &str = "mount=/run:64m:1777";
const SHM: &str = "mount=/dev/shm:64m";

/// A file in the real `/dev/shm`, made by the user nobody and removed after the test.
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

/// A path as the worker sees it.
fn seen_by(worker: &Worker, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{path}", worker.hammer.child.id()))
}

/// A worker whose table is at this path, and works.
fn at(path: &str, name: &str, more: &[&str]) -> Worker {
    let mut worker = open(name, more).unwrap_or_else(|error| panic!("{more:?}: {error}"));
    assert_eq!(worker.warnings, [""; 0], "{more:?}");
    assert_eq!(worker.request("allow tag 20"), 10);
    assert!(seen_by(&worker, path).exists(), "{more:?}: not at {path}");
    worker
}

#[test]
fn an_error_names_the_file_its_owner_and_the_setting() {
    if !is_root() {
        return;
    }
    let name = name("taken");
    for (uid, words) in [(0, vec![OPEN_RUN]), (ALICE, vec![OPEN_RUN, "uid=54321"])] {
        let foreign = ForeignFile::new(&format!("dthrottle-{uid}-{name}"));
        let Err(error) = open(&name, &words) else { panic!("user {uid} has opened it") };
        let path = foreign.0.to_str().unwrap();
        for part in [path, "belongs to user 65534 (nobody), not to user", "set `dir`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let foreign = ForeignFile::new(&format!("dthrottle-g{STAFF}-{name}"));
    let words = [OPEN_RUN, "uid=54321", "group=54400", "member=54400"];
    let Err(error) = open(&name, &words) else { panic!("the group has opened it") };
    for part in [foreign.0.to_str().unwrap(), "user 65534 (nobody)", "not to group 54400", "`dir`"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn root_is_not_stopped_by_another_users_file() {
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
fn a_user_has_the_directory_that_root_has_made() {
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
fn a_group_has_the_directory_that_root_has_made() {
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

/// The whole system needs `/run`.
#[test]
fn half_of_run_stays_free() {
    if !is_root() {
        return;
    }
    let name = name("half");
    let path = format!("/dev/shm/dthrottle-0-{name}");
    at(&path, &name, &["mount=/run:40m:755", SHM]);
}

/// A process that may not write to the table that others use must not count apart in silence.
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
