//! Measurements of one tag: an exact bucket that contains every admission of the whole cluster, the
//! demand, and how evenly the nodes admitted.

use std::collections::VecDeque;

use crate::{Ns, SEC};

/// The rule of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Units per second.
    pub rate: u64,
    /// The burst in units.
    pub burst: u64,
}

impl Limit {
    /// Returns the time in which an empty bucket fills.
    pub fn fill(self) -> Ns {
        (u128::from(self.burst) * u128::from(SEC) / u128::from(self.rate)) as Ns
    }
}

/// A leaky bucket in exact arithmetic, which never refuses. A unit is divided into as many parts as
/// a second has nanoseconds, so that a whole number of parts leaks every nanosecond.
///
/// Its level after an admission is the maximum, over all windows that end there, of the units
/// admitted less those that the rate allows. So one number covers every window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference {
    full_at: u128,
}

impl Reference {
    /// Counts an admission.
    pub fn add(&mut self, limit: Limit, now: Ns, units: u64) {
        let now = u128::from(now) * u128::from(limit.rate);
        self.full_at = self.full_at.max(now) + u128::from(units) * u128::from(SEC);
    }

    /// Units in use now.
    pub fn level(&self, limit: Limit, now: Ns) -> f64 {
        let now = u128::from(now) * u128::from(limit.rate);
        self.full_at.saturating_sub(now) as f64 / SEC as f64
    }

    /// Returns the whole units that an exact bucket would still allow.
    pub fn available(&self, limit: Limit, now: Ns) -> u64 {
        let used = self.full_at.saturating_sub(u128::from(now) * u128::from(limit.rate));
        let burst = u128::from(limit.burst) * u128::from(SEC);
        (burst.saturating_sub(used) / u128::from(SEC)) as u64
    }

    /// Returns the first time from now on at which this many units are available.
    pub fn available_at(&self, limit: Limit, now: Ns, units: u64) -> Ns {
        let most = u128::from(limit.burst - units) * u128::from(SEC);
        let at = self.full_at.saturating_sub(most).div_ceil(u128::from(limit.rate));
        now.max(at as Ns)
    }
}

/// The largest sum within any window of a fixed length.
#[derive(Clone, Debug)]
pub struct Peak {
    window: Ns,
    recent: VecDeque<(Ns, u64)>,
    sum: u64,
    most: u64,
}

impl Peak {
    /// Creates a peak over windows of this length.
    pub fn new(window: Ns) -> Peak {
        Peak { window, recent: VecDeque::new(), sum: 0, most: 0 }
    }

    /// Adds units at a time, which must not be earlier than the last.
    pub fn add(&mut self, now: Ns, units: u64) {
        while let Some(&(at, old)) = self.recent.front()
            && at + self.window < now
        {
            self.sum -= old;
            self.recent.pop_front();
        }
        self.recent.push_back((now, units));
        self.sum += units;
        self.most = self.most.max(self.sum);
    }

    /// Returns the largest sum so far.
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// The measurements of one tag.
#[derive(Clone, Debug)]
pub struct Meter {
    limit: Limit,
    /// The time span, start and end, in which rates, peaks per second and dry spells are measured.
    span: (Ns, Ns),
    reference: Reference,
    /// The highest level of the reference, and the time at which it was reached.
    highest: (f64, Ns),
    demand: Vec<(Ns, u64)>,
    requested: u64,
    admitted: u64,
    in_span: u64,
    second: Peak,
    last: Ns,
    dry: Ns,
    by_node: Vec<u64>,
}

impl Meter {
    /// Creates a meter. Rates, peaks per second and dry spells are measured within `span`.
    pub fn new(limit: Limit, nodes: usize, span: (Ns, Ns)) -> Meter {
        Meter {
            limit,
            span,
            reference: Reference::default(),
            highest: (0.0, 0),
            demand: Vec::new(),
            requested: 0,
            admitted: 0,
            in_span: 0,
            second: Peak::new(SEC - 1),
            last: span.0,
            dry: 0,
            by_node: vec![0; nodes],
        }
    }

    /// Records a request and its result.
    pub fn record(&mut self, now: Ns, node: usize, units: u64, allowed: bool) {
        self.requested += units;
        self.demand.push((now, units));
        if !allowed {
            return;
        }
        self.admitted += units;
        self.reference.add(self.limit, now, units);
        let level = self.reference.level(self.limit, now);
        if level > self.highest.0 {
            self.highest = (level, now);
        }
        if (self.span.0..self.span.1).contains(&now) {
            self.in_span += units;
            self.second.add(now, units);
            self.by_node[node] += units;
            self.dry = self.dry.max(now - self.last);
            self.last = now;
        }
    }

