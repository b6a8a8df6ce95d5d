//! Start, reload and end of the daemon: flags, signals, kills, systemd.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Daemon, TIMEOUT, command, exchange, lines, new_dir, wait_for};

const TEN: &str = "rate = \"10 per day\"";

#[test]
fn a_reload_keeps_buckets_and_applies_new_rules() {
    let daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    assert_eq!(exchange(&mut stream, &b"a\n".repeat(8), 24), b"OK\n".repeat(8));
    daemon.rewrite("rate = \"5 per day\"\n[domains.new]\nrate = \"1 per day\"", "");
    daemon.signal("HUP");
    daemon.wait_for("reloaded the rules");
    // 2 of 10 units were left, so 2 of 5 are left.
    assert_eq!(exchange(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
    assert!(daemon.query("check\0domain=new\0tag=x").starts_with("OK limit=1 "));
    daemon.rewrite("rate = \"5 parsecs\"", "");
    daemon.signal("HUP");
    let message = daemon.wait_for("the old rules stay");
    assert!(message.contains("line 2: `rate` must be a rate"), "{message}");
    assert_eq!(exchange(&mut stream, b"b\n", 3), b"OK\n");
    assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (1, 1));
    assert_eq!(daemon.stat("allowed"), 12, "counts continue after a reload");
}

#[test]
fn a_reload_fails_if_the_file_has_no_rule_any_more() {
    // Even if the daemon could start without rules because it answers RESP.
    for keys in ["", "resp = \"127.0.0.1:0\""] {
        let daemon = Daemon::start("rate = \"2 per day\"", keys);
        let mut stream = daemon.connect();
        assert_eq!(exchange(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
        daemon.rewrite("", keys);
        daemon.signal("HUP");
        let message = daemon.wait_for("the old rules stay");
        assert!(message.contains("`rate` is missing: without a rule"), "{message}");
        fs::write(daemon.dir.join("dthrottle.toml"), "").unwrap();
        daemon.signal("HUP");
        daemon.wait_for("the old rules stay");
        assert_eq!(exchange(&mut stream, b"a\n", 3), b"NO\n");
        assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (0, 2));
        daemon.rewrite("rate = \"unlimited\"", keys);
        daemon.signal("HUP");
        daemon.wait_for("reloaded the rules");
        assert_eq!(exchange(&mut stream, b"a\n", 3), b"OK\n", "the file says \"unlimited\"");
    }
}

#[test]
fn a_daemon_without_rules_can_reload_if_it_answers_resp() {
    let daemon = Daemon::start("", "resp = \"127.0.0.1:0\"");
    daemon.signal("HUP");
    daemon.wait_for("reloaded the rules");
    assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (1, 0));
}

#[test]
fn sigterm_ends_the_daemon_after_it_has_answered_all_input() {
    let mut daemon = Daemon::start("rate = \"1000000/s\"", "");
    let mut stream = daemon.connect();
    assert_eq!(exchange(&mut stream, b"first\n", 3), b"OK\n");
    let count = 5000;
    stream.write_all(&b"x\n".repeat(count)).unwrap();
    daemon.signal("TERM");
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 3 * count, "every line that was sent before is answered");
    assert!(daemon.wait_for_exit());
    assert!(!daemon.socket.exists());
    assert!(UnixStream::connect(&daemon.socket).is_err());
}

#[test]
fn signals_are_handled_as_soon_as_the_daemon_is_ready() {
    for _ in 0..5 {
        let mut daemon = Daemon::start(TEN, "");
        daemon.signal("HUP");
        daemon.signal("TERM");
        assert!(daemon.wait_for_exit());
    }
}

/// The answers do not fit into the buffers of the socket.
#[test]
fn a_client_that_reads_after_sigterm_gets_the_last_answers() {
    let mut daemon = Daemon::start("rate = \"10 per day\"", "");
    let mut stream = daemon.connect();
    assert_eq!(exchange(&mut stream, b"first\n", 3), b"OK\n");
    let count = 100_000;
    stream.write_all(&b"x\n".repeat(count)).unwrap();
    daemon.signal("TERM");
    daemon.wait_for("shutting down");
    thread::sleep(Duration::from_millis(300));
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 3 * count);
    assert!(daemon.wait_for_exit());
}

