//! The outcome of a run: everything that is checked, printed or plotted afterwards.

use crate::Ns;
use crate::clients::Tag;
use crate::measure::Meter;
use crate::network::Counts;
use crate::scenario::ClientKind;

/// The outcome of a run.
pub struct Outcome {
    /// For each tag, the kind of its client and its measurements.
    pub tags: Vec<(ClientKind, Meter)>,
    /// The number of requests of conforming clients, and of those that were refused.
    pub conforming: (u64, u64),
    /// The errors found by the ledger.
    pub ledger_errors: Vec<String>,
    /// The number of charges in the ledger.
    pub ledger_entries: u64,
    /// The longest time from making a report to charging it, between nodes that could reach each
    /// other.
    pub slowest: Ns,
    /// The fewest peers that any node had when the clients started.
    pub fewest_peers: usize,
    /// The balances of all nodes at the times of inspection.
    pub views: Vec<View>,
    /// The datagrams sent from the start to the end of the clients.
    pub counts: Counts,
    /// A hash of everything that happened.
    pub digest: u64,
    /// Samples of the first tag over time.
    pub samples: Vec<Sample>,
    /// Events: time, node and text.
    pub events: Vec<(Ns, usize, String)>,
}

impl Outcome {
    /// Creates the outcome of a run that has not started.
    pub fn new(tags: Vec<(ClientKind, Meter)>) -> Outcome {
        Outcome {
            tags,
            conforming: (0, 0),
            ledger_errors: Vec::new(),
            ledger_entries: 0,
            slowest: 0,
            fewest_peers: 0,
            views: Vec::new(),
            counts: Counts::default(),
            digest: 0xcbf2_9ce4_8422_2325,
            samples: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Adds a datagram to the digest.
    pub fn note(&mut self, now: Ns, bytes: &[u8]) {
        mix(&mut self.digest, now);
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            mix(&mut self.digest, u64::from_le_bytes(whole));
        }
    }
}

/// Adds a word to a digest.
pub fn mix(digest: &mut u64, word: u64) {
    *digest = (*digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
}

/// The balances of a tag on all nodes at one time.
#[derive(Clone, Debug)]
pub struct View {
    /// The time.
    pub at: Ns,
    /// The tag.
    pub tag: Tag,
    /// Whether its client saturates it.
    pub saturated: bool,
    /// The balance that follows from all admissions together, below zero in debt.
    pub truth: f64,
    /// The balance on each node that is up.
    pub balances: Vec<i64>,
}

/// The first tag at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time.
    pub at: Ns,
    /// Units admitted since the previous sample.
    pub admitted: u64,
    /// The balance on each node.
    pub balances: Vec<i64>,
}
