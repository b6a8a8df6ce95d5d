//! The memory of a table, divided into its parts: lines of slots, bitmaps, rules, peer slots,
//! header.
//!
//! The lines come first, where a huge page can begin. The header is the last page. Everything in
//! the region is atomic, because any process may write at any time. Values read from it are not
//! trusted: lengths are read once, when the region is opened, and every index is checked.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

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

/// Pages that one huge page replaces.
const HUGE_PAGES: usize = 512;
/// With this many pages in use, a huge page is better: in a table with many tags, most of the time
/// goes into address translation.
const MANY_PAGES: u32 = 64;

/// The last page of a region.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    /// Identifies the file as a table. Written last.
    pub(super) magic: AtomicU64,
    pub(super) layout: AtomicU64,
    pub(super) lines: AtomicU64,
    /// The zero of the table's time, on the machine's clock.
    pub(super) zero_ns: AtomicU64,
    /// The key of the fingerprints.
    pub(super) key: [AtomicU64; 2],
    /// The boot ID of the machine start that the times belong to.
    pub(super) boot: [AtomicU64; 2],
    /// When the exchanging process last recorded that it is alive. 0: never.
    pub(super) exchanged_ns: AtomicU64,
    /// How much later than their time checks may pass because reports are under way, in
    /// nanoseconds.
    pub(super) slack_ns: AtomicU64,
    /// Not zero if no rule index may be reused, because a process could not lock the rules that it
    /// uses.
    pub(super) rules_pinned: AtomicU64,
    /// Separates the fields that every check reads from those that are often written.
    gap: [AtomicU64; 5],
    /// Number of claims that were begun.
    pub(super) claims: AtomicU64,
    /// Number of peer slots.
    pub(super) peer_slots: AtomicU64,
    /// What the processes of the table share about the exchange.
    pub(super) exchange: ExchangeState,
}

/// Values that are set when a table is created and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableParams {
    pub(crate) zero_ns: u64,
    pub(crate) key: [u64; 2],
    pub(crate) boot: [u64; 2],
}

/// Why memory cannot be used as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionError {
    NotATable,
    Layout { found: u64, ours: u64 },
}

/// "dThrottl" in a file on a little-endian machine.
const MAGIC: u64 = 0x6c74_746f_7268_5464;
/// Increase this number whenever a byte of a region changes its meaning.
const LAYOUT: u64 = 8;

/// The source of a region's memory.
///
/// # Safety
///
/// `base` must point to `len` bytes that are readable, writable and aligned to at least 64 bytes.
/// They must initially be zero or hold a region, and stay valid until the value is dropped.
pub(crate) unsafe trait Memory: Send + Sync {
    fn base(&self) -> NonNull<u8>;
    fn len(&self) -> usize;
    /// Hints that the huge page around this offset is used in many places.
    fn prefer_huge_page(&self, _offset: usize) {}
}

/// A table's memory.
pub(crate) struct Region {
    geometry: Geometry,
    base: NonNull<u8>,
    /// The address of the header. Cached because every check needs it.
    header: NonNull<Header>,
    memory: Box<dyn Memory>,
}

// SAFETY: everything in the region is atomic, and the memory may move between threads.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Interprets memory as a region of this geometry. Returns `None` if the memory is too short.
    pub(crate) fn new(memory: Box<dyn Memory>, geometry: Geometry) -> Option<Region> {
        if memory.len() < geometry.bytes() {
            return None;
        }
        let base = memory.base();
        // SAFETY: a region of `bytes()` bytes has its header at this offset, and the memory is that
        // long.
        let header = unsafe { base.add(geometry.header_at()) }.cast();
        Some(Region { geometry, base, header, memory })
    }

    /// Initializes zeroed memory as a new table.
    pub(crate) fn create(
        memory: Box<dyn Memory>,
        geometry: Geometry,
        params: &TableParams,
    ) -> Option<Region> {
        let region = Region::new(memory, geometry)?;
        let header = region.header();
        // Relaxed: no other process can find the file yet.
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

    /// Opens memory that another process initialized. The header is in its last page.
    pub(crate) fn existing(memory: Box<dyn Memory>) -> Result<Region, RegionError> {
        let len = memory.len();
        let header_at = len.checked_sub(PAGE).filter(|_| len.is_multiple_of(PAGE));
        let header_at = header_at.ok_or(RegionError::NotATable)?;
        // SAFETY: the last page of the memory is aligned, and any bytes are a valid header.
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

    /// One bit for each line that has pending hits, one word for each page.
    #[inline]
    pub(super) fn dirty(&self) -> &[AtomicU64] {
        self.part(self.geometry.bitmap_at(), self.geometry.words())
    }

    /// One bit for each page that was ever used, so that walks skip the others.
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

    /// The peer slots. Empty in tables without exchange.
    pub(super) fn peer_slots(&self) -> &[PeerSlot] {
        self.part(self.geometry.peer_slots_at(), self.geometry.peer_slots)
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: points into `memory`, which lives as long, and consists of atomics only.
        unsafe { self.header.as_ref() }
    }

    /// The lines of a page.
    pub(super) fn page(&self, page: usize) -> &[Line] {
        let first = page * PAGE_LINES;
        let last = (first + PAGE_LINES).min(self.geometry.lines);
        &self.lines()[first..last]
    }

    /// Records that a page is in use.
    pub(super) fn mark_used(&self, page: usize) {
        let word = &self.used()[page / 64];
        let bit = 1 << (page % 64);
        // Relaxed: the bit only has to be visible to later walks, and it is.
        if word.load(Ordering::Relaxed) & bit != 0
            || word.fetch_or(bit, Ordering::Relaxed) & bit != 0
        {
            return;
        }
        let first = page / HUGE_PAGES * HUGE_PAGES / 64;
        let words = self.used().iter().skip(first).take(HUGE_PAGES / 64);
        let used: u32 = words.map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        // This happens once, because the count grows in steps of one.
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
        // SAFETY: `Geometry` keeps offset and count within `bytes()`, and `new` and `existing`
        // checked that the memory is that long.
        let start = unsafe { self.base.add(offset) }.cast::<T>();
        // SAFETY: aligned, because the base is aligned to 64 bytes and every offset to its part's
        // alignment. Any bytes are valid, because `T` is a `Part`. The memory lives as long as
        // `self`. Other processes change it only through atomics, and all fields are atomic.
        unsafe { slice::from_raw_parts(start.as_ptr(), count) }
    }
}

/// A type made of atomics only, for which every bit pattern is valid.
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
