//! Rates and configurations, valid and invalid, and the table of error kinds.

use dthrottle::config::{ConfigNode, Entry, Names, Value};
use dthrottle::{CheckOptions, Config, Error, ErrorKind, ManualClock};
use serde_json::Value as Json;

use crate::{build, list, vectors};

/// Converts JSON to a configuration tree.
pub(crate) fn tree(json: &Json) -> ConfigNode {
    let value = match json {
        Json::Null => Value::Other("null".into()),
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap()),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(tree).collect()),
        Json::Object(entries) => Value::Table(
            entries.iter().map(|(key, value)| Entry::new(key, tree(value).value)).collect(),
        ),
    };
    value.into()
}

/// The configuration of one case of `rates.json`. Infinite and NaN rates are strings there.
fn rate_config(case: &Json) -> Result<Config, Error> {
    let rate = match (case.get("number"), case.get("text")) {
        (Some(Json::String(special)), _) => Value::Number(special.parse().unwrap()),
        (Some(number), _) => tree(number).value,
        (None, Some(text)) => tree(text).value,
        (None, None) => panic!("the case has no rate: {case}"),
    };
    let mut entries = vec![Entry::new("rate", rate)];
    if let Some(burst) = case.get("burst") {
        entries.push(Entry::new("burst", tree(burst).value));
    }
    Config::from_value(&Value::Table(entries).into(), Names::Snake)
}

#[test]
fn valid_rates_have_the_limits_of_the_vectors() {
    let rates = vectors("rates.json");
    for case in list(&rates["good"]) {
        let clock = ManualClock::new();
        let config = rate_config(case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let throttle = build(config, &clock).unwrap();
        let limit = case["limit"].as_u64().unwrap();
        let first = throttle.check_with("tag", CheckOptions::cost(limit)).unwrap();
        assert!(first.allowed && first.limit == limit && first.remaining == 0, "{case}: {first:?}");
        let second = throttle.check("tag").unwrap();
        let off =
            second.retry_after.as_nanos().abs_diff(case["retry_after_ns"].as_u64().unwrap().into());
        assert!(!second.allowed && off <= 2, "{case}: {second:?}");
    }
}

#[test]
fn invalid_rates_are_errors() {
    let rates = vectors("rates.json");
    for case in list(&rates["bad"]) {
        let error = rate_config(case).expect_err(&case.to_string());
        assert_eq!(error.kind(), ErrorKind::Config, "{case}");
    }
}

#[test]
fn valid_configurations_have_the_rules_of_the_vectors() {
    for case in list(&vectors("configs.json")["good"]) {
        let toml = Config::from_toml(case["toml"].as_str().unwrap());
        let object = Config::from_value(&tree(&case["object"]), Names::Snake);
        for config in [toml, object] {
            let config = config.unwrap_or_else(|error| panic!("{case}: {error}"));
            let throttle = build(config, &ManualClock::new()).unwrap();
            for (name, rules) in case["domains"].as_object().unwrap() {
                let domain = throttle.domain(name).unwrap();
                let found: Vec<Json> = domain
                    .rules()
                    .iter()
                    .map(|rule| serde_json::json!({"name": rule.name(), "limit": rule.burst()}))
                    .collect();
                assert_eq!(found, list(rules), "{case}");
            }
        }
    }
}

#[test]
fn invalid_configurations_are_errors_that_name_the_field() {
    let configs = vectors("configs.json");
    let mut failures = Vec::new();
    for case in list(&configs["bad"]) {
        let toml = case["toml"].as_str().map(Config::from_toml);
        let object =
            case.get("object").map(|object| Config::from_value(&tree(object), Names::Snake));
        for (result, has_line) in [(toml, true), (object, false)] {
            let built =
                result.map(|config| config.and_then(|config| build(config, &ManualClock::new())));
            let error = match built {
                None => continue,
                Some(Err(error)) => error,
                Some(Ok(_)) => {
                    failures.push(format!("{}: no error", case["name"]));
                    continue;
                }
            };
            let message = error.to_string();
            let line = if has_line { case["line"].as_u64() } else { None };
            let says =
                list(&case["says"]).iter().all(|word| message.contains(word.as_str().unwrap()));
            let fits = error.kind() == ErrorKind::Config
                && error.field() == case["field"].as_str()
                && error.line().map(u64::from) == line
                && says;
            if !fits {
                failures.push(format!("{case}\n  gave {:?} {message}", error.field()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn error_kinds_have_the_numbers_and_names_of_the_vectors() {
    let errors = vectors("errors.json");
    assert_eq!(list(&errors).len(), ErrorKind::ALL.len());
    for (row, kind) in list(&errors).iter().zip(ErrorKind::ALL) {
        assert_eq!(row["kind"], kind.name());
        assert_eq!(row["c"], kind.number());
        assert_eq!(row["js"], kind.code());
    }
}
