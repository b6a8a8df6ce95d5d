//! The memory of busy responses: a header, followed by the records of services.
//!
//! Everything in it is atomic, because any process may write at any time, and nothing read from it
//! is trusted.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::ptr::NonNull;

use super::cell::{AtomicU64, WAYS};
use super::service::Service;
use super::set::Set;
use crate::table::{Memory, PAGE};

pub(super) const SERVICES: usize = 1024;
/// The size of the memory in bytes.
pub(crate) const BYTES: usize = size_of::<Layout>().next_multiple_of(PAGE);

#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    /// Identifies the file type. Written last.
    pub(super) magic: AtomicU64,
    pub(super) version: AtomicU64,
    /// The reading of the machine's clock at the region's time 0, in nanoseconds.
    pub(super) zero_ns: AtomicU64,
    /// The key of the fingerprints.
    pub(super) key: [AtomicU64; 2],
    /// The ID of the boot in which the times are valid.
    pub(super) boot: [AtomicU64; 2],
    /// The number of claims so far.
    pub(super) claims: AtomicU64,
    /// Not zero if there may be busy responses to broadcast.
    pub(super) has_local_busy: AtomicU64,
    /// When a process last requested that busy responses are shared with the cluster; zero if
    /// never.
    pub(super) shared_ns: AtomicU64,
    /// When the exchanging process last wrote the number of its peers; zero if never.
    pub(super) exchanged_ns: AtomicU64,
    pub(super) peers: AtomicU64,
}

#[repr(C)]
struct Layout {
    header: Header,
    services: [Service; SERVICES],
}

/// The memory of busy responses.
pub(crate) struct BusyRegion {
    layout: NonNull<Layout>,
    /// Owns what `layout` points to.
    _memory: Box<dyn Memory>,
}

// SAFETY: everything in the region is atomic, and the memory may move between threads.
unsafe impl Send for BusyRegion {}
// SAFETY: as above.
unsafe impl Sync for BusyRegion {}

impl BusyRegion {
    /// Uses memory as a region. Returns `None` if it is too short.
    pub(super) fn new(memory: Box<dyn Memory>) -> Option<BusyRegion> {
        (memory.len() >= BYTES)
            .then(|| BusyRegion { layout: memory.base().cast(), _memory: memory })
    }

    pub(super) fn header(&self) -> &Header {
        &self.layout().header
    }

    pub(super) fn services(&self) -> &[Service; SERVICES] {
        &self.layout().services
    }

    /// Returns the set of records in which a service may be.
    pub(super) fn set(&self, name: u64) -> &Set {
        let sets = self.services().as_chunks().0;
        &sets[((u128::from(name) * sets.len() as u128) >> 64) as usize]
    }

    fn layout(&self) -> &Layout {
        // SAFETY: `new` checked the length. The bytes are aligned to 64 (`Memory`), live as long as
        // `self`, and are changed only through atomics, for which every bit pattern is valid.
        unsafe { self.layout.as_ref() }
    }
}

const _: () = {
    assert!(size_of::<Service>() == 128 && align_of::<Layout>() == 64);
    assert!(SERVICES.is_multiple_of(WAYS));
};
