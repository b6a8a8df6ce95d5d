//! A slow exact model: one bucket in rational arithmetic, as `docs/semantics.md` defines it.
//!
//! A `Mutation` makes it wrong, to show that the laws detect that.

use num_bigint::BigInt;
use num_rational::BigRational;

/// The interface that the laws test.
pub(crate) trait Bucket {
    /// Checks a cost at a time in nanoseconds, which never runs backwards.
    fn check(&mut self, now: u64, cost: u64) -> bool;
    /// Gives units back.
    fn refund(&mut self, now: u64, units: u64);
    /// Fills the bucket.
    fn reset(&mut self, now: u64);
    /// Charges units in any case.
    fn charge_local(&mut self, now: u64, cost: u64, age: u64);
    /// Whole units in the bucket.
    fn balance(&mut self, now: u64) -> i64;
}

/// `count` units every `period_ns`, up to `burst`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) count: u64,
    pub(crate) period_ns: u64,
    pub(crate) burst: u64,
}

impl Limit {
    /// The time of `units` at this rate.
    pub(crate) fn time_of(&self, units: u64) -> BigRational {
        ratio(units) * ratio(self.period_ns) / ratio(self.count)
    }
}

/// A deliberate defect in the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    None,
    /// The time of one unit is truncated to whole nanoseconds.
    WholeNanoseconds,
    /// An idle bucket fills beyond its burst.
    NoCap,
    /// Refused checks are charged.
    ChargeRefused,
    /// The bucket admits one unit more than its burst.
    OneMore,
    /// The comparison is `<` instead of `<=`.
    Strict,
    /// A refund may fill the bucket beyond its burst.
    RefundAbove,
    /// A local charge is ignored while the bucket is in debt.
    DebtFloor,
}

pub(crate) const MUTATIONS: [Mutation; 7] = [
    Mutation::WholeNanoseconds,
    Mutation::NoCap,
    Mutation::ChargeRefused,
    Mutation::OneMore,
    Mutation::Strict,
    Mutation::RefundAbove,
    Mutation::DebtFloor,
];

pub(crate) struct Model {
    limit: Limit,
    tat: BigRational,
    mutation: Mutation,
}

impl Model {
    pub(crate) fn new(limit: Limit, mutation: Mutation) -> Model {
        // A bucket that was never used has been full since long before zero.
        Model { limit, tat: ratio(0), mutation }
    }

    /// How much too early a check is, in nanoseconds. It passes if the result is 0 or less.
    pub(crate) fn excess(&self, now: u64, cost: u64) -> BigRational {
        self.start(now) + self.time_of(cost) - self.time_of(self.limit.burst) - ratio(now)
    }

    /// Takes units in any case.
    pub(crate) fn take(&mut self, now: u64, cost: u64) {
        self.tat = self.start(now) + self.time_of(cost);
    }

    fn start(&self, now: u64) -> BigRational {
        let now = ratio(now);
        if self.mutation == Mutation::NoCap || self.tat > now { self.tat.clone() } else { now }
    }

    fn time_of(&self, units: u64) -> BigRational {
        match self.mutation {
            Mutation::WholeNanoseconds => ratio(units) * self.limit.time_of(1).floor(),
            _ => self.limit.time_of(units),
        }
    }
}

impl Bucket for Model {
    fn check(&mut self, now: u64, cost: u64) -> bool {
        let mut excess = self.excess(now, cost);
        if self.mutation == Mutation::OneMore {
            excess -= self.time_of(1);
        }
        let passes = match self.mutation {
            Mutation::Strict => excess < ratio(0),
            _ => excess <= ratio(0),
        };
        if passes || self.mutation == Mutation::ChargeRefused {
            self.take(now, cost);
        }
        passes
    }

    fn refund(&mut self, now: u64, units: u64) {
        self.tat = if self.mutation == Mutation::RefundAbove {
            // A TAT in the past would be cut at the next check, so `NoCap` keeps it.
            self.start(now) - self.time_of(units)
        } else {
            self.tat.clone() - self.time_of(units)
        };
        if self.mutation == Mutation::RefundAbove {
            self.mutation = Mutation::NoCap;
        }
    }

    fn reset(&mut self, _now: u64) {
        self.tat = ratio(0);
    }

    fn charge_local(&mut self, now: u64, cost: u64, age: u64) {
        if self.mutation == Mutation::DebtFloor && self.balance(now) <= 0 {
            return;
        }
        self.take(now.saturating_sub(age), cost);
    }

    fn balance(&mut self, now: u64) -> i64 {
        let used = (self.start(now) - ratio(now)) / self.limit.time_of(1);
        let balance = (ratio(self.limit.burst) - used).floor().to_integer();
        i64::try_from(balance).expect("balances in tests fit into 64 bits")
    }
}

pub(crate) fn ratio(value: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(value))
}
