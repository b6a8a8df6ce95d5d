//! The keys of a configuration: what the readers know, and what `xtask records` describes in the
//! types of Python and JavaScript. What a key does is in `core/src/config/`.

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is in TOML and Python.
    pub name: &'static str,
    /// What it takes.
    pub kind: KeyKind,
    /// Whether it must be given.
    pub is_required: bool,
    /// The lines of its description.
    pub docs: &'static [&'static str],
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the readers in core/src/config say what each is")]
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
        #[allow(dead_code, reason = "some tables are read with a cargo feature only")]
        pub(crate) const $names: &[&str] = &[$(stringify!($key)),*];
    )*};
}

lists! {
    /// A domain with one rule, or that rule in a list.
    SHORT, SHORT_NAMES {
        /// Units per time: `"100/s"`, `"5 per 2 minutes"`, or a number per second.
        rate: Rate required,
        /// The size of the bucket, in units or as a duration such as `"10s"`; by default the rate's
        /// count.
        burst: Burst,
        /// Whether refused checks are charged too.
        charge_refused: Bool,
    }
    /// A rule in a list, beside `SHORT`.
    RULE, RULE_NAMES {
        /// Unique in its domain; by default `rule1`, `rule2`, ...
        name: Text,
    }
    /// A domain, beside `SHORT`.
    DOMAIN, DOMAIN_NAMES {
        /// A list of rules, instead of `rate`.
        rules: Rules,
        /// Whether refusals are only counted.
        dry_run: Bool,
    }
    /// The whole configuration, beside `DOMAIN` and `SHORT`.
    TOP, TOP_NAMES {
        /// The other domains, by name.
        domains: Domains,
        /// The table, or its name.
        table: Table,
        /// The cluster that this node belongs to.
        cluster: Cluster,
    }
    /// A table.
    TABLE, TABLE_NAMES {
        /// Every process of this user that gives the same name shares the table.
        name: Text,
        /// Room for so many tags, or bytes such as `"64 MB"`; by default for a million tags.
        size: Size,
        /// The group, by name or number, whose members may all use the named table.
        group: Group,
        /// The directory for the named table's file; docs/table.md describes the default.
        dir: Text,
        /// Whether nobody chose the name: a table of another cluster is then left alone, and
        /// `name-2` taken.
        default_name: Bool,
        /// Whether the table is of this process alone.
        private: Bool,
    }
    /// A cluster.
    CLUSTER, CLUSTER_NAMES {
        /// Nodes with the same name and secret are one cluster.
        name: Text required,
        /// At least 16 bytes, or the file that has it; without one the cluster stays on this
        /// machine.
        secret: Secret,
        /// At most four: all are accepted, the first is used. By default one derived from the
        /// secret.
        packet_keys: Texts,
        /// Whether addresses beyond this machine may be used without a secret.
        without_secret: Bool,
        /// Address and port of this node; by default `"0.0.0.0:7373"`, or `"127.0.0.1:7373"` without
        /// a secret.
        listen: Text,
        /// Address and port that peers shall use, if it is another; port 0 is that of `listen`.
        advertise: Text,
        /// `"host:port"` or `"host"`, by name or address.
        peers: Texts,
        /// Group and port where peers are found and reports go, instead of `peers`.
        multicast: Text,
        /// The network interface for multicast, by name or address.
        interface: Text,
        /// 1 by default: the local network.
        multicast_ttl: Whole,
        /// How often a rule is reported; by default `"100ms"`.
        period: Text,
        /// `"eager"` (default) also reports early where it matters; `"periodic"` exactly once a
        /// period.
        reports: Reports,
        /// `"auto"`, or a duration: how late reports may come without a wrong refusal.
        tolerance: Text,
        /// Whether the nodes get equal shares of a tag that is over its limit.
        pacing: Bool,
        /// Whether nodes tell each other of busy answers of services that they call: docs/busy.md.
        busy: Bool,
        /// How long reports are kept for peers that missed them; by default `"15s"`.
        retention: Text,
        /// How much of them at most; by default `"16 MB"`.
        retention_bytes: Size,
    }
    /// A busy throttle.
    BUSY, BUSY_NAMES {
        /// By which arithmetic limits fall and recover: docs/busy.md.
        mode: Mode,
        /// The least that a limit falls to, in requests a second.
        floor: Number,
        /// The longest pause that a service can ask for, such as `"1h"`.
        max_pause: Text,
        /// Live: what a cut leaves of the rate.
        cut: Number,
        /// Live: up to which share of the last good rate the limit comes back quickly.
        near: Number,
        /// Live: by which share of it the limit then goes up in a second.
        step: Number,
        /// Live: for how long, such as `"5s"`.
        patience: Text,
        /// Live: what the limit multiplies by in a second where it is quick.
        growth: Number,
        /// Document: each second, so many times the limit comes back to it.
        recover_rate: Number,
        /// Document: each second, so many requests come back to the limit.
        recover_value: Number,
        /// Where services are remembered: with a name, by all processes that give it.
        table: Table,
        /// The cluster whose nodes tell each other: a busy answer that one is given slows all.
        cluster: Cluster,
    }
}
