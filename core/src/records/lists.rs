//! The list of every record's fields and of the kinds of errors. Whatever needs one of them for
//! each field expands a list with a macro of its own (`callback`), or is written by `xtask records`.
//!
//! To add a field: append it here, and set it where core makes the record. `docs` of a field:
//! the first paragraph is shown in every language, the rest in `docs/semantics.md` and in Rust.
//! `first` is the number of fields in the first version of the C struct: fields are only appended.

/// Calls `callback!` with the fields of a record, after the tokens in brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! records {
    (Decision, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// The answer to a check. `docs/semantics.md` defines every field.
        Decision, first 10 {
            /// Go on.
            allowed: Flag,
            /// The burst of the deciding rule.
            limit: Units,
            /// Whole units in the bucket of the deciding rule, 0 in debt.
            ///
            /// After taking; a peek shows the bucket as it is.
            remaining: Units,
            /// Like `remaining`, but negative in debt.
            balance: Balance,
            /// Units taken (by a peek: that would be).
            ///
            /// The cost when allowed, fewer with `partial`, 0 when refused or when only dry run
            /// allows it.
            granted: Count,
            /// How long to wait before going on; 0 unless `max_delay` was set, and in dry run.
            ///
            /// `max(0, TAT - B*T - now)` after taking (with `allow_debt`: of the units needed), the
            /// longest over the rules.
            delay: Time,
            /// When refused, or spared a delay by dry run: time until this check would pass without
            /// waiting. Otherwise 0.
            ///
            /// With `partial`: until one unit would, or none if the cost is 0. With `allow_debt`: until
            /// the units needed would. The longest over all rules of the domain.
            retry_after: Time,
            /// Time until every bucket of the tag is full again.
            ///
            /// `max(0, TAT - now)`, the longest over the rules.
            reset_after: Time,
            /// Refused, or allowed after a delay, but allowed at once because the domain is in dry
            /// run: `rule` tells them apart.
            dry_run: Flag,
            /// The rule that refused.
            rule: Rule,
            /// The deciding rule, whose figures these are, also when it did not refuse.
            deciding: Rule,
        }
    } };
    (Stats, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// What a throttle counted since it was made.
        Stats, first 5 {
            /// Checks allowed, those that only dry run allowed included.
            allowed: Count,
            /// Checks refused.
            refused: Count,
            /// Checks that were allowed, or allowed without a delay, only because of dry run.
            dry_run: Count,
            /// Charges that were not counted, because the table had no room or the bucket no more
            /// ticks: they failed open.
            failed_open: Count,
            /// How often the debt of a bucket went beyond what a bucket can hold.
            clamped: Count,
            /// Buckets that were forgotten before they were full, because the table had no better
            /// room for others.
            evicted: Count,
            /// Buckets that are not full now.
            buckets: Count,
            /// Units admitted that no other node will hear about: of buckets that were forgotten, or
            /// more than one bucket could keep for the next report.
            unreported: Count,
        }
    } };
    (BusyStats, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// What a busy throttle counted in this process since it was made.
        BusyStats, first 9 {
            /// Requests that could be sent.
            sent: Count,
            /// Requests that should not be sent yet.
            refused: Count,
            /// Good answers.
            good: Count,
            /// Busy answers.
            busy: Count,
            /// How often a limit was cut by a busy answer of its own.
            cuts: Count,
            /// Busy responses that other nodes of the cluster reported.
            remote_busy: Count,
            /// Services with a limit that were forgotten, because there were too many others.
            forgotten: Count,
            /// Services known now, by all processes that share them.
            services: Count,
            /// Other nodes of the cluster that are there now.
            peers: Count,
        }
    } };
    (ClusterStats, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// A cluster, as seen from one node. All processes of a table see the same.
        ClusterStats, first 4 {
            /// This node; zero before the start.
            node: Id,
            /// The present life of its exchange; zero: it has not begun. Later lives are greater.
            incarnation: Id,
            /// The process that runs the exchange, or did last; 0 in WebAssembly.
            pid: Count,
            /// Peers that are there or were lately.
            peers: Peers,
            /// What was counted, by name.
            counts: Counts,
        }
    } };
    (PeerStats, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// A peer: another node of the cluster, as seen from one node.
        PeerStats, first 9 {
            /// Which node.
            node: Id,
            /// In which life.
            incarnation: Id,
            /// Its address and port, as far as they are known.
            address: Address,
            /// `up`, `down`, `left`, or `known` if it has yet to become a member.
            state: State,
            /// How long ago it was last heard.
            age: Millis,
            /// How long a datagram takes.
            delay: Millis,
            /// Reports applied.
            received: Count,
            /// Those of them that had been missing at first.
            repaired: Count,
            /// Reports that are lost for good.
            lost: Count,
        }
    } };
    (ClusterEvent, $callback:path $(, $($more:tt)*)?) => { $callback! { [$($($more)*)?]
        /// Something that happened in the cluster.
        ClusterEvent, first 5 {
            /// Counts events, from 1.
            number: Count,
            /// How long ago it happened.
            age: Millis,
            /// `peer_up`, `peer_down`, `peer_left`, `rules_differ`, `reports_lost` or `warm_start`.
            kind: Word,
            /// The peer it is about.
            node: Id,
            /// How many, where that matters: reports lost, buckets taken over at the start.
            value: Count,
        }
    } };
}

/// Calls `callback!` with the kinds of errors: name, number in C, word, name in upper case, Python
/// class and its second base, and what `dthrottle_status_text()` says.
///
/// Numbers and names are a promise: a retired number is never used again.
#[doc(hidden)]
#[macro_export]
macro_rules! error_kinds {
    ($callback:path) => {
        $callback! {
            /// An invalid configuration: unknown key, bad rate, value out of range, duplicate name.
            Config = -1, "config", CONFIG, ConfigError(ValueError), "the configuration cannot be";
            /// A cost that is negative, not whole, too large, or above the burst.
            Cost = -2, "cost", COST, CostError(ValueError), "the cost is above the burst";
            /// No such domain.
            Domain = -3, "domain", DOMAIN, DomainError(LookupError), "no such domain";
            /// A call after `close`.
            Closed = -4, "closed", CLOSED, ClosedError(RuntimeError), "the throttle is closed";
            /// Anything else that is wrong with an argument.
        ///
        /// Such as a bad length, text that is not UTF-8, or a clock that is set back.
            Argument = -5, "argument", ARGUMENT, ArgumentError(TypeError), "a bad argument";
            /// A configuration file that cannot be read.
            File = -6, "file", FILE, FileError(OSError), "the configuration file cannot be read";
            /// A bug in dthrottle, caught where the languages meet. Please report it.
            Internal = -7, "internal", INTERNAL, InternalError(RuntimeError), "a bug in dthrottle";
        }
    };
}
