//! Error kinds, the same in every language.
//!
//! Being throttled is a decision, never an error. `records/lists.rs` lists the kinds. Their numbers
//! and names never change (`tests/vectors/errors.json`).

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $number:literal, $name:literal, $code:ident,
        $class:ident($base:ident), $text:literal;)*) => {
        /// The kind of an [`Error`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])+ $kind,)*
        }

        impl ErrorKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: [ErrorKind; [$($number),*].len()] = [$(ErrorKind::$kind),*];

            /// The name of the kind in lower case, such as `config` or `cost`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name,)* }
            }

            /// The code of the kind, such as `DTHROTTLE_CONFIG`, as in JavaScript's `err.code`.
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => concat!("DTHROTTLE_", stringify!($code)),)* }
            }

            /// The kind as a negative number, as in the status codes of C.
            pub const fn number(self) -> i32 {
                match self { $(ErrorKind::$kind => $number,)* }
            }
        }
    };
}

crate::error_kinds!(kinds);

/// An error with its kind, a message that says how to fix it, and its location in a configuration.
///
/// ```
/// use dthrottle::{ErrorKind, Rule, Throttle};
///
/// let error = Throttle::builder().rule(Rule::parse("10 per fortnight")).build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Config);
/// assert_eq!(error.field(), Some("rules[0].rate"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    field: Option<String>,
    line: Option<u32>,
    file: Option<String>,
}

/// A [`Result`](std::result::Result) with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error. Bindings use it for errors that only they can detect.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), field: None, line: None, file: None }
    }

    /// Creates an error about a field of a configuration. `message` continues a sentence that starts with
    /// the field: `must be a number from 400 to 599, got 5`. If `field` is empty, the error is about
    /// the whole configuration, and `message` is a sentence of its own.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Error {
        let field = Some(field.into()).filter(|field| !field.is_empty());
        Error { field, ..Error::new(ErrorKind::Config, message) }
    }

    pub(crate) fn in_field(self, field: &str) -> Error {
        Error { field: Some(field.into()), ..self }
    }

    /// Adds the path of the file that contains the error.
    #[cfg(feature = "web")]
    pub(crate) fn in_file(self, path: &str) -> Error {
        Error { file: Some(path.into()), ..self }
    }

    /// Adds the line of the field in the configuration text, from 1.
    #[must_use]
    pub fn at_line(self, line: Option<u32>) -> Error {
        Error { line, ..self }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The field of the configuration that is wrong, such as `domains.api.rules[0].rate`.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The line of the configuration text, from 1.
    pub fn line(&self) -> Option<u32> {
        self.line
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.field {
            // The message of a configuration error is the predicate: "must be ..., got ...".
            Some(field) if self.kind == ErrorKind::Config => {
                write!(f, "`{field}` {}", self.message)
            }
            Some(field) => write!(f, "`{field}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
