//! A look at a whole throttle: its domains, and who uses most.

use std::ffi::c_char;

use crate::ffi::{VersionedStruct, at, chars, ns};
use crate::throttle::Throttle;

/// A bucket that is used. Begin with DTHROTTLE_BUCKET_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bucket {
    /// sizeof(dthrottle_bucket_t).
    pub size: usize,
    /// Stands for domain, rule and tag: the tag itself is not kept.
    pub fingerprint: u64,
    /// The domain's name.
    pub domain: [c_char; 256],
    /// The rule's name.
    pub rule: [c_char; 256],
    /// The rule's burst.
    pub limit: u64,
    /// Whole units in the bucket, negative in debt.
    pub balance: i64,
    /// The time until the bucket is full.
    pub reset_after_ns: u64,
}

/// The name of a domain of the throttle, by its index from 0, the default domain first; NULL if
/// there is no more. Lives as long as the handle.
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

/// Checks allowed and refused so far, as in dthrottle_stats(), which also looks at the whole table.
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

/// The buckets with the largest share of their burst used, most used first. buckets has room for so
/// many, each as large as the first one's size says; count gets how many were written. Looks at the
/// whole table.
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
