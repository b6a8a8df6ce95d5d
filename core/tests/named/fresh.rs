//! `DTHROTTLE_FRESH_TABLES=1`: named tables that start empty in every process and create no files.
//! Each test runs itself again in a process with that setting.

use std::env;
use std::process::{Command, Output};
use std::sync::Barrier;
use std::thread;

use dthrottle::ErrorKind;

use crate::folder::Folder;
use crate::{balance, open, take, web};

const VARIABLE: &str = "DTHROTTLE_FRESH_TABLES";
/// The folder of the parent process.
const DIR: &str = "DTHROTTLE_TEST_DIR";

fn run_again(test: &str, value: &str, dir: &str) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env(VARIABLE, value).env(DIR, dir).output().unwrap()
}

#[test]
fn a_fresh_table_is_empty_in_each_process_and_shared_by_name_within_one() {
    if let Some(dir) = env::var_os(DIR) {
        let table = || dthrottle::TableConfig::named("web").dir(dir.to_str().unwrap()).tags(1);
        let throttle = open(table(), 10).unwrap();
        assert_eq!((balance(&throttle, "tag"), throttle.table_name()), (10, Some("web")));
        take(&throttle, "tag", 4);
        assert_eq!(balance(&open(table(), 10).unwrap(), "tag"), 6, "the same name");
        assert_eq!(
            balance(&open(table().group("0"), 10).unwrap(), "tag"),
            10,
            "another owner has its own table"
        );
        drop(throttle);
        assert_eq!(balance(&open(table(), 10).unwrap(), "tag"), 6, "the process keeps its tables");
        return;
    }
    let folder = Folder::new();
    let lasting = open(web(&folder), 10).unwrap();
    take(&lasting, "tag", 10);
    let files = folder.files();
    let test = "fresh::a_fresh_table_is_empty_in_each_process_and_shared_by_name_within_one";
    for _ in 0..2 {
        let ran = run_again(test, "1", folder.path());
        assert!(ran.status.success(), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
    }
    assert_eq!((balance(&lasting, "tag"), folder.files()), (0, files));
    // Control: without the setting, the persistent table is found, and the test fails.
    assert!(!run_again(test, "0", folder.path()).status.success());
}

#[test]
fn threads_that_create_a_fresh_table_at_once_share_it() {
    if let Some(dir) = env::var_os(DIR) {
        for round in 0..50 {
            let name = format!("web{round}");
            let table = || dthrottle::TableConfig::named(&name).dir(dir.to_str().unwrap()).tags(1);
            let barrier = Barrier::new(8);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        barrier.wait();
                        take(&open(table(), 10).unwrap(), "tag", 1);
                    });
                }
            });
            assert_eq!(balance(&open(table(), 10).unwrap(), "tag"), 2);
        }
        return;
    }
    let folder = Folder::new();
    let test = "fresh::threads_that_create_a_fresh_table_at_once_share_it";
    let ran = run_again(test, "1", folder.path());
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
}

#[test]
fn a_value_other_than_0_or_1_is_an_error() {
    if let Some(dir) = env::var_os(DIR) {
        let table = dthrottle::TableConfig::named("web").dir(dir.to_str().unwrap()).tags(1);
        let error = open(table, 10).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some(VARIABLE)));
        assert_eq!(error.to_string(), format!("`{VARIABLE}` must be 1 or 0, got \"yes\""));
        return;
    }
    let folder = Folder::new();
    let test = "fresh::a_value_other_than_0_or_1_is_an_error";
    let ran = run_again(test, "yes", folder.path());
    assert!(ran.status.success(), "{ran:?}");
}
