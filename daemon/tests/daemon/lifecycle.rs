//! How a daemon begins, changes and ends: flags, signals, kills, systemd.

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

use crate::common::{Daemon, TIMEOUT, ask, command, lines, new_dir, wait_for};

const TEN: &str = "rate = \"10 per day\"";

#[test]
fn a_reload_keeps_buckets_and_takes_rules() {
    let daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    assert_eq!(ask(&mut stream, &b"a\n".repeat(8), 24), b"OK\n".repeat(8));
    daemon.rewrite("rate = \"5 per day\"\n[domains.new]\nrate = \"1 per day\"", "");
    daemon.signal("HUP");
    daemon.wait_for("rules read again");
    // Of ten two were left, and two of five are.
    assert_eq!(ask(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
    assert!(daemon.query("check\0domain=new\0tag=x").starts_with("OK limit=1 "));
    daemon.rewrite("rate = \"5 parsecs\"", "");
    daemon.signal("HUP");
    let said = daemon.wait_for("the rules stay");
    assert!(said.contains("line 2: rate: \"5 parsecs\""), "{said}");
    assert_eq!(ask(&mut stream, b"b\n", 3), b"OK\n");
    assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (1, 1));
    assert_eq!(daemon.stat("allowed"), 12, "counts go on");
}

#[test]
fn a_reload_that_loses_every_rule_fails() {
    // Also where a daemon that answers RESP could start without rules.
    for keys in ["", "resp = \"127.0.0.1:0\""] {
        let daemon = Daemon::start("rate = \"2 per day\"", keys);
        let mut stream = daemon.connect();
        assert_eq!(ask(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
        daemon.rewrite("", keys);
        daemon.signal("HUP");
        let said = daemon.wait_for("the rules stay");
        assert!(said.contains("rate: no domain has a rule"), "{said}");
        fs::write(daemon.dir.join("dthrottle.toml"), "").unwrap();
        daemon.signal("HUP");
        daemon.wait_for("the rules stay");
        assert_eq!(ask(&mut stream, b"a\n", 3), b"NO\n");
        assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (0, 2));
        daemon.rewrite("rate = \"unlimited\"", keys);
        daemon.signal("HUP");
        daemon.wait_for("rules read again");
        assert_eq!(ask(&mut stream, b"a\n", 3), b"OK\n", "the user asked for it");
    }
}

#[test]
fn a_daemon_without_rules_reloads_if_it_answers_resp() {
    let daemon = Daemon::start("", "resp = \"127.0.0.1:0\"");
    daemon.signal("HUP");
    daemon.wait_for("rules read again");
    assert_eq!((daemon.stat("reloads"), daemon.stat("failed_reloads")), (1, 0));
}

#[test]
fn the_end_comes_after_the_last_answers() {
    let mut daemon = Daemon::start("rate = \"1000000/s\"", "");
    let mut stream = daemon.connect();
    assert_eq!(ask(&mut stream, b"first\n", 3), b"OK\n");
    let count = 5000;
    stream.write_all(&b"x\n".repeat(count)).unwrap();
    daemon.signal("TERM");
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 3 * count, "everything that was sent before is answered");
    assert!(daemon.wait_for_exit());
    assert!(!daemon.socket.exists());
    assert!(UnixStream::connect(&daemon.socket).is_err());
}

#[test]
fn signals_are_heard_as_soon_as_it_is_ready() {
    for _ in 0..5 {
        let mut daemon = Daemon::start(TEN, "");
        daemon.signal("HUP");
        daemon.signal("TERM");
        assert!(daemon.wait_for_exit());
    }
}

/// Answers that do not fit the sockets are waited for.
#[test]
fn a_client_that_reads_late_gets_the_last_answers() {
    let mut daemon = Daemon::start("rate = \"10 per day\"", "");
    let mut stream = daemon.connect();
    assert_eq!(ask(&mut stream, b"first\n", 3), b"OK\n");
    let count = 100_000;
    stream.write_all(&b"x\n".repeat(count)).unwrap();
    daemon.signal("TERM");
    daemon.wait_for("ending");
    thread::sleep(Duration::from_millis(300));
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 3 * count);
    assert!(daemon.wait_for_exit());
}

