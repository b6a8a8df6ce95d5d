//! What nodes send each other, byte by byte: docs/protocol.md.
//!
//! A datagram is an envelope, a sealed body and a tag. `keys.rs` seals and opens; there is one
//! file for each kind of body. Nothing here has state or acts on what it reads: a body is checked
//! to its end before any of it is handed out, no count is believed before the bytes are there,
//! and bytes after what is known are ignored, so that later versions may add fields.

mod address;
pub(crate) mod bytes;
pub mod digest;
pub mod gap;
pub mod hello;
pub mod keys;
pub mod payload;
pub mod report;
pub mod snapshot;

pub use digest::{ANSWER, parse_digest, write_digest};
pub use gap::{parse_gaps, write_gaps};
pub use hello::Hello;
pub use keys::{Keys, Secrets};
pub use payload::{MAX_AGE_US, parse_payload, write_payload};
pub use report::{
    MAX_ENTRY, MAX_HEAD, MAX_SECTION, RELAYED, Report, ReportEntry, ReportWriter, Section,
};
pub use snapshot::{Snapshot, SnapshotWriter};

use super::Origin;

/// The most bytes of a datagram: what every IPv6 link carries, less its headers.
pub const MAX_DATAGRAM: usize = 1232;
/// The most bytes of a body.
pub const MAX_BODY: usize = MAX_DATAGRAM - ENVELOPE - TAG;

const ENVELOPE: usize = 32;
const TAG: usize = 16;
const MAGIC: [u8; 2] = *b"dT";
/// Datagrams of another version cannot be understood. What is added at the end of a body, a new
/// flag or a new kind is not another version.
const VERSION: u8 = 1;

/// What a datagram is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DatagramKind {
    /// What a node admitted.
    Report = 1,
    /// Which reports are missing.
    Gap,
    /// Which of them nobody has any more.
    Gone,
    /// How far the reports of each origin are known.
    Digest,
    /// Asks for a snapshot. The body is empty.
    SnapshotRequest,
    /// Buckets in debt.
    Snapshot,
    /// A message of the membership protocol, in its own format.
    Swim,
    /// A challenge, its echo, or both.
    Hello,
    /// The sender ends. The body is empty.
    Leave,
    /// Data of the host.
    Payload,
}

impl DatagramKind {
    /// All kinds, in order of their numbers, from 1.
    pub const ALL: [DatagramKind; 10] = [
        DatagramKind::Report,
        DatagramKind::Gap,
        DatagramKind::Gone,
        DatagramKind::Digest,
        DatagramKind::SnapshotRequest,
        DatagramKind::Snapshot,
        DatagramKind::Swim,
        DatagramKind::Hello,
        DatagramKind::Leave,
        DatagramKind::Payload,
    ];

    fn of(byte: u8) -> Option<DatagramKind> {
        DatagramKind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What stands in front of every body, readable by all and changeable by nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What the body is.
    pub kind: DatagramKind,
    /// What they mean depends on the kind; unknown ones mean nothing.
    pub flags: u8,
    /// Who sent it.
    pub sender: Origin,
    /// No two datagrams of a sender have the same: it is part of the nonce.
    pub packet: u64,
}

impl Envelope {
    fn to_bytes(self, key: u8, cluster: [u8; 2]) -> [u8; ENVELOPE] {
        let mut bytes = [0; ENVELOPE];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..6].copy_from_slice(&[VERSION, self.kind as u8, self.flags, key]);
        bytes[6..8].copy_from_slice(&cluster);
        bytes[8..16].copy_from_slice(&self.sender.node.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sender.incarnation.to_be_bytes());
        bytes[24..].copy_from_slice(&self.packet.to_be_bytes());
        bytes
    }
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// Too short for an envelope and a tag.
    Short,
    /// Longer than any datagram may be.
    Long,
    /// Something else altogether.
    Magic,
    /// Of another version of the protocol.
    Version,
    /// Of a cluster with another name.
    Cluster,
    /// Sealed with a key that is not known here.
    Key,
    /// Forged, damaged, or sealed with another secret.
    Auth,
    /// Sealed well, but of a kind that is not known here.
    Kind,
    /// Sealed well, but the body is not what its kind says.
    Malformed,
}

impl DropCause {
    /// How many causes there are.
    pub const COUNT: usize = DropCause::ALL.len();
    /// All causes, in order of their index.
    pub const ALL: [DropCause; 9] = [
        DropCause::Short,
        DropCause::Long,
        DropCause::Magic,
        DropCause::Version,
        DropCause::Cluster,
        DropCause::Key,
        DropCause::Auth,
        DropCause::Kind,
        DropCause::Malformed,
    ];

    /// Its place in a list of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name, for counters and logs.
    pub fn name(self) -> &'static str {
        match self {
            DropCause::Short => "short",
            DropCause::Long => "long",
            DropCause::Magic => "magic",
            DropCause::Version => "version",
            DropCause::Cluster => "cluster",
            DropCause::Key => "key",
            DropCause::Auth => "auth",
            DropCause::Kind => "kind",
            DropCause::Malformed => "malformed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_promise() {
        assert_eq!((MAX_DATAGRAM, MAX_BODY), (1232, 1184));
    }

    #[test]
    fn every_cause_has_its_counter() {
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(cause.index(), index);
        }
        let names: std::collections::BTreeSet<_> = DropCause::ALL.map(DropCause::name).into();
        assert_eq!(names.len(), DropCause::COUNT);
    }

    #[test]
    fn kinds_are_numbered() {
        assert_eq!(DatagramKind::ALL.map(|kind| kind as u8), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!((1..=10).all(|byte| DatagramKind::of(byte).is_some_and(|kind| kind as u8 == byte)));
        assert!([0, 11, 255].into_iter().all(|byte| DatagramKind::of(byte).is_none()));
    }
}
