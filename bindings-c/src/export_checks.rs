//! Reads the source of this crate, to see that every export has the one shape that lets neither a
//! null pointer nor a panic pass, and that unsafe code has one home.

use std::fs;
use std::path::PathBuf;

/// The files of this crate and their text, without tests and comments.
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

/// The exports of a text: the lines before each, its name, and its body.
fn exports(text: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("extern \"C\" fn ") {
        let before = &text[..at];
        let rest = &text[at + "extern \"C\" fn ".len()..];
        let name = rest.split('(').next().unwrap();
        let body = &rest[rest.find('{').unwrap() + 1..];
        // As rustfmt leaves it: the closing brace is alone at the start of a line.
        let body = &body[..body.find("\n}").unwrap()];
        found.push((before, name, body.trim()));
    }
    found
}

/// What is wrong with the exports of a text.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (before, name, body) in exports(text) {
        if !name.starts_with("dthrottle_") {
            faults.push(format!("{name}: a name of C begins with dthrottle_"));
        }
        if !before.ends_with("#[unsafe(no_mangle)]\npub unsafe ") {
            faults.push(format!("{name}: not `#[unsafe(no_mangle)] pub unsafe`"));
        }
        let mut depth = 0;
        let whole = body.trim_end_matches(';');
        let end = whole.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        });
        if !body.starts_with("guard!(") || end != Some(whole.len() - 1) {
            faults.push(format!("{name}: its body is not one guard!(..)"));
        }
    }
    faults
}

#[test]
fn every_export_is_guarded() {
    let mut count = 0;
    for (file, text) in sources() {
        assert_eq!(faults(&text), Vec::<String>::new(), "{file}");
        count += exports(&text).len();
        let guards = text.matches("guard!(").count();
        assert_eq!(guards, exports(&text).len(), "{file}: guard! outside of an export");
    }
    assert!(count >= 32, "only {count} exports found");
}

#[test]
fn unsafe_code_is_in_one_file() {
    for (file, text) in sources().iter().filter(|(file, _)| file != "ffi.rs") {
        for word in ["unsafe {", "unsafe impl", "unsafe fn", "unsafe trait"] {
            assert!(!text.contains(word), "{file} has `{word}`");
        }
    }
}

#[test]
fn exports_without_the_shape_are_found() {
    let export =
        |head: &str, body: &str| format!("{head}extern \"C\" fn dthrottle_x() {{{body}\n}}");
    let head = "#[unsafe(no_mangle)]\npub unsafe ";
    let good = "\n    guard!(|c| {\n        Ok(())\n    })";
    assert_eq!(faults(&export(head, good)), Vec::<String>::new());
    assert_eq!(faults(&export(head, &format!("{good};"))), Vec::<String>::new());

    let unguarded = [
        "\n    0",
        "\n    before();\n    guard!(|c| Ok(()))",
        "\n    guard!(|c| Ok(()));\n    after()",
        "\n    guard!(|c| Ok(())) + after()",
        "\n    answer(|| Ok(()))",
        "",
    ];
    for body in unguarded {
        let found = faults(&export(head, body));
        assert_eq!(found, ["dthrottle_x: its body is not one guard!(..)"], "{body}");
    }
    for head in ["pub unsafe ", "#[unsafe(no_mangle)]\npub ", "#[unsafe(no_mangle)]\nunsafe "] {
        assert_eq!(faults(&export(head, good)).len(), 1, "{head}");
    }
    let odd = export(head, good).replace("dthrottle_x", "x");
    assert_eq!(faults(&odd), ["x: a name of C begins with dthrottle_"]);
}
