//! Inspects a throttle: its domains, its counts of decisions, and the most used buckets.

use std::ffi::c_char;

use crate::ffi::{VersionedStruct, at, chars, ns};
use crate::throttle::Throttle;

/// A bucket in use. Begin with DTHROTTLE_BUCKET_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bucket {
    /// sizeof(dthrottle_bucket_t).
    pub size: usize,
    /// A hash of domain, rule and tag. The table does not contain the tag.
    pub fingerprint: u64,
    /// The name of the domain.
    pub domain: [c_char; 256],
    /// The name of the rule.
    pub rule: [c_char; 256],
    /// The burst of the rule.
    pub limit: u64,
    /// Whole units in the bucket. Negative in debt.
    pub balance: i64,
    /// The time until the bucket is full.
    pub reset_after_ns: u64,
}

/// Returns the name of a domain of the throttle by its index from 0, or NULL after the last one.
/// The default domain is the first. The string is valid until the handle is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_domain_list(
    throttle: *const Throttle,
    index: i32,
) -> *const c_char {
    guard!(|c| {
        let names = &c.handle(throttle)?.domains;
        Ok(at(names, index)?.as_ptr())
    })
}

/// Returns the numbers of checks allowed and refused, as dthrottle_stats() does. Faster, because it
/// does not read the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_decisions(
    throttle: *const Throttle,
    allowed: *mut u64,
    refused: *mut u64,
) -> i32 {
    guard!(|c| {
        let counts = c.handle(throttle)?.core.decisions();
        c.store(allowed, counts.0)?;
        c.store(refused, counts.1)
    })
}

/// Writes the buckets with the largest used share of their burst, the most used first. buckets is
/// an array of capacity structs, all of the size that the first one states. count receives the
/// number of structs written. Reads the whole table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dthrottle_top(
    throttle: *const Throttle,
    buckets: *mut Bucket,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard!(|c| {
        c.store(count, 0)?;
        let outs = c.out_structs(buckets, capacity)?;
        let found = c.handle(throttle)?.core.top(capacity);
        let written = outs.zip(&found).map(|(out, bucket)| out.fill(bucket.into())).count();
        c.store(count, written)
    })
}

impl From<&dthrottle_core::TopBucket> for Bucket {
    fn from(bucket: &dthrottle_core::TopBucket) -> Bucket {
        Bucket {
            size: Bucket::MIN_SIZE,
            fingerprint: bucket.fingerprint,
            domain: chars(&bucket.domain),
            rule: chars(&bucket.rule),
            limit: bucket.limit,
            balance: bucket.balance,
            reset_after_ns: ns(bucket.reset_after),
        }
    }
}
