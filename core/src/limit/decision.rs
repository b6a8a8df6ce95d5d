//! The options of a check, and its decision.

use std::time::Duration;

/// The value of [`Decision::limit`] and [`Decision::remaining`] in a domain without rules.
pub const UNLIMITED: u64 = u64::MAX;

/// The cost of a call that does not give one: one unit.
pub const DEFAULT_COST: u64 = 1;

/// Options of a check.
///
/// ```
/// use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
///
/// let rule = Rule::per_second(10);
/// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
/// let decision = throttle.check_with("alice", CheckOptions::cost(4))?;
/// assert_eq!((decision.granted, decision.remaining), (4, 6));
/// # Ok::<(), dthrottle::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    pub(crate) cost: u64,
    /// Nanoseconds.
    pub(crate) max_delay: u64,
    pub(crate) partial: bool,
    pub(crate) allow_debt: bool,
}

impl CheckOptions {
    /// Checks a cost in units. A cost of 0 takes nothing, and passes unless the bucket is in debt.
    pub fn cost(cost: u64) -> CheckOptions {
        CheckOptions { cost, max_delay: 0, partial: false, allow_debt: false }
    }

    /// Also allows the check if the units become available within this time. The units are taken at
    /// once, and [`Decision::delay`] is the time that the caller must wait before it proceeds. A
    /// caller that gives up must call [`Domain::refund`](crate::Domain::refund).
    ///
    /// ```
    /// use std::time::Duration;
    /// use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(1);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// let options = CheckOptions::default().max_delay(Duration::from_secs(2));
    /// for seconds in 0..3 {
    ///     let decision = throttle.check_with("alice", options)?;
    ///     assert!(decision.allowed);
    ///     assert_eq!(decision.delay, Duration::from_secs(seconds));
    /// }
    /// assert!(!throttle.check_with("alice", options)?.allowed);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> CheckOptions {
        CheckOptions { max_delay: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// If not all units are available, takes as many as there are. [`Decision::granted`] is their
    /// number. The check is allowed if at least one unit is granted.
    ///
    /// ```
    /// use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(10);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// let decision = throttle.check_with("bulk", CheckOptions::cost(500).partial(true))?;
    /// assert_eq!(decision.granted, 10);
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    #[must_use]
    pub fn partial(self, partial: bool) -> CheckOptions {
        CheckOptions { partial, ..self }
    }

    /// Allows a cost above the burst. Such a check needs a full bucket and puts it in debt, in one
    /// atomic step. A cost above 2^40 counts as 2^40 units. Has no effect together with
    /// [`CheckOptions::partial`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use dthrottle::{CheckOptions, ManualClock, Rule, Throttle};
    ///
    /// let rule = Rule::per_second(10);
    /// let throttle = Throttle::builder().rule(rule).clock(ManualClock::new()).build()?;
    /// let decision = throttle.check_with("export", CheckOptions::cost(25).allow_debt(true))?;
    /// assert!(decision.allowed);
    /// assert_eq!(decision.balance, -15);
    /// assert_eq!(throttle.check("export")?.retry_after, Duration::from_millis(1600));
    /// # Ok::<(), dthrottle::Error>(())
    /// ```
    #[must_use]
    pub fn allow_debt(self, allow_debt: bool) -> CheckOptions {
        CheckOptions { allow_debt, ..self }
    }

    /// The units that must be available under a rule with this burst. Not for partial checks.
    #[inline]
    pub(crate) fn needed(&self, burst: u64) -> u64 {
        if self.allow_debt { self.cost.min(burst) } else { self.cost }
    }
}

impl Default for CheckOptions {
    /// A cost of one unit, without delay.
    fn default() -> CheckOptions {
        CheckOptions::cost(DEFAULT_COST)
    }
}

crate::records!(Decision, crate::records::define, Copy);

/// Defines a record with every field unlimited. Fails to compile if the list gets a field of an
/// unknown kind.
macro_rules! define_unlimited {
    ([] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        impl $record {
            const EMPTY: $record = $record { $($field: crate::records::empty!($kind),)* };
        }
    };
}

crate::records!(Decision, define_unlimited);

impl Decision {
    /// The decision of a domain without rules, and of a throttle that fails open.
    pub fn unlimited(granted: u64) -> Decision {
        Decision { allowed: true, granted, ..Decision::EMPTY }
    }
}
