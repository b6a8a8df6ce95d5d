//! The line protocol over raw sockets: the exact bytes of the answers to all kinds of input.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::{Daemon, TIMEOUT, exchange};

const TEN: &str = "rate = \"10 per day\"";

#[test]
fn unix_and_tcp_sockets_share_the_buckets() {
    let daemon = Daemon::start(TEN, "");
    let mut unix = daemon.connect();
    let mut tcp = daemon.connect_tcp();
    for _ in 0..5 {
        assert_eq!(exchange(&mut unix, b"203.0.113.7\n", 3), b"OK\n");
        assert_eq!(exchange(&mut tcp, b"203.0.113.7\n", 3), b"OK\n");
    }
    assert_eq!(exchange(&mut unix, b"203.0.113.7\n", 3), b"NO\n");
    assert_eq!(exchange(&mut tcp, b"203.0.113.7\n", 3), b"NO\n");
    assert_eq!(exchange(&mut tcp, b"other\n", 3), b"OK\n");
}

#[test]
fn ten_thousand_lines_in_one_write_are_all_answered() {
    let daemon = Daemon::start(TEN, "");
    let lines: String = (0..10_000).map(|i| format!("tag-{}\n", i % 100)).collect();
    let mut stream = daemon.connect();
    let mut writer = stream.try_clone().unwrap();
    let sent = thread::spawn(move || writer.write_all(lines.as_bytes()).unwrap());
    let mut out = vec![0; 30_000];
    stream.read_exact(&mut out).unwrap();
    sent.join().unwrap();
    let expected = [b"OK\n".repeat(1000), b"NO\n".repeat(9000)].concat();
    assert!(out == expected, "each of the 100 tags is allowed 10 times");
}

#[test]
fn lines_may_arrive_in_pieces() {
    let daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    for piece in [b"al".as_slice(), b"ice", b"\nbob\r", b"\n", b"car", b"ol\r\n"] {
        stream.write_all(piece).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let mut out = [0; 9];
    stream.read_exact(&mut out).unwrap();
    assert_eq!(&out, b"OK\nOK\nOK\n");
    let left = |tag: &str| daemon.query(&format!("peek\0tag={tag}"));
    for tag in ["alice", "bob", "carol"] {
        assert!(left(tag).contains(" remaining=9 "), "{}", left(tag));
    }
}

/// It may be a part of a tag.
#[test]
fn a_last_line_without_newline_is_not_charged() {
    let daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    stream.write_all(b"whole\npart").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut out = Vec::new();
    stream.read_to_end(&mut out).unwrap();
    assert_eq!(out, b"OK\n");
    assert!(daemon.query("peek\0tag=part").contains(" remaining=10 "));
}

#[test]
fn a_tag_may_be_any_bytes() {
    let daemon = Daemon::start("rate = \"1 per day\"", "");
    let tags: [&[u8]; 5] = [b"\xff\xfe", b"a\0b", b"\x80", b" ", b"\t\r\x01"];
    for tag in tags {
        let line = [tag, b"\n", tag, b"\r\n"].concat();
        assert_eq!(daemon.exchange(&line, 6), b"OK\nNO\n", "{tag:?}");
    }
    assert_eq!(daemon.exchange(b"\n\r\n", 6), b"OK\nNO\n", "the empty tag");
}

/// Only the beginning of the line counts. Further lines are answered in order.
#[test]
fn a_line_of_a_megabyte_is_truncated() {
    let daemon = Daemon::start("rate = \"2 per day\"", "");
    let long = vec![b'x'; 1 << 20];
    let longer = [long.as_slice(), b"y"].concat();
    let line = [long.as_slice(), b"\n", &longer, b"\r\n", &long, b"\nshort\n"].concat();
    assert_eq!(daemon.exchange(&line, 12), b"OK\nOK\nNO\nOK\n");
    assert_eq!(daemon.stat("long_lines"), 3);
    for allowed in ["OK ", "OK ", "NO "] {
        let answer = daemon.query(&format!("check\0tag={}\r", "z".repeat(1 << 20)));
        assert!(answer.starts_with(allowed), "{answer}");
    }
    let answer = daemon.query(&format!("check\0domain={}\0tag=x", "x".repeat(9000)));
    assert_eq!(answer, "ERROR argument tag must begin within the 8192 bytes of a line");
}

/// The daemon stops reading from them and closes them after `write_timeout`.
#[test]
fn connections_that_never_read_are_closed_and_do_not_affect_others() {
    let daemon = Daemon::start(TEN, "write_timeout = \"1s\"");
    // The first request allocates memory that the test must not count.
    daemon.exchange(b"warm\n", 3);
    let before = daemon.memory();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = daemon.connect();
            thread::spawn(move || {
                let lines = b"mute\n".repeat(10_000);
                let mut sent = 0;
                let start = Instant::now();
                // Until the daemon closes the connection.
                while start.elapsed() < TIMEOUT {
                    match stream.write(&lines) {
                        Ok(count) => sent += count,
                        Err(_) => return sent,
                    }
                }
                panic!("the daemon keeps the connection of a client that never reads");
            })
        })
        .collect();
    let mut other = daemon.connect();
    for _ in 0..100 {
        assert_eq!(exchange(&mut other, b"mute\n", 3).len(), 3);
    }
    for thread in threads {
        let sent = thread.join().unwrap();
        assert!(sent < 4 << 20, "the daemon read {sent} bytes although its answers were not read");
    }
    assert_eq!(daemon.stat("connections_too_slow"), 8);
    assert!(daemon.memory() < before + (8 << 20));
}

