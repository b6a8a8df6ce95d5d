//! Checks the dependencies against `deny.toml`: licences, banned crates, and sources.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The rules of `deny.toml`.
struct Rules {
    licences: Vec<String>,
    /// Names of crates, and the further licence that each may have.
    exceptions: Vec<(String, String)>,
    /// Names of crates that must not be used, and the reasons.
    banned: Vec<(String, String)>,
}

/// Returns an error that lists all packages that violate a rule.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("deny.toml"))?;
    let rules = Rules::read(&text).ok_or("deny.toml: [licenses] or [bans] has a wrong form")?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
        .current_dir(&root)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let violations: Vec<String> =
        packages.iter().filter_map(|package| rules.violation(package)).collect();
    if violations.is_empty() {
        Ok(())
    } else {
        Err(format!("deny.toml:\n{}", violations.join("\n")).into())
    }
}

impl Rules {
    fn read(text: &str) -> Option<Rules> {
        let rules: toml::Table = text.parse().ok()?;
        let words = |list: &toml::Value| -> Option<Vec<String>> {
            list.as_array()?.iter().map(|word| Some(word.as_str()?.to_string())).collect()
        };
        let licenses = &rules["licenses"];
        let exceptions = licenses.get("exceptions")?.as_array()?.iter().map(|exception| {
            let name = exception.get("crate")?.as_str()?.to_string();
            Some((name, words(exception.get("allow")?)?.pop()?))
        });
        let banned = rules["bans"].get("deny")?.as_array()?.iter().map(|ban| {
            let word = |key| Some(ban.get(key)?.as_str()?.to_string());
            Some((word("crate")?, word("reason")?))
        });
        Some(Rules {
            licences: words(licenses.get("allow")?)?,
            exceptions: exceptions.collect::<Option<_>>()?,
            banned: banned.collect::<Option<_>>()?,
        })
    }

    /// Returns how a package violates a rule.
    fn violation(&self, package: &Value) -> Option<String> {
        let name = package["name"].as_str().unwrap_or("?");
        let source = package["source"].as_str().unwrap_or("path");
        if !["path", "registry+", "sparse+"].iter().any(|kind| source.starts_with(kind)) {
            return Some(format!("{name}: must come from a registry, comes from {source}"));
        }
        if let Some((_, reason)) = self.banned.iter().find(|(banned, _)| banned == name) {
            return Some(format!("{name}: must not be used, because {reason}"));
        }
        let licence = package["license"].as_str().unwrap_or("none");
        let is_allowed = |one: &str| {
            self.licences.iter().any(|allowed| allowed == one)
                || self.exceptions.iter().any(|(of, allowed)| of == name && allowed == one)
        };
        (!satisfies(licence, &is_allowed))
            .then(|| format!("{name}: must have an allowed licence, has {licence}"))
    }
}

/// Returns true if a licence expression is satisfied: one part of each `OR`, and every part of each
/// `AND`. A slash is an old form of `OR`.
fn satisfies(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let expression = expression.trim().replace('/', " OR ");
    for (word, any) in [(" OR ", true), (" AND ", false)] {
        let parts = split(&expression, word);
        if parts.len() > 1 {
            let mut results = parts.iter().map(|part| satisfies(part, is_allowed));
            return if any { results.any(|is| is) } else { results.all(|is| is) };
        }
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => satisfies(inner, is_allowed),
        None => is_allowed(&expression),
    }
}

/// Splits an expression at a word outside of parentheses.
fn split<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && expression[at..].starts_with(word) => {
                parts.push(&expression[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_or_needs_one_allowed_part_and_an_and_needs_all() {
        let allowed = |one: &str| matches!(one, "MIT" | "Zlib" | "A WITH b");
        for expression in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND Zlib", "A WITH b OR C"]
        {
            assert!(satisfies(expression, &allowed), "{expression}");
        }
        for expression in ["none", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND C", "A"] {
            assert!(!satisfies(expression, &allowed), "{expression}");
        }
    }

    #[test]
    fn the_violation_of_a_rule_names_the_package() {
        let text = r#"
            [licenses]
            allow = ["MIT"]
            exceptions = [{ crate = "special", allow = ["MPL-2.0"] }]
            [bans]
            deny = [{ crate = "bad", reason = "it is slow" }]
        "#;
        let rules = Rules::read(text).unwrap();
        let violation = |name: &str, licence: &str, source: &str| {
            let package = serde_json::json!({ "name": name, "license": licence, "source": source });
            rules.violation(&package)
        };
        assert_eq!(violation("good", "MIT", "registry+x"), None);
        assert_eq!(violation("special", "MPL-2.0", "registry+x"), None);
        for (name, licence, source, message) in [
            ("bad", "MIT", "registry+x", "bad: must not be used, because it is slow"),
            ("good", "MPL-2.0", "registry+x", "good: must have an allowed licence, has MPL-2.0"),
            ("good", "MIT", "git+x", "good: must come from a registry, comes from git+x"),
        ] {
            assert_eq!(violation(name, licence, source).as_deref(), Some(message));
        }
    }
}
