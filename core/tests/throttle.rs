//! The public API: building, threads, statistics, closing, clocks.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may call the operating system"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dthrottle::{CheckOptions, Config, Decision, ErrorKind, ManualClock, Rate, Rule, Throttle};

const DAY: Duration = Duration::from_secs(86_400);

fn manual(builder: dthrottle::Builder) -> (Throttle, ManualClock) {
    let clock = ManualClock::new();
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn handles_are_send_and_sync() {
    fn any_thread<T: Send + Sync + Clone + 'static>() {}
    any_thread::<Throttle>();
    any_thread::<dthrottle::Domain>();
    any_thread::<ManualClock>();
}

#[test]
fn threads_together_get_exactly_the_burst() {
    let throttle = Throttle::builder().rule(Rule::new(Rate::new(1, DAY)).burst(1000)).build();
    let throttle = throttle.unwrap();
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let allowed = throttle.allow("tag").unwrap();
                    admitted.fetch_add(u64::from(allowed), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1000);
    let stats = throttle.stats();
    assert_eq!((stats.allowed, stats.refused, stats.buckets), (1000, 3000, 1));
}

/// A lost race may refuse a check, but never more than the smaller burst passes, and everything
/// that a lost race took is given back.
#[test]
fn threads_always_take_from_both_rules_or_from_none() {
    let rule = || Rule::new(Rate::new(1, DAY));
    let throttle = Throttle::builder().rule(rule().burst(700)).rule(rule().burst(1000)).build();
    let throttle = throttle.unwrap();
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let decision = throttle.check_with("tag", CheckOptions::cost(3)).unwrap();
                    admitted.fetch_add(decision.granted, Ordering::Relaxed);
                }
            });
        }
    });
    while throttle.allow("tag").unwrap() {
        admitted.fetch_add(1, Ordering::Relaxed);
    }
    assert_eq!(admitted.into_inner(), 700);
    throttle.refund("tag", 700).unwrap();
    assert_eq!(throttle.check_with("tag", CheckOptions::cost(700)).unwrap().granted, 700);
}

#[test]
fn a_bucket_refills_by_the_system_clock() {
    let throttle = Throttle::builder().rule(Rule::parse("1 per 20 ms")).build().unwrap();
    let refusal = |tag: String| {
        let start = Instant::now();
        assert!(throttle.allow(&tag).unwrap());
        let decision = throttle.check(&tag).unwrap();
        // An allowed check is correct only if the machine stalled in between. Then another tag is
        // tried.
        let late = start.elapsed() >= Duration::from_millis(20);
        assert!(late || !decision.allowed);
        (!decision.allowed).then_some((tag, decision.retry_after))
    };
    let (tag, retry_after) = (0..1000).map(|i| i.to_string()).find_map(refusal).unwrap();
    // The only sleep, because this test is about the real clock.
    thread::sleep(retry_after);
    assert!(throttle.allow(tag).unwrap());
}