/// The input and the answers are much larger than all buffers.
#[test]
fn a_client_that_reads_late_gets_all_answers() {
    let daemon = Daemon::start(TEN, "");
    let mut stream = daemon.connect();
    let mut writer = stream.try_clone().unwrap();
    let sent = thread::spawn(move || writer.write_all(&b"\n".repeat(400_000)).unwrap());
    thread::sleep(Duration::from_millis(300));
    let mut out = vec![0; 1_200_000];
    stream.read_exact(&mut out).unwrap();
    sent.join().unwrap();
    assert!(out == [b"OK\n".repeat(10), b"NO\n".repeat(399_990)].concat());
    assert_eq!(exchange(&mut stream, b"next\n", 3), b"OK\n");
}

/// Raises the limit of open files of the test process.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

#[test]
fn two_thousand_idle_connections_need_little_memory() {
    let daemon = Daemon::start("rate = \"1000000/s\"", "");
    // The daemon raises its own limit.
    raise_descriptors();
    daemon.exchange(b"warm\n", 3);
    let before = daemon.memory();
    let mut all: Vec<UnixStream> = (0..2000).map(|_| daemon.connect()).collect();
    for stream in &mut all {
        assert_eq!(exchange(stream, b"x\n", 3), b"OK\n");
    }
    let each = daemon.memory().saturating_sub(before) / 2000;
    assert!(each < 16_000, "{each} bytes for each connection");
    println!("{each} bytes for each connection");
    assert!(daemon.stat("connections") >= 2000);
    assert_eq!(daemon.exchange(b"new\n", 3), b"OK\n");
    drop(all);
    daemon.wait_until("all are closed", |daemon| daemon.stat("connections") <= 1);
}

#[test]
fn a_new_connection_closes_the_one_that_was_idle_longest() {
    let daemon = Daemon::start(TEN, "max_connections = 3");
    let mut kept: Vec<UnixStream> = (0..3).map(|_| daemon.connect()).collect();
    kept.iter_mut().for_each(|stream| assert_eq!(exchange(stream, b"x\n", 3), b"OK\n"));
    assert_eq!(exchange(&mut kept[0], b"x\n", 3), b"OK\n");
    let mut one_more = daemon.connect();
    assert_eq!(exchange(&mut one_more, b"x\n", 3), b"OK\n");
    assert_eq!(
        kept[1].read(&mut [0; 3]).unwrap(),
        0,
        "the connection that was idle longest is closed"
    );
    for stream in [0, 2] {
        assert_eq!(exchange(&mut kept[stream], b"x\n", 3), b"OK\n");
    }
    // Each listener has its own limit.
    let mut tcp: Vec<TcpStream> = (0..3).map(|_| daemon.connect_tcp()).collect();
    tcp.iter_mut().for_each(|stream| assert_eq!(exchange(stream, b"y\n", 3), b"OK\n"));
    assert_eq!(exchange(&mut kept[0], b"x\n", 3), b"OK\n");
}