/// The next daemon starts at the same path while clients still read answers of the old one.
#[test]
fn another_daemon_can_start_while_the_first_sends_its_last_answers() {
    let mut daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    stream.write_all(&b"x\n".repeat(100_000)).unwrap();
    daemon.wait_until("the daemon has answered some lines", |daemon| daemon.stat("lines") > 10_000);
    daemon.signal("TERM");
    daemon.wait_for("shutting down");
    daemon
        .wait_until("the socket is removed", |daemon| UnixStream::connect(&daemon.socket).is_err());
    let next = daemon.successor();
    assert_eq!(next.exchange(b"new\n", 3), b"OK\n");
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 300_000);
    assert!(daemon.wait_for_exit());
    assert_eq!(
        next.exchange(b"new\n", 3),
        b"OK\n",
        "the first daemon did not remove the socket of the second"
    );
}

/// Clients send lines all the time and reconnect after a failure.
#[test]
fn buckets_survive_kills_and_restarts_under_load() {
    let mut daemon = Daemon::start("rate = \"500 per day\"", "");
    let stop = Arc::new(AtomicBool::new(false));
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (stop, counts, socket) = (stop.clone(), counts.clone(), daemon.socket.clone());
            thread::spawn(move || {
                let mut stream: Option<UnixStream> = None;
                while !stop.load(Ordering::Relaxed) {
                    let mut out = [0; 3];
                    let answered = stream.as_mut().is_some_and(|stream| {
                        stream
                            .write_all(b"one\n")
                            .and_then(|()| stream.read_exact(&mut out))
                            .is_ok()
                    });
                    let index = match (answered, &out) {
                        (true, b"OK\n") => 0,
                        (true, b"NO\n") => 1,
                        (true, other) => panic!("{other:?}"),
                        (false, _) => {
                            stream = UnixStream::connect(&socket).ok();
                            thread::sleep(Duration::from_millis(5));
                            2
                        }
                    };
                    counts[index].fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    let count = |index: usize| counts[index].load(Ordering::Relaxed);
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < TIMEOUT, "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    for round in 1..=3 {
        let before = count(0) + count(1);
        until("clients are answered", &|| count(0) + count(1) > before + 100);
        daemon.signal("KILL");
        daemon.wait_for_exit();
        let failed = count(2);
        until("clients see failures", &|| count(2) > failed + 8);
        daemon.restart();
        println!("round {round}: {} allowed, {} refused, {} failed", count(0), count(1), count(2));
    }
    until("the bucket is empty", &|| count(1) > 50);
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // The table outlives the kill. Each kill may lose one answer of each client.
    assert!((500 - 3 * 4..=500).contains(&count(0)), "{} allowed", count(0));
}

#[test]
fn a_refusal_that_an_earlier_start_caused_is_logged() {
    let mut daemon = Daemon::start("rate = \"1 per day\"", "");
    assert_eq!(daemon.exchange(b"a\n", 3), b"OK\n");
    daemon.signal("KILL");
    daemon.wait_for_exit();
    daemon.restart();
    assert_eq!(daemon.exchange(b"b\nb\na\n", 9), b"OK\nNO\nNO\n");
    let line = daemon.wait_for("before this process opened the table");
    assert!(line.contains("run `dthrottle table remove "), "{line}");
}

#[test]
fn a_daemon_with_fresh_tables_starts_with_full_buckets() {
    let (dir, table) = new_dir();
    let socket = dir.join("socket");
    for _ in 0..2 {
        let mut child = command()
            .args(["--rate", "1 per day", "--table", &table, "--listen"])
            .arg(&socket)
            .env("DTHROTTLE_FRESH_TABLES", "1")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for(&lines(child.stderr.take().unwrap()), "is ready");
        let mut stream = UnixStream::connect(&socket).unwrap();
        assert_eq!(exchange(&mut stream, b"a\na\n", 6), b"OK\nNO\n");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(dthrottle::tables::remove(&table, None, None).is_err(), "there must be no file");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_library_with_the_same_configuration_shares_the_table() {
    let daemon = Daemon::start(TEN, "");
    let throttle = dthrottle::Throttle::from_file(daemon.dir.join("dthrottle.toml")).unwrap();
    for _ in 0..5 {
        assert!(throttle.allow("both").unwrap());
    }
    assert_eq!(
        daemon.exchange(&b"both\n".repeat(6), 18),
        [b"OK\n".repeat(5), b"NO\n".to_vec()].concat()
    );
    assert!(!throttle.allow("both").unwrap());
}

#[test]
fn a_daemon_starts_from_flags_without_a_file() {
    let (dir, table) = new_dir();
    let socket = dir.join("x.sock");
    let mut child = command()
        .args(["--rate", "2 per day", "--table", &table, "--http", "off", "--log-format", "json"])
        .arg("--listen")
        .arg(&socket)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = lines(child.stderr.take().unwrap());
    let ready = wait_for(&log, "is ready");
    assert!(ready.starts_with('{') && ready.contains("\"level\":\"INFO\""), "{ready}");
    assert!(
        ready.contains("http on none; resp on none; smockron on none")
            && ready.contains("1 rules in 1 domains")
    );
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    let mut stream = UnixStream::connect(&socket).unwrap();
    assert_eq!(exchange(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
    // A second daemon at the same path fails with an error.
    let second = command()
        .args(["--rate", "1/s", "--table", &table, "--http", "off", "--listen"])
        .arg(&socket)
        .output();
    let message = String::from_utf8(second.unwrap().stderr).unwrap();
    assert!(message.contains("another process listens there"), "{message}");
    // If a port is in use, the error names the key and the fix.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let third = ["--rate", "1/s", "--listen", "127.0.0.1:0", "--table", &table, "--http", &address];
    let message = String::from_utf8(command().args(third).output().unwrap().stderr).unwrap();
    assert!(message.contains(&format!("daemon.http: {address}: ")), "{message}");
    assert!(message.contains("stop the program that uses it, or choose another"), "{message}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The file that a killed daemon leaves does not prevent a start.
    assert!(socket.exists());
    let again = command()
        .args(["--rate", "1/s", "--table", &table, "--http", "off", "--listen"])
        .arg(&socket)
        .stderr(Stdio::piped())
        .spawn();
    let mut again = again.unwrap();
    wait_for(&lines(again.stderr.take().unwrap()), "is ready");
    again.kill().unwrap();
    again.wait().unwrap();
    dthrottle::tables::remove(&table, None, None).unwrap();
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn check_reports_errors_with_line_field_and_fix() {
    let (dir, _) = new_dir();
    let file = dir.join("dthrottle.toml");
    for (text, good, message) in [
        ("rate = \"5/s\"\n[daemon]\nresp = \"127.0.0.1:6379\"\n", true, "is valid"),
        (
            "rate = \"5/s\"\n\n[daemon]\nhttp = \"0.0.0.0:80\"\n",
            false,
            "line 4: `daemon.http` must be a loopback address",
        ),
        ("rate = \"5/s\"\nburst = 0\n", false, "line 2: `burst` must be a whole number"),
        ("rate = ", false, "line 1: invalid TOML"),
        ("", false, "dthrottle.toml: `rate` is missing: without a rule"),
        ("# rate = \"5/s\"\n[daemon]\nmax_line = 100\n", false, "or rate = \"unlimited\""),
        ("rate = \"unlimited\"\n", true, "is valid"),
        ("[domains.free]\nrules = []\n", true, "is valid"),
        ("[daemon]\nresp = \"127.0.0.1:6379\"\n", true, "is valid"),
    ] {
        fs::write(&file, text).unwrap();
        let done = command().arg("--check").arg("--config").arg(&file).output().unwrap();
        let out = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert_eq!(done.status.success(), good, "{out}");
        assert!(out.contains(message), "{out}");
    }
    let done = command().args(["--check", "--rate", "nonsense"]).output().unwrap();
    assert!(
        !done.status.success()
            && String::from_utf8(done.stderr).unwrap().contains("rate` must be a rate such as")
    );
    let done = command().args(["--check", "--listen", "nonsense"]).output().unwrap();
    assert!(String::from_utf8(done.stderr).unwrap().contains("must be a path such as"));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn systemd_is_notified_of_start_reload_and_end() {
    let (dir, table) = new_dir();
    let (notify_path, socket) = (dir.join("notify"), dir.join("socket"));
    let notify = UnixDatagram::bind(&notify_path).unwrap();
    notify.set_read_timeout(Some(TIMEOUT)).unwrap();
    let receive = || {
        let mut bytes = [0; 200];
        let length = notify.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut child = command()
        .args(["--rate", "1/s", "--table", &table, "--http", "off", "--listen"])
        .arg(&socket)
        .env("NOTIFY_SOCKET", &notify_path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(receive(), "READY=1");
    let signal = |name: &str| {
        let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        assert!(done.success());
    };
    signal("-HUP");
    assert!(receive().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(receive(), "READY=1");
    signal("-TERM");
    assert_eq!(receive(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
    dthrottle::tables::remove(&table, None, None).unwrap();
    fs::remove_dir_all(dir).unwrap();
}

/// `systemd-socket-activate` opens the socket and starts the daemon at the first connection.
#[test]
fn the_daemon_uses_a_socket_that_systemd_passes() {
    let (dir, table) = new_dir();
    let socket = dir.join("socket");
    let mut child = Command::new("systemd-socket-activate")
        .arg("--listen")
        .arg(&socket)
        .arg(env!("CARGO_BIN_EXE_dthrottled"))
        .args(["--rate", "1 per day", "--table", &table, "--http", "off"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = lines(child.stderr.take().unwrap());
    wait_for(&log, "Listening on");
    let mut stream = UnixStream::connect(&socket).unwrap();
    assert_eq!(exchange(&mut stream, b"a\na\n", 6), b"OK\nNO\n");
    assert!(wait_for(&log, "is ready").contains("lines on"));
    drop(stream);
    let done = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(done.success() && child.wait().unwrap().success());
    assert!(socket.exists(), "the daemon does not remove a socket of systemd");
    dthrottle::tables::remove(&table, None, None).unwrap();
    fs::remove_dir_all(dir).unwrap();
}

/// The rule that other machines need a token also holds for sockets of systemd.
#[test]
fn an_http_socket_of_systemd_for_other_machines_needs_a_token() {
    let (dir, table) = new_dir();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = Command::new("systemd-socket-activate")
        .args(["--fdname=http", "--listen", &format!("0.0.0.0:{}", address.port())])
        .arg(env!("CARGO_BIN_EXE_dthrottled"))
        .args(["--rate", "1 per day", "--table", &table, "--listen"])
        .arg(dir.join("socket"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = lines(child.stderr.take().unwrap());
    wait_for(&log, "Listening on");
    let _stream = std::net::TcpStream::connect(address).unwrap();
    let message = wait_for(&log, "other machines can reach");
    assert!(message.contains("daemon.token"), "{message}");
    assert!(!child.wait().unwrap().success());
    let _ = dthrottle::tables::remove(&table, None, None);
    fs::remove_dir_all(dir).unwrap();
}

/// Takes units of a tag at one daemon. Returns whether the other one soon answers with `left`.
fn is_reported(from: &Daemon, to: &Daemon, tag: &str, hits: usize, left: &str) -> bool {
    let lines = format!("{tag}\n").repeat(hits);
    assert_eq!(from.exchange(lines.as_bytes(), 3 * hits), b"OK\n".repeat(hits));
    to.becomes_true(Duration::from_secs(1), |to| {
        to.query(&format!("peek\0tag={tag}")).contains(left)
    })
}

#[test]
fn two_daemons_form_a_cluster_until_one_leaves() {
    // Both sockets are open at the same time, so that the ports differ.
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [one, two] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
    drop(sockets);
    let rules = |listen, peer| {
        format!("{TEN}\n[cluster]\nname = \"test\"\nlisten = \"{listen}\"\npeers = [\"{peer}\"]")
    };
    let first = Daemon::start(&rules(one, two), "");
    let mut second = Daemon::start(&rules(two, one), "");
    first.wait_until("the daemons know each other", |daemon| {
        daemon.query("peers").contains("\"state\":\"up\"")
    });
    let reports_arrive = |tag: String| {
        is_reported(&second, &first, &tag, 4, "remaining=6") && {
            second.signal("HUP");
            second.wait_for("reloaded the rules");
            is_reported(&second, &first, &tag, 1, "remaining=5")
        }
    };
    // Tries several tags, because nodes ignore reports right after their start and forgive late
    // ones.
    let mut tags = (0..TIMEOUT.as_secs()).map(|count| format!("c{count}"));
    assert!(tags.any(reports_arrive), "no report arrived, or none after a reload");
    second.signal("TERM");
    assert!(second.wait_for_exit());
    first.wait_until("the second daemon has left", |daemon| {
        daemon.query("peers").contains("\"state\":\"left\"")
    });
    let mut answer = String::new();
    let mut stream = first.connect();
    stream.write_all(b"\0peers\n").unwrap();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("OK {\"counts\""), "{answer}");
}

#[test]
fn systemd_accepts_the_unit_files() {
    let (dir, _) = new_dir();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd");
    for name in ["dthrottled.service", "dthrottled.socket"] {
        let unit = fs::read_to_string(format!("{folder}/{name}")).unwrap();
        // The daemon need not be installed.
        let unit = unit.replace("/usr/local/bin/dthrottled", "/bin/true");
        fs::write(dir.join(name), unit).unwrap();
    }
    let done = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args([dir.join("dthrottled.service"), dir.join("dthrottled.socket")])
        .output()
        .unwrap();
    let message = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && !message.contains("dthrottled"), "{message}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_configurations_in_the_documentation_are_valid() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/daemon.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```toml daemon\n").skip(1).collect();
    assert!(!blocks.is_empty());
    let (dir, _) = new_dir();
    let token = dir.join("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    for block in blocks {
        let file = dir.join("dthrottle.toml");
        let block = block.split("```").next().unwrap();
        let block = block.replace("/etc/dthrottle/token", &token.display().to_string());
        fs::write(&file, block).unwrap();
        let done = command().arg("--check").arg("--config").arg(&file).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    fs::remove_dir_all(dir).unwrap();
}
