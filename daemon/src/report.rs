//! Reports about the daemon and its throttle, as JSON.

use dthrottle::{ActiveRule, Domain, PeerStats, Throttle, TopBucket};
use serde_json::{Map, Value, json};

use crate::state::State;

/// The counts of the throttle and the daemon.
pub(crate) fn stats(throttle: &Throttle, state: &State) -> Value {
    let mut stats = json!(state.scans.stats(throttle));
    let counts = state.counts.all().map(|(name, _, count)| (name.to_string(), count.into()));
    stats["version"] = env!("CARGO_PKG_VERSION").into();
    stats["uptime_s"] = state.started.elapsed().as_secs().into();
    stats["connections"] = state.counts.connections.get().into();
    stats["counts"] = Map::from_iter(counts).into();
    stats["warnings"] = throttle.warnings().into();
    stats
}

/// The cluster, or null if there is none.
pub(crate) fn peers(throttle: &Throttle) -> Value {
    throttle.cluster_stats().map_or(Value::Null, |mut stats| {
        stats.peers = newest(&stats.peers).cloned().collect();
        json!(stats)
    })
}

/// The newest incarnation of each peer.
pub(crate) fn newest(peers: &[PeerStats]) -> impl Iterator<Item = &PeerStats> {
    let later = |a: &PeerStats, b: &PeerStats| a.node == b.node && a.incarnation > b.incarnation;
    peers.iter().filter(move |peer| !peers.iter().any(|other| later(other, peer)))
}

/// The rules in force.
pub(crate) fn rules(throttle: &Throttle) -> Value {
    let rule = |rule: &ActiveRule| {
        let window = rule.window().as_secs_f64();
        json!({
            "name": rule.name(),
            "burst": rule.burst(),
            "window_s": window,
            "rate_per_s": rule.burst() as f64 / window,
        })
    };
    let domain = |domain: &Domain| {
        let rules: Vec<Value> = domain.rules().iter().map(rule).collect();
        json!({ "name": domain.name(), "rules": rules })
    };
    throttle.domains().iter().map(domain).collect()
}

/// The tags that were refused most recently, and the buckets with the least units left.
pub(crate) fn top(throttle: &Throttle, state: &State, count: usize) -> Value {
    let bucket = |bucket: &TopBucket| {
        json!({
            "fingerprint": id(bucket.fingerprint),
            "domain": bucket.domain,
            "rule": bucket.rule,
            "limit": bucket.limit,
            "balance": bucket.balance,
            "reset_after_s": bucket.reset_after.as_secs_f64(),
        })
    };
    let buckets: Vec<Value> = state.scans.top(throttle, count).iter().map(bucket).collect();
    json!({ "refused": refused(state, count), "buckets": buckets })
}

/// The tags that were refused most recently.
pub(crate) fn refused(state: &State, count: usize) -> Value {
    let tag = |(tag, count)| json!({ "tag": tag, "count": count });
    state.refused.top(count).into_iter().map(tag).collect()
}

/// Writes a 64-bit number as text, because JavaScript reads numbers of JSON with 53 bits.
fn id(number: u64) -> String {
    format!("{number:016x}")
}