/// The next daemon begins while the last answers of this one wait: the place is the next one's.
#[test]
fn another_takes_over_during_the_end() {
    let mut daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    stream.write_all(&b"x\n".repeat(100_000)).unwrap();
    daemon.wait_until("it is busy", |daemon| daemon.stat("lines") > 10_000);
    daemon.signal("TERM");
    daemon.wait_for("ending");
    daemon.wait_until("the place is free", |daemon| UnixStream::connect(&daemon.socket).is_err());
    let next = daemon.successor();
    assert_eq!(next.ask(b"new\n", 3), b"OK\n");
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out.len(), 300_000);
    assert!(daemon.wait_for_exit());
    assert_eq!(next.ask(b"new\n", 3), b"OK\n", "its socket is still there");
}

/// Clients that ask all the time: they go on while nobody answers, and come back.
#[test]
fn a_kill_and_a_restart_under_load() {
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
                    let place = match (answered, &out) {
                        (true, b"OK\n") => 0,
                        (true, b"NO\n") => 1,
                        (true, other) => panic!("{other:?}"),
                        (false, _) => {
                            stream = UnixStream::connect(&socket).ok();
                            thread::sleep(Duration::from_millis(5));
                            2
                        }
                    };
                    counts[place].fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    let count = |place: usize| counts[place].load(Ordering::Relaxed);
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
        until("clients notice", &|| count(2) > failed + 8);
        daemon.restart();
        println!("round {round}: {} allowed, {} refused, {} failed", count(0), count(1), count(2));
    }
    until("the bucket is empty", &|| count(1) > 50);
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // The table outlives the kill. An answer that was under way may be lost, one for each client.
    assert!((500 - 3 * 4..=500).contains(&count(0)), "{} allowed", count(0));
}

#[test]
fn a_library_on_the_host_shares_the_table() {
    let daemon = Daemon::start(TEN, "");
    let throttle = dthrottle::Throttle::from_file(daemon.dir.join("dthrottle.toml")).unwrap();
    for _ in 0..5 {
        assert!(throttle.allow("both").unwrap());
    }
    assert_eq!(
        daemon.ask(&b"both\n".repeat(6), 18),
        [b"OK\n".repeat(5), b"NO\n".to_vec()].concat()
    );
    assert!(!throttle.allow("both").unwrap());
}

