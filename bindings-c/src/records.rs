//! The structs of the header that are records of core, and the numbers of errors. Written by
//! `cargo run -p xtask -- records` from the lists in core/src/records/.

use std::ffi::c_char;
use std::mem::offset_of;

use dthrottle_core as core;

use crate::ffi::{Flag, VersionedStruct, address, chars, index, ns};

/// The call did what it was asked.
pub const DTHROTTLE_OK: i32 = 0;
/// An invalid configuration: unknown key, bad rate, value out of range, duplicate name.
pub const DTHROTTLE_ERR_CONFIG: i32 = -1;
/// A cost that is negative, not whole, too large, or above the burst.
pub const DTHROTTLE_ERR_COST: i32 = -2;
/// No such domain.
pub const DTHROTTLE_ERR_DOMAIN: i32 = -3;
/// A call after close.
pub const DTHROTTLE_ERR_CLOSED: i32 = -4;
/// Anything else that is wrong with an argument. Such as a bad length, text that is not UTF-8, or a
/// clock that is set back.
pub const DTHROTTLE_ERR_ARGUMENT: i32 = -5;
/// A configuration file that cannot be read.
pub const DTHROTTLE_ERR_FILE: i32 = -6;
/// A bug in dthrottle, caught where the languages meet. Please report it.
pub const DTHROTTLE_ERR_INTERNAL: i32 = -7;

/// The answer to a check. docs/semantics.md defines every field. Begin with
/// DTHROTTLE_DECISION_INIT. After an error it says allowed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Decision {
    /// sizeof(dthrottle_decision_t).
    pub size: usize,
    /// Go on.
    pub allowed: Flag,
    /// Refused, or allowed after a delay, but allowed at once because the domain is in dry run:
    /// rule tells them apart.
    pub dry_run: Flag,
    /// The rule that refused. Its index, for dthrottle_rule_name(); -1 if there is none.
    pub rule: i32,
    /// The burst of the deciding rule. DTHROTTLE_UNLIMITED in a domain without rules.
    pub limit: u64,
    /// Whole units in the bucket of the deciding rule, 0 in debt. DTHROTTLE_UNLIMITED in a domain
    /// without rules.
    pub remaining: u64,
    /// Like remaining, but negative in debt.
    pub balance: i64,
    /// Units taken (by a peek: that would be).
    pub granted: u64,
    /// How long to wait before going on; 0 unless max_delay was set, and in dry run.
    pub delay_ns: u64,
    /// When refused, or spared a delay by dry run: time until this check would pass without
    /// waiting. Otherwise 0.
    pub retry_after_ns: u64,
    /// Time until every bucket of the tag is full again.
    pub reset_after_ns: u64,
    /// The deciding rule, whose figures these are, also when it did not refuse. Its index, for
    /// dthrottle_rule_name(); -1 if there is none.
    pub deciding: i64,
}

/// What a throttle counted since it was made. Begin with DTHROTTLE_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stats {
    /// sizeof(dthrottle_stats_t).
    pub size: usize,
    /// Checks allowed, those that only dry run allowed included.
    pub allowed: u64,
    /// Checks refused.
    pub refused: u64,
    /// Checks that were allowed, or allowed without a delay, only because of dry run.
    pub dry_run: u64,
    /// Charges that were not counted, because the table had no room or the bucket no more ticks:
    /// they failed open.
    pub failed_open: u64,
    /// How often the debt of a bucket went beyond what a bucket can hold.
    pub clamped: u64,
    /// Buckets that were forgotten before they were full, because the table had no better room for
    /// others.
    pub evicted: u64,
    /// Buckets that are not full now.
    pub buckets: u64,
    /// Units admitted that no other node will hear about: of buckets that were forgotten, or more
    /// than one bucket could keep for the next report.
    pub unreported: u64,
}

