//! Many processes that open the same new name at the same moment.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use dthrottle::{TableConfig, Throttle, tables};

use super::TaskResult;
use super::options::{Options, slow};
use super::process::{StartGate, fork, join, shared};
use super::worker::mount;

const BURST: u64 = 100;
/// Checks per process. Together they are twice the burst.
const TRIES: u64 = 4;
const PROCESSES: u64 = 2 * BURST / TRIES;

/// Prints for every round the number of checks that passed, and the number of the table's files
/// before and after the table is removed.
pub(crate) fn run(options: &Options) -> TaskResult {
    mount(options)?;
    let dir = options.get("dir").ok_or("dir is missing")?;
    let prefix = options.get("name").ok_or("name is missing")?;
    for round in 0..options.number("rounds")? {
        let name = format!("{prefix}{round}");
        let admitted = shared(1)?;
        let mut gate = StartGate::new()?;
        let mut children = Vec::new();
        for _ in 0..PROCESSES {
            children.push(fork(|| {
                gate.wait().expect("the gate works");
                let table = TableConfig::named(&name).dir(dir).tags(1);
                let throttle = Throttle::builder().table(table).rule(slow(BURST)).build();
                let throttle = throttle.expect("the table can be opened");
                assert_eq!(throttle.warnings(), [""; 0]);
                for _ in 0..TRIES {
                    let allowed = throttle.allow("tag").expect("the throttle is open");
                    admitted[0].fetch_add(u64::from(allowed), Ordering::Relaxed);
                }
            })?);
        }
        gate.open(children.len());
        join(children)?;
        let made = files(Path::new(dir), &name)?;
        tables::remove(&name, None, Some(dir))?;
        let left = files(Path::new(dir), &name)?;
        println!("{} {made} {left}", admitted[0].load(Ordering::Relaxed));
    }
    Ok(())
}

/// Number of files of this table, including temporary ones.
fn files(dir: &Path, name: &str) -> std::io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(dir)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        count += usize::from(file.ends_with(name));
    }
    Ok(count)
}
