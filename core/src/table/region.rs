//! The memory of a table, seen as its parts: lines of slots, bitmaps, rules, origins, header.
//!
//! The lines come first, where a huge page can begin; the header is the last page. Everything in
//! it is atomic, because any process may write at any time, and nothing read from it is trusted:
//! lengths are taken once, when the region is opened, and every index is checked.
#![allow(unsafe_code, reason = "one of the homes of unsafe code; see ARCHITECTURE.md")]

use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;

use super::cell::AtomicU64;
use super::exchange_state::ExchangeState;
use super::geometry::{Geometry, PAGE, PAGE_LINES};
use super::line::Line;
use super::origins::PeerSlot;
use super::rules::SharedRule;
use super::slot::RULES;

/// Pages that one huge page can replace.
const HUGE_PAGES: usize = 512;
/// With so many of them in use a huge page is better: where tags are many, most of the time goes
/// into finding out where their pages are.
const MANY_PAGES: u32 = 64;

/// The last page of a region.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    /// Says what this file is. Written last.
    pub(super) magic: AtomicU64,
    pub(super) layout: AtomicU64,
    pub(super) lines: AtomicU64,
    /// The zero of the table's time, by the machine's clock.
    pub(super) zero_ns: AtomicU64,
    /// The key of the fingerprints.
    pub(super) key: [AtomicU64; 2],
    /// The start of the machine that the times belong to.
    pub(super) boot: [AtomicU64; 2],
    /// When an exchanger last said that it is there; zero: never.
    pub(super) exchanged_ns: AtomicU64,
    /// How much later than their time checks may pass, because of the way to the peers.
    pub(super) slack_ns: AtomicU64,
    /// Not zero: no rule index is given to another rule, because a process could not say which
    /// rules it uses.
    pub(super) rules_pinned: AtomicU64,
    /// What is read at every check and what is often written lie in different cache lines.
    gap: [AtomicU64; 5],
    /// How many claims were begun.
    pub(super) claims: AtomicU64,
    /// How many places there are for origins.
    pub(super) peer_slots: AtomicU64,
    /// What the processes of the table tell each other about the exchange.
    pub(super) exchange: ExchangeState,
}

/// What a table is born with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableParams {
    pub(crate) zero_ns: u64,
    pub(crate) key: [u64; 2],
    pub(crate) boot: [u64; 2],
}

/// Why memory is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionError {
    NotATable,
    Layout { found: u64, ours: u64 },
}

/// "dThrottl" in a file on a little-endian machine.
const MAGIC: u64 = 0x6c74_746f_7268_5464;
/// Changes whenever a byte of a region means something else than before.
const LAYOUT: u64 = 8;

/// Where memory comes from and how it is given back.
///
/// # Safety
///
/// `base` points to `len` bytes that are readable, writable and at least 64-byte aligned, were
/// zero or a region when they were got, and stay so until the value is dropped.
pub(crate) unsafe trait Memory: Send + Sync {
    fn base(&self) -> NonNull<u8>;
    fn len(&self) -> usize;
    /// Says that the huge page around this offset is used in many places.
    fn prefer_huge_page(&self, _offset: usize) {}
}

/// A table's memory.
pub(crate) struct Region {
    geometry: Geometry,
    base: NonNull<u8>,
    /// Where the header is: asked for at every check, so not worked out anew.
    header: NonNull<Header>,
    memory: Box<dyn Memory>,
}

