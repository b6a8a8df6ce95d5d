//! The results as a table and as JSON: one row for each run.

use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::{Ns, SEC, bound};

/// The figures of one run. Figures of a tag are those of the first tag, which has a greedy client.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the scenario.
    pub scenario: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The relative error of the rate: 0.01 is one percent too many.
    pub rate_error: f64,
    /// Units beyond burst and rate in the worst window, for the tag that came closest to its bound.
    pub excess: f64,
    /// The bound for `excess`.
    pub bound: f64,
    /// The maximum number of units admitted in any second, as a multiple of the rate.
    pub worst_second: f64,
    /// The longest time without an admission.
    pub dry_spell: Ns,
    /// Jain's fairness index of the nodes' admissions: 1 if all admitted the same.
    pub fairness: f64,
    /// Refused requests of clients within their limit.
    pub wrong_refusals: u64,
    /// All requests of these clients.
    pub conforming_requests: u64,
    /// Bytes per second sent by each node.
    pub bytes_per_s: f64,
    /// Datagrams per second sent by each node.
    pub packets_per_s: f64,
}

impl Row {
    /// Computes the figures of a run.
    pub fn new(scenario: &Scenario, outcome: &Outcome) -> Row {
        let first = &outcome.tags[0].1;
        let bounds = outcome
            .tags
            .iter()
            .map(|(_, meter)| (meter.excess(), bound::excess(scenario, outcome, meter)));
        let nearest = bounds.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (excess, bound) = nearest.unwrap_or_default();
        let node_seconds =
            scenario.nodes as f64 * (scenario.end - scenario.begin) as f64 / SEC as f64;
        Row {
            scenario: scenario.name.clone(),
            nodes: scenario.nodes,
            rate_error: first.rate_error(),
            excess,
            bound,
            worst_second: first.worst_second(),
            dry_spell: first.dry_spell(),
            fairness: first.fairness(),
            wrong_refusals: outcome.conforming.1,
            conforming_requests: outcome.conforming.0,
            bytes_per_s: outcome.counts.bytes as f64 / node_seconds,
            packets_per_s: outcome.counts.packets as f64 / node_seconds,
        }
    }

    /// Returns the rounded figures as a JSON object. Times are in seconds.
    pub fn to_json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "nodes": self.nodes,
            "rate_error": round(self.rate_error, 5),
            "excess": round(self.excess, 2),
            "bound": round(self.bound, 2),
            "worst_second": round(self.worst_second, 3),
            "dry_spell": round(self.dry_spell as f64 / SEC as f64, 4),
            "fairness": round(self.fairness, 4),
            "wrong_refusals": self.wrong_refusals,
            "conforming_requests": self.conforming_requests,
            "bytes_per_s": round(self.bytes_per_s, 0),
            "packets_per_s": round(self.packets_per_s, 1),
        })
    }
}

/// Rounds a figure to this many decimal places.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Returns the rows as a JSON array.
pub fn json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
    format!("{:#}\n", Value::Array(rows))
}

/// Returns the header line of the table.
pub fn heading() -> String {
    format!(
        "{:<24} {:>5}  {:>8} {:>8} {:>8}  {:>6} {:>7} {:>5}  {:>17}  {:>9} {:>7}",
        "scenario",
        "nodes",
        "rate",
        "excess",
        "bound",
        "worst",
        "dry",
        "fair",
        "wrong refusals",
        "bytes/s",
        "pkts/s"
    )
}

/// Returns a row as a line of the table.
pub fn line(row: &Row) -> String {
    let refusals = match row.conforming_requests {
        0 => "-".into(),
        asked => format!("{} of {asked}", row.wrong_refusals),
    };
    format!(
        "{:<24} {:>5}  {:>+6.2} % {:>8.1} {:>8.1}  {:>5.2}x {:>4} ms {:>5.2}  {refusals:>17}  {:>9.0} {:>7.0}",
        row.scenario,
        row.nodes,
        row.rate_error * 100.0,
        row.excess,
        row.bound,
        row.worst_second,
        row.dry_spell / crate::MS,
        row.fairness,
        row.bytes_per_s,
        row.packets_per_s
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ClientKind;
    use crate::world::run;

    #[test]
    fn the_table_and_the_json_contain_the_same_figures() {
        let scenario = Scenario::new("a name", 1, 2).load(ClientKind::Greedy, 1, 300.0);
        let scenario = scenario.load(ClientKind::CONFORMING, 1, 10.0);
        let row = Row::new(&scenario, &run(&scenario));
        let parsed: Value = serde_json::from_str(&json(std::slice::from_ref(&row))).unwrap();
        assert_eq!(parsed[0]["scenario"], "a name");
        assert_eq!(parsed[0]["nodes"], 2);
        assert_eq!(parsed[0]["conforming_requests"], row.conforming_requests);
        assert_eq!(parsed[0].as_object().unwrap().len(), 12);
        let line = line(&row);
        assert!(line.starts_with("a name") && line.contains(&format!("{:.1}", row.excess)));
        assert!(row.packets_per_s > 1.0 && row.bytes_per_s > 50.0, "{line}");
    }
}
