//! Rules that are given in calls. They live in a private table of their own, which no peer hears
//! of, and a key has one bucket there under whatever rule it is asked about, as in redis-cell.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use dthrottle::{Config, Rate, Result, Rule, TableConfig, Throttle};

use crate::state::Count;

/// A table has room for somewhat more rules.
const MOST: usize = 4000;

/// A rule as a call gives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallRule {
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_s: u64,
}

pub(crate) struct CallRules(RwLock<Known>);

struct Known {
    /// Has the table.
    base: Throttle,
    rules: HashMap<CallRule, Throttle>,
    /// Allowed and refused in tables of the past.
    past: (u64, u64),
}

impl CallRules {
    pub(crate) fn new() -> Result<CallRules> {
        Ok(CallRules(RwLock::new(Known { base: empty()?, rules: HashMap::new(), past: (0, 0) })))
    }

    /// The throttle with this rule. With too many rules all are forgotten, and their buckets: they
    /// were not meant to be as many as clients.
    pub(super) fn get(&self, rule: CallRule, forgotten: &Count) -> Result<Throttle, String> {
        if let Some(throttle) =
            self.0.read().unwrap_or_else(PoisonError::into_inner).rules.get(&rule)
        {
            return Ok(throttle.clone());
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.rules.len() >= MOST {
            forgotten.add(1);
            tracing::warn!("more than {MOST} different rules in calls: their buckets begin anew");
            known.past = known.decisions();
            known.base = empty().map_err(|error| error.to_string())?;
            known.rules.clear();
        }
        let mut config = Config::default();
        let rate = Rate::new(rule.count, Duration::from_secs(rule.period_s));
        config.add_rule(Config::DEFAULT, Rule::new(rate).burst(rule.burst));
        let throttle = known.base.reload(config).map_err(|error| error.to_string())?;
        known.rules.insert(rule, throttle.clone());
        Ok(throttle)
    }

    /// Allowed and refused so far.
    pub(crate) fn decisions(&self) -> (u64, u64) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).decisions()
    }
}

impl Known {
    fn decisions(&self) -> (u64, u64) {
        let (allowed, refused) = self.base.decisions();
        (self.past.0 + allowed, self.past.1 + refused)
    }
}

fn empty() -> Result<Throttle> {
    Throttle::builder().rule(Rule::unlimited()).table(TableConfig::private()).build()
}
