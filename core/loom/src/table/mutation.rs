//! Deliberate defects, to show that the models detect them.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mutation {
    #[default]
    None,
    /// No defect, but the claim of `mutated_claim.rs`.
    Rewritten,
    /// A claim stores the bucket without a reservation.
    NoReservation,
    /// A claim does not search again after its reservation.
    NoSecondSearch,
    /// A claim searches again for buckets, but cancels no other claims.
    NoCancel,
    /// A claim searches only the home line again, even if that is crowded.
    HomeOnly,
    /// A slot that is reserved for a tag counts as its bucket.
    ReservedIsFound,
    /// A claim that gives up leaves an empty slot.
    GivenUpIsEmptied,
    /// All claims have the same token.
    OneToken,
    /// A swap stores the new value without comparing.
    NoCompare,
    /// No fence between a swap and the loads after it.
    NoFence,
    /// A line is not marked.
    NoMark,
    /// A line is marked before its slot is changed.
    MarkFirst,
    /// A line that keeps pending hits is not marked again.
    NoMarkAgain,
    /// The exchanging process reads the slots before it clears the bits.
    DrainFirst,
    /// A process that finds its service does not see earlier changes of the record.
    NoOrder,
    /// The flag that announces reports is set before the report is stored.
    FlagFirst,
    /// The exchanging process reads the reports before it clears the flag.
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

    /// Returns true if the active mutation needs `mutated_claim.rs`.
    pub(crate) fn is_in_claim() -> bool {
        use Mutation::{HomeOnly, NoCancel, NoReservation, NoSecondSearch, Rewritten};
        [Rewritten, NoReservation, NoSecondSearch, NoCancel, HomeOnly].contains(&ACTIVE.get())
    }
}
