//! Fifty processes open one new name at the same moment.

use crate::folder::Folder;
use crate::tasks::run;

fn race(dir: &str, name: &str, rounds: usize, more: &[&str]) {
    let (dir, name) = (format!("dir={dir}"), format!("name={name}"));
    let rounds_word = format!("rounds={rounds}");
    let lines = run(&[&["race", &dir, &name, &rounds_word], more].concat());
    // The burst, once; one file; none after it was removed.
    assert_eq!(lines, vec![["100", "1", "0"]; rounds]);
}

#[test]
fn all_starters_of_a_name_share_one_table() {
    let folder = Folder::new();
    race(folder.path(), "start", 100, &[]);
    assert_eq!(folder.files(), [""; 0]);
}

/// In the folder that is used when none is given.
#[test]
fn also_beside_other_files() {
    race("/dev/shm", &format!("start-{}-", std::process::id()), 5, &[]);
}

/// There is room for two tables only, and each starter takes room before one of them wins: nobody
/// may go elsewhere.
#[test]
fn also_where_there_is_little_room() {
    let folder = Folder::new();
    // SAFETY: a plain system call. Only root can mount a file system.
    if unsafe { libc::geteuid() } == 0 {
        race(folder.path(), "start", 10, &[&format!("mount={}:10m", folder.path())]);
    }
}
