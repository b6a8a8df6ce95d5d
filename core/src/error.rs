//! Errors: one small set of kinds, the same in every language.
//!
//! Being throttled is an answer, never an error. The list of kinds is in `records/lists.rs`; their
//! numbers and names are a promise (`tests/vectors/errors.json`).

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $number:literal, $name:literal, $code:ident,
        $class:ident($base:ident), $text:literal;)*) => {
        /// What sort of mistake was made.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])+ $kind,)*
        }

        impl ErrorKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: [ErrorKind; [$($number),*].len()] = [$(ErrorKind::$kind),*];

            /// The kind's word: `config`, `cost`, ...
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name,)* }
            }

            /// The kind as a code, as JavaScript's `err.code` has it: `DTHROTTLE_CONFIG`, ...
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => concat!("DTHROTTLE_", stringify!($code)),)* }
            }

            /// The kind as a negative number, as C's status has it.
            pub const fn number(self) -> i32 {
                match self { $(ErrorKind::$kind => $number,)* }
            }
        }
    };
}

crate::error_kinds!(kinds);

/// An error: its kind, a message that says what would be right, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    field: Option<String>,
    line: Option<u32>,
    file: Option<String>,
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind with this message. Bindings use it for what only they can see.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), field: None, line: None, file: None }
    }

    /// An error about a field of a configuration.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Error {
        // An empty path is the whole configuration: no field to name.
        let field = Some(field.into()).filter(|field| !field.is_empty());
        Error { field, ..Error::new(ErrorKind::Config, message) }
    }

    pub(crate) fn in_field(self, field: &str) -> Error {
        Error { field: Some(field.into()), ..self }
    }

    /// The error in a file.
    #[cfg(feature = "web")]
    pub(crate) fn in_file(self, path: &str) -> Error {
        Error { file: Some(path.into()), ..self }
    }

    /// The same error, with the line on which the field stands.
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
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
