//! `dthrottle table`: output, exit status and files.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use dthrottle::internals;
use dthrottle::{Rule, TableConfig, Throttle};
use serde_json::{Value, json};

/// A folder in memory for the files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = PathBuf::from(format!("/dev/shm/test-cli-{}-{count}", std::process::id()));
            match fs::create_dir(&path) {
                // A killed process left it.
                Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {}
                made => break made.map(|()| path).unwrap(),
            }
        };
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The file of a table.
    fn file(&self, name: &str) -> PathBuf {
        let user = fs::metadata(&self.0).unwrap().uid();
        self.0.join(format!("dthrottle-{user}-{name}"))
    }

    /// Opens a throttle with a table in this folder and a burst of 10.
    fn open(&self, name: &str) -> Throttle {
        let table = TableConfig::named(name).dir(self.path());
        Throttle::builder().table(table).rule(Rule::per_hour(1).burst(10)).build().unwrap()
    }

    /// Runs `dthrottle table ... --dir FOLDER`.
    fn run(&self, words: &[&str]) -> Output {
        dthrottle(&[&["table"], words, &["--dir", self.path()]].concat())
    }

    /// Runs a command that must succeed. Returns its output.
    fn prints(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{words:?}");
        text(&output.stdout).to_string()
    }

    /// Runs a command that must fail. Returns its error message.
    fn fails(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{words:?}");
        let printed = text(&output.stderr);
        assert!(printed.starts_with("dthrottle: ") && printed.lines().count() == 1, "{printed}");
        printed.to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn dthrottle(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dthrottle")).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const HEAD: [&str; 5] = ["NAME", "TAGS", "BUCKETS", "BYTES", "FILE"];

/// The lines of a list, split into words.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn list_shows_every_table() {
    let folder = Folder::new();
    assert_eq!(rows(&folder.prints(&["list"])), [HEAD]);
    let (api, web) = (folder.open("api"), folder.open("web"));
    for tag in ["one", "other"] {
        assert!(web.allow(tag).unwrap());
    }
    let list = folder.prints(&["list"]);
    let bytes = internals::table_size(&api).0.to_string();
    let (api_file, web_file) = (folder.file("api"), folder.file("web"));
    let tags = rows(&list)[1][1].to_string();
    assert!(tags.parse::<u64>().unwrap() >= 1 << 20);
    let api = ["api", &tags, "0", &bytes, api_file.to_str().unwrap()];
    let web = ["web", &tags, "2", &bytes, web_file.to_str().unwrap()];
    assert_eq!(rows(&list), [HEAD, api, web]);
}

#[test]
fn list_shows_why_a_table_is_unusable() {
    let folder = Folder::new();
    let path = folder.file("bad");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let list = folder.prints(&["list"]);
    let path = path.to_str().unwrap();
    assert_eq!(rows(&list)[..2], [&HEAD[..], &["bad", "0", "0", "1", path]]);
    let fault = format!("  cannot use the table {path}: it is not a table");
    assert_eq!(list.lines().collect::<Vec<_>>()[2..], [fault]);
}

#[test]
fn list_in_json_has_every_field() {
    let folder = Folder::new();
    assert_eq!(folder.prints(&["list", "--json"]), "[]\n");
    let api = folder.open("api");
    assert!(api.allow("tag").unwrap());
    let bad = folder.file("bad");
    fs::write(&bad, "x").unwrap();
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).unwrap();
    let list: Value = serde_json::from_str(&folder.prints(&["list", "--json"])).unwrap();
    let expected = json!([
        {
            "name": "api", "path": folder.file("api"), "bytes": internals::table_size(&api).0,
            "tags": list[0]["tags"].as_u64().unwrap(), "buckets": 1, "cluster": null,
            "fault": null,
        },
        {
            "name": "bad", "path": bad, "bytes": 1, "tags": 0, "buckets": 0, "cluster": null,
            "fault": format!("cannot use the table {}: it is not a table", bad.display()),
        },
    ]);
    assert_eq!(list, expected);
}

/// For example `dthrottle table list | head -1`.
#[test]
fn a_command_succeeds_silently_if_its_reader_has_closed_the_pipe() {
    let folder = Folder::new();
    let dir = ["--dir", folder.path()];
    for words in [&["table", "list"][..], &["table", "list", "--json"], &["simulate", "busy"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_dthrottle"));
        let options = if words[0] == "table" { &dir[..] } else { &[] };
        let output = command.args(words).args(options).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn remove_fails_if_the_table_does_not_exist() {
    let folder = Folder::new();
    drop(folder.open("web"));
    assert_eq!(folder.prints(&["remove", "web"]), "");
    assert!(!folder.file("web").exists());
    let printed = folder.fails(&["remove", "web"]);
    assert_eq!(
        printed,
        "dthrottle: unknown table \"web\"; `dthrottle table list` shows all tables\n"
    );
}

#[test]
fn resize_keeps_the_buckets() {
    let folder = Folder::new();
    let old = folder.open("web");
    assert!(old.allow("tag").unwrap());
    assert_eq!(folder.prints(&["resize", "web", "40 MB"]), "");
    let new = folder.open("web");
    assert!(
        internals::table_size(&new).0 > internals::table_size(&old).0
            && internals::table_size(&new).0 <= 40_000_000
    );
    assert_eq!(new.peek("tag").unwrap().balance, 9);
    assert_eq!(rows(&folder.prints(&["list"]))[1][2], "1");
    let printed = folder.fails(&["resize", "web", "5 apples"]);
    assert!(printed.contains("table.size") && printed.contains("5 apples"), "{printed}");
    let printed = folder.fails(&["resize", "other", "40 MB"]);
    assert!(printed.contains("unknown table \"other\""), "{printed}");
    assert_eq!(
        internals::table_size(&folder.open("web")),
        internals::table_size(&new),
        "a failed resize changes nothing"
    );
}

#[test]
fn the_tables_of_a_group_are_separate_from_those_of_the_user() {
    let folder = Folder::new();
    let group = fs::metadata(folder.path()).unwrap().gid().to_string();
    drop(folder.open("mine"));
    let table = TableConfig::named("ours").dir(folder.path()).group(&group);
    Throttle::builder().table(table).rule(Rule::per_hour(1)).build().unwrap();
    assert_eq!(rows(&folder.prints(&["list"]))[1][0], "mine");
    let ours = folder.prints(&["list", "--group", &group]);
    assert_eq!((rows(&ours).len(), rows(&ours)[1][0]), (2, "ours"));
    folder.fails(&["remove", "ours"]);
    folder.prints(&["remove", "ours", "--group", &group]);
    let printed = folder.fails(&["list", "--group", "no-such-group"]);
    assert!(printed.contains("table.group") && printed.contains("no-such-group"), "{printed}");
}

#[test]
fn invalid_arguments_print_the_usage() {
    for words in [
        &[][..],
        &["table"],
        &["tables", "list"],
        &["table", "show"],
        &["table", "remove"],
        &["table", "resize", "web"],
        &["table", "list", "--folder", "/tmp"],
    ] {
        let output = dthrottle(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("Usage: dthrottle"), "{words:?}");
        assert_eq!(text(&output.stdout), "", "{words:?}");
    }
    let help = dthrottle(&["table", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    for word in ["list", "remove", "resize", "--group", "--dir"] {
        assert!(text(&help.stdout).contains(word), "{word}");
    }
    assert_eq!(dthrottle(&["--version"]).status.code(), Some(0));
}
