//! A cluster as the face tells it: JSON, which both doors carry as one text.
//!
//! Nothing in it needs escaping: numbers, addresses, and names that core has written. What has 64
//! bits and is no count is text of 16 hexadecimal digits, because a number of JavaScript has 53.

use std::fmt::Write;

use dthrottle::{ClusterEvent, ClusterStats, PeerStats, convert};

/// The cluster; `null`: there is none.
pub(crate) fn stats(stats: Option<&ClusterStats>) -> String {
    let Some(stats) = stats else { return "null".into() };
    let ClusterStats { node, incarnation, pid, peers, counts, .. } = stats;
    let counts = counts.iter().map(|(name, count)| format!(r#""{}":{count}"#, camel(name)));
    format!(
        r#"{{"node":"{node:016x}","incarnation":"{incarnation:016x}","pid":{pid},"peers":[{}],"counts":{{{}}}}}"#,
        joined(peers.iter().map(peer)),
        joined(counts)
    )
}

fn peer(peer: &PeerStats) -> String {
    let PeerStats { node, incarnation, state, received, repaired, lost, .. } = peer;
    let address = peer.address.map_or("null".into(), |address| format!(r#""{address}""#));
    let (age, delay) = (convert::millis(peer.age), convert::millis(peer.delay));
    format!(
        r#"{{"node":"{node:016x}","incarnation":"{incarnation:016x}","address":{address},"state":"{state}","ageMs":{age},"delayMs":{delay},"received":{received},"repaired":{repaired},"lost":{lost}}}"#
    )
}

/// Events, as a list.
pub(crate) fn events(events: &[ClusterEvent]) -> String {
    format!("[{}]", joined(events.iter().map(event)))
}

/// One event.
pub(crate) fn event(event: &ClusterEvent) -> String {
    let ClusterEvent { number, kind, node, value, .. } = event;
    let age = convert::millis(event.age);
    format!(
        r#"{{"number":{number},"ageMs":{age},"kind":"{kind}","node":"{node:016x}","value":{value}}}"#
    )
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut all = String::new();
    for part in parts {
        let comma = if all.is_empty() { "" } else { "," };
        // Text takes whatever is written to it.
        let _ = write!(all, "{comma}{part}");
    }
    all
}

/// A name as JavaScript spells it: `reports_sent` is `reportsSent`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_string();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}
