//! Ways to do it wrong, to show that the models notice.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mistake {
    #[default]
    None,
    /// None, but the claim is that of `mistaken.rs`.
    Rewritten,
    /// A claim puts the bucket there at once.
    NoReservation,
    /// A claim does not look again.
    NoSecondLook,
    /// A claim looks again for buckets, and does not tell other claims to give up.
    NoSilence,
    /// A claim looks again in the home line only, however crowded that is.
    HomeOnly,
    /// A slot that is reserved for a tag counts as its bucket.
    ReservedIsFound,
    /// A claim that is given up leaves an empty slot.
    GivenUpIsEmptied,
    /// All claims have the same token.
    OneToken,
    /// A change stores what was meant, whatever is there.
    NoCompare,
    /// No order between a change and the loads behind it.
    NoFence,
    /// A line is not marked.
    NoMark,
    /// A line is marked before its slot is changed.
    MarkFirst,
    /// A line that keeps something is not marked again.
    NoMarkOfLater,
    /// The exchanger visits the slots before it clears the bits.
    VisitFirst,
    /// A process that finds its service does not see what was done to the record before.
    NoOrder,
    /// The flag that there are reports is set before the report is there.
    FlagFirst,
    /// The exchanger looks for reports before it clears the flag.
    LookFirst,
}

thread_local! {
    // All threads of a model run in one thread of the system.
    static MADE: Cell<Mistake> = const { Cell::new(Mistake::None) };
}

impl Mistake {
    pub(crate) fn make(self) {
        MADE.set(self);
    }

    pub(crate) fn is_made(self) -> bool {
        MADE.get() == self
    }

    /// Whether one is made that `line.rs` leaves no room for.
    pub(crate) fn is_in_claim() -> bool {
        use Mistake::{HomeOnly, NoReservation, NoSecondLook, NoSilence, Rewritten};
        [Rewritten, NoReservation, NoSecondLook, NoSilence, HomeOnly].contains(&MADE.get())
    }
}
