//! The memory of busy answers: a header, then the records of services.
//!
//! Everything in it is atomic, because any process may write at any time, and nothing read from it is
//! trusted.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::ptr::NonNull;

use super::cell::{AtomicU64, WAYS};
use super::service::Service;
use super::set::Set;
use crate::table::{Memory, PAGE};

/// The number of services that are remembered.
pub(super) const SERVICES: usize = 1024;
/// Bytes of the memory.
pub(crate) const BYTES: usize = size_of::<Layout>().next_multiple_of(PAGE);

#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    /// Says what this file is. Written last.
    pub(super) magic: AtomicU64,
    pub(super) version: AtomicU64,
    /// The zero of the memory's time, by the machine's clock.
    pub(super) zero_ns: AtomicU64,
    /// The key of the fingerprints.
    pub(super) key: [AtomicU64; 2],
    /// The start of the machine that the times belong to.
    pub(super) boot: [AtomicU64; 2],
    /// The number of claims.
    pub(super) claims: AtomicU64,
    /// Not zero if there may be busy answers to broadcast.
    pub(super) has_local_busy: AtomicU64,
    /// When a process last asked for busy answers to be shared with the cluster; zero: never.
    pub(super) shared_ns: AtomicU64,
    /// When the process that runs the exchange last wrote the number of its peers; zero: never.
    pub(super) exchanged_ns: AtomicU64,
    pub(super) peers: AtomicU64,
}

#[repr(C)]
struct Layout {
    header: Header,
    services: [Service; SERVICES],
}

/// The memory of busy answers.
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

    /// The set in which a service may be.
    pub(super) fn set(&self, name: u64) -> &Set {
        let sets = self.services().as_chunks().0;
        &sets[((u128::from(name) * sets.len() as u128) >> 64) as usize]
    }

    fn layout(&self) -> &Layout {
        // SAFETY: `new` made sure of as many bytes; they are aligned to 64 (`Memory`), live as long as
        // `self`, and are changed only through atomics, for which any bytes are a value.
        unsafe { self.layout.as_ref() }
    }
}

const _: () = {
    assert!(size_of::<Service>() == 128 && align_of::<Layout>() == 64);
    assert!(SERVICES.is_multiple_of(WAYS));
};
