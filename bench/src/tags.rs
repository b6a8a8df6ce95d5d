//! Tags in the order in which they come: one, uniform, or a few often and many seldom.

/// How the checks are spread over the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Uniform,
    /// Rank k comes about 1/k as often as the first.
    Zipf,
}

/// The tags of a stream of checks, one after the other in memory: a server has just read the tag
/// from a request, and has it in the cache.
pub(crate) fn stream(count: u32, spread: Spread, checks: usize) -> Vec<String> {
    let mut random = Random(0x5eed);
    let mut next = || match spread {
        Spread::Uniform => (random.unit() * f64::from(count)) as u32,
        // The inverse of the harmonic sum.
        Spread::Zipf => (f64::from(count).powf(random.unit()) as u32 - 1).min(count - 1),
    };
    (0..checks).map(|_| tag(next())).collect()
}

/// A tag by its number, in the form of an address.
pub(crate) fn tag(number: u32) -> String {
    format!("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255)
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