// SAFETY: everything in the region is atomic, and the memory may move between threads.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// The memory as a region of this shape. `None`: it is too short.
    pub(crate) fn new(memory: Box<dyn Memory>, geometry: Geometry) -> Option<Region> {
        if memory.len() < geometry.bytes() {
            return None;
        }
        let base = memory.base();
        // SAFETY: `bytes()` has a header at this offset, and as many bytes are there.
        let header = unsafe { base.add(geometry.header_at()) }.cast();
        Some(Region { geometry, base, header, memory })
    }

    /// Zeroed memory as a table that was just made.
    pub(crate) fn create(
        memory: Box<dyn Memory>,
        geometry: Geometry,
        params: &TableParams,
    ) -> Option<Region> {
        let region = Region::new(memory, geometry)?;
        let header = region.header();
        // Relaxed: the file has no name yet, so nobody looks.
        header.layout.store(LAYOUT, Ordering::Relaxed);
        header.lines.store(geometry.lines as u64, Ordering::Relaxed);
        header.peer_slots.store(geometry.peer_slots as u64, Ordering::Relaxed);
        header.zero_ns.store(params.zero_ns, Ordering::Relaxed);
        for i in 0..2 {
            header.key[i].store(params.key[i], Ordering::Relaxed);
            header.boot[i].store(params.boot[i], Ordering::Relaxed);
        }
        header.magic.store(MAGIC, Ordering::Relaxed);
        Some(region)
    }

    /// Memory that another process made a table, whose header is its last page.
    pub(crate) fn existing(memory: Box<dyn Memory>) -> Result<Region, RegionError> {
        let len = memory.len();
        let header_at = len.checked_sub(PAGE).filter(|_| len.is_multiple_of(PAGE));
        let header_at = header_at.ok_or(RegionError::NotATable)?;
        // SAFETY: the last page of the memory is aligned, and any bytes make a header.
        let header = unsafe { memory.base().add(header_at) }.cast::<Header>();
        // SAFETY: as above.
        let header = unsafe { header.as_ref() };
        if header.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(RegionError::NotATable);
        }
        let found = header.layout.load(Ordering::Relaxed);
        if found != LAYOUT {
            return Err(RegionError::Layout { found, ours: LAYOUT });
        }
        let lines = header.lines.load(Ordering::Relaxed);
        let geometry = Geometry::from_header(lines, header.peer_slots.load(Ordering::Relaxed));
        let geometry = geometry.filter(|geometry| geometry.bytes() == len);
        let geometry = geometry.ok_or(RegionError::NotATable)?;
        Region::new(memory, geometry).ok_or(RegionError::NotATable)
    }

    pub(crate) fn params(&self) -> TableParams {
        let header = self.header();
        let pair = |words: &[AtomicU64; 2]| words.each_ref().map(|w| w.load(Ordering::Relaxed));
        TableParams {
            zero_ns: header.zero_ns.load(Ordering::Relaxed),
            key: pair(&header.key),
            boot: pair(&header.boot),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    #[inline]
    pub(super) fn lines(&self) -> &[Line] {
        self.part(0, self.geometry.lines)
    }

    /// A bit for every line that has something to report, a word for every page.
    #[inline]
    pub(super) fn dirty(&self) -> &[AtomicU64] {
        self.part(self.geometry.bitmap_at(), self.geometry.words())
    }

    /// A bit for every page that was ever used, so that nobody has to look at the others.
    fn used(&self) -> &[AtomicU64] {
        self.part(self.geometry.used_at(), self.geometry.words().div_ceil(64))
    }

    pub(super) fn rules(&self) -> &[SharedRule] {
        self.part(self.geometry.rules_at(), RULES)
    }

    pub(super) fn rule(&self, index: u16) -> Option<&SharedRule> {
        let index = usize::from(index);
        let at = self.geometry.rules_at() + index * size_of::<SharedRule>();
        (index < RULES).then(|| &self.part(at, 1)[0])
    }

    /// What is known of the origins of reports; there may be no room for that.
    pub(super) fn peer_slots(&self) -> &[PeerSlot] {
        self.part(self.geometry.peer_slots_at(), self.geometry.peer_slots)
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: points into `memory`, which lives as long; made of atomics only.
        unsafe { self.header.as_ref() }
    }

    /// The lines of a page.
    pub(super) fn page(&self, page: usize) -> &[Line] {
        let first = page * PAGE_LINES;
        let last = (first + PAGE_LINES).min(self.geometry.lines);
        &self.lines()[first..last]
    }

    /// Notes that a page will hold something.
    pub(super) fn mark_used(&self, page: usize) {
        let word = &self.used()[page / 64];
        let bit = 1 << (page % 64);
        // Relaxed: only a reader that looks later must see it, and then it does.
        if word.load(Ordering::Relaxed) & bit != 0
            || word.fetch_or(bit, Ordering::Relaxed) & bit != 0
        {
            return;
        }
        let first = page / HUGE_PAGES * HUGE_PAGES / 64;
        let words = self.used().iter().skip(first).take(HUGE_PAGES / 64);
        let used: u32 = words.map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        // Once: the count only grows, one by one.
        if used == MANY_PAGES {
            self.memory.prefer_huge_page(page * PAGE);
        }
    }

    pub(super) fn is_used(&self, page: usize) -> bool {
        self.used()[page / 64].load(Ordering::Relaxed) & (1 << (page % 64)) != 0
    }

    /// The word and the bit of a line.
    pub(super) fn bit_of(line: usize) -> (usize, u64) {
        (line / PAGE_LINES, 1 << (line % PAGE_LINES))
    }

    #[inline]
    fn part<T: Part>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: `Geometry` keeps offset and count inside `bytes()`, and `new` and `existing`
        // made sure of as many bytes.
        let start = unsafe { self.base.add(offset) }.cast::<T>();
        // SAFETY: aligned, because the base is aligned to 64 bytes and every offset to the part's
        // alignment; valid for any bytes, because `Part` says so; alive as long as `memory`;
        // changed by others only through atomics, which all fields are.
        unsafe { slice::from_raw_parts(start.as_ptr(), count) }
    }
}

/// A type made of atomics only, for which every pattern of bytes is a value.
trait Part {}
impl Part for Line {}
impl Part for AtomicU64 {}
impl Part for SharedRule {}
impl Part for PeerSlot {}

const _: () = {
    assert!(size_of::<Line>() == 64);
    assert!(size_of::<Header>() <= PAGE);
    assert!(PAGE_LINES == 64);
};
