//! Ways to do it wrong, to show that the models notice.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mistake {
    #[default]
    None,
    /// A claim is not followed by a fold.
    NoFold,
    /// What was folded is not charged again.
    NoAdd,
    /// A spent slot that comes alive is not followed by a fold.
    NoFoldOfSpent,
    /// A spent slot is made an empty one.
    SpentIsEmptied,
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
}