fn first_answer(mut stream: TcpStream, pieces: &[&[u8]]) -> String {
    let mut out = String::new();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The daemon may have closed the connection.
        let _ = stream.write_all(piece);
        thread::sleep(Duration::from_millis(20));
    }
    // Reading fails if the daemon closed the connection with unread input.
    let _ = stream.read_to_string(&mut out);
    out
}

/// A web page could make a browser send lines.
#[test]
fn http_and_tls_are_refused_before_their_first_line_is_complete() {
    let daemon = Daemon::start(TEN, "resp = \"127.0.0.1:0\"");
    let resp = daemon.address("resp on ");
    let body = "victim\nvictim\n\0check\0tag=victim\nCL.THROTTLE victim 1 1 60\r\n";
    let head = "POST / HTTP/1.1\r\nHost: 127.0.0.1:7373\r\nConnection: keep-alive\r\n\r\n";
    let mut refused = 0;
    let lengths = [0, 5_000, 32 * 1024 - 20, 60_000];
    let heads = lengths.map(|length| head.replacen('/', &format!("/{:x<length$}", ""), 1));
    for head in heads {
        let request = [&head, body].concat();
        let line_end = head.find("\r\n").unwrap();
        // Cuts: none, within the first line, before its end, and after it.
        for cut in [0, 3, line_end - 4, line_end + 1, line_end + 2] {
            let (first, second) = request.as_bytes().split_at(cut);
            for stream in [daemon.connect_tcp(), TcpStream::connect(&resp).unwrap()] {
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                let message = first_answer(stream, &[first, second]);
                assert!(
                    message.is_empty() || message.contains("HTTP") || message.contains("max_line")
                );
                assert!(!message.contains("OK\n") && !message.contains("*5"), "{message}");
            }
            refused += 1;
        }
    }
    for pieces in [
        [b"\x16\x03\x01\x02\x00\x01\nvictim\n".as_slice(), b"victim\n"],
        [b"\x16", b"\x03\x01\x02\x00\nvictim\n"],
    ] {
        assert_eq!(first_answer(daemon.connect_tcp(), &pieces), "");
        refused += 1;
    }
    assert!(daemon.stat("connections_other_protocol") >= refused);
    assert_eq!(daemon.stat("lines"), 0);
    assert!(daemon.query("peek\0tag=victim").contains(" remaining=10 "));
    // Only the first line of a TCP connection is checked.
    let lines = b"x\nGET / HTTP/1.1\r\n\x16\x03\n";
    assert_eq!(exchange(&mut daemon.connect_tcp(), lines, 9), b"OK\n".repeat(3));
    let lines = head.matches('\n').count();
    assert_eq!(daemon.exchange(head.as_bytes(), 3 * lines), b"OK\n".repeat(lines));
}

#[test]
fn twenty_clients_at_once_share_one_bucket_exactly() {
    let daemon = Daemon::start("rate = \"1000 per day\"", "");
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = daemon.connect();
            thread::spawn(move || {
                (0..100).filter(|_| exchange(&mut stream, b"all\n", 3) == b"OK\n").count()
            })
        })
        .collect();
    let allowed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(allowed, 1000);
}

#[test]
fn a_query_selects_domain_and_cost() {
    let daemon =
        Daemon::start("rate = \"10 per day\"\n[domains.\"log in\"]\nrate = \"5 per day\"", "");
    let answer = daemon.query("check\0domain=log in\0cost=3\0tag=a b");
    assert!(
        answer.starts_with("OK limit=5 remaining=2 balance=2 granted=3 delay_ns=0 "),
        "{answer}"
    );
    let answer = daemon.query("check\0domain=log in\0cost=3\0tag=a b");
    assert!(answer.starts_with("NO limit=5 remaining=2 "), "{answer}");
    assert!(answer.ends_with(" rule=rule1"), "{answer}");
    assert_eq!(daemon.query("reset\0domain=log in\0tag=a b"), "OK");
    assert!(daemon.query("peek\0domain=log in\0tag=a b").starts_with("OK limit=5 remaining=5 "));
    assert!(
        daemon
            .query("check\0domain=none\0tag=x")
            .starts_with("ERROR domain unknown domain \"none\"")
    );
}