#[test]
fn build_errors_name_the_field_of_a_rule() {
    let fault = |builder: dthrottle::Builder| builder.build().unwrap_err();
    let error = fault(Throttle::builder().rule(Rule::per_second(0)));
    assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("rules[0].rate")));
    let error = fault(Throttle::builder().domain("api", [Rule::per_minute(1).burst(0)]));
    assert_eq!(error.field(), Some("domains.api.rules[0].burst"));
    let error = fault(Throttle::builder().rule(Rule::parse("10/fortnight")));
    assert!(error.to_string().contains("10/fortnight"), "{error}");
    let twice = Rule::per_hour(1).name("same");
    let error = fault(Throttle::builder().rule(twice.clone()).rule(twice));
    assert_eq!(error.field(), Some("rules[1].name"));
    let error = fault(Throttle::builder().domain("", [Rule::per_second(1)]));
    assert_eq!(error.field(), Some(r#"domains."""#));
    let short = Rule::per_second(1).burst_time(Duration::from_millis(999));
    assert_eq!(fault(Throttle::builder().rule(short)).field(), Some("rules[0].burst"));
}

#[test]
fn rules_and_dry_run_can_be_added_to_a_configuration() {
    let mut config = Config::from_toml("rate = 5").unwrap();
    config.add_rule("api", Rule::per_second(2));
    config.set_dry_run(true);
    config.set_domain_dry_run("api", false);
    let (throttle, _clock) = manual(config.into());
    assert!(throttle.check_with("tag", CheckOptions::cost(5)).unwrap().allowed);
    let dry = throttle.check("tag").unwrap();
    assert!(dry.allowed && dry.dry_run && dry.granted == 0);
    let api = throttle.domain("api").unwrap();
    assert!(api.check_with("tag", CheckOptions::cost(2)).unwrap().allowed);
    assert!(!api.check("tag").unwrap().allowed);
    let stats = throttle.stats();
    assert_eq!((stats.allowed, stats.dry_run, stats.refused), (3, 1, 1));
}

/// A delay that dry run skips is counted too.
#[test]
fn dry_run_counts_skipped_delays() {
    let config = Config::from_toml("rate = 1\ndry_run = true\n[domains.api]\nrate = 1").unwrap();
    let (throttle, _clock) = manual(config.into());
    assert!(throttle.domain("api").unwrap().is_dry_run());
    let options = CheckOptions::default().max_delay(Duration::from_secs(1));
    let decisions = [(); 3].map(|()| throttle.check_with("tag", options).unwrap());
    assert_eq!(decisions.map(|decision| decision.dry_run), [false, true, true]);
    assert_eq!(decisions.map(|decision| decision.granted), [1, 1, 0]);
    assert!(decisions.iter().all(|decision| decision.allowed && decision.delay.is_zero()));
    let stats = throttle.stats();
    assert_eq!((stats.allowed, stats.dry_run, stats.refused), (3, 2, 0));
}

/// Everything that can be wrong is reported without opening a table, and a secret is read only
/// once.
#[test]
fn preparing_a_configuration_reports_its_errors() {
    let mut config = Config::from_toml("rate = 5").unwrap();
    assert!(config.prepare().is_ok());
    assert_eq!((config.rule_count("default"), config.rule_count("api")), (Some(1), None));
    config.add_rule("api", Rule::parse("2/fortnight"));
    assert_eq!(config.rule_count("api"), Some(1));
    let error = config.prepare().unwrap_err();
    assert!(error.to_string().starts_with("`domains.api.rules[0].rate` must be "), "{error}");

    let path = std::env::temp_dir().join(format!("dthrottle-secret-{}", std::process::id()));
    let text =
        format!("rate = 1\n[cluster]\nname = 'c'\nsecret = {{ file = '{}' }}", path.display());
    let mut config = Config::from_toml(&text).unwrap();
    assert_eq!(config.prepare().unwrap_err().kind(), ErrorKind::File);
    std::fs::write(&path, "sixteen bytes and more\n").unwrap();
    config.prepare().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(dthrottle::Builder::from(config).build().is_ok());
}

/// Also if one process prepares the configuration and another one opens it.
#[cfg(unix)]
#[test]
fn a_secret_that_every_user_can_read_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;

    let path = std::env::temp_dir().join(format!("dthrottle-readable-{}", std::process::id()));
    std::fs::write(&path, "sixteen bytes and more\n").unwrap();
    let text =
        format!("rate = 5\n[cluster]\nname = 'c'\nsecret = {{ file = '{}' }}", path.display());
    for (mode, count) in [(0o600, 0), (0o660, 0), (0o604, 1), (0o644, 1)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let mut config = Config::from_toml(&text).unwrap();
        config.prepare().unwrap();
        let throttle = dthrottle::Builder::from(config).build().unwrap();
        let warnings = throttle.warnings();
        assert_eq!(warnings.len(), count, "{mode:o}: {warnings:?}");
        let wanted =
            format!("every user of this machine can read {} (mode {mode:o})", path.display());
        assert!(warnings.iter().all(|warning| warning.contains(&wanted)), "{warnings:?}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// A missing setting must not silently disable the limit.
#[test]
fn a_throttle_without_rules_must_be_explicit() {
    let fails = |builder: dthrottle::Builder| {
        let error = builder.clock(ManualClock::new()).build().unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Config, Some("rate")));
        assert!(
            error.to_string().ends_with(r#"set a rate such as "100/s", or rate = "unlimited""#),
            "{error}"
        );
    };
    fails(Throttle::builder());
    fails(Throttle::builder().dry_run(true));
    let mut only_dry_run = Config::default();
    only_dry_run.set_domain_dry_run("api", true);
    assert!(only_dry_run.validate().is_err());
    fails(only_dry_run.into());
    for asked in [
        Throttle::builder().rule(Rule::unlimited()),
        Throttle::builder().rule(Rule::parse(" unlimited ")),
        Throttle::builder().domain("free", []),
        Throttle::builder().domain("api", [Rule::per_second(1)]),
    ] {
        assert!(manual(asked).0.rules().is_empty());
    }
    let limited = manual(Throttle::builder().rule(Rule::unlimited()).rule(Rule::per_second(3))).0;
    assert_eq!(limited.rules().len(), 1);
    let odd = Throttle::builder().rule(Rule::unlimited().burst(3)).build().unwrap_err();
    assert_eq!(odd.field(), Some("rules[0].rate"));
}

/// A table gets a default name only if the configuration says nothing about the table.
#[test]
fn a_default_name_applies_only_to_an_unnamed_shared_table() {
    for (text, wrong) in [
        ("", true),
        ("table = { size = 1000 }", true),
        ("table = 'web'", false),
        ("table = { private = true }", false),
    ] {
        let mut config = Config::from_toml(text).unwrap();
        config.add_rule(Config::DEFAULT, Rule::per_second(1));
        config.name_table("a/b", false);
        assert_eq!(config.prepare().is_err(), wrong, "{text}");
    }
}

#[test]
fn an_error_in_a_file_names_line_and_field() {
    let path = std::env::temp_dir().join(format!("dthrottle-test-{}.toml", std::process::id()));
    std::fs::write(&path, "rate = \"3/s\"\n[domains.api]\nrates = 4\n").unwrap();
    let error = Throttle::from_file(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3: `domains.api.rates` is an unknown key; did you mean `rate`?"
    );
    std::fs::write(&path, "rate = \"3/s\"").unwrap();
    assert_eq!(Throttle::from_file(&path).unwrap().check("tag").unwrap().limit, 3);
    std::fs::remove_file(&path).unwrap();
    let error = Throttle::from_file(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::File);
    assert!(error.to_string().contains("dthrottle-test"), "{error}");
}

#[test]
fn after_close_every_call_is_an_error() {
    let (throttle, _clock) = manual(Throttle::builder().rule(Rule::per_second(1)));
    let (clone, domain) = (throttle.clone(), throttle.domain("default").unwrap());
    throttle.close();
    throttle.close();
    let kinds = [
        throttle.domain("default").unwrap_err().kind(),
        throttle.check("tag").unwrap_err().kind(),
        clone.allow("tag").unwrap_err().kind(),
        domain.peek("tag").unwrap_err().kind(),
        domain.refund("tag", 1).unwrap_err().kind(),
        domain.reset("tag").unwrap_err().kind(),
        domain.charge_local("tag", 1, Duration::ZERO).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Closed; 7]);
}

/// The limit does not identify the rule if several rules have the same burst.
#[test]
fn a_decision_names_its_deciding_rule() {
    let second = Rule::new(Rate::new(10, Duration::from_secs(1))).burst(5);
    let day = Rule::new(Rate::new(1, DAY)).burst(5);
    let (throttle, clock) = manual(Throttle::builder().rule(second).rule(day));
    let check = || throttle.check("tag").unwrap();
    assert_eq!(
        (check().deciding, check().rule),
        (Some(0), None),
        "the first of equal rules decides"
    );
    clock.advance(Duration::from_secs(1));
    assert_eq!((check().deciding, check().rule), (Some(1), None));
    check();
    let refused = check();
    assert_eq!((refused.deciding, refused.rule), (Some(1), Some(1)));
    let unlimited = manual(Throttle::builder().rule(Rule::unlimited())).0.check("tag").unwrap();
    assert_eq!(unlimited.deciding, None);
}

#[test]
fn a_manual_clock_never_runs_backwards() {
    let clock = ManualClock::new();
    clock.set(Duration::from_secs(5)).unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(clock.set(Duration::from_secs(3)).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(clock.now(), Duration::from_secs(6));
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Duration::from_nanos(u64::MAX));
}

#[test]
fn a_debt_beyond_the_greatest_tat_is_clamped_and_counted() {
    let (throttle, _clock) = manual(Throttle::builder().rule(Rule::per_second(10)));
    throttle.charge_local("tag", u64::MAX, Duration::ZERO).unwrap();
    throttle.charge_local("tag", 1, Duration::ZERO).unwrap();
    assert_eq!(throttle.stats().clamped, 1, "counted once, when the debt was clamped");
    let Decision { allowed, balance, retry_after, .. } = throttle.check("tag").unwrap();
    assert!(!allowed && balance < 0 && retry_after > 8 * 365 * DAY);
    throttle.reset("tag").unwrap();
    assert!(throttle.allow("tag").unwrap());
}

#[test]
fn tags_may_be_any_bytes() {
    let (throttle, _clock) = manual(Throttle::builder().rule(Rule::per_second(1)));
    for tag in [&b""[..], b"\0", b"\xff\xfe", b"a\0b", b"a", &[b'x'; 1 << 20]] {
        assert!(throttle.allow(tag).unwrap());
        assert!(!throttle.allow(tag).unwrap());
    }
}

#[test]
fn top_lists_the_most_used_buckets_also_after_a_reload() {
    let (throttle, _) = manual(Throttle::builder().rule(Rule::per_hour(10)));
    for (tag, cost) in [("much", 9), ("some", 5), ("little", 1)] {
        assert!(throttle.allow_with(tag, CheckOptions::cost(cost)).unwrap());
    }
    let balances = |throttle: &Throttle, count| -> Vec<(u64, i64)> {
        throttle.top(count).iter().map(|bucket| (bucket.limit, bucket.balance)).collect()
    };
    assert_eq!(balances(&throttle, 2), [(10, 1), (10, 5)]);
    let config = Config::from_toml("rate = '20/h'\nburst = 20").unwrap();
    let reloaded = throttle.reload(config).unwrap();
    assert_eq!(
        balances(&reloaded, 9),
        [(20, 1), (20, 5), (20, 9)],
        "the list is right before the first check"
    );
    // Buckets of domains that the throttle does not know are not listed.
    let other = "[domains.other]\nrate = '10/h'\nburst = 10";
    let other = reloaded.reload(Config::from_toml(other).unwrap()).unwrap();
    let other = other.domain("other").unwrap();
    for tag in 0..20_u8 {
        assert!(other.allow_with([tag], CheckOptions::cost(10)).unwrap());
    }
    assert_eq!(balances(&reloaded, 3), [(20, 1), (20, 5), (20, 9)]);
}
