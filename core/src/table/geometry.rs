//! Sizes and offsets of the parts of a region.

use super::cell::AtomicU64;
use super::line::{Line, SLOTS};
use super::origins::PeerSlot;
use super::rules::SharedRule;
use super::slot::RULES;

/// Bytes of a page, the unit of mapping.
pub(crate) const PAGE: usize = 4096;
/// Lines in a page: 64, one for each bit of a bitmap word.
pub(super) const PAGE_LINES: usize = PAGE / size_of::<Line>();
/// Number of peer slots in a table with exchange: the maximum number of nodes in a cluster.
const PEER_SLOTS: usize = 1024;

/// The sizes that determine the layout of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(super) lines: usize,
    /// Number of peer slots. 0 in tables without exchange.
    pub(super) peer_slots: usize,
}

impl Geometry {
    /// A tag needs two different lines.
    const MIN_LINES: usize = 2;
    /// 16 TB, which is more than any machine maps, and far below overflow.
    const MAX_LINES: usize = if usize::BITS == 64 { 1 << 38 } else { 1 << 24 };

    pub(crate) fn new(lines: usize) -> Geometry {
        Geometry { lines: lines.clamp(Geometry::MIN_LINES, Geometry::MAX_LINES), peer_slots: 0 }
    }

    /// The geometry that a header declares, or `None` if it is impossible.
    pub(super) fn from_header(lines: u64, peer_slots: u64) -> Option<Geometry> {
        let geometry = Geometry::new(usize::try_from(lines).ok()?);
        let is_possible =
            geometry.lines as u64 == lines && [0, PEER_SLOTS as u64].contains(&peer_slots);
        is_possible.then_some(Geometry { peer_slots: peer_slots as usize, ..geometry })
    }

    /// The largest geometry with the same peer slots that takes at most `bytes`.
    pub(crate) fn within(self, bytes: u64) -> Geometry {
        let lines = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Line>();
        let mut fit = self.with_lines(lines);
        // A line takes slightly more than 64 bytes. With 72, each step removes about nine tenths of
        // the excess, so a few steps suffice.
        while fit.lines > Geometry::MIN_LINES && fit.bytes() as u64 > bytes {
            let over = fit.bytes() as u64 - bytes;
            let fewer = usize::try_from(over.div_ceil(72)).unwrap_or(usize::MAX);
            fit = self.with_lines(fit.lines.saturating_sub(fewer));
        }
        fit
    }

    pub(crate) fn at_least(self, lines: usize) -> Geometry {
        self.with_lines(self.lines.max(lines))
    }

    /// The same geometry with peer slots.
    pub(crate) fn with_peer_slots(self) -> Geometry {
        Geometry { peer_slots: PEER_SLOTS, ..self }
    }

    fn with_lines(self, lines: usize) -> Geometry {
        Geometry { lines: Geometry::new(lines).lines, ..self }
    }

    /// Number of tags with one bucket each that fill 60% of the slots.
    pub(crate) fn tags(self) -> u64 {
        (self.lines * SLOTS) as u64 * 6 / 10
    }

    /// Number of bitmap words: one for each page of lines.
    pub(super) fn words(self) -> usize {
        self.lines.div_ceil(PAGE_LINES)
    }

    pub(super) fn bitmap_at(self) -> usize {
        self.words() * PAGE
    }

    /// Offset of the bitmap with one bit for each page that was ever used.
    pub(super) fn used_at(self) -> usize {
        self.bitmap_at() + self.words() * size_of::<AtomicU64>()
    }

    pub(super) fn rules_at(self) -> usize {
        self.used_at() + self.words().div_ceil(64) * size_of::<AtomicU64>()
    }

    pub(super) fn peer_slots_at(self) -> usize {
        (self.rules_at() + RULES * size_of::<SharedRule>()).next_multiple_of(align_of::<PeerSlot>())
    }

    pub(super) fn header_at(self) -> usize {
        (self.peer_slots_at() + self.peer_slots * size_of::<PeerSlot>()).next_multiple_of(PAGE)
    }

    /// Size of the whole region in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.header_at() + PAGE
    }
}
