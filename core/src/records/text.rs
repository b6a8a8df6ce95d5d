//! Decisions in the query protocol of the daemon, which `docs/daemon.md` describes. The daemon
//! writes them, and its client in C parses them.

use std::fmt::{self, Write};
use std::time::Duration;

use super::Value;
use crate::domain::Domain;
use crate::limit::decision::{Decision, UNLIMITED};

/// Writes the fields of a decision except the first, each after a space. Omits fields with their
/// default. The last field is the name of the refusing rule, or else of the deciding rule, because
/// a name may contain spaces.
pub fn write(decision: &Decision, domain: &Domain, out: &mut impl Write) -> fmt::Result {
    let mut name = None;
    let fields = Decision::FIELDS.iter().zip(domain.values(decision));
    for (field, value) in fields.skip(1) {
        let key = field.name;
        match value {
            Value::Flag(false) | Value::Units(&UNLIMITED) | Value::Balance(&i64::MAX) => {}
            Value::Flag(true) => write!(out, " {key}=1")?,
            Value::Count(count) | Value::Units(count) => write!(out, " {key}={count}")?,
            Value::Balance(balance) => write!(out, " {key}={balance}")?,
            Value::Time(time) => write!(out, " {key}_ns={}", time.as_nanos())?,
            Value::Name(Some(rule)) => name = name.or(Some((key, rule))),
            _ => {}
        }
    }
    name.map_or(Ok(()), |(key, rule)| write!(out, " {key}={rule}"))
}

/// A parsed decision, and the name of its rule.
#[derive(Debug, PartialEq)]
pub struct Answer<'a> {
    /// The decision. The index of its rule is 0, because the line contains only the name.
    pub decision: Decision,
    /// The name of the rule of `decision`.
    pub rule: &'a str,
}

/// Parses a line. Ignores unknown fields.
pub fn read(line: &str) -> Answer<'_> {
    let mut decision = Decision::unlimited(0);
    let found = [" rule=", " deciding="].iter().filter_map(|key| Some((line.find(key)?, *key)));
    let (head, rule) = match found.min() {
        Some((at, key)) => {
            decision.deciding = Some(0);
            decision.rule = (key == " rule=").then_some(0);
            (&line[..at], &line[at + key.len()..])
        }
        None => (line, ""),
    };
    let mut fields = head.split(' ');
    decision.allowed = fields.next() == Some("OK");
    for (key, value) in fields.filter_map(|field| field.split_once('=')) {
        let key = key.strip_suffix("_ns").unwrap_or(key);
        decision.set(key, value);
    }
    Answer { decision, rule }
}

/// A value that can be parsed from a field.
trait FromText {
    fn set(&mut self, value: &str);
}

impl FromText for bool {
    fn set(&mut self, value: &str) {
        *self = value != "0";
    }
}

impl FromText for u64 {
    fn set(&mut self, value: &str) {
        *self = value.parse().unwrap_or(u64::MAX);
    }
}

impl FromText for i64 {
    fn set(&mut self, value: &str) {
        *self = value.parse().unwrap_or(i64::MAX);
    }
}

impl FromText for Duration {
    fn set(&mut self, value: &str) {
        *self = Duration::from_nanos(value.parse().unwrap_or(u64::MAX));
    }
}

/// `read` parses the name of the rule itself.
impl FromText for Option<usize> {
    fn set(&mut self, _: &str) {}
}

macro_rules! settable {
    ([] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        impl $record {
            fn set(&mut self, key: &str, value: &str) {
                match key {
                    $(stringify!($field) => self.$field.set(value),)*
                    _ => {}
                }
            }
        }
    };
}

crate::records!(Decision, settable);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckOptions, ManualClock, Rule, Throttle};

    #[test]
    fn a_written_line_is_parsed_to_the_same_decision() {
        let rule = Rule::per_second(2).burst(4).name("a rule=x");
        let throttle = Throttle::builder().rule(rule).dry_run(true).clock(ManualClock::new());
        let throttle = throttle.build().unwrap();
        for cost in [3, 2, 1] {
            let decision = throttle.check_with("x", CheckOptions::cost(cost)).unwrap();
            let mut line = String::from("OK");
            write(&decision, &throttle, &mut line).unwrap();
            assert_eq!(read(&line), Answer { decision, rule: "a rule=x" }, "{line}");
        }
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let yes = read("OK granted=1 delay_ns=3 new=5 odd");
        assert!(yes.decision.allowed && yes.rule.is_empty());
        assert_eq!(yes.decision.limit, UNLIMITED);
        assert_eq!((yes.decision.granted, yes.decision.delay), (1, Duration::from_nanos(3)));
        let no = read("NO limit=4 remaining=0 balance=-2 granted=0 rule=a rule=x");
        assert!(!no.decision.allowed && no.decision.rule.is_some());
        assert_eq!((no.decision.limit, no.decision.balance), (4, -2));
        assert_eq!(no.rule, "a rule=x");
    }
}