/// What a busy throttle counted in this process since it was made. Begin with
/// DTHROTTLE_BUSY_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BusyStats {
    /// sizeof(dthrottle_busy_stats_t).
    pub size: usize,
    /// Requests that could be sent.
    pub sent: u64,
    /// Requests that should not be sent yet.
    pub refused: u64,
    /// Good answers.
    pub good: u64,
    /// Busy answers.
    pub busy: u64,
    /// How often a limit was cut by a busy answer of its own.
    pub cuts: u64,
    /// Busy responses that other nodes of the cluster reported.
    pub remote_busy: u64,
    /// Services with a limit that were forgotten, because there were too many others.
    pub forgotten: u64,
    /// Services known now, by all processes that share them.
    pub services: u64,
    /// Other nodes of the cluster that are there now.
    pub peers: u64,
}

/// A cluster, as seen from one node. All processes of a table see the same. Begin with
/// DTHROTTLE_CLUSTER_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClusterStats {
    /// sizeof(dthrottle_cluster_stats_t).
    pub size: usize,
    /// Whether the throttle belongs to a cluster at all.
    pub in_cluster: Flag,
    /// This node; zero before the start.
    pub node: u64,
    /// The present life of its exchange; zero: it has not begun. Later lives are greater.
    pub incarnation: u64,
    /// The process that runs the exchange, or did last; 0 in WebAssembly.
    pub pid: u64,
    /// How many peers are there or were lately, for dthrottle_cluster_peer().
    pub peer_count: u64,
}

/// A peer: another node of the cluster, as seen from one node. Begin with DTHROTTLE_PEER_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Peer {
    /// sizeof(dthrottle_peer_t).
    pub size: usize,
    /// Which node.
    pub node: u64,
    /// In which life.
    pub incarnation: u64,
    /// Its address and port, as far as they are known.
    pub address: [c_char; 64],
    /// up, down, left, or known if it has yet to become a member.
    pub state: [c_char; 16],
    /// How long ago it was last heard.
    pub age_ns: u64,
    /// How long a datagram takes.
    pub delay_ns: u64,
    /// Reports applied.
    pub received: u64,
    /// Those of them that had been missing at first.
    pub repaired: u64,
    /// Reports that are lost for good.
    pub lost: u64,
}

/// Something that happened in the cluster. Begin with DTHROTTLE_EVENT_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    /// sizeof(dthrottle_event_t).
    pub size: usize,
    /// Counts events, from 1.
    pub number: u64,
    /// How long ago it happened.
    pub age_ns: u64,
    /// peer_up, peer_down, peer_left, rules_differ, reports_lost or warm_start.
    pub kind: [c_char; 32],
    /// The peer it is about.
    pub node: u64,
    /// How many, where that matters: reports lost, buckets taken over at the start.
    pub value: u64,
}

/// The answer to a check, from a daemon. docs/semantics.md defines every field. Begin with
/// DTHROTTLE_CLIENT_DECISION_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientDecision {
    /// sizeof(dthrottle_client_decision_t).
    pub size: usize,
    /// Go on.
    pub allowed: Flag,
    /// Refused, or allowed after a delay, but allowed at once because the domain is in dry run:
    /// rule tells them apart.
    pub dry_run: Flag,
    /// Nobody answered in time, so it is allowed.
    pub failed_open: Flag,
    /// The burst of the deciding rule. DTHROTTLE_UNLIMITED in a domain without rules.
    pub limit: u64,
    /// Whole units in the bucket of the deciding rule, 0 in debt. DTHROTTLE_UNLIMITED in a domain
    /// without rules.
    pub remaining: u64,
    /// Like remaining, but negative in debt.
    pub balance: i64,
    /// Units taken (by a peek: that would be).
    pub granted: u64,
    /// How long to wait before going on; 0 unless max_delay was set, and in dry run.
    pub delay_ns: u64,
    /// When refused, or spared a delay by dry run: time until this check would pass without
    /// waiting. Otherwise 0.
    pub retry_after_ns: u64,
    /// Time until every bucket of the tag is full again.
    pub reset_after_ns: u64,
    /// The rule that refused. Its name, ended by NUL; empty if there is none.
    pub rule: [c_char; 256],
    /// The deciding rule, whose figures these are, also when it did not refuse. Its name, ended by
    /// NUL; empty if there is none.
    pub deciding: [c_char; 256],
}

