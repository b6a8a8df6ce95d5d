//! Unusual and invalid inputs, as far as Rust's types can express them.

use std::time::Duration;

use dthrottle::{Config, ManualClock, Throttle};
use serde_json::Value as Json;

use crate::{build, call, compare, list, vectors};

fn tag(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.as_bytes().to_vec(),
        Json::Object(hex) if hex.contains_key("bytes_hex") => {
            let digits = hex["bytes_hex"].as_str().unwrap();
            let byte = |i: usize| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect()
        }
        other => {
            let times = other["times"].as_u64().expect("text, or repeated text");
            other["repeat"].as_str().unwrap().repeat(times as usize).into_bytes()
        }
    }
}

fn run(throttle: &Throttle, clock: &ManualClock, case: &Json) -> Result<(), String> {
    let args = &case["args"];
    let millis = |key: &str| Duration::from_secs_f64(args[key].as_f64().unwrap_or(0.0) / 1000.0);
    if case["call"] == "advance" {
        clock.advance(millis("ms"));
        return Ok(());
    }
    let answer = throttle.domain(args["domain"].as_str().unwrap_or("default")).and_then(|domain| {
        let name = case["call"].as_str().unwrap();
        let (wait, age) = (millis("max_delay_ms"), millis("age_ms"));
        Ok((call(&domain, name, &tag(&args["tag"]), args, wait, age)?, domain))
    });
    match (answer, case["error"].as_str()) {
        (Ok((answer, domain)), None) => match case.get("expect") {
            Some(expect) => compare(&domain, &answer, expect),
            None => Ok(()),
        },
        (Err(error), Some(kind)) if error.kind().name() == kind => Ok(()),
        (Err(error), _) => Err(format!("unexpected error: {error}")),
        (Ok(_), Some(kind)) => Err(format!("no {kind} error")),
    }
}

#[test]
fn inputs_have_the_results_of_the_vectors() {
    let inputs = vectors("inputs.json");
    let mine = |case: &&Json| list(&case["languages"]).contains(&Json::from("rust"));
    let mut count = 0;
    for case in list(&inputs).iter().filter(mine) {
        let clock = ManualClock::new();
        let config = Config::from_toml("rate = \"10/s\"\nburst = 10").unwrap();
        let throttle = build(config, &clock).unwrap();
        if case["closed"] == true {
            throttle.close();
        }
        assert_eq!(run(&throttle, &clock, case), Ok(()), "{case}");
        count += 1;
    }
    assert!(count > 20);
}
