//! The keys of a configuration, for the readers in `core/src/config/`, and for the types in Python
//! and JavaScript that `xtask records` generates.

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name in TOML and Python.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: KeyKind,
    /// Whether the key is required.
    pub is_required: bool,
    /// The lines of its doc comment.
    pub docs: &'static [&'static str],
}

/// The kind of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the readers in core/src/config define each")]
pub enum KeyKind {
    Bool,
    Burst,
    Cluster,
    Domains,
    Group,
    Mode,
    Number,
    Rate,
    Reports,
    Rules,
    Secret,
    Size,
    Table,
    Text,
    Texts,
    Whole,
}

macro_rules! required {
    () => {
        false
    };
    (required) => {
        true
    };
}

macro_rules! lists {
    ($($(#[$about:meta])+ $list:ident, $names:ident {
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ident $($required:ident)?,)*
    })*) => {$(
        $(#[$about])+
        pub const $list: &[Key] = &[$(Key {
            name: stringify!($key),
            kind: KeyKind::$kind,
            is_required: required!($($required)?),
            docs: &[$($doc),+],
        }),*];

        $(#[$about])+
        #[allow(dead_code, reason = "some tables are read only with a cargo feature")]
        pub(crate) const $names: &[&str] = &[$(stringify!($key)),*];
    )*};
}

lists! {
    /// Keys of a rule, in a list or in a domain with one rule.
    SHORT, SHORT_NAMES {
        /// Units per time: `"100/s"`, `"5 per 2 minutes"`, or a number per second.
        rate: Rate required,
        /// The size of the bucket, in units or as a duration such as `"10s"`. Default: the count of
        /// the rate.
        burst: Burst,
        /// Whether refused checks are charged, too.
        charge_refused: Bool,
    }
    /// Further keys of a rule in a list.
    RULE, RULE_NAMES {
        /// The name, unique in its domain. Default: `rule1`, `rule2`, ...
        name: Text,
    }
    /// Further keys of a domain.
    DOMAIN, DOMAIN_NAMES {
        /// A list of rules, instead of `rate`.
        rules: Rules,
        /// Whether refusals and delays are only counted, and every check is allowed at once.
        dry_run: Bool,
    }
    /// Further keys of the whole configuration.
    TOP, TOP_NAMES {
        /// The other domains, by name.
        domains: Domains,
        /// The table, or its name.
        table: Table,
        /// The cluster of this node.
        cluster: Cluster,
    }
    /// Keys of a table.
    TABLE, TABLE_NAMES {
        /// The name. All processes of this user with the same name share the table.
        name: Text,
        /// The size, as a number of tags or in bytes such as `"64 MB"`. Default: a million tags.
        size: Size,
        /// The group, by name or number, whose members may use the named table.
        group: Group,
        /// The directory of the file of the named table. docs/table.md describes the default.
        dir: Text,
        /// Whether the name is only a default: if a table of that name belongs to another cluster,
        /// a name such as `name-2` is used.
        default_name: Bool,
        /// Whether only this process uses the table.
        private: Bool,
    }
    /// Keys of a cluster.
    CLUSTER, CLUSTER_NAMES {
        /// The name. Nodes with the same name and secret are one cluster.
        name: Text required,
        /// The secret, of at least 16 bytes, or the file that contains it. Without a secret the
        /// cluster stays on this machine.
        secret: Secret,
        /// At most four keys for datagrams. All are accepted, and the first seals. Default: a key
        /// derived from the secret.
        packet_keys: Texts,
        /// Whether a cluster without a secret may use other machines.
        without_secret: Bool,
        /// The address and port of this node. Default: `"0.0.0.0:7373"`, or `"127.0.0.1:7373"`
        /// without a secret.
        listen: Text,
        /// The address and port for peers, if they differ from `listen`. Port 0 is the port of
        /// `listen`.
        advertise: Text,
        /// Peers as `"host:port"` or `"host"`, by name or address.
        peers: Texts,
        /// The multicast group and port, instead of `peers`.
        multicast: Text,
        /// The network interface for multicast, by name or address.
        interface: Text,
        /// The multicast TTL. Default: 1, which stays on the local network.
        multicast_ttl: Whole,
        /// The longest time between two reports of a rule. Default: `"100ms"`.
        period: Text,
        /// `"eager"` also reports when a bucket runs low, `"periodic"` exactly once per period.
        /// Default: `"eager"`.
        reports: Reports,
        /// How late a report may arrive before a conforming client can be refused: a duration, or
        /// `"auto"`.
        tolerance: Text,
        /// Whether the nodes admit equal shares of a tag over its limit.
        pacing: Bool,
        /// Whether nodes report busy responses to each other; see docs/busy.md.
        busy: Bool,
        /// How long reports are kept for peers that missed them. Default: `"15s"`.
        retention: Text,
        /// The most bytes of such reports. Default: `"16 MB"`.
        retention_bytes: Size,
    }
    /// Keys of a busy throttle.
    BUSY, BUSY_NAMES {
        /// How limits fall and recover; see docs/busy.md.
        mode: Mode,
        /// The lowest limit, in requests per second.
        floor: Number,
        /// The longest pause that a service can request, such as `"1h"`.
        max_pause: Text,
        /// Live: the share of the rate that remains after a cut.
        cut: Number,
        /// Live: the share of the last good rate up to which the limit recovers quickly.
        near: Number,
        /// Live: the share of the last good rate by which the limit then grows each second.
        step: Number,
        /// Live: how long the limit grows by `step`, such as `"5s"`.
        patience: Text,
        /// Live: the factor by which the limit grows each second during fast recovery.
        growth: Number,
        /// Document: the limit recovers by this multiple of itself each second.
        recover_rate: Number,
        /// Document: the limit recovers by this number of requests each second.
        recover_value: Number,
        /// The table of the services. All processes with the same name share it.
        table: Table,
        /// The cluster. A busy response to one node slows all its nodes.
        cluster: Cluster,
    }
}
