//! Randomness from the operating system.

use std::hash::{BuildHasher, RandomState};

/// A key that cannot be guessed outside this process.
pub(crate) fn key() -> [u64; 2] {
    // The standard library seeds this from the system's random generator.
    let state = RandomState::new();
    [state.hash_one(0_u8), state.hash_one(1_u8)]
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_keys_differ() {
        let keys = [super::key(), super::key()];
        assert_ne!(keys[0], keys[1]);
        assert_ne!(keys[0][0], keys[0][1]);
    }
}
