//! Records: structs whose fields are defined once, in `lists.rs`, so that every language has all
//! fields. This module defines the Rust structs and the kinds of fields.

pub mod keys;
mod lists;
pub mod text;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(feature = "cluster")]
use crate::cluster::PeerStats;
#[cfg(feature = "serde")]
use crate::{convert, limit::decision::UNLIMITED};

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in Rust and Python.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: FieldKind,
    /// The lines of its doc comment.
    pub docs: &'static [&'static str],
}

/// Returns the first paragraph of a doc comment, as one line.
pub fn summary(docs: &[&str]) -> String {
    let lines = docs.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The kind of the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// True or false.
    Flag,
    /// A number.
    Count,
    /// A number, or `UNLIMITED`.
    Units,
    /// A number that may be negative. `i64::MAX` without a limit.
    Balance,
    /// A duration, which is in seconds in JSON.
    Time,
    /// A duration, which is in milliseconds in JSON, with a key that ends with `_ms`.
    Millis,
    /// The index of a rule. The bindings show its name.
    Rule,
    /// An identifier of 64 bits, which is text of hexadecimal digits in JSON.
    Id,
    /// A word from a fixed set.
    Word,
    /// The state of a peer.
    State,
    /// An address and port.
    Address,
    /// Peers.
    Peers,
    /// Counters by name.
    Counts,
}

/// The value of a field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "as in FieldKind")]
pub enum Value<'a> {
    Flag(&'a bool),
    Count(&'a u64),
    Units(&'a u64),
    Balance(&'a i64),
    Time(&'a Duration),
    Millis(&'a Duration),
    Rule(&'a Option<usize>),
    /// The name of a rule, in place of its index.
    Name(Option<&'a str>),
    Id(&'a u64),
    Word(&'a &'static str),
    State(&'a &'static str),
    Address(&'a Option<SocketAddr>),
    #[cfg(feature = "cluster")]
    Peers(&'a Vec<PeerStats>),
    Counts(&'a Vec<(&'static str, u64)>),
}

impl Field {
    /// Returns the key in JSON.
    pub fn json(&self) -> Cow<'static, str> {
        match self.kind {
            FieldKind::Millis => format!("{}_ms", self.name).into(),
            _ => self.name.into(),
        }
    }
}

/// The Rust type of a kind.
macro_rules! rust_type {
    (Flag) => { bool };
    (Count) => { u64 };
    (Units) => { u64 };
    (Balance) => { i64 };
    (Time) => { ::std::time::Duration };
    (Millis) => { ::std::time::Duration };
    (Rule) => { Option<usize> };
    (Id) => { u64 };
    (Word) => { &'static str };
    (State) => { &'static str };
    (Address) => { Option<::std::net::SocketAddr> };
    (Peers) => { Vec<$crate::PeerStats> };
    (Counts) => { Vec<(&'static str, u64)> };
}

/// The value of a field of a decision without a limit.
macro_rules! empty {
    (Flag) => {
        false
    };
    (Count) => {
        0
    };
    (Units) => {
        $crate::UNLIMITED
    };
    (Balance) => {
        i64::MAX
    };
    (Time) => {
        ::std::time::Duration::ZERO
    };
    (Rule) => {
        None
    };
}

/// Defines the struct of a record, with these derives.
macro_rules! define {
    ([$($derive:ident),*] $(#[doc = $about:literal])+ $record:ident, first $first:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $kind:ident,)*
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash, $($derive),*)]
        #[non_exhaustive]
        pub struct $record {
            $($(#[doc = $doc])+ pub $field: $crate::records::rust_type!($kind),)*
        }

        impl $record {
            /// The fields, in order.
            #[doc(hidden)]
            pub const FIELDS: &'static [$crate::records::Field] = &[$($crate::records::Field {
                name: stringify!($field),
                kind: $crate::records::FieldKind::$kind,
                docs: &[$($doc),+],
            }),*];
            /// The number of fields in the first version of the C struct.
            #[doc(hidden)]
            pub const FIRST_VERSION_FIELDS: usize = $first;
            /// The lines of the doc comment of the record.
            #[doc(hidden)]
            pub const ABOUT: &'static [&'static str] = &[$($about),+];

            /// Returns the values of the fields, in order.
            #[doc(hidden)]
            #[inline]
            pub fn values(&self) -> [$crate::records::Value<'_>; Self::FIELDS.len()] {
                [$($crate::records::Value::$kind(&self.$field)),*]
            }
        }

        /// Keys are in snake case. Durations are in seconds, or in milliseconds if the key ends
        /// with `_ms`. Identifiers are text, and rules are indexes.
        #[cfg(feature = "serde")]
        impl serde::Serialize for $record {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::records::SerializedRecord(Self::FIELDS, &self.values()).serialize(serializer)
            }
        }
    };
}

pub(crate) use {define, empty, rust_type};

/// A record as serde serializes it: fields and values.
#[cfg(feature = "serde")]
#[derive(Debug)]
pub struct SerializedRecord<'a>(pub &'static [Field], pub &'a [Value<'a>]);

#[cfg(feature = "serde")]
impl serde::Serialize for SerializedRecord<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(Field::json).zip(self.1))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Value<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Units(&UNLIMITED) | Value::Balance(&i64::MAX) => serializer.serialize_none(),
            Value::Count(count) | Value::Units(count) => serializer.serialize_u64(*count),
            Value::Balance(balance) => serializer.serialize_i64(*balance),
            Value::Time(time) => serializer.serialize_f64(time.as_secs_f64()),
            Value::Millis(time) => serializer.serialize_f64(convert::millis(*time)),
            Value::Rule(index) => index.serialize(serializer),
            Value::Name(name) => name.serialize(serializer),
            Value::Id(id) => serializer.collect_str(&format_args!("{id:016x}")),
            Value::Word(word) | Value::State(word) => serializer.serialize_str(word),
            Value::Address(Some(address)) => serializer.collect_str(address),
            Value::Address(None) => serializer.serialize_none(),
            #[cfg(feature = "cluster")]
            Value::Peers(peers) => serializer.collect_seq(peers),
            Value::Counts(counts) => serializer.collect_map(counts.iter().copied()),
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Decision;

    #[test]
    fn json_has_null_without_a_limit_and_text_for_identifiers() {
        let open = Decision::unlimited(2);
        let nothing = serde_json::Value::Null;
        let shown = json!(open);
        assert_eq!([&shown["limit"], &shown["balance"], &shown["rule"]], [&nothing; 3]);
        assert_eq!((&shown["granted"], &shown["allowed"]), (&json!(2), &json!(true)));
        let peer = PeerStats {
            node: 255,
            incarnation: 1,
            address: Some(([127, 0, 0, 1], 7).into()),
            state: "up",
            age: Duration::from_micros(1500),
            delay: Duration::ZERO,
            received: 3,
            repaired: 0,
            lost: 0,
        };
        assert_eq!(
            json!(peer),
            json!({
                "node": "00000000000000ff", "incarnation": "0000000000000001",
                "address": "127.0.0.1:7", "state": "up", "age_ms": 1.5, "delay_ms": 0.0,
                "received": 3, "repaired": 0, "lost": 0,
            })
        );
    }

    #[test]
    fn json_contains_every_field() {
        let shown = json!(Decision::unlimited(1));
        for field in Decision::FIELDS {
            assert!(shown.get(&*field.json()).is_some(), "{}", field.name);
        }
    }
}
