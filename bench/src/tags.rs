//! Tags in the order in which they come: one, uniform, or a few often and many seldom.

/// The tags of a stream of checks, one after the other in memory: a server has just read the tag
/// from a request, and would have it in the cache.
pub(crate) struct Tags(Vec<String>);

impl Tags {
    pub(crate) fn new(count: u32, zipf: bool, checks: usize) -> Tags {
        let mut random = Random(0x5eed);
        let order = (0..checks).map(|_| match zipf {
            false => (random.unit() * f64::from(count)) as u32,
            // The inverse of the harmonic sum: rank k comes about 1/k as often as the first.
            true => (f64::from(count).powf(random.unit()) as u32 - 1).min(count - 1),
        });
        let tag = |i: u32| format!("10.{}.{}.{}", i >> 16, (i >> 8) & 255, i & 255);
        Tags(order.map(tag).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }
}

/// A small generator (xorshift64*), the same sequence in every run.
struct Random(u64);

impl Random {
    /// From 0 up to, not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
