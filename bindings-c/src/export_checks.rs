//! Tests that read the source of this crate. They check that the body of every export is `guard!`,
//! and that only `ffi.rs` contains unsafe code.

use std::fs;
use std::path::PathBuf;

/// Returns the name and text of each file of this crate, without tests and comments.
fn sources() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let text = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().lines();
        code.filter(|line| !line.trim().starts_with("//"))
            .fold(String::new(), |all, line| all + line + "\n")
    };
    let files: Vec<PathBuf> = files.filter(|path| name(path) != "export_checks.rs").collect();
    files.iter().map(|path| (name(path), text(path))).collect()
}

/// Returns the exports of a text: the text before each, its name, and its body.
fn exports(text: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("extern \"C\" fn ") {
        let before = &text[..at];
        let rest = &text[at + "extern \"C\" fn ".len()..];
        let name = rest.split('(').next().unwrap();
        let body = &rest[rest.find('{').unwrap() + 1..];
        // rustfmt puts the closing brace alone at the start of a line.
        let body = &body[..body.find("\n}").unwrap()];
        found.push((before, name, body.trim()));
    }
    found
}

/// Returns what is wrong with the exports of a text.
fn problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (before, name, body) in exports(text) {
        if !name.starts_with("dthrottle_") {
            problems.push(format!("{name}: the name of an export must begin with dthrottle_"));
        }
        if !before.ends_with("#[unsafe(no_mangle)]\npub unsafe ") {
            problems.push(format!("{name}: must be `#[unsafe(no_mangle)] pub unsafe`"));
        }
        let mut depth = 0;
        let whole = body.trim_end_matches(';');
        let end = whole.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        });
        if !body.starts_with("guard!(") || end != Some(whole.len() - 1) {
            problems.push(format!("{name}: the body must be one guard!(..)"));
        }
    }
    problems
}

#[test]
fn every_export_has_guard_as_its_body() {
    let mut count = 0;
    for (file, text) in sources() {
        assert_eq!(problems(&text), Vec::<String>::new(), "{file}");
        count += exports(&text).len();
        let guards = text.matches("guard!(").count();
        assert_eq!(guards, exports(&text).len(), "{file}: guard! is used outside of an export");
    }
    assert!(count >= 32, "found only {count} exports");
}

#[test]
fn only_ffi_contains_unsafe_code() {
    for (file, text) in sources().iter().filter(|(file, _)| file != "ffi.rs") {
        for word in ["unsafe {", "unsafe impl", "unsafe fn", "unsafe trait"] {
            assert!(!text.contains(word), "{file} must not contain `{word}`");
        }
    }
}

#[test]
fn the_check_finds_exports_without_guard() {
    let export =
        |head: &str, body: &str| format!("{head}extern \"C\" fn dthrottle_x() {{{body}\n}}");
    let head = "#[unsafe(no_mangle)]\npub unsafe ";
    let good = "\n    guard!(|c| {\n        Ok(())\n    })";
    assert_eq!(problems(&export(head, good)), Vec::<String>::new());
    assert_eq!(problems(&export(head, &format!("{good};"))), Vec::<String>::new());

    let unguarded = [
        "\n    0",
        "\n    before();\n    guard!(|c| Ok(()))",
        "\n    guard!(|c| Ok(()));\n    after()",
        "\n    guard!(|c| Ok(())) + after()",
        "\n    answer(|| Ok(()))",
        "",
    ];
    for body in unguarded {
        let found = problems(&export(head, body));
        assert_eq!(found, ["dthrottle_x: the body must be one guard!(..)"], "{body}");
    }
    for head in ["pub unsafe ", "#[unsafe(no_mangle)]\npub ", "#[unsafe(no_mangle)]\nunsafe "] {
        assert_eq!(problems(&export(head, good)).len(), 1, "{head}");
    }
    let odd = export(head, good).replace("dthrottle_x", "x");
    assert_eq!(problems(&odd), ["x: the name of an export must begin with dthrottle_"]);
}
