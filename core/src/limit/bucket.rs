//! The arithmetic of a bucket: pure functions of (TAT, now, rule, units), in integers only.
//!
//! A bucket is one number, its theoretical arrival time (TAT): the moment at which the bucket will
//! be full. Each rule counts time in its own ticks, with exactly k ticks to one unit. So charges
//! never round, and the long-run rate is exact. Only `now` is rounded, down to a tick, when it
//! enters: compared with exact arithmetic, `TAT' <= TAT < TAT' + 1 tick` always holds. The error
//! favours the client.
//!
//! Nothing here can overflow: charges saturate, and the product of two `u64` is a `u128`. A TAT has
//! 60 bits, because a slot of the table has room for 60.

use crate::limit::rate::{Rate, gcd};

/// The theoretical arrival time, in ticks of the bucket's rule. 0: the bucket was always full.
pub(crate) type Tat = u64;

/// The greatest TAT. A bucket that should have a later one is clamped to it.
pub(crate) const MAX_TAT: Tat = (1 << 60) - 1;

/// The finest tick: a quarter of a nanosecond. 60 bits of such ticks last 9 years.
const TICKS_PER_NS: u64 = 4;
/// A burst has at most 2^57 ticks, so that sums stay far below saturation.
const BURST_TICKS: u64 = 1 << 57;

/// A rule prepared for arithmetic: conversion factors between units, ticks and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// B, in units.
    burst: u64,
    /// k, ticks per unit.
    unit_ticks: u64,
    /// B * k.
    burst_ticks: u64,
    /// Units in one hit, the unit of reports to peers. Greater than 1 only if the burst exceeds
    /// 2^16 units.
    quantum: u64,
    /// ticks = ns * num / den, in lowest terms, with num <= 4 * den.
    num: u64,
    den: u64,
}

/// The times of a check, in ticks of one rule. `end` is the greatest TAT after a check that passes:
/// one burst after the latest time at which the client may proceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickWindow {
    now: u64,
    end: u64,
}

impl Scale {
    /// `rate` and `burst` must have been checked.
    pub(crate) fn new(rate: &Rate, burst: u64) -> Scale {
        let (count, period) = (rate.count(), rate.period_ns());
        // With k = period, a tick divides the nanosecond, and everything is exact.
        let exact = if count <= TICKS_PER_NS {
            period
        } else {
            (u128::from(period) * u128::from(TICKS_PER_NS) / u128::from(count)) as u64
        };
        let unit_ticks = exact.min(BURST_TICKS / burst).max(1);
        let ticks = u128::from(count) * u128::from(unit_ticks);
        let divisor = gcd(ticks, period.into());
        Scale {
            burst,
            unit_ticks,
            burst_ticks: burst * unit_ticks,
            quantum: quantum(burst),
            num: (ticks / divisor) as u64,
            den: (u128::from(period) / divisor) as u64,
        }
    }

    /// The four numbers that determine a scale.
    pub(crate) fn to_words(self) -> [u64; 4] {
        [self.burst, self.unit_ticks, self.num, self.den]
    }

    /// The inverse of `to_words`. Returns `None` if the numbers are not a valid rule.
    pub(crate) fn from_words([burst, unit_ticks, num, den]: [u64; 4]) -> Option<Scale> {
        let burst_ticks = burst.checked_mul(unit_ticks).filter(|ticks| *ticks <= BURST_TICKS)?;
        let makes_sense = burst_ticks > 0 && num > 0 && den > 0;
        let quantum = quantum(burst);
        makes_sense.then_some(Scale { burst, unit_ticks, burst_ticks, quantum, num, den })
    }

    pub(crate) fn burst(&self) -> u64 {
        self.burst
    }

    /// Units in one hit, the unit of reports to peers.
    pub(crate) fn quantum(&self) -> u64 {
        self.quantum
    }

    /// Number of hits between two TATs, negative if `to` is before `from`. A hit is counted where
    /// the TAT passes one of the bucket's marks, which are a quantum apart. So no unit is lost or
    /// counted twice, however small the steps.
    ///
    /// The fingerprint determines where the marks are. If all buckets had the same marks, all
    /// buckets that are charged near a mark would count a hit at once, and the rounding errors of
    /// many buckets would add up instead of averaging out.
    pub(crate) fn hits(&self, from: Tat, to: Tat, fingerprint: u64) -> i64 {
        // At most 2^-16 of the burst plus one unit, so it cannot overflow.
        let ticks = self.quantum * self.unit_ticks;
        let offset = fingerprint % ticks;
        // The casts are exact, because a TAT has 60 bits.
        ((to + offset) / ticks) as i64 - ((from + offset) / ticks) as i64
    }