impl Decision {
    pub(crate) fn of(it: &core::Decision) -> Decision {
        Decision {
            size: Decision::MIN_SIZE,
            allowed: it.allowed.into(),
            dry_run: it.dry_run.into(),
            rule: index(it.rule) as i32,
            limit: it.limit,
            remaining: it.remaining,
            balance: it.balance,
            granted: it.granted,
            delay_ns: ns(it.delay),
            retry_after_ns: ns(it.retry_after),
            reset_after_ns: ns(it.reset_after),
            deciding: index(it.deciding),
        }
    }
}

impl Stats {
    pub(crate) fn of(it: &core::Stats) -> Stats {
        Stats {
            size: Stats::MIN_SIZE,
            allowed: it.allowed,
            refused: it.refused,
            dry_run: it.dry_run,
            failed_open: it.failed_open,
            clamped: it.clamped,
            evicted: it.evicted,
            buckets: it.buckets,
            unreported: it.unreported,
        }
    }
}

impl BusyStats {
    pub(crate) fn of(it: &core::busy::BusyStats) -> BusyStats {
        BusyStats {
            size: BusyStats::MIN_SIZE,
            sent: it.sent,
            refused: it.refused,
            good: it.good,
            busy: it.busy,
            cuts: it.cuts,
            remote_busy: it.remote_busy,
            forgotten: it.forgotten,
            services: it.services,
            peers: it.peers,
        }
    }
}

impl ClusterStats {
    pub(crate) fn of(it: &core::ClusterStats, in_cluster: bool) -> ClusterStats {
        ClusterStats {
            size: ClusterStats::MIN_SIZE,
            in_cluster: in_cluster.into(),
            node: it.node,
            incarnation: it.incarnation,
            pid: it.pid,
            peer_count: it.peers.len() as u64,
        }
    }
}

impl Peer {
    pub(crate) fn of(it: &core::PeerStats) -> Peer {
        Peer {
            size: Peer::MIN_SIZE,
            node: it.node,
            incarnation: it.incarnation,
            address: address(it.address),
            state: chars(it.state),
            age_ns: ns(it.age),
            delay_ns: ns(it.delay),
            received: it.received,
            repaired: it.repaired,
            lost: it.lost,
        }
    }
}

impl Event {
    pub(crate) fn of(it: &core::ClusterEvent) -> Event {
        Event {
            size: Event::MIN_SIZE,
            number: it.number,
            age_ns: ns(it.age),
            kind: chars(it.kind),
            node: it.node,
            value: it.value,
        }
    }
}

impl ClientDecision {
    pub(crate) fn of(it: &core::Decision, failed_open: bool, rule: &str) -> ClientDecision {
        ClientDecision {
            size: ClientDecision::MIN_SIZE,
            allowed: it.allowed.into(),
            dry_run: it.dry_run.into(),
            failed_open: failed_open.into(),
            limit: it.limit,
            remaining: it.remaining,
            balance: it.balance,
            granted: it.granted,
            delay_ns: ns(it.delay),
            retry_after_ns: ns(it.retry_after),
            reset_after_ns: ns(it.reset_after),
            rule: it.rule.map_or([0; 256], |_| chars(rule)),
            deciding: it.deciding.map_or([0; 256], |_| chars(rule)),
        }
    }
}

versioned_structs! {
    Decision ends with deciding: i64, first version offset_of!(Decision, deciding);
    Stats ends with unreported: u64, first version offset_of!(Stats, evicted);
    BusyStats ends with peers: u64, first version size_of::<BusyStats>();
    ClusterStats ends with peer_count: u64, first version size_of::<ClusterStats>();
    Peer ends with lost: u64, first version size_of::<Peer>();
    Event ends with value: u64, first version size_of::<Event>();
    ClientDecision ends with deciding: [c_char; 256], first version offset_of!(ClientDecision, deciding);
}
