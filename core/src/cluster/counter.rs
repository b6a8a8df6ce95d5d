//! The counters of the exchange. They are stored in the table, where every process can read them.

use super::wire::DropCause;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A counter. The value is its index in the table. An index is never reused for another
        /// counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[$doc])* $variant,)*
        }

        /// The names of all counters except those of dropped datagrams.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

counters! {
    /// Datagrams sent, counted once per receiver.
    DatagramsSent = "datagrams_sent",
    /// Bytes of datagrams sent, counted once per receiver.
    BytesSent = "bytes_sent",
    /// Datagrams received.
    DatagramsReceived = "datagrams_received",
    /// Bytes of datagrams received.
    BytesReceived = "bytes_received",
    /// Reports sent for the first time.
    ReportsSent = "reports_sent",
    /// Entries of these reports.
    EntriesSent = "entries_sent",
    /// Reports applied.
    ReportsReceived = "reports_received",
    /// Entries charged.
    EntriesReceived = "entries_received",
    /// Reports applied after they had been missing.
    Repaired = "reports_repaired",
    /// Reports received again after they had been applied.
    Duplicates = "reports_duplicate",
    /// Missing reports that can no longer be repaired.
    Lost = "reports_lost",
    /// Requests for missing reports.
    RepairsRequested = "repairs_asked",
    /// Reports sent again on request.
    RepairsSent = "repairs_sent",
    /// Late entries that were not charged, because their tags are within their limits.
    EntriesLate = "entries_late",
    /// Entries of rules that this node does not have.
    UnknownRule = "entries_unknown_rule",
    /// Snapshots sent to starting nodes.
    Snapshots = "snapshots_sent",
    /// How often a peer became a member.
    PeersUp = "peers_up",
    /// How often a peer left or was declared dead.
    PeersDown = "peers_down",
    /// Datagrams that could not be sent.
    SendErrors = "send_errors",
    /// Calls that failed to receive.
    ReceiveErrors = "receive_errors",
    /// Attempts to open a socket that failed.
    BindErrors = "bind_errors",
    /// Peer names that could not be resolved.
    ResolveErrors = "resolve_errors",
    /// Failures of the lock that selects the process that runs the exchange.
    LockErrors = "lock_errors",
    /// How often the exchange could not start.
    StartErrors = "start_errors",
    /// How often the exchange panicked and was started again.
    Restarts = "restarts",
    /// Payloads sent, such as busy responses.
    PayloadsSent = "payloads_sent",
    /// Payloads of peers delivered to the host program.
    PayloadsReceived = "payloads_received",
    /// Datagrams dropped because this node sent them itself.
    DroppedOwn = "dropped_own",
    /// Datagrams dropped because they had been received before.
    DroppedReplay = "dropped_replay",
    /// Datagrams dropped because their sender had not answered a challenge yet.
    DroppedUnproven = "dropped_unproven",
}

impl Counter {
    /// The number of counters, including one for each `DropCause`.
    pub const COUNT: usize = NAMES.len() + DropCause::COUNT;

    /// The index of the counter in the table.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The index of the counter of datagrams dropped for this cause.
    pub fn dropped_index(cause: DropCause) -> usize {
        NAMES.len() + cause.index()
    }

    /// The names of all counters, in order of their indexes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().copied().chain(DropCause::ALL.map(dropped_name))
    }
}

fn dropped_name(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Short => "dropped_short",
        DropCause::Long => "dropped_long",
        DropCause::Magic => "dropped_magic",
        DropCause::Version => "dropped_version",
        DropCause::Cluster => "dropped_cluster",
        DropCause::Key => "dropped_key",
        DropCause::Auth => "dropped_auth",
        DropCause::Kind => "dropped_kind",
        DropCause::Malformed => "dropped_malformed",
    }
}

const _: () = assert!(Counter::COUNT <= crate::table::COUNTERS);
