//! `/check?tag=...&domain=...&cost=...&max_delay_ms=...&partial=1&peek=1`: a decision as JSON.

use std::time::Duration;

use dthrottle::records::SerializedRecord;
use dthrottle::web::{HeaderFormat, Headers};
use dthrottle::{CheckOptions, Decision, Domain, Error, ErrorKind, Result, Throttle};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::query::find_domain;

const KEYS: [&str; 7] = ["tag", "domain", "cost", "max_delay_ms", "partial", "peek", "token"];

/// Returns the status, the body and the header fields of the response.
pub(super) fn answer(query: &str, daemon: &Daemon) -> (StatusCode, Value, HeaderMap) {
    match daemon.with_throttle(|throttle| decide(query, throttle, daemon)) {
        Ok((decision, domain)) => {
            (StatusCode::OK, shown(&decision, &domain), fields(&decision, &domain))
        }
        Err(error) => {
            let json = json!({ "error": error.kind().name(), "message": error.to_string() });
            (StatusCode::BAD_REQUEST, json, HeaderMap::new())
        }
    }
}

fn decide(query: &str, throttle: &Throttle, daemon: &Daemon) -> Result<(Decision, Domain)> {
    let argument_error = |message: String| Error::new(ErrorKind::Argument, message);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let key = pair.split('=').next().unwrap_or("");
        if !KEYS.contains(&key) {
            let keys = KEYS[..6].join(", ");
            return Err(argument_error(format!(
                "{key:?} is not a parameter; the parameters are {keys}"
            )));
        }
    }
    let number = |key: &str, default: u64| match parameter(query, key) {
        None => Ok(default),
        Some(value) => {
            let number = str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
            number.ok_or_else(|| argument_error(format!("{key} must be a whole number")))
        }
    };
    let tag = parameter(query, "tag")
        .ok_or_else(|| argument_error("tag is missing; write /check?tag=...".into()))?;
    let domain = match parameter(query, "domain") {
        None => (**throttle).clone(),
        // A client has shown the token, if one is set.
        Some(name) => {
            let may_list = daemon.settings.token.is_some();
            find_domain(throttle, &String::from_utf8_lossy(&name), may_list)?
        }
    };
    let max_delay = Duration::from_millis(number("max_delay_ms", 0)?);
    let options = CheckOptions::cost(number("cost", 1)?)
        .max_delay(max_delay.min(daemon.settings.max_delay))
        .partial(number("partial", 0)? != 0);
    if number("peek", 0)? != 0 {
        return Ok((domain.peek_with(&tag, options)?, domain));
    }
    let decision = domain.check_with(&tag, options)?;
    daemon.state.add_decision(&domain, &tag, decision.allowed);
    Ok((decision, domain))
}

/// The header fields that middleware would send.
fn fields(decision: &Decision, domain: &Domain) -> HeaderMap {
    let headers = Headers::of_domain(HeaderFormat::Standard, false, domain);
    let fields = headers.of_response(domain, decision).into_iter();
    let parsed = fields.filter_map(|(name, value)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(&*value).ok()?))
    });
    parsed.collect()
}

fn shown(decision: &Decision, domain: &Domain) -> Value {
    json!(SerializedRecord(Decision::FIELDS, &domain.values(decision)))
}

/// The decoded value of a parameter.
pub(super) fn parameter(query: &str, key: &str) -> Option<Vec<u8>> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(found, _)| *found == key).map(|(_, value)| decode(value))
}

/// Decodes `%41` as `A` and `+` as a space.
fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digit = |index: usize| char::from(*bytes.get(index)?).to_digit(16);
        let (decoded, length) = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            (b'+', ..) => (b' ', 1),
            _ => (*byte, 1),
        };
        out.push(decoded);
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use dthrottle::Rule;
    use dthrottle::records::Field;

    use super::*;
    use crate::config::Settings;
    use crate::descriptors::Limits;

    fn daemon(token: Option<String>, rule: Rule) -> Daemon {
        let throttle = Throttle::builder().rule(rule).build().unwrap();
        let settings = Settings { token, ..Settings::defaults() };
        let limits = Limits::of_process(&settings).unwrap();
        Daemon::new(settings, limits, None, throttle).unwrap()
    }

    #[test]
    fn a_decision_has_the_header_fields_of_middleware() {
        let daemon = daemon(None, Rule::per_hour(2));
        let fields = |query| {
            let (status, _, fields) = answer(query, &daemon);
            let value = |name| fields.get(name).map(|value| value.to_str().unwrap().to_string());
            (status, ["ratelimit-policy", "ratelimit", "retry-after"].map(value))
        };
        let some = |text: &str| Some(text.to_string());
        let policy = some("\"default\";q=2;w=3600");
        let passed = [policy.clone(), some("\"default\";r=1;t=1800"), None];
        assert_eq!(fields("tag=x"), (StatusCode::OK, passed));
        fields("tag=x");
        let refused = [policy, some("\"default\";r=0;t=1800"), some("1800")];
        assert_eq!(fields("tag=x"), (StatusCode::OK, refused));
        assert_eq!(fields("tag=x&cost=y"), (StatusCode::BAD_REQUEST, [None, None, None]));
    }

    #[test]
    fn a_decision_in_json_has_every_field() {
        let throttle = Throttle::builder().rule(Rule::per_second(1).name("one")).build().unwrap();
        let shown = shown(&throttle.check("x").unwrap(), &throttle);
        assert_eq!((&shown["rule"], &shown["deciding"]), (&Value::Null, &json!("one")));
        let keys: Vec<&String> = shown.as_object().unwrap().keys().collect();
        let mut fields: Vec<_> = Decision::FIELDS.iter().map(Field::json).collect();
        fields.sort_unstable();
        assert_eq!(keys, fields.iter().collect::<Vec<_>>());
    }

    #[test]
    fn domains_are_listed_only_if_clients_need_the_token() {
        for (token, listed) in [(None, false), (Some("0123456789abcdef".into()), true)] {
            let daemon = daemon(token, Rule::per_second(1));
            let (status, json, _) = answer("tag=x&domain=nobody", &daemon);
            assert_eq!((status, &json["error"]), (StatusCode::BAD_REQUEST, &json!("domain")));
            let message = json["message"].as_str().unwrap();
            assert!(message.starts_with("unknown domain \"nobody\""), "{message}");
            assert_eq!(message.contains("default"), listed, "{message}");
        }
    }

    #[test]
    fn percent_and_plus_are_decoded_in_parameters() {
        let query = "a=1&tag=a%20b+c%C3%bc%zz%4&domain=";
        assert_eq!(parameter(query, "tag").unwrap(), "a b cü%zz%4".as_bytes());
        assert_eq!(parameter(query, "domain").unwrap(), b"");
        assert_eq!(parameter(query, "none"), None);
    }
}
