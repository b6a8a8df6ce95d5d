//! The body of a refusal, and its content type.

use std::borrow::Cow;
use std::fmt::Write;

use crate::config::Value;

/// The value of the option `body` for a problem document.
const PROBLEM: &str = "problem+json";

const PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const PROBLEM_TITLE: &str = "Request cannot be satisfied as assigned quota has been exceeded";

/// The body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// `Too Many Requests`.
    Default,
    /// Plain text.
    Text(String),
    /// JSON text.
    Json(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A problem document (RFC 9457).
    Problem,
    /// A function of the application returns the body.
    Function,
}

impl Body {
    /// Converts the value of the option, or the return value of the application's function.
    ///
    /// # Errors
    ///
    /// If the value cannot be a body. The error is a description of valid values.
    pub fn from_value(value: &Value) -> Result<Body, String> {
        Ok(match value {
            Value::Function => Body::Function,
            Value::Text(text) if text == PROBLEM => Body::Problem,
            Value::Text(text) => Body::Text(text.clone()),
            Value::Bytes(bytes) => Body::Bytes(bytes.clone()),
            Value::Table(_) | Value::List(_) => Body::Json(
                json(value)
                    .map_err(|kind| format!("an object that JSON can express, without {kind}"))?,
            ),
            _ => return Err("text, bytes, an object, a function, or \"problem+json\"".into()),
        })
    }

    /// Returns the content type and the content. `policy` is the name of the rule that refused, and
    /// `retry_after` is in seconds.
    pub(super) fn content(
        &self,
        status: u16,
        policy: Option<&str>,
        retry_after: u64,
    ) -> (&'static str, Cow<'_, [u8]>) {
        const TEXT: &str = "text/plain; charset=utf-8";
        match self {
            Body::Default | Body::Function => (TEXT, Cow::Borrowed(b"Too Many Requests\n")),
            Body::Text(text) => (TEXT, Cow::Borrowed(text.as_bytes())),
            Body::Json(json) => ("application/json", Cow::Borrowed(json.as_bytes())),
            Body::Bytes(bytes) => ("application/octet-stream", Cow::Borrowed(bytes)),
            Body::Problem => {
                let problem = problem(status, policy, retry_after);
                ("application/problem+json", Cow::Owned(problem.into_bytes()))
            }
        }
    }
}

/// Returns a problem document.
fn problem(status: u16, policy: Option<&str>, retry_after: u64) -> String {
    let mut json = format!(
        "{{\"type\":\"{PROBLEM_TYPE}\",\"title\":\"{PROBLEM_TITLE}\",\"status\":{status},\
         \"detail\":\"Try again in {retry_after} s.\",\"violated-policies\":["
    );
    if let Some(policy) = policy {
        write_string(&mut json, policy);
    }
    json.push_str("]}");
    json
}

/// Converts a value to JSON. The error names a value that JSON cannot express.
fn json(value: &Value) -> Result<String, String> {
    let mut json = String::new();
    write_value(&mut json, value)?;
    Ok(json)
}

fn write_value(json: &mut String, value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(flag) => json.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) if number.is_finite() => {
            let _ = write!(json, "{number}");
        }
        Value::Text(text) => write_string(json, text),
        Value::List(nodes) => {
            json.push('[');
            for (i, node) in nodes.iter().enumerate() {
                json.push_str(if i > 0 { "," } else { "" });
                write_value(json, &node.value)?;
            }
            json.push(']');
        }
        Value::Table(entries) => {
            json.push('{');
            for (i, entry) in entries.iter().enumerate() {
                json.push_str(if i > 0 { "," } else { "" });
                write_string(json, &entry.key);
                json.push(':');
                write_value(json, &entry.node.value)?;
            }
            json.push('}');
        }
        Value::Other(kind) if matches!(kind.as_str(), "None" | "null") => json.push_str("null"),
        other => return Err(other.to_string()),
    }
    Ok(())
}

fn write_string(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\n' => json.push_str("\\n"),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            _ => json.push(c),
        }
    }
    json.push('"');
}
