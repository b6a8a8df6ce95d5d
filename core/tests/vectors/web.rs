//! HTTP middleware: requests and the decisions about them.

use std::time::Duration;

use dthrottle::ManualClock;
use dthrottle::config::Names;
use dthrottle::web::{Action, AdapterSettings, HttpDecision, Middleware, Request, Tag, TagSource};
use serde_json::{Value as Json, json};

use crate::configs::tree;
use crate::{list, nanos, vectors};

#[test]
fn middleware_decides_as_in_the_vectors() {
    for case in list(&vectors("web.json")["cases"]) {
        run(case);
    }
}

#[test]
fn bad_options_are_errors_that_name_the_option() {
    for case in list(&vectors("web.json")["bad"]) {
        let setup = AdapterSettings::default();
        let error = Middleware::read(&tree(&case["options"]), Names::Snake, setup).unwrap_err();
        assert_eq!(error.field(), case["field"].as_str(), "{case}: {error}");
        for says in list(&case["says"]) {
            assert!(error.to_string().contains(says.as_str().unwrap()), "{case}: {error}");
        }
    }
}

fn run(case: &Json) {
    let name = case["name"].as_str().unwrap();
    let clock = ManualClock::new();
    let setup = AdapterSettings { clock: Some(clock.clone().into()), ..AdapterSettings::default() };
    let middleware = Middleware::read(&tree(&case["options"]), Names::Snake, setup)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut decided: Vec<Option<HttpDecision>> = Vec::new();
    for (number, step) in list(&case["steps"]).iter().enumerate() {
        clock.set(nanos(step, "at_ns")).unwrap();
        if let Some(request) = step.get("request") {
            let (got, decision) = decide(&middleware, request);
            assert_eq!(got, step["expect"], "{name}, step {number}");
            decided.push(decision);
            continue;
        }
        let earlier = |key: &str| decided[step[key].as_u64().unwrap() as usize].clone().unwrap();
        if step.get("end_delay").is_some() {
            let delayed = earlier("end_delay");
            middleware.end_delay(&delayed.tag, delayed.taken, step["gone"] == true);
        } else {
            let ended = earlier("finish");
            middleware.finish(&ended.tag, ended.taken, step["success"] == true);
        }
        decided.push(None);
    }
}

/// The decision about a request, in the format of the vectors.
fn decide(middleware: &Middleware, json: &Json) -> (Json, Option<HttpDecision>) {
    let forwarded: Vec<&str> =
        list(&json["forwarded"]).iter().map(|line| line.as_str().unwrap()).collect();
    let tag = match (&middleware.options().tag, json["tag"].as_str()) {
        (TagSource::Address, _) => Tag::Address,
        (_, None | Some("")) => Tag::Missing,
        (_, Some(tag)) => Tag::Value(tag.as_bytes()),
    };
    let request = Request {
        peer: json.get("peer").map_or(Some("203.0.113.7"), Json::as_str),
        forwarded: &forwarded,
        tag,
        cost: json["cost"].as_u64(),
        scope: json["scope"].as_str().unwrap_or(""),
        can_delay: json["can_delay"] != false,
        ..Request::default()
    };
    let decided = (!middleware.is_exempt(&request)).then(|| middleware.decide(&request)).flatten();
    let Some(decision) = decided else { return (json!({"action": "none"}), None) };
    let mut fields = middleware.fields(&decision.decision);
    let mut got = json!({
        "tag_hex": decision.tag.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "taken": decision.taken,
    });
    let (action, wait) = match decision.action {
        Action::Pass => ("pass", Duration::ZERO),
        Action::Delay(wait) => ("delay", wait),
        Action::Refuse(wait) => {
            let refusal = middleware.refusal(&decision.decision, None);
            got["status"] = refusal.status.into();
            got["body"] = String::from_utf8(refusal.body.to_vec()).unwrap().into();
            fields = refusal.fields;
            ("refuse", wait)
        }
    };
    got["action"] = action.into();
    got["fields"] = fields.iter().map(|(name, value)| json!([name, value])).collect();
    if !wait.is_zero() {
        got["delay_ns"] = (wait.as_nanos() as u64).into();
    }
    (got, Some(decision))
}
