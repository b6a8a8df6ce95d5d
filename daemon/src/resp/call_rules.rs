//! Rules that a command passes as its arguments. Their buckets are in a private table, which is not
//! reported to peers. As in redis-cell, a key has one bucket for all rules.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use dthrottle::{Config, Rate, Result, Rule, TableConfig, Throttle};

use crate::state::Count;

/// The maximum number of rules, slightly less than the limit of a table.
const MAX_RULES: usize = 4000;
/// The maximum number of rules that one connection may add, so that one client cannot use up all.
const MAX_RULES_PER_CONNECTION: usize = 250;

/// A rule, as the arguments of a command state it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallRule {
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_s: u64,
}

pub(crate) struct CallRules(RwLock<Known>);

struct Known {
    /// Owns the table.
    base: Throttle,
    rules: HashMap<CallRule, Throttle>,
}

impl CallRules {
    pub(crate) fn new() -> Result<CallRules> {
        Ok(CallRules(RwLock::new(Known { base: empty()?, rules: HashMap::new() })))
    }

    /// Returns the throttle with this rule. `added` counts the rules that the connection has added.
    pub(super) fn get(
        &self,
        rule: CallRule,
        added: &mut usize,
        refused: &Count,
    ) -> Result<Throttle, String> {
        if let Some(throttle) =
            self.0.read().unwrap_or_else(PoisonError::into_inner).rules.get(&rule)
        {
            return Ok(throttle.clone());
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Rules are not evicted, because their buckets would be lost.
        if *added >= MAX_RULES_PER_CONNECTION || known.rules.len() >= MAX_RULES {
            refused.add(1);
            return Err(format!(
                "too many different rules: a connection can add {MAX_RULES_PER_CONNECTION}, and \
                 all together {MAX_RULES}; give all keys of one kind the same rule"
            ));
        }
        let mut config = Config::default();
        let rate = Rate::new(rule.count, Duration::from_secs(rule.period_s));
        config.add_rule(Config::DEFAULT, Rule::new(rate).burst(rule.burst));
        let throttle = known.base.reload(config).map_err(|error| error.to_string())?;
        known.rules.insert(rule, throttle.clone());
        *added += 1;
        Ok(throttle)
    }

    /// The numbers of checks allowed and refused.
    pub(crate) fn decisions(&self) -> (u64, u64) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).base.decisions()
    }
}

fn empty() -> Result<Throttle> {
    Throttle::builder().rule(Rule::unlimited()).table(TableConfig::private()).build()
}
