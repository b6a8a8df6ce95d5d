//! The wire format: the bytes that nodes send to each other, as described in `docs/protocol.md`.
//!
//! A datagram is an envelope, a sealed body and an authentication tag. `keys.rs` seals and opens
//! datagrams; each kind of body has its own file. Nothing here has state or acts on what it reads.
//! A body is checked completely before any of it is returned, no count is trusted before the bytes
//! are there, and bytes after the last known field are ignored, so that later versions can add
//! fields.

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

/// The maximum size of a datagram: the smallest MTU of IPv6, less the headers of IPv6 and UDP.
pub const MAX_DATAGRAM: usize = 1232;
/// The maximum number of bytes of a body.
pub const MAX_BODY: usize = MAX_DATAGRAM - ENVELOPE - TAG;

const ENVELOPE: usize = 32;
const TAG: usize = 16;
const MAGIC: [u8; 2] = *b"dT";
/// The protocol version. New fields at the end of a body, new flags and new kinds do not change it.
const VERSION: u8 = 1;

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DatagramKind {
    /// The units that a node admitted.
    Report = 1,
    /// A request for missing reports.
    Gap,
    /// Requested reports that the sender does not have any more.
    Gone,
    /// The number of the last known report of each origin.
    Digest,
    /// A request for a snapshot. The body is empty.
    SnapshotRequest,
    /// Buckets that are not full.
    Snapshot,
    /// A message of the membership protocol (SWIM), in the format of the crate `foca`.
    Swim,
    /// A challenge, the echo of one, or both.
    Hello,
    /// The sender leaves the cluster. The body is empty.
    Leave,
    /// Data of the host program.
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

/// The header of every datagram. It is authenticated but not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The kind of the body.
    pub kind: DatagramKind,
    /// Flags, which depend on the kind. Unknown flags are ignored.
    pub flags: u8,
    /// The sender.
    pub sender: Origin,
    /// The packet number, which is part of the nonce. It is different for every datagram of a
    /// sender.
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
    /// The datagram is too short for an envelope and a tag.
    Short,
    /// The datagram is longer than `MAX_DATAGRAM`.
    Long,
    /// The datagram does not start with the magic bytes.
    Magic,
    /// The datagram has another protocol version.
    Version,
    /// The datagram belongs to a cluster with another name.
    Cluster,
    /// No packet key of this node has the key id.
    Key,
    /// The datagram is forged, damaged, or sealed with another secret.
    Auth,
    /// The datagram is authentic, but its kind is unknown.
    Kind,
    /// The datagram is authentic, but its body is malformed.
    Malformed,
}

impl DropCause {
    /// The number of causes.
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

    /// The index of the cause in `ALL`, and in a list of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name of the cause, for counters and logs.
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
    fn the_sizes_of_datagrams_and_bodies_do_not_change() {
        assert_eq!((MAX_DATAGRAM, MAX_BODY), (1232, 1184));
    }

    #[test]
    fn every_cause_has_its_own_index_and_name() {
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(cause.index(), index);
        }
        let names: std::collections::BTreeSet<_> = DropCause::ALL.map(DropCause::name).into();
        assert_eq!(names.len(), DropCause::COUNT);
    }

    #[test]
    fn kinds_are_numbered_from_1_to_10() {
        assert_eq!(DatagramKind::ALL.map(|kind| kind as u8), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!((1..=10).all(|byte| DatagramKind::of(byte).is_some_and(|kind| kind as u8 == byte)));
        assert!([0, 11, 255].into_iter().all(|byte| DatagramKind::of(byte).is_none()));
    }
}