    /// The hits of `units` that were just taken, which changed `tat` to `next`.
    #[inline]
    pub(crate) fn hits_taken(
        &self,
        tat: Tat,
        window: TickWindow,
        next: Tat,
        units: u64,
        fingerprint: u64,
    ) -> i64 {
        match self.quantum {
            1 => i64::try_from(units).unwrap_or(i64::MAX),
            _ => self.hits(tat.max(window.now), next, fingerprint),
        }
    }

    /// Converts a time in nanoseconds to ticks, rounded down.
    #[inline(always)]
    pub(crate) fn ticks(&self, ns: u64) -> u64 {
        if self.den == 1 { ns.saturating_mul(self.num).min(MAX_TAT) } else { self.coarse_ticks(ns) }
    }

    /// `ticks` for rules whose tick does not divide the nanosecond.
    #[inline(never)]
    fn coarse_ticks(&self, ns: u64) -> u64 {
        saturate(u128::from(ns) * u128::from(self.num) / u128::from(self.den)).min(MAX_TAT)
    }

    /// The first nanosecond at which `ticks` ticks have passed.
    fn first_ns(&self, ticks: u64) -> u64 {
        if self.num == 1 && self.den == 1 {
            return ticks;
        }
        saturate((u128::from(ticks) * u128::from(self.den)).div_ceil(u128::from(self.num)))
    }

    /// Nanoseconds from `now` until the time `ticks`.
    fn until(&self, ticks: u64, now: u64) -> u64 {
        self.first_ns(ticks).saturating_sub(now)
    }

    /// The window of a check that may be delayed until `latest`, both in nanoseconds.
    #[inline(always)]
    pub(crate) fn window(&self, now: u64, latest: u64) -> TickWindow {
        let ticks = self.ticks(now);
        let latest = match latest == now {
            true => ticks,
            // Limits the delay, so that the charge still fits into the bucket.
            false => self.ticks(latest).min(MAX_TAT - self.burst_ticks).max(ticks),
        };
        // The end exceeds `MAX_TAT` only in the last burst of ticks. Checks that pass there count
        // as failed open.
        TickWindow { now: ticks, end: latest + self.burst_ticks }
    }

    /// Returns true if `units` pass. If the bucket is in debt, not even 0 units pass.
    #[inline]
    pub(crate) fn passes(&self, tat: Tat, window: TickWindow, units: u64) -> bool {
        let ticks = units.saturating_mul(self.unit_ticks);
        tat.max(window.now).saturating_add(ticks) <= window.end
    }

    /// The maximum number of units that pass, or `None` if the bucket is in debt.
    pub(crate) fn max_units(&self, tat: Tat, window: TickWindow) -> Option<u64> {
        let room = window.end.checked_sub(tat.max(window.now))?;
        Some(room / self.unit_ticks)
    }

    /// The TAT after `units` were taken.
    #[inline]
    pub(crate) fn take(&self, tat: Tat, window: TickWindow, units: u64) -> Tat {
        let ticks = units.saturating_mul(self.unit_ticks);
        tat.max(window.now).saturating_add(ticks).min(MAX_TAT)
    }

    /// The TAT after `units` were taken at `now`.
    pub(crate) fn charge(&self, tat: Tat, now: u64, units: u64) -> Tat {
        self.charge_ticks(tat, now, units.saturating_mul(self.unit_ticks))
    }

    /// The TAT after `ticks` were taken at `now`.
    pub(crate) fn charge_ticks(&self, tat: Tat, now: u64, ticks: u64) -> Tat {
        tat.max(self.ticks(now)).saturating_add(ticks).min(MAX_TAT)
    }

    /// The TAT after `units` were refunded. A TAT in the past is a full bucket, so a refund cannot
    /// exceed the burst.
    pub(crate) fn refund(&self, tat: Tat, units: u64) -> Tat {
        tat.saturating_sub(units.saturating_mul(self.unit_ticks))
    }

    /// Whole units in the bucket, negative if it is in debt.
    pub(crate) fn balance(&self, tat: Tat, now: u64) -> i64 {
        let used = tat.saturating_sub(self.ticks(now));
        match self.burst_ticks.checked_sub(used) {
            Some(left) => (left / self.unit_ticks) as i64,
            None => {
                let debt = (used - self.burst_ticks).div_ceil(self.unit_ticks);
                -i64::try_from(debt).unwrap_or(i64::MAX)
            }
        }
    }

    /// The used share of the burst, as a multiple of 2^-32. Above 2^32 if the bucket is in debt, 0
    /// only if it is full.
    pub(crate) fn share_used(&self, tat: Tat, now: u64) -> u64 {
        match tat.saturating_sub(self.ticks(now)) {
            0 => 0,
            used => saturate((u128::from(used) << 32) / u128::from(self.burst_ticks)).max(1),
        }
    }

