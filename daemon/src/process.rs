//! The `process_*` figures that Prometheus expects of every process. They are empty outside Linux.

use std::fs;

use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The figures of this process: name, kind, help and value.
pub(crate) fn figures() -> Vec<(&'static str, &'static str, &'static str, f64)> {
    let mut all = Vec::new();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let help = "Processor time used, of user and system";
    all.push(("process_cpu_seconds_total", "counter", help, cpu));
    if let Some(most) = getrlimit(Resource::Nofile).current {
        all.push(("process_max_fds", "gauge", "Most open file descriptors", most as f64));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them reads the directory.
        let count = open.count().saturating_sub(1) as f64;
        all.push(("process_open_fds", "gauge", "Open file descriptors", count));
    }
    // The first two fields are the sizes of the address space and of the resident memory, in pages.
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut bytes = statm
        .split(' ')
        .map_while(|pages| Some(pages.parse::<u64>().ok()? as f64 * page_size() as f64));
    for (name, help) in [
        ("process_virtual_memory_bytes", "Virtual memory"),
        ("process_resident_memory_bytes", "Resident memory, with the shared table"),
    ] {
        all.extend(bytes.next().map(|value| (name, "gauge", help, value)));
    }
    if let Ok(tasks) = fs::read_dir("/proc/self/task") {
        all.push(("process_threads", "gauge", "Threads", tasks.count() as f64));
    }
    all
}
