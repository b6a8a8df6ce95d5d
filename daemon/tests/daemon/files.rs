//! Files and other users: a file with the name of the table, and secrets that others can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::common::{command, lines, new_dir, wait_for};

/// Starts a daemon as root with a new file system at `/run`.
fn start(dir: &Path, table: &str, run_mode: &str) -> (Child, mpsc::Receiver<String>) {
    let script = format!("mount -t tmpfs -o mode={run_mode} tmpfs /run && exec \"$0\" \"$@\"");
    let mut child = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(command().get_program())
        .args(["--rate", "1/s", "--table", table, "--http", "off", "--listen"])
        .arg(dir.join("socket"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = lines(child.stderr.take().unwrap());
    (child, log)
}

#[test]
fn a_daemon_of_root_starts_although_another_user_took_the_name_of_its_table() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (dir, table) = new_dir();
    let name = format!("dthrottle-0-{table}");
    let planted = PathBuf::from("/dev/shm").join(&name);
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "touch"];
    assert!(Command::new("setpriv").args(user).arg(&planted).status().unwrap().success());
    let (mut child, log) = start(&dir, &table, "755");
    wait_for(&log, "is ready");
    let made = format!("/proc/{}/root/run/dthrottle/{name}", child.id());
    assert!(Path::new(&made).exists(), "{made}");
    child.kill().unwrap();
    child.wait().unwrap();
    // If every user can create files in /run, the message says what to do.
    let (mut child, log) = start(&dir, &table, "1777");
    let output = wait_for(&log, "cannot use the table");
    assert!(!child.wait().unwrap().success());
    fs::remove_file(&planted).unwrap();
    for part in [planted.to_str().unwrap(), "user 65534 (nobody)", "set `dir`"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_secret_that_every_user_can_read_causes_a_warning() {
    warns_about("[cluster]\nname = \"files\"\nlisten = \"127.0.0.1:0\"\nsecret", "[daemon]");
}

#[test]
fn a_token_that_every_user_can_read_causes_a_warning() {
    warns_about("[daemon]\ntoken", "");
}

/// Checks the warning with a configuration in which `key` names a file, followed by `daemon` and
/// further keys of the daemon.
fn warns_about(key: &str, daemon: &str) {
    let (dir, _) = new_dir();
    let (secret, file) = (dir.join("secret"), dir.join("dthrottle.toml"));
    fs::write(&secret, "a-secret-of-enough-letters\n").unwrap();
    let text = format!(
        "rate = \"1/s\"\ntable = {{ private = true, size = 1 }}\n\
         {key} = {{ file = {secret:?} }}\n{daemon}\nhttp = false\nlisten = {:?}\n",
        dir.join("socket")
    );
    fs::write(&file, text).unwrap();
    for (mode, is_logged) in [(0o644, true), (0o640, false)] {
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
        let mut daemon = command();
        let mut child = daemon.arg("--config").arg(&file).stderr(Stdio::piped()).spawn().unwrap();
        let log = lines(child.stderr.take().unwrap());
        // The warning comes before the other lines, if there is one.
        let line = wait_for(&log, if is_logged { "every user" } else { "dthrottled" });
        child.kill().unwrap();
        child.wait().unwrap();
        let wanted = if is_logged { secret.to_str().unwrap() } else { "is ready" };
        assert!(line.contains(wanted), "{mode:o}: {line}");
    }
    fs::remove_dir_all(dir).unwrap();
}
