//! A histogram of durations, which any number of threads add to without a lock.

use std::time::Duration;

use crate::state::Count;

/// The upper bounds of all buckets but the last, which has none. As text, because Prometheus
/// compares labels as text.
pub(crate) const BOUNDS: [(Duration, &str); 14] = [
    (Duration::from_micros(5), "0.000005"),
    (Duration::from_micros(10), "0.00001"),
    (Duration::from_micros(25), "0.000025"),
    (Duration::from_micros(50), "0.00005"),
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_micros(250), "0.00025"),
    (Duration::from_micros(500), "0.0005"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_micros(2500), "0.0025"),
    (Duration::from_millis(5), "0.005"),
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(25), "0.025"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(100), "0.1"),
];

#[derive(Default)]
pub(crate) struct Histogram {
    /// The number of durations in each bucket, without those in lower buckets.
    counts: [Count; BOUNDS.len() + 1],
    sum_ns: Count,
}

/// The counts of a histogram at one time.
pub(crate) struct Snapshot {
    /// The number of durations up to each bound. The last element counts all durations.
    pub(crate) cumulative: [u64; BOUNDS.len() + 1],
    pub(crate) sum: Duration,
}

impl Histogram {
    /// Adds `count` requests that took `time` each.
    #[inline]
    pub(crate) fn add(&self, time: Duration, count: u64) {
        if count > 0 {
            let bucket = BOUNDS.iter().position(|(bound, _)| time <= *bound);
            self.counts[bucket.unwrap_or(BOUNDS.len())].add(count);
            self.sum_ns.add((time.as_nanos() as u64).saturating_mul(count));
        }
    }

    /// Returns a total that matches the buckets even if other threads add durations meanwhile.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut total = 0;
        let cumulative = self.counts.each_ref().map(|count| {
            total += count.get();
            total
        });
        Snapshot { cumulative, sum: Duration::from_nanos(self.sum_ns.get()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_sorted_and_their_labels_are_their_seconds() {
        assert!(BOUNDS.is_sorted());
        for (bound, label) in BOUNDS {
            assert_eq!(label.parse::<f64>().unwrap(), bound.as_secs_f64());
        }
    }

    #[test]
    fn a_duration_counts_in_every_bucket_whose_bound_is_not_exceeded() {
        let histogram = Histogram::default();
        histogram.add(Duration::from_micros(10), 3);
        histogram.add(Duration::from_nanos(10_001), 1);
        histogram.add(Duration::from_secs(2), 1);
        histogram.add(Duration::from_secs(9), 0);
        let Snapshot { cumulative, sum } = histogram.snapshot();
        assert_eq!(cumulative[..4], [0, 3, 4, 4]);
        assert_eq!(cumulative[BOUNDS.len() - 1..], [4, 5]);
        assert_eq!(sum, Duration::from_nanos(2_000_040_001));
    }
}
