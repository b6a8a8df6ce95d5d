//! Streams of tags: one tag, uniformly distributed tags, or a Zipf distribution.

/// The distribution of checks over tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Uniform,
    /// The tag of rank k is checked about 1/k as often as the first.
    Zipf,
}

/// Returns the tags of a stream of checks. They are adjacent in memory, so that the tag is in the
/// cache, as for a server that has just read it from a request.
pub(crate) fn stream(count: u32, spread: Spread, checks: usize) -> Vec<String> {
    let mut random = Random(0x5eed);
    let mut next = || match spread {
        Spread::Uniform => (random.unit() * f64::from(count)) as u32,
        // The approximate inverse of the cumulative distribution.
        Spread::Zipf => (f64::from(count).powf(random.unit()) as u32 - 1).min(count - 1),
    };
    (0..checks).map(|_| tag(next())).collect()
}

/// Returns the tag with this number, which looks like an IPv4 address.
pub(crate) fn tag(number: u32) -> String {
    format!("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255)
}

/// A random number generator (xorshift64*) with a fixed seed.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to less than 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
