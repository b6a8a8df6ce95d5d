//! Ways to do it wrong, to show that the models notice.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mutation {
    #[default]
    None,
    /// None, but the claim is that of `mutated_claim.rs`.
    Rewritten,
    /// A claim puts the bucket there at once.
    NoReservation,
    /// A claim does not look again.
    NoSecondLook,
    /// A claim looks again for buckets, and does not tell other claims to give up.
    NoCancel,
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
    NoMarkAgain,
    /// The exchanger visits the slots before it clears the bits.
    DrainFirst,
    /// A process that finds its service does not see what was done to the record before.
    NoOrder,
    /// The flag that there are reports is set before the report is there.
    FlagFirst,
    /// The exchanger looks for reports before it clears the flag.
    ReadFirst,
}

thread_local! {
    // All threads of a model run in one thread of the system.
    static ACTIVE: Cell<Mutation> = const { Cell::new(Mutation::None) };
}

impl Mutation {
    pub(crate) fn activate(self) {
        ACTIVE.set(self);
    }

    pub(crate) fn is_active(self) -> bool {
        ACTIVE.get() == self
    }

    /// Whether one is made that `line.rs` leaves no room for.
    pub(crate) fn is_in_claim() -> bool {
        use Mutation::{HomeOnly, NoCancel, NoReservation, NoSecondLook, Rewritten};
        [Rewritten, NoReservation, NoSecondLook, NoCancel, HomeOnly].contains(&ACTIVE.get())
    }
}
