//! Decides how often each rule is reported.

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::cluster::access::ExchangeRule;
use crate::cluster::pace::rule_period;
use crate::cluster::settings::Settings;

#[derive(Clone, Copy)]
pub(super) struct RulePace {
    pub(super) period: u64,
    pub(super) due_at: u64,
    pub(super) is_due: bool,
    /// A tag with at least this many pending hits is reported immediately.
    pub(super) urgent: u64,
}

impl RulePace {
    pub(super) fn new(
        rule: &ExchangeRule,
        settings: &Settings,
        due_at: impl FnOnce(u64) -> u64,
    ) -> RulePace {
        let longest = u64::try_from(settings.period.as_nanos()).unwrap_or(u64::MAX);
        let period = match settings.periodic {
            true => longest,
            false => rule_period(rule.fill_ns(), longest),
        };
        RulePace { period, due_at: due_at(period), is_due: false, urgent: 1 }
    }

    /// Returns true if the rule is due. If so, schedules the next report.
    pub(super) fn is_due_at(&mut self, now: u64, settings: &Settings, rng: &mut SmallRng) -> bool {
        if now < self.due_at {
            return false;
        }
        self.due_at = match settings.periodic {
            // Counted from the due time, so that the rate of reports is exact.
            true => self.due_at + (now - self.due_at) / self.period * self.period + self.period,
            // Random, so that the timers of nodes do not synchronize.
            false => now + rng.random_range(self.period * 8 / 10..=self.period * 12 / 10),
        };
        true
    }
}
