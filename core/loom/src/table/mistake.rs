//! Ways to do it wrong, to show that the models notice.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mistake {
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
    /// Who finds a service sees its place, and not what was done before.
    NoOrder,
    /// It is noted that there are news before they are there.
    FlagFirst,
    /// The exchanger looks for news before it takes the note that there are any.
    LookFirst,
}

thread_local! {
    // All threads of a model run in one thread of the system.
    static MADE: Cell<Mistake> = const { Cell::new(Mistake::None) };
}

impl Mistake {
    pub(super) fn make(self) {
        MADE.set(self);
    }

    pub(super) fn is_made(self) -> bool {
        MADE.get() == self
    }

    /// Whether one is made that `line.rs` leaves no room for.
    pub(super) fn is_in_claim() -> bool {
        use Mistake::{HomeOnly, NoReservation, NoSecondLook, NoSilence, Rewritten};
        [Rewritten, NoReservation, NoSecondLook, NoSilence, HomeOnly].contains(&MADE.get())
    }
}
