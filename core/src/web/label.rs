//! Default names of domains and of an application's table.

use crate::table::fingerprint::hash_of;

/// The longest label, in bytes. A longer one is replaced by its hash.
const MAX_DOMAIN_LABEL_BYTES: usize = 200;
/// The longest part of a table's name, in bytes. A longer one is truncated.
const MAX_PART_BYTES: usize = 40;

/// Returns the default domain name of a middleware, from its methods and routes. It is the same in
/// all processes of an application.
pub(super) fn label(name_part: &str, methods: &[String], routes: &[String]) -> String {
    let mut methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    methods.sort_unstable();
    let name_part = Some(name_part).filter(|name_part| !name_part.is_empty());
    let parts: Vec<&str> =
        name_part.into_iter().chain(methods).chain(routes.iter().map(String::as_str)).collect();
    let text = match parts.is_empty() {
        true => "default".to_string(),
        false => parts.join(" "),
    };
    let is_plain = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
    match text.len() <= MAX_DOMAIN_LABEL_BYTES && text.chars().all(is_plain) {
        true => text,
        false => format!("{:016x}", hash_of(text.as_bytes())),
    }
}

/// Returns the name of an application's table. `shown` are the readable parts of the name.
/// `identity` is everything that distinguishes the application from others, and is hashed.
///
/// ```
/// use dthrottle::web::application_table_name;
///
/// let name = application_table_name(&["shop"], &["/srv/shop/app.py"]);
/// assert!(name.starts_with("shop-"));
/// ```
pub fn application_table_name(shown: &[&str], identity: &[&str]) -> String {
    let digest = format!("{:016x}", hash_of(identity.join("\0").as_bytes()));
    let parts = shown.iter().map(|part| plain(part)).chain([digest[..10].to_string()]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Replaces the characters that a table's name must not have.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words = text.split(|c: char| !is_plain(c)).filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join("-");
    let trimmed = joined.trim_matches(['-', '.']);
    trimmed[..trimmed.len().min(MAX_PART_BYTES)].to_string()
}
