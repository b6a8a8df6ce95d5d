//! Fifty processes open one new name at the same moment.

use crate::folder::Folder;
use crate::tasks::run;

fn race(dir: &str, name: &str, rounds: usize) {
    let (dir, name) = (format!("dir={dir}"), format!("name={name}"));
    let lines = run(&["race", &dir, &name, &format!("rounds={rounds}")]);
    // The burst, once; one file; none after it was removed.
    assert_eq!(lines, vec![["100", "1", "0"]; rounds]);
}

#[test]
fn all_starters_of_a_name_share_one_table() {
    let folder = Folder::new();
    race(folder.path(), "start", 100);
    assert_eq!(folder.files(), [""; 0]);
}

/// In the folder that is used when none is given.
#[test]
fn also_beside_other_files() {
    race("/dev/shm", &format!("start-{}-", std::process::id()), 5);
}
