//! `/metrics`: the text format of Prometheus, version 0.0.4.

use std::fmt::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use dthrottle::records::{Value, summary};
use dthrottle::{PeerStats, Stats, Throttle};

use crate::daemon::Daemon;
use crate::histogram::BOUNDS;
use crate::process;
use crate::report::newest;

pub(super) const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn text(daemon: &Daemon) -> String {
    let mut page = Page(String::new());
    // Writing to memory cannot fail.
    let _ = write(daemon, &mut page);
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) -> fmt::Result {
        write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
    }

    fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl fmt::Display,
    ) -> fmt::Result {
        self.0.write_str(name)?;
        for (i, (key, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.0, "{}{key}=\"{value}\"", if i == 0 { "{" } else { "," })?;
        }
        writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" })
    }

    fn single(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        value: impl fmt::Display,
    ) -> fmt::Result {
        self.family(name, kind, help)?;
        self.sample(name, &[], value)
    }
}

fn write(daemon: &Daemon, page: &mut Page) -> fmt::Result {
    let name = "dthrottled_info";
    page.family(name, "gauge", "The daemon's version")?;
    page.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1)?;
    let uptime = daemon.state.started.elapsed().as_secs_f64();
    page.single("dthrottled_uptime_seconds", "gauge", "Time since the start", uptime)?;
    let connections = daemon.state.counts.connections.get();
    page.single("dthrottled_connections", "gauge", "Open connections", connections)?;
    for (name, help, count) in daemon.state.counts.all() {
        page.single(&format!("dthrottled_{name}_total"), "counter", help, count)?;
    }
    times(daemon, page)?;
    own_process(daemon, page)?;
    daemon.with_throttle(|throttle| {
        decisions(daemon, throttle, page)?;
        rules(throttle, page)?;
        cluster(throttle, page)
    })
}

/// How long requests took.
fn times(daemon: &Daemon, page: &mut Page) -> fmt::Result {
    let name = "dthrottled_request_duration_seconds";
    page.family(name, "histogram", "Time from reading a request to sending its answer")?;
    let times = &daemon.state.times;
    for (protocol, histogram) in
        [("lines", &times.lines), ("resp", &times.resp), ("http", &times.http)]
    {
        let snapshot = histogram.snapshot();
        let bounds = BOUNDS.iter().map(|(_, label)| *label).chain(["+Inf"]);
        for (bound, count) in bounds.zip(snapshot.cumulative) {
            let labels = [("protocol", protocol), ("le", bound)];
            page.sample(&format!("{name}_bucket"), &labels, count)?;
        }
        let labels = [("protocol", protocol)];
        page.sample(&format!("{name}_sum"), &labels, snapshot.sum.as_secs_f64())?;
        let count = snapshot.cumulative[BOUNDS.len()];
        page.sample(&format!("{name}_count"), &labels, count)?;
    }
    Ok(())
}

fn own_process(daemon: &Daemon, page: &mut Page) -> fmt::Result {
    for (name, kind, help, value) in process::figures() {
        page.single(name, kind, help, value)?;
    }
    let start = daemon.state.start_time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "Time of the start since 1970";
    page.single("process_start_time_seconds", "gauge", help, start.as_secs_f64())
}

fn decisions(daemon: &Daemon, throttle: &Throttle, page: &mut Page) -> fmt::Result {
    let stats = daemon.state.scans.stats(throttle);
    let calls = daemon.call_rules.decisions();
    let name = "dthrottle_decisions_total";
    page.family(name, "counter", "Checks decided by this process, by domain, rules and result")?;
    // Only domains of the configuration, so clients cannot make more series.
    let domains = throttle.domains();
    let counts = domains.iter().map(|domain| {
        let counts = daemon.state.decisions.get(domain);
        (domain.name(), "config", counts)
    });
    // A call of the Redis protocol contains its rule and has no domain.
    for (domain, rules, (allowed, refused)) in counts.chain([("", "call", calls)]) {
        for (result, count) in [("allowed", allowed), ("refused", refused)] {
            let labels = [("domain", domain), ("rules", rules), ("result", result)];
            page.sample(name, &labels, count)?;
        }
    }
    for (field, value) in Stats::FIELDS.iter().zip(stats.values()) {
        let (name, help) = (field.name, summary(field.docs));
        match (name, value) {
            ("allowed" | "refused", _) => {}
            ("buckets", Value::Count(now)) => {
                page.single("dthrottle_buckets", "gauge", &help, now)?;
            }
            (_, Value::Count(count)) => {
                page.single(&format!("dthrottle_{name}_total"), "counter", &help, count)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn rules(throttle: &Throttle, page: &mut Page) -> fmt::Result {
    let all =
        || throttle.domains().iter().flat_map(|d| d.rules().iter().map(move |r| (d.name(), r)));
    page.family("dthrottle_rule_burst", "gauge", "Burst of a rule in units")?;
    for (domain, rule) in all() {
        let labels = [("domain", domain), ("rule", rule.name())];
        page.sample("dthrottle_rule_burst", &labels, rule.burst())?;
    }
    page.family("dthrottle_rule_rate", "gauge", "Rate of a rule in units per second")?;
    for (domain, rule) in all() {
        let rate = rule.burst() as f64 / rule.window().as_secs_f64();
        page.sample("dthrottle_rule_rate", &[("domain", domain), ("rule", rule.name())], rate)?;
    }
    Ok(())
}

fn cluster(throttle: &Throttle, page: &mut Page) -> fmt::Result {
    let Some(stats) = throttle.cluster_stats() else { return Ok(()) };
    page.family("dthrottle_peers", "gauge", "Peers by state")?;
    for state in ["known", "up", "down", "left"] {
        let count = newest(&stats.peers).filter(|peer| peer.state == state).count();
        page.sample("dthrottle_peers", &[("state", state)], count)?;
    }
    let peers = || {
        newest(&stats.peers).map(|peer| {
            let address = peer.address.map(|address| address.to_string()).unwrap_or_default();
            (format!("{:016x}", peer.node), address, peer)
        })
    };
    type Time = fn(&PeerStats) -> Duration;
    let times: [(&str, &str, Time); 2] = [
        ("age", "Time since the last datagram of a peer", |peer| peer.age),
        ("delay", "Estimated network delay of a peer", |peer| peer.delay),
    ];
    for (name, help, time) in times {
        let name = format!("dthrottle_peer_{name}_seconds");
        page.family(&name, "gauge", help)?;
        for (node, address, peer) in peers() {
            let labels = [("node", node.as_str()), ("address", &address)];
            page.sample(&name, &labels, time(peer).as_secs_f64())?;
        }
    }
    let name = "dthrottle_cluster_total";
    page.family(name, "counter", "Counts of the exchange between nodes, by name")?;
    for (what, count) in &stats.counts {
        page.sample(name, &[("count", what)], count)?;
    }
    Ok(())
}
