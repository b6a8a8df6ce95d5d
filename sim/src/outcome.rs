//! What came of a run: everything that is judged, printed or drawn afterwards.

use crate::Ns;
use crate::clients::Tag;
use crate::measure::Meter;
use crate::network::Counts;
use crate::scenario::ClientKind;

/// What came of a run.
pub struct Outcome {
    /// All about each tag, and who used it.
    pub tags: Vec<(ClientKind, Meter)>,
    /// How often conforming clients asked, and were refused.
    pub conforming: (u64, u64),
    /// What is wrong with the ledger.
    pub ledger_errors: Vec<String>,
    /// How often something was charged.
    pub ledger_entries: u64,
    /// The longest that a report was under way between nodes that could reach each other.
    pub slowest: Ns,
    /// The fewest peers that a node knew when clients began.
    pub fewest_peers: usize,
    /// What nodes saw when they were looked at.
    pub views: Vec<View>,
    /// What was sent from the beginning of the clients to their end.
    pub counts: Counts,
    /// Stands for everything that happened.
    pub digest: u64,
    /// The first tag over time.
    pub samples: Vec<Sample>,
    /// What nodes said: when, which, what.
    pub events: Vec<(Ns, usize, String)>,
}

impl Outcome {
    /// Before anything happened.
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

    /// Takes a datagram into the digest.
    pub fn note(&mut self, now: Ns, bytes: &[u8]) {
        mix(&mut self.digest, now);
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            mix(&mut self.digest, u64::from_le_bytes(whole));
        }
    }
}

/// Takes a word into a digest.
pub fn mix(digest: &mut u64, word: u64) {
    *digest = (*digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
}

/// How a tag looked to all nodes at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// When.
    pub at: Ns,
    /// Which tag.
    pub tag: Tag,
    /// Whether it was saturated.
    pub saturated: bool,
    /// What every admission together left, below zero in debt.
    pub truth: f64,
    /// What each node that is up had left.
    pub balances: Vec<i64>,
}

/// The first tag at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Ns,
    /// Units admitted since the sample before.
    pub admitted: u64,
    /// What each node had left.
    pub balances: Vec<i64>,
}