    /// Returns the largest sum of admissions in any window, less burst and rate. Below zero if the
    /// tag never used all that it was allowed.
    pub fn excess(&self) -> f64 {
        self.highest.0 - self.limit.burst as f64
    }

    /// Returns when that window ended.
    pub fn excess_at(&self) -> Ns {
        self.highest.1
    }

    /// Returns the most units requested in any window of this length.
    pub fn peak_demand(&self, window: Ns) -> u64 {
        let mut peak = Peak::new(window);
        self.demand.iter().for_each(|(at, units)| peak.add(*at, *units));
        peak.most()
    }

    /// Returns the time of the last request.
    pub fn last_request(&self) -> Ns {
        self.demand.last().map_or(0, |(at, _)| *at)
    }

    /// Returns the units requested and admitted in total.
    pub fn totals(&self) -> (u64, u64) {
        (self.requested, self.admitted)
    }

    /// Returns the relative error of the rate within the span: 0.01 is one percent too many.
    pub fn rate_error(&self) -> f64 {
        let allowed = (self.span.1 - self.span.0) as f64 / SEC as f64 * self.limit.rate as f64;
        self.in_span as f64 / allowed - 1.0
    }

    /// Returns the most units admitted in any second of the span, as a multiple of the rate.
    pub fn worst_second(&self) -> f64 {
        self.second.most() as f64 / self.limit.rate as f64
    }

    /// Returns the longest time without an admission within the span.
    pub fn dry_spell(&self) -> Ns {
        self.dry.max(self.span.1.saturating_sub(self.last))
    }

    /// Returns Jain's fairness index of the nodes' admissions within the span: 1 if all admitted
    /// the same, 1/n if one admitted everything.
    pub fn fairness(&self) -> f64 {
        let sum: f64 = self.by_node.iter().map(|n| *n as f64).sum();
        let squares: f64 = self.by_node.iter().map(|n| (*n as f64).powi(2)).sum();
        if squares == 0.0 { 1.0 } else { sum * sum / (squares * self.by_node.len() as f64) }
    }

    /// Returns the used units that follow from all admissions together.
    pub fn level(&self, now: Ns) -> f64 {
        self.reference.level(self.limit, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    const LIMIT: Limit = Limit { rate: 7, burst: 10 };

    #[test]
    fn the_reference_covers_every_window() {
        let mut state = 3_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..100 {
            let mut meter = Meter::new(LIMIT, 1, (0, 100 * SEC));
            let mut seen: Vec<(Ns, u64)> = Vec::new();
            let mut now = 0;
            for _ in 0..60 {
                now += random(SEC);
                let units = 1 + random(8);
                meter.record(now, 0, units, true);
                seen.push((now, units));
            }
            let mut most = f64::MIN;
            for first in 0..seen.len() {
                let mut sum = 0;
                for &(at, units) in &seen[first..] {
                    sum += units;
                    let allowed = (at - seen[first].0) as f64 / SEC as f64 * LIMIT.rate as f64;
                    most = most.max(sum as f64 - allowed - LIMIT.burst as f64);
                }
            }
            assert!((meter.excess() - most).abs() < 1e-6, "{} {most}", meter.excess());
        }
    }

    #[test]
    fn units_are_available_at_the_returned_time() {
        let mut reference = Reference::default();
        let mut now = SEC;
        for units in [3, 7, 1, 2, 10, 5] {
            now = reference.available_at(LIMIT, now, units);
            assert!(reference.available(LIMIT, now) >= units);
            let early = Reference::available_at(&reference, LIMIT, now, LIMIT.burst);
            if early > now {
                assert!(reference.available(LIMIT, early - 1) < LIMIT.burst);
            }
            reference.add(LIMIT, now, units);
        }
    }

    #[test]
    fn a_meter_returns_peaks_dry_spells_and_fairness() {
        let mut meter = Meter::new(LIMIT, 2, (SEC, 3 * SEC));
        for at in [5, 9, 14, 16, 1500, 1501, 2400] {
            meter.record(at * MS, (at % 2) as usize, 1, true);
        }
        assert_eq!(meter.peak_demand(10 * MS), 3, "5, 9 and 14");
        assert_eq!(meter.dry_spell(), 899 * MS);
        assert_eq!(meter.worst_second(), 3.0 / 7.0);
        assert!((meter.fairness() - 0.9).abs() < 1e-9);
        assert!((meter.rate_error() - (3.0 / 14.0 - 1.0)).abs() < 1e-9);
    }
}