    /// Returns true if less than a tenth of the burst is left.
    pub(crate) fn is_saturated(&self, tat: Tat, now: u64) -> bool {
        tat.saturating_sub(self.ticks(now)) > self.burst_ticks - self.burst_ticks / 10
    }

    /// The TAT of a bucket that has `used_16ths / 16` units used.
    pub(crate) fn level(&self, now: u64, used_16ths: u64) -> Tat {
        let used = saturate(u128::from(used_16ths) * u128::from(self.unit_ticks) / 16);
        self.ticks(now).saturating_add(used).min(MAX_TAT)
    }

    /// The used units of a bucket in sixteenths, rounded down.
    pub(crate) fn used_16ths(&self, tat: Tat, now: u64) -> u64 {
        let used = tat.saturating_sub(self.ticks(now));
        saturate(u128::from(used) * 16 / u128::from(self.unit_ticks))
    }

    /// The nanosecond at which the bucket was full before its last `hits`, if they came at the rate
    /// of the rule.
    pub(crate) fn start(&self, tat: Tat, hits: u64) -> u64 {
        self.first_ns(self.before(tat, hits))
    }

    /// The TAT without its last `hits`.
    pub(crate) fn before(&self, tat: Tat, hits: u64) -> Tat {
        tat.saturating_sub(hits.saturating_mul(self.quantum * self.unit_ticks))
    }

    /// The time in which an empty bucket fills, in nanoseconds.
    pub(crate) fn fill_ns(&self) -> u64 {
        self.first_ns(self.burst_ticks)
    }

    /// The rate in units per second.
    pub(crate) fn rate(&self) -> f64 {
        1e9 * self.num as f64 / (self.den as f64 * self.unit_ticks as f64)
    }

    /// Nanoseconds until the bucket is out of debt, which is when the last charged unit becomes
    /// available.
    pub(crate) fn wait(&self, tat: Tat, now: u64) -> u64 {
        self.until(tat.saturating_sub(self.burst_ticks), now)
    }

    /// Nanoseconds until `units` pass without delay.
    pub(crate) fn retry_after(&self, tat: Tat, now: u64, units: u64) -> u64 {
        self.wait(self.charge(tat, now, units), now)
    }

    /// Nanoseconds until the bucket is full.
    pub(crate) fn reset_after(&self, tat: Tat, now: u64) -> u64 {
        self.until(tat, now)
    }
}

/// Converts a TAT when the rule of its bucket changes. The balance is kept, but cut to the new
/// burst. The result is rounded in the client's favour, by less than a tick.
pub(crate) fn carry_over(from: &Scale, to: &Scale, tat: Tat, now: u64) -> Tat {
    if from == to {
        return tat;
    }
    let used = tat.saturating_sub(from.ticks(now));
    if used == 0 {
        return 0;
    }
    let other = |ticks: u64| u128::from(ticks) * u128::from(to.unit_ticks);
    let used = match from.burst_ticks.checked_sub(used) {
        Some(left) => {
            let left = other(left).div_ceil(u128::from(from.unit_ticks));
            u128::from(to.burst_ticks).saturating_sub(left)
        }
        None => {
            let debt = other(used - from.burst_ticks) / u128::from(from.unit_ticks);
            u128::from(to.burst_ticks) + debt
        }
    };
    to.ticks(now).saturating_add(saturate(used)).min(MAX_TAT)
}

