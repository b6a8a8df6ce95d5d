//! The actions that cause the faults of a scenario, with their times.

use crate::Ns;
use crate::scenario::Fault;

/// An action that causes or ends a fault.
pub(crate) enum FaultAction {
    /// Divides the network into these sides; `None` heals it.
    Partition(Option<Vec<u8>>),
    Stop {
        node: usize,
        graceful: bool,
    },
    Start(usize),
    Jump {
        node: usize,
        by: Ns,
    },
}

pub(crate) fn fault_actions(faults: &[Fault]) -> Vec<(Ns, FaultAction)> {
    let mut fault_actions = Vec::new();
    for fault in faults {
        match fault.clone() {
            Fault::Cut { at, until, sides } => {
                fault_actions.push((at, FaultAction::Partition(Some(sides))));
                fault_actions.push((until, FaultAction::Partition(None)));
            }
            Fault::Restart { at, node, down, graceful } => {
                fault_actions.push((at, FaultAction::Stop { node, graceful }));
                fault_actions.push((at + down, FaultAction::Start(node)));
            }
            Fault::Jump { at, node, by } => {
                fault_actions.push((at, FaultAction::Jump { node, by }));
            }
        }
    }
    fault_actions
}
