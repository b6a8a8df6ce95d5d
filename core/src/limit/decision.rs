//! The question a check asks, and the answer it gets.

use std::time::Duration;

/// The limit and remaining of a domain without rules.
pub const UNLIMITED: u64 = u64::MAX;

/// The cost of a call that names none.
pub const DEFAULT_COST: u64 = 1;

/// What a check asks for: a cost, and how far it may bend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    pub(crate) cost: u64,
    /// Nanoseconds.
    pub(crate) max_delay: u64,
    pub(crate) partial: bool,
    pub(crate) allow_debt: bool,
}

impl CheckOptions {
    /// Ask for so many units.
    pub fn cost(cost: u64) -> CheckOptions {
        CheckOptions { cost, max_delay: 0, partial: false, allow_debt: false }
    }

    /// Be allowed also when the turn comes within this time; [`Decision::delay`] says when.
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> CheckOptions {
        CheckOptions { max_delay: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// Take as many units as there are, if not all; [`Decision::granted`] says how many.
    #[must_use]
    pub fn partial(self, partial: bool) -> CheckOptions {
        CheckOptions { partial, ..self }
    }

    /// Allow a cost above the burst: the check then needs a full bucket of that rule and leaves it
    /// in debt, in one atomic step. The cost counts as at most 2^40 units. Has no effect together
    /// with [`CheckOptions::partial`].
    #[must_use]
    pub fn allow_debt(self, allow_debt: bool) -> CheckOptions {
        CheckOptions { allow_debt, ..self }
    }

    /// The units that must be available under a rule of this burst, unless the check is partial.
    #[inline]
    pub(crate) fn needed(&self, burst: u64) -> u64 {
        if self.allow_debt { self.cost.min(burst) } else { self.cost }
    }
}

impl Default for CheckOptions {
    /// Ask for one unit, now.
    fn default() -> CheckOptions {
        CheckOptions::cost(DEFAULT_COST)
    }
}

crate::records!(Decision, crate::records::define, Copy);

/// Sets every field, so that no later one is forgotten.
macro_rules! nothing_limited {
    ([] $(#[$about:meta])+ $record:ident, first $first:literal {
        $($(#[$doc:meta])+ $field:ident: $kind:ident,)*
    }) => {
        impl $record {
            const EMPTY: $record = $record { $($field: crate::records::empty!($kind),)* };
        }
    };
}

crate::records!(Decision, nothing_limited);

impl Decision {
    /// The answer of a domain without rules, and of a throttle that fails open.
    pub fn unlimited(granted: u64) -> Decision {
        Decision { allowed: true, granted, ..Decision::EMPTY }
    }
}
