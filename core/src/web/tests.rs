//! Tests of middleware on a manual clock, for what the vectors do not cover.

use std::time::Duration;

use super::*;
use crate::ManualClock;
use crate::config::{ConfigNode, Entry, Names, Value};

fn tree(entries: &[(&str, Value)]) -> ConfigNode {
    let entries = entries.iter().map(|(key, value)| Entry::new(*key, value.clone()));
    Value::Table(entries.collect()).into()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|item| text(item).into()).collect())
}

fn middleware(entries: &[(&str, Value)], clock: &ManualClock) -> Middleware {
    let setup = AdapterSettings { clock: Some(clock.clone().into()), ..AdapterSettings::default() };
    Middleware::read(&tree(entries), Names::Snake, setup).unwrap()
}

fn error(entries: &[(&str, Value)], names: Names) -> String {
    Middleware::read(&tree(entries), names, AdapterSettings::default()).unwrap_err().to_string()
}

fn request(peer: &str) -> Request<'_> {
    Request { peer: Some(peer), can_delay: true, ..Request::default() }
}

#[test]
fn decide_refuses_a_client_whose_bucket_is_empty() {
    let clock = ManualClock::new();
    let limit = middleware(&[("rate", text("2/s"))], &clock);
    for left in [1, 0] {
        let decided = limit.decide(&request("203.0.113.7")).unwrap();
        assert_eq!(decided.action, Action::Pass);
        let fields = limit.fields(&decided.decision);
        assert_eq!(fields[0], ("RateLimit-Policy", "\"default\";q=2;w=1".into()));
        assert_eq!(fields[1], ("RateLimit", format!("\"default\";r={left};t=1").into()));
    }
    let refused = limit.decide(&request("::ffff:203.0.113.7")).unwrap();
    assert_eq!(refused.action, Action::Refuse(Duration::ZERO));
    let refusal = limit.refusal(&refused.decision, None);
    assert_eq!((refusal.status, &*refusal.body), (429, &b"Too Many Requests\n"[..]));
    assert!(refusal.fields.contains(&("Retry-After", "1".into())));
    assert_eq!(limit.counts(), Counts { passed: 2, refused: 1, ..Counts::default() });
}

#[test]
fn a_delayed_request_gives_back_what_it_took_if_the_client_leaves() {
    let clock = ManualClock::new();
    let limit = middleware(&[("rate", text("1/s")), ("max_delay", Value::Number(5.0))], &clock);
    assert_eq!(limit.decide(&request("203.0.113.7")).unwrap().action, Action::Pass);
    let delayed = limit.decide(&request("203.0.113.7")).unwrap();
    assert_eq!(delayed.action, Action::Delay(Duration::from_secs(1)));
    limit.end_delay(&delayed.tag, delayed.taken, true);
    let again = limit.decide(&request("203.0.113.7")).unwrap();
    assert_eq!(again.action, Action::Delay(Duration::from_secs(1)), "the turn is free again");
    limit.end_delay(&again.tag, again.taken, false);
    let cannot = Request { can_delay: false, ..request("203.0.113.7") };
    assert_eq!(limit.decide(&cannot).unwrap().action, Action::Refuse(Duration::ZERO));
}

#[test]
fn an_unknown_option_is_an_error_with_a_hint_in_the_users_language() {
    let rate = ("rate", text("1/s"));
    let hint = |option: &str, names| error(&[rate.clone(), (option, Value::Bool(true))], names);
    assert_eq!(
        hint("key_func", Names::Snake),
        "`key_func` is an unknown option; did you mean `tag`?"
    );
    assert_eq!(
        hint("keyFunc", Names::Camel),
        "`keyFunc` is an unknown option; did you mean `tag`?"
    );
    assert_eq!(
        hint("ipv6_mask", Names::Camel),
        "`ipv6_mask` is an unknown option; did you mean `ipv6Prefix`?"
    );
    assert_eq!(
        hint("max_deleyed", Names::Snake),
        "`max_deleyed` is an unknown option; did you mean `max_delayed`?"
    );
    assert_eq!(
        hint("statusCode", Names::Camel),
        "`statusCode` is an unknown option; did you mean `status`?"
    );
}

#[test]
fn an_error_about_an_option_says_what_is_valid_and_what_was_given() {
    let rate = ("rate", text("1/s"));
    let one = |option: &str, value| error(&[rate.clone(), (option, value)], Names::Snake);
    assert_eq!(
        one("status", Value::Number(5.0)),
        "`status` must be a whole number from 400 to 599, got 5"
    );
    assert_eq!(one("methods", list(&["get"])), "`methods` must be \"GET\", got \"get\"");
    assert_eq!(one("cost", Value::Number(2.0)), "`cost` must be at most 1, the burst, got 2");
    assert_eq!(
        one("headers", text("draft7")),
        "`headers` must be true, false, or one of standard, draft-8, draft-7, draft-6, x-ratelimit, \
         none, got \"draft7\"; did you mean `draft-7`?"
    );
    assert_eq!(
        one("trusted_proxies", list(&["10.1.2.3/8"])),
        "`trusted_proxies` must be \"10.0.0.0/8\", got \"10.1.2.3/8\""
    );
    assert_eq!(
        error(&[("burst", Value::Number(5.0))], Names::Snake),
        "`rate` is missing; set a rate such as \"100/s\", or rules, file or throttle"
    );
}

#[test]
fn middlewares_of_one_table_share_a_throttle_until_the_first_request() {
    let throttle = SharedThrottle::unregistered(shared::ThrottleSettings {
        config: crate::Config::from_toml("table = { private = true }").unwrap(),
        clock: None,
        key: None,
    });
    let make = |rate: &str, name_part| {
        let setup =
            AdapterSettings { name_part, within: Some(&throttle), ..AdapterSettings::default() };
        Middleware::read(&tree(&[("rate", text(rate))]), Names::Snake, setup).unwrap()
    };
    let (login, search) = (make("1/s", "login"), make("2/s", "search"));
    assert!(login.decide(&request("203.0.113.7")).is_some());
    assert!(search.decide(&request("203.0.113.7")).is_some());
    assert_eq!(throttle.open().unwrap().domains().len(), 3, "login, search, and default");
    let late = make("3/s", "late");
    assert!(late.decide(&request("203.0.113.7")).is_some());
    assert_eq!(throttle.open().unwrap().domains().len(), 3);
    let twin = make("9/s", "login");
    assert_eq!(twin.domain_name(), "login 2");
    assert_eq!(twin.take_warnings()[0].code, "DTHROTTLE_SAME_DOMAIN");
}

#[test]
fn a_client_cannot_choose_the_bucket_of_another_client_that_is_counted_by_address() {
    let clock = ManualClock::new();
    let options = [("rate", text("1/minute")), ("tag", text("header:X-Api-Key"))];
    let limit = middleware(&options, &clock);
    let missing = Request { tag: Tag::Missing, ..request("203.0.113.7") };
    let victim = limit.decide(&missing).unwrap().tag;
    assert!(victim.starts_with(BY_ADDRESS));
    let chosen = Request { tag: Tag::Value(&victim), ..request("198.51.100.9") };
    let decided = limit.decide(&chosen).unwrap();
    assert_ne!(decided.tag, victim);
    assert_eq!((decided.action, limit.counts().untagged), (Action::Pass, 1));
}
