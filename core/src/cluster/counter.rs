//! What the exchange counts. The counts are in the table, for every process to see.

use super::wire::Dropped;

/// A count, by its place in the table. Places are never reused for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Datagrams sent, each once for every peer it goes to.
    DatagramsSent,
    /// Their bytes.
    BytesSent,
    /// Datagrams received.
    DatagramsReceived,
    /// Their bytes.
    BytesReceived,
    /// Reports made.
    ReportsSent,
    /// Their entries.
    EntriesSent,
    /// Reports applied.
    ReportsReceived,
    /// Entries charged.
    EntriesReceived,
    /// Reports applied that had been missing.
    Repaired,
    /// Reports that were applied before.
    Duplicates,
    /// Reports that nobody has any more.
    Lost,
    /// How often something missing was asked for.
    Asked,
    /// Reports sent again.
    Answered,
    /// Entries too late to charge those who could not know.
    Spared,
    /// Entries of a rule that is not known here.
    UnknownRule,
    /// Snapshots given to nodes that start.
    Snapshots,
    /// How often a peer appeared.
    PeersUp,
    /// How often a peer went away.
    PeersDown,
    /// Datagrams that this node sent itself.
    DroppedOwn,
    /// Datagrams that came before.
    DroppedReplay,
    /// Datagrams of senders that have yet to show that they are there.
    DroppedUnproven,
    /// Datagrams that could not be sent.
    SendErrors,
    /// Failures of receiving.
    ReceiveErrors,
    /// How often no socket could be had.
    BindErrors,
    /// Names that could not be resolved.
    ResolveErrors,
    /// How often the exchange failed and began anew.
    Restarts,
    /// Datagrams dropped, by cause: the first of `Dropped::COUNT`.
    Dropped,
}

impl Counter {
    /// Its place in the table.
    pub fn place(self) -> usize {
        self as usize
    }

    /// The place of the datagrams dropped for a cause.
    pub fn dropped(cause: Dropped) -> usize {
        Counter::Dropped as usize + cause.index()
    }
}
