//! What one middleware counted in this process; `Throttle::stats` has the rest.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Requests by what became of them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Counts {
            /// The names of the counts, in their order.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The counts, in the order of their names.
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
    /// Passed at once, or after a wait.
    passed,
    /// Refused.
    refused,
    /// Would have been refused, but for dry run.
    dry_run,
    /// Delayed until their turn.
    delayed,
    /// The client left before its turn.
    gave_up,
    /// Without a usable tag: counted by address, or passed where the address is the tag and unknown.
    untagged,
    /// Errors of the application's functions, and of the throttle.
    failed,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add_one(&self) {
        // Relaxed: a count orders nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
