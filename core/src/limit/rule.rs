//! A rule: rate + burst, and what it does with refused checks.

use std::time::Duration;

use crate::limit::bucket::Scale;
use crate::limit::rate::{Burst, Rate};

/// The rate of a domain that shall have no rules.
const UNLIMITED: &str = "unlimited";
/// The error about that rate in any other place.
const UNLIMITED_ALONE: &str = "\"unlimited\" stands alone, without burst, name or charge_refused, and \
                               not in a list of rules; write a rate like \"100/s\"";

/// A rate and a burst, with a name that is unique in its domain.
///
/// Mistakes are reported when the throttle is built, so that rules chain:
/// `Rule::per_second(100).burst(200)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) rate: Result<Rate, String>,
    pub(crate) burst: Result<Burst, String>,
    pub(crate) charge_refused: bool,
}

/// What is wrong with a rule: the key of the rule and a message.
pub(crate) struct RuleFieldError {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

impl Rule {
    /// A rule of this rate, whose burst is the rate's count.
    pub fn new(rate: Rate) -> Rule {
        Rule::from_parts(Ok(rate))
    }

    /// A rule from a rate such as `"100/s"` or `"5 per 2 minutes"`, or [`Rule::unlimited`] from
    /// `"unlimited"`.
    pub fn parse(rate: &str) -> Rule {
        match rate.trim() {
            UNLIMITED => Rule::unlimited(),
            _ => Rule::from_parts(Rate::parse(rate)),
        }
    }

    /// Says that a domain without rules is meant to allow everything. A throttle needs at least one
    /// rule, or this.
    ///
    /// ```
    /// use dthrottle::{Rule, Throttle};
    ///
    /// assert!(Throttle::builder().build().is_err());
    /// let throttle = Throttle::builder().rule(Rule::unlimited()).build()?;
    /// assert!(throttle.rules().is_empty());
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    pub fn unlimited() -> Rule {
        Rule::from_parts(Err(UNLIMITED_ALONE.into()))
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Rule::unlimited()
    }

    /// `count` units a second.
    pub fn per_second(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(1)))
    }

    /// `count` units a minute.
    pub fn per_minute(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(60)))
    }

    /// `count` units an hour.
    pub fn per_hour(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(3600)))
    }

    pub(crate) fn from_parts(rate: Result<Rate, String>) -> Rule {
        Rule { name: None, rate, burst: Ok(Burst::OfRate), charge_refused: false }
    }

    /// The size of the bucket in units.
    #[must_use]
    pub fn burst(self, units: u64) -> Rule {
        Rule { burst: Ok(Burst::Count(units)), ..self }
    }

    /// The size of the bucket as text: a whole number, or a duration such as `"10s"`.
    #[must_use]
    pub fn parse_burst(self, text: &str) -> Rule {
        Rule { burst: Burst::parse(text), ..self }
    }

    /// The size of the bucket as the units that the rate gives in this time.
    #[must_use]
    pub fn burst_time(self, time: Duration) -> Rule {
        Rule { burst: Ok(Burst::from_time(time)), ..self }
    }

    /// The name; without one it is `rule1`, `rule2`, ... by position.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Rule {
        Rule { name: Some(name.into()), ..self }
    }

    /// Whether refused checks are charged to this rule as well.
    #[must_use]
    pub fn charge_refused(self, charge: bool) -> Rule {
        Rule { charge_refused: charge, ..self }
    }

    /// The rule made ready for arithmetic, or what is wrong with it.
    pub(crate) fn scale(&self) -> Result<Scale, RuleFieldError> {
        let fault = |key| move |message| RuleFieldError { key, message };
        let rate = self.rate.clone().map_err(fault("rate"))?;
        rate.check().map_err(fault("rate"))?;
        let burst = self.burst.as_ref().map_err(|message| fault("burst")(message.clone()))?;
        let units = burst.units(&rate).map_err(fault("burst"))?;
        Ok(Scale::new(&rate, units))
    }
}