#[test]
fn flags_alone() {
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
    assert_eq!(ask(&mut stream, b"a\na\na\n", 9), b"OK\nOK\nNO\n");
    // A second one at the same place is told so.
    let second = command()
        .args(["--rate", "1/s", "--table", &table, "--http", "off", "--listen"])
        .arg(&socket)
        .output();
    let said = String::from_utf8(second.unwrap().stderr).unwrap();
    assert!(said.contains("another daemon answers there"), "{said}");
    // So is one whose port is taken: which key, and what to do.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let third = ["--rate", "1/s", "--listen", "127.0.0.1:0", "--table", &table, "--http", &address];
    let said = String::from_utf8(command().args(third).output().unwrap().stderr).unwrap();
    assert!(said.contains(&format!("daemon.http: {address}: ")), "{said}");
    assert!(said.contains("stop what has it, or choose another"), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The file of one that was killed is in nobody's way.
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
fn check_says_what_is_wrong() {
    let (dir, _) = new_dir();
    let file = dir.join("dthrottle.toml");
    for (text, good, said) in [
        ("rate = \"5/s\"\n[daemon]\nresp = \"127.0.0.1:6379\"\n", true, "is good"),
        (
            "rate = \"5/s\"\n\n[daemon]\nhttp = \"0.0.0.0:80\"\n",
            false,
            "line 4: daemon.http: 0.0.0.0:80",
        ),
        ("rate = \"5/s\"\nburst = 0\n", false, "line 2: burst: 0"),
        ("rate = ", false, "line 1: not TOML"),
        ("", false, "dthrottle.toml: rate: no domain has a rule"),
        (
            "# rate = \"5/s\"\n[daemon]\nmax_line = 100\n",
            false,
            "give rate, or rate = \"unlimited\"",
        ),
        ("rate = \"unlimited\"\n", true, "is good"),
        ("[domains.free]\nrules = []\n", true, "is good"),
        ("[daemon]\nresp = \"127.0.0.1:6379\"\n", true, "is good"),
    ] {
        fs::write(&file, text).unwrap();
        let done = command().arg("--check").arg("--config").arg(&file).output().unwrap();
        let out = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert_eq!(done.status.success(), good, "{out}");
        assert!(out.contains(said), "{out}");
    }
    let done = command().args(["--check", "--rate", "nonsense"]).output().unwrap();
    assert!(
        !done.status.success()
            && String::from_utf8(done.stderr).unwrap().contains("rate: \"nonsense\"")
    );
    let done = command().args(["--check", "--listen", "nonsense"]).output().unwrap();
    assert!(String::from_utf8(done.stderr).unwrap().contains("neither a path nor an address"));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn systemd_is_told() {
    let (dir, table) = new_dir();
    let (told, socket) = (dir.join("notify"), dir.join("socket"));
    let notify = UnixDatagram::bind(&told).unwrap();
    notify.set_read_timeout(Some(TIMEOUT)).unwrap();
    let hear = || {
        let mut bytes = [0; 200];
        let length = notify.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut child = command()
        .args(["--rate", "1/s", "--table", &table, "--http", "off", "--listen"])
        .arg(&socket)
        .env("NOTIFY_SOCKET", &told)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(hear(), "READY=1");
    let signal = |name: &str| {
        let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        assert!(done.success());
    };
    signal("-HUP");
    assert!(hear().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(hear(), "READY=1");
    signal("-TERM");
    assert_eq!(hear(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
    dthrottle::tables::remove(&table, None, None).unwrap();
    fs::remove_dir_all(dir).unwrap();
}

/// systemd's own tool opens the socket and starts the daemon with it at the first connection.
#[test]
fn systemd_hands_over_sockets() {
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
    assert_eq!(ask(&mut stream, b"a\na\n", 6), b"OK\nNO\n");
    assert!(wait_for(&log, "is ready").contains("lines on"));
    drop(stream);
    let done = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(done.success() && child.wait().unwrap().success());
    assert!(socket.exists(), "it is systemd's");
    dthrottle::tables::remove(&table, None, None).unwrap();
    fs::remove_dir_all(dir).unwrap();
}

/// Whatever is handed over: other machines need a token.
#[test]
fn systemd_cannot_open_http_to_others_without_a_token() {
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
    let said = wait_for(&log, "other machines can reach");
    assert!(said.contains("daemon.token"), "{said}");
    assert!(!child.wait().unwrap().success());
    let _ = dthrottle::tables::remove(&table, None, None);
    fs::remove_dir_all(dir).unwrap();
}

/// Takes of a tag at one daemon; whether the other soon says that so much is left.
fn told(from: &Daemon, to: &Daemon, tag: &str, hits: usize, left: &str) -> bool {
    let lines = format!("{tag}\n").repeat(hits);
    assert_eq!(from.ask(lines.as_bytes(), 3 * hits), b"OK\n".repeat(hits));
    to.becomes_true(Duration::from_secs(1), |to| {
        to.query(&format!("peek\0tag={tag}")).contains(left)
    })
}

#[test]
fn two_daemons_are_a_cluster_and_say_goodbye() {
    // Both open at once, so that they differ.
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [one, two] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
    drop(sockets);
    let rules = |listen, peer| {
        format!("{TEN}\n[cluster]\nname = \"test\"\nlisten = \"{listen}\"\npeers = [\"{peer}\"]")
    };
    let first = Daemon::start(&rules(one, two), "");
    let mut second = Daemon::start(&rules(two, one), "");
    first.wait_until("they know each other", |daemon| {
        daemon.query("peers").contains("\"state\":\"up\"")
    });
    let reports_come = |tag: String| {
        told(&second, &first, &tag, 4, "remaining=6") && {
            second.signal("HUP");
            second.wait_for("rules read again");
            told(&second, &first, &tag, 1, "remaining=5")
        }
    };
    // Further tags: nobody takes reports at the start, nor charges what comes late.
    let mut tags = (0..TIMEOUT.as_secs()).map(|count| format!("c{count}"));
    assert!(tags.any(reports_come), "no report has come, or none after a reload");
    second.signal("TERM");
    assert!(second.wait_for_exit());
    first.wait_until("it has left", |daemon| daemon.query("peers").contains("\"state\":\"left\""));
    let mut answer = String::new();
    let mut stream = first.connect();
    stream.write_all(b"\0peers\n").unwrap();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("OK {\"counts\""), "{answer}");
}

#[test]
fn the_units_are_good() {
    let (dir, _) = new_dir();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd");
    for name in ["dthrottled.service", "dthrottled.socket"] {
        let unit = fs::read_to_string(format!("{folder}/{name}")).unwrap();
        // It need not be installed.
        let unit = unit.replace("/usr/local/bin/dthrottled", "/bin/true");
        fs::write(dir.join(name), unit).unwrap();
    }
    let done = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args([dir.join("dthrottled.service"), dir.join("dthrottled.socket")])
        .output()
        .unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && !said.contains("dthrottled"), "{said}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_example_of_the_documentation_is_good() {
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
