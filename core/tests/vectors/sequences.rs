//! Sequences of calls at given times.

use std::collections::HashMap;

use dthrottle::{Config, ManualClock, Throttle};
use serde_json::Value as Json;

use crate::{build, call, compare, list, nanos, vectors};

/// Runs a sequence. Returns a description of the first wrong result.
fn run(sequence: &Json) -> Result<(), String> {
    let clock = ManualClock::new();
    let config = Config::from_toml(sequence["config"].as_str().unwrap()).unwrap();
    let throttles: HashMap<&str, Throttle> = list(&sequence["throttles"])
        .iter()
        .map(|name| (name.as_str().unwrap(), build(config.clone(), &clock).unwrap()))
        .collect();
    for (number, step) in list(&sequence["steps"]).iter().enumerate() {
        clock.set(nanos(step, "at_ns")).unwrap();
        let name = step["throttle"].as_str().unwrap_or_else(|| throttles.keys().next().unwrap());
        let domain = match throttles[name].domain(step["domain"].as_str().unwrap_or("default")) {
            Ok(domain) => domain,
            Err(error) if step["error"] == error.kind().name() => continue,
            Err(error) => return Err(format!("step {number}: {error}")),
        };
        for _ in 0..step["repeat"].as_u64().unwrap_or(1) {
            let answer = call(
                &domain,
                step["call"].as_str().unwrap(),
                step["tag"].as_str().unwrap().as_bytes(),
                step,
                nanos(step, "max_delay_ns"),
                nanos(step, "age_ns"),
            );
            let fits = match (&answer, step.get("error")) {
                (Ok(answer), None) => compare(&domain, answer, &step["expect"]),
                (Err(error), Some(kind)) if error.kind().name() == *kind => Ok(()),
                (Err(error), _) => Err(format!("unexpected error: {error}")),
                (Ok(_), Some(kind)) => Err(format!("no {kind} error")),
            };
            fits.map_err(|what| format!("step {number}: {what}; {step}"))?;
        }
    }
    Ok(())
}

#[test]
fn sequences_have_the_results_of_the_vectors() {
    let sequences = vectors("sequences.json");
    assert!(list(&sequences).len() >= 40);
    let failures: Vec<String> = list(&sequences)
        .iter()
        .filter_map(|sequence| Some(format!("{}: {}", sequence["name"], run(sequence).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Control: the runner detects a wrong number in every field.
#[test]
fn a_wrong_number_in_any_field_is_detected() {
    let sequences = vectors("sequences.json");
    let example = &list(&sequences)[0];
    assert_eq!(run(example), Ok(()));
    let fields = list(&example["steps"])[0]["expect"].as_object().unwrap();
    for field in fields.keys() {
        let mut wrong = example.clone();
        wrong["steps"][0]["expect"][field] = Json::from(77);
        assert!(run(&wrong).is_err(), "{field} is not compared");
    }
}
