//! What the exchange counts. The counts are in the table, for every process to see.

use super::wire::DropCause;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A count, by its place in the table. Places are never reused for something else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[$doc])* $variant,)*
        }

        /// The names of all counts that do not say why a datagram was dropped.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

counters! {
    /// Datagrams sent, each once for every peer it goes to.
    DatagramsSent = "datagrams_sent",
    /// Their bytes.
    BytesSent = "bytes_sent",
    /// Datagrams received.
    DatagramsReceived = "datagrams_received",
    /// Their bytes.
    BytesReceived = "bytes_received",
    /// Reports made.
    ReportsSent = "reports_sent",
    /// Their entries.
    EntriesSent = "entries_sent",
    /// Reports applied.
    ReportsReceived = "reports_received",
    /// Entries charged.
    EntriesReceived = "entries_received",
    /// Reports applied that had been missing.
    Repaired = "reports_repaired",
    /// Reports that had been applied before.
    Duplicates = "reports_duplicate",
    /// Reports that nobody has any more.
    Lost = "reports_lost",
    /// How often something missing was asked for.
    RepairsRequested = "repairs_asked",
    /// Reports sent again.
    RepairsSent = "repairs_sent",
    /// Entries too late to charge those who could not know.
    EntriesLate = "entries_late",
    /// Entries of a rule that is not known here.
    UnknownRule = "entries_unknown_rule",
    /// Snapshots given to nodes that start.
    Snapshots = "snapshots_sent",
    /// How often a peer appeared.
    PeersUp = "peers_up",
    /// How often a peer went away.
    PeersDown = "peers_down",
    /// Datagrams that could not be sent.
    SendErrors = "send_errors",
    /// Failures of receiving.
    ReceiveErrors = "receive_errors",
    /// How often no socket could be had.
    BindErrors = "bind_errors",
    /// Names that could not be resolved.
    ResolveErrors = "resolve_errors",
    /// Failures of the lock that says which process exchanges.
    LockErrors = "lock_errors",
    /// How often the exchange could not begin.
    StartErrors = "start_errors",
    /// How often the exchange failed and began anew.
    Restarts = "restarts",
    /// Payloads of the host sent, such as busy answers.
    PayloadsSent = "payloads_sent",
    /// Payloads of peers received.
    PayloadsReceived = "payloads_received",
    /// Datagrams that this node sent itself.
    DroppedOwn = "dropped_own",
    /// Datagrams that came before.
    DroppedReplay = "dropped_replay",
    /// Datagrams of senders that have yet to show that they are there.
    DroppedUnproven = "dropped_unproven",
}

impl Counter {
    /// How many there are, with those that say why a datagram was dropped.
    pub const COUNT: usize = NAMES.len() + DropCause::COUNT;

    /// Its place in the table.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The place of the datagrams dropped for a cause.
    pub fn dropped_index(cause: DropCause) -> usize {
        NAMES.len() + cause.index()
    }

    /// The names of all counts, by place.
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
