//! What the faults of a scenario change, and when.

use crate::Ns;
use crate::scenario::Fault;

/// One change.
pub(crate) enum Change {
    Divide(Option<Vec<u8>>),
    Stop { node: usize, graceful: bool },
    Start(usize),
    Jump { node: usize, by: Ns },
}

/// The changes that faults make.
pub(crate) fn changes(faults: &[Fault]) -> Vec<(Ns, Change)> {
    let mut changes = Vec::new();
    for fault in faults {
        match fault.clone() {
            Fault::Cut { at, until, sides } => {
                changes.push((at, Change::Divide(Some(sides))));
                changes.push((until, Change::Divide(None)));
            }
            Fault::Restart { at, node, down, graceful } => {
                changes.push((at, Change::Stop { node, graceful }));
                changes.push((at + down, Change::Start(node)));
            }
            Fault::Jump { at, node, by } => changes.push((at, Change::Jump { node, by })),
        }
    }
    changes
}
