//! The counts of one middleware in this process. `Throttle::stats` has the counts of the throttle.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Numbers of requests by their outcome.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Counts {
            /// The names of the counts, in the order of `values`.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Returns the counts, in the order of `NAMES`.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }

        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        impl Counters {
            pub(super) fn get(&self) -> Counts {
                Counts { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    /// Passed, immediately or after a delay.
    passed,
    /// Refused.
    refused,
    /// Passed only because of dry run.
    dry_run,
    /// Delayed until their turn.
    delayed,
    /// The client left before its turn.
    gave_up,
    /// Had no usable tag. Counted by address, or passed if the tag is the address and it is
    /// unknown.
    untagged,
    /// Errors of the application's functions and of the throttle.
    failed,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add_one(&self) {
        // Relaxed: the count does not order other memory.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