fn quantum(burst: u64) -> u64 {
    burst.div_ceil(1 << 16)
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn scale(count: u64, seconds: u64, burst: u64) -> Scale {
        Scale::new(&Rate::new(count, Duration::from_secs(seconds)), burst)
    }

    #[test]
    fn a_tick_divides_the_nanosecond_for_common_rates() {
        for (count, ticks_per_ns) in [(1, 1), (3, 3), (1000, 1), (10_000_000, 1), (64, 1)] {
            let scale = scale(count, 1, 100);
            assert_eq!((scale.num, scale.den), (ticks_per_ns, 1), "{count}/s");
        }
        assert_eq!(scale(1, 31_536_000, 3).den, 1, "once a year");
    }

    /// The long-run rate is exact: 9,999,991 units take exactly one second.
    #[test]
    fn a_prime_rate_does_not_drift() {
        let scale = scale(9_999_991, 1, 1);
        let tat = (0..9_999_991).fold(0, |tat, _| scale.charge(tat, 0, 1));
        assert_eq!(scale.reset_after(tat, 0), 1_000_000_000);
        assert_eq!(scale.ticks(1_000_000_000), tat);
    }

    #[test]
    fn first_ns_returns_the_first_nanosecond_of_a_tick() {
        for count in [1, 3, 7, 9_999_991] {
            let scale = scale(count, 1, 5);
            for ticks in (1..2_000_000).step_by(7919) {
                let first = scale.first_ns(ticks);
                assert!(scale.ticks(first) >= ticks && scale.ticks(first - 1) < ticks);
            }
        }
    }

    #[test]
    fn a_balance_is_carried_over_to_another_rule() {
        let now = 5_000_000_000;
        let (slow, fast) = (scale(1, 1, 10), scale(7, 1, 4));
        for (used, balance) in [(7, 3), (10, 0), (13, -3)] {
            let tat = slow.charge(0, now, used);
            assert_eq!(slow.balance(tat, now), 10 - used as i64);
            let carried = carry_over(&slow, &fast, tat, now);
            assert_eq!(fast.balance(carried, now), balance, "{used} used");
            let back = carry_over(&fast, &slow, carried, now);
            assert_eq!(slow.balance(back, now), balance, "and back");
        }
        let tat = slow.charge(0, now, 3);
        assert_eq!(
            carry_over(&slow, &fast, tat, now),
            fast.ticks(now),
            "a balance of 7 is cut to the burst of 4"
        );
        assert_eq!(carry_over(&slow, &fast, 17, now), 0, "a full bucket stays full");
        assert_eq!(carry_over(&fast, &slow, MAX_TAT, now), MAX_TAT, "the greatest TAT stays");
        assert_eq!(carry_over(&slow, &slow, 17, now), 17);
    }

    #[test]
    fn a_burst_is_at_most_65536_hits() {
        for (burst, quantum) in [
            (1, 1),
            (65_536, 1),
            (65_537, 2),
            (1 << 20, 16),
            ((1 << 20) + 1, 17),
            (1 << 50, 1 << 34),
        ] {
            let scale = scale(1, 1, burst);
            assert_eq!(scale.quantum(), quantum);
            assert!(scale.hits(0, scale.burst_ticks, 0) <= 1 << 16);
            assert!(scale.hits(MAX_TAT, 0, u64::MAX) < 0 && scale.hits(0, MAX_TAT, u64::MAX) > 0);
        }
    }

    /// However a range is divided into steps, the hits of the steps add up to the hits of the
    /// range.
    #[test]
    fn hits_of_steps_add_up() {
        let mut number = 1_u64;
        for burst in [10, 1 << 20, 12_345_678_901] {
            let scale = scale(3, 1, burst);
            let (mut tat, mut sum) = (0, 0);
            for _ in 0..1000 {
                number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let units = (number >> 33) % burst.div_ceil(7);
                let next = match number >> 32 & 3 {
                    0 => scale.refund(tat, units),
                    _ => scale.charge(tat, 0, units),
                };
                sum += scale.hits(tat, next, burst);
                if scale.quantum() == 1 {
                    assert_eq!(
                        scale.hits(tat, next, burst).unsigned_abs(),
                        tat.abs_diff(next) / scale.unit_ticks
                    );
                }
                tat = next;
                assert_eq!(sum, scale.hits(0, tat, burst));
            }
        }
    }

    #[test]
    fn from_words_rejects_invalid_numbers() {
        let scale = scale(3, 1, 10);
        assert_eq!(Scale::from_words(scale.to_words()), Some(scale));
        for words in
            [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0], [1 << 40, 1 << 40, 1, 1]]
        {
            assert_eq!(Scale::from_words(words), None, "{words:?}");
        }
    }

    #[test]
    fn sums_saturate_at_the_greatest_tat() {
        let scale = scale(3, 1, 10);
        assert_eq!(scale.ticks(u64::MAX), MAX_TAT);
        assert_eq!(scale.charge(MAX_TAT, u64::MAX, u64::MAX), MAX_TAT);
        assert_eq!(scale.refund(5, u64::MAX), 0);
        assert!(scale.balance(MAX_TAT, 0) < 0);
        let end = scale.window(u64::MAX, u64::MAX);
        assert_eq!(scale.max_units(MAX_TAT, end), Some(10), "checks pass at the greatest TAT");
        assert!(scale.passes(MAX_TAT, end, 10) && !scale.passes(MAX_TAT, end, 11));
        assert_eq!(scale.max_units(MAX_TAT, scale.window(0, 0)), None);
    }

    /// Otherwise a bucket at the greatest TAT would grant every delay.
    #[test]
    fn a_delay_is_granted_only_if_the_bucket_can_hold_it() {
        let scale = scale(3, 1, 10);
        let window = scale.window(5, u64::MAX);
        let most = scale.max_units(0, window).unwrap();
        let full = scale.take(0, window, most);
        assert!(full < MAX_TAT && full > MAX_TAT - 2 * scale.unit_ticks);
        assert!(!scale.passes(full, window, 1) && !scale.passes(MAX_TAT, window, 1));
    }
}
