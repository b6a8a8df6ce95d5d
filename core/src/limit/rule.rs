//! Rules: a rate, a burst, and whether refused checks are charged.

use std::time::Duration;

use crate::limit::bucket::Scale;
use crate::limit::rate::{Burst, Rate};

/// The rate of a domain without rules.
const UNLIMITED: &str = "unlimited";
/// The error about that rate in any other place.
const UNLIMITED_ALONE: &str = "must be a rate such as \"100/s\", got \"unlimited\", which is only \
                               possible for a whole domain, without burst, name and charge_refused";

/// A rate and a burst, with a name that is unique in its domain.
///
/// Every tag has its own bucket. The bucket holds up to `burst` units and fills at the rate. A
/// check takes its cost out of the bucket.
///
/// Errors in a rule are reported by [`Builder::build`](crate::Builder::build), so methods can be
/// chained.
///
/// ```
/// use std::time::Duration;
/// use dthrottle::{ManualClock, Rule, Throttle};
///
/// let rule = Rule::per_second(10).burst(3).name("steady");
/// let clock = ManualClock::new();
/// let throttle = Throttle::builder().rule(rule).clock(clock.clone()).build()?;
/// assert_eq!((0..5).filter(|_| throttle.allow("alice").unwrap()).count(), 3);
/// clock.advance(Duration::from_millis(100));
/// assert_eq!((0..5).filter(|_| throttle.allow("alice").unwrap()).count(), 1);
/// # Ok::<(), dthrottle::Error>(())
/// ```
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
    /// Creates a rule with this rate. Its burst is the count of the rate.
    pub fn new(rate: Rate) -> Rule {
        Rule::from_parts(Ok(rate))
    }

    /// Creates a rule from a rate such as `"100/s"` or `"5 per 2 minutes"`, or [`Rule::unlimited`]
    /// from `"unlimited"`. `docs/semantics.md` defines the grammar.
    pub fn parse(rate: &str) -> Rule {
        match rate.trim() {
            UNLIMITED => Rule::unlimited(),
            _ => Rule::from_parts(Rate::parse(rate)),
        }
    }

    /// Creates the rule of a domain that allows everything. A throttle needs at least one other
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

    /// Creates a rule of `count` units per second. Its burst is `count`.
    pub fn per_second(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(1)))
    }

    /// Creates a rule of `count` units per minute. Its burst is `count`.
    pub fn per_minute(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(60)))
    }

    /// Creates a rule of `count` units per hour. Its burst is `count`.
    pub fn per_hour(count: u64) -> Rule {
        Rule::new(Rate::new(count, Duration::from_secs(3600)))
    }

    pub(crate) fn from_parts(rate: Result<Rate, String>) -> Rule {
        Rule { name: None, rate, burst: Ok(Burst::OfRate), charge_refused: false }
    }

    /// Sets the burst in units, from 1 to 2^40.
    #[must_use]
    pub fn burst(self, units: u64) -> Rule {
        Rule { burst: Ok(Burst::Count(units)), ..self }
    }

    /// Sets the burst as text: a whole number such as `"10"`, or a duration such as `"10s"`, which
    /// means the units that the rate gives in that time.
    #[must_use]
    pub fn parse_burst(self, text: &str) -> Rule {
        Rule { burst: Burst::parse(text), ..self }
    }

    /// Sets the burst to the units that the rate gives in this time.
    #[must_use]
    pub fn burst_time(self, time: Duration) -> Rule {
        Rule { burst: Ok(Burst::from_time(time)), ..self }
    }

    /// Sets the name. The default is `rule1`, `rule2` and so on, by position in the domain.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Rule {
        Rule { name: Some(name.into()), ..self }
    }

    /// Sets whether refused checks are charged to this rule as well, so that a client that does not
    /// slow down stays refused. The default is false.
    #[must_use]
    pub fn charge_refused(self, charge: bool) -> Rule {
        Rule { charge_refused: charge, ..self }
    }

    /// Prepares the rule for arithmetic. Returns an error if the rule is invalid.
    pub(crate) fn scale(&self) -> Result<Scale, RuleFieldError> {
        let fault = |key| move |message| RuleFieldError { key, message };
        let rate = self.rate.clone().map_err(fault("rate"))?;
        rate.check().map_err(fault("rate"))?;
        let burst = self.burst.as_ref().map_err(|message| fault("burst")(message.clone()))?;
        let units = burst.units(&rate).map_err(fault("burst"))?;
        Ok(Scale::new(&rate, units))
    }
}
