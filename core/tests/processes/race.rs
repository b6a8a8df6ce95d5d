//! Fifty processes that open the same new name at the same moment.

use crate::folder::Folder;
use crate::tasks::run;

fn race(dir: &str, name: &str, rounds: usize, more: &[&str]) {
    let (dir, name) = (format!("dir={dir}"), format!("name={name}"));
    let rounds_word = format!("rounds={rounds}");
    let lines = run(&[&["race", &dir, &name, &rounds_word], more].concat());
    // Checks that passed, files of the table, files after it was removed.
    assert_eq!(lines, vec![["100", "1", "0"]; rounds]);
}

#[test]
fn processes_that_open_a_new_name_at_once_share_one_table() {
    let folder = Folder::new();
    race(folder.path(), "start", 100, &[]);
    assert_eq!(folder.files(), [""; 0]);
}

/// In a default directory.
#[test]
fn processes_share_one_table_in_a_default_directory() {
    race("/dev/shm", &format!("start-{}-", std::process::id()), 5, &[]);
}

/// There is room for two tables only, and each process reserves space before one of them wins. None
/// may fall back to another directory.
#[test]
fn processes_share_one_table_in_a_small_file_system() {
    let folder = Folder::new();
    // SAFETY: a plain system call. Only root can mount a file system.
    if unsafe { libc::geteuid() } == 0 {
        race(folder.path(), "start", 10, &[&format!("mount={}:10m", folder.path())]);
    }
}
