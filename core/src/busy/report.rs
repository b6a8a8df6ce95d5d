//! Busy responses that are passed between processes and nodes, and the 128-bit word of a service's
//! record in which they wait.
//!
//! A process adds a busy response of its own to the service's `local` word; the exchanging process
//! takes it and broadcasts it. A report from a peer is added to the `remote` word and taken by the
//! next local call about the service. The two words are never mixed, so a remote report is never
//! broadcast again. A word contains bits of its service's name, so that a report is not taken for
//! another service while the record changes its owner.

use std::sync::atomic::Ordering;

use super::cell::AtomicU128;

/// The fields of a word, from the lowest bit. Times are in microseconds: 48 bits last nine years.
const NAME_BITS: u32 = 16;
const AT_BITS: u32 = 48;
const COUNT_BITS: u32 = 8;
const UNTIL_BITS: u32 = 56;

const AT_SHIFT: u32 = NAME_BITS;
const COUNT_SHIFT: u32 = AT_SHIFT + AT_BITS;
const UNTIL_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;

/// Busy responses of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BusyReport {
    /// The time of the last one.
    pub(crate) at_ns: u64,
    /// The number of responses, 1 to 255. Larger numbers are stored as 255.
    pub(crate) answers: u64,
    /// End of the pause that the service asked for; zero if it asked for none.
    pub(crate) until_ns: u64,
}

impl BusyReport {
    /// The sum of both.
    fn with(self, other: BusyReport) -> BusyReport {
        BusyReport {
            at_ns: self.at_ns.max(other.at_ns),
            answers: self.answers.saturating_add(other.answers),
            until_ns: self.until_ns.max(other.until_ns),
        }
    }

    fn to_bits(self, name: u64) -> u128 {
        let field = |value: u64, bits: u32, at: u32| u128::from(value.min((1 << bits) - 1)) << at;
        u128::from(short(name))
            | field(self.at_ns / 1000, AT_BITS, AT_SHIFT)
            | field(self.answers.max(1), COUNT_BITS, COUNT_SHIFT)
            // Rounded up, so that a pause does not end too early.
            | field(self.until_ns.div_ceil(1000), UNTIL_BITS, UNTIL_SHIFT)
    }

    /// The report in a word. `None` if there is none for this service.
    fn from_bits(bits: u128, name: u64) -> Option<BusyReport> {
        let field = |width: u32, at: u32| (bits >> at) as u64 & ((1 << width) - 1);
        let belongs = field(NAME_BITS, 0) == short(name);
        let ns = |us: u64| us.saturating_mul(1000);
        (belongs && field(COUNT_BITS, COUNT_SHIFT) > 0).then(|| BusyReport {
            at_ns: ns(field(AT_BITS, AT_SHIFT)),
            answers: field(COUNT_BITS, COUNT_SHIFT),
            until_ns: ns(field(UNTIL_BITS, UNTIL_SHIFT)),
        })
    }
}

/// A report that has not been taken yet. Zero means that there is none.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct PendingBusyReport(AtomicU128);

impl PendingBusyReport {
    /// Adds a report. A report of another service is replaced.
    pub(super) fn add(&self, name: u64, report: BusyReport) {
        // Release: a thread that takes the report sees the record's owner at this time.
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, |bits| {
            let all =
                BusyReport::from_bits(bits, name).map_or(report, |before| before.with(report));
            Some(all.to_bits(name))
        });
    }

    /// Empties the word, then calls `name`. Returns the report if it belongs to that service.
    #[inline]
    pub(super) fn take(&self, name: impl FnOnce() -> u64) -> Option<BusyReport> {
        // In the common case, there is no report and nothing is written.
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // Acquire: pairs with `add`.
        let bits = self.0.swap(0, Ordering::Acquire);
        BusyReport::from_bits(bits, name())
    }

    /// Clears the word, unless `holds` returns false. `holds` is checked again after each
    /// concurrent change, so later reports are kept.
    pub(super) fn wipe(&self, holds: impl Fn() -> bool) {
        // Acquire: pairs with the Release of `add`, so that `holds` sees a change before it.
        let next = |bits| (bits != 0 && holds()).then_some(0);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Acquire, next);
    }

    /// Returns the time of the last response in the report of this service; zero if there is none.
    pub(super) fn at_ns(&self, name: u64) -> u64 {
        BusyReport::from_bits(self.0.load(Ordering::Relaxed), name).map_or(0, |report| report.at_ns)
    }
}

/// Returns the bits of a name that are stored. The upper bits are equal for all services of a set.
fn short(name: u64) -> u64 {
    name & ((1 << NAME_BITS) - 1)
}

const _: () = assert!(UNTIL_SHIFT + UNTIL_BITS == u128::BITS);
