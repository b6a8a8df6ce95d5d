//! The file of a Unix socket: daemons that start and end at one path, and a reload that hangs.

use std::fs::{self, File};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, inotify, mknodat, open};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen};
use rustix::process::{Signal, kill_process};

use crate::common::{Daemon, TIMEOUT, command, exchange, lines, new_dir, wait_for};

const TEN: &str = "rate = \"10 per day\"";

/// Waits until a process has exited. Returns its standard error and whether its status is 0.
fn end(child: &mut Child) -> (String, bool) {
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > TIMEOUT => {
                child.kill().unwrap();
                panic!("the process does not exit");
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut message).unwrap();
    }
    (message, status.success())
}

/// Starts a daemon whose only socket is at this path.
fn spawn(mut command: Command, dir: &Path, socket: &Path) -> Child {
    let file = dir.join("dthrottle.toml");
    let table = format!("table = {{ name = \"sockets\", dir = {:?}, size = 1 }}", dir.display());
    fs::write(&file, format!("{table}\n{TEN}\n[daemon]\nhttp = false\n")).unwrap();
    command.arg("--config").arg(file).arg("--listen").arg(socket);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Creates the socket file of a process that does not exist any more.
fn stale(dir: &Path) -> PathBuf {
    let socket = dir.join("socket");
    drop(UnixListener::bind(&socket).unwrap());
    socket
}

/// An administrator removed the file, and another daemon started at the same path.
#[test]
fn a_daemon_that_ends_does_not_remove_the_socket_of_another() {
    let mut old = Daemon::start(TEN, "");
    fs::remove_file(&old.socket).unwrap();
    let new = old.successor();
    old.signal("TERM");
    assert!(old.wait_for_exit());
    assert_eq!(new.exchange(b"tag\n", 3), b"OK\n");
    assert_eq!(fs::read_dir(&new.dir).unwrap().count(), 3, "socket, table and configuration");
}

/// The test acts as the first of two daemons: it holds the lock and replaces the socket. Without
/// the lock, the second daemon would replace it at the same time, and both would believe they own
/// it.
#[test]
fn a_daemon_waits_while_another_starts_at_its_path() {
    let (dir, _) = new_dir();
    let socket = stale(&dir);
    let lock = File::create(dir.join("socket.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut second = spawn(command(), &dir, &socket);
    let log = lines(second.stderr.take().unwrap());
    wait_for(&log, "waiting for another daemon that is starting or ending");
    fs::remove_file(&socket).unwrap();
    let first = UnixListener::bind(&socket).unwrap();
    fs::remove_file(dir.join("socket.lock")).unwrap();
    drop(lock);
    wait_for(&log, "another process listens there");
    assert!(!end(&mut second).1);
    first.set_nonblocking(true).unwrap();
    // The second daemon has connected to check for a listener. Removes its connections.
    while first.accept().is_ok() {}
    let _client = UnixStream::connect(&socket).unwrap();
    assert!(first.accept().is_ok(), "the path still leads to the socket of the first");
    fs::remove_dir_all(dir).unwrap();
}

/// strace delays the first of two daemons by a second before it removes the stale file. Without the
/// lock, the second one would create its own socket in that second.
#[test]
fn only_one_of_two_daemons_that_start_together_gets_the_socket() {
    let (dir, _) = new_dir();
    let (socket, trace) = (stale(&dir), dir.join("trace"));
    let mut strace = Command::new("strace");
    strace.args(["--follow-forks", "--trace=connect,?unlink,unlinkat"]);
    strace.arg("--inject=?unlink,unlinkat:delay_enter=1s");
    strace.arg("--output").arg(&trace).arg(command().get_program());
    let mut first = spawn(strace, &dir, &socket);
    let found = |path: &Path| fs::read_to_string(path).is_ok_and(|t| t.contains("ECONNREFUSED"));
    let start = Instant::now();
    while !found(&trace) {
        assert!(start.elapsed() < TIMEOUT, "the daemon does not check for a listener");
        thread::sleep(Duration::from_millis(5));
    }
    let mut second = spawn(command(), &dir, &socket);
    let is_ready = |child: &mut Child| {
        let log = lines(child.stderr.take().unwrap());
        loop {
            match log.recv_timeout(TIMEOUT).unwrap() {
                line if line.contains("is ready") => return true,
                line if line.contains("another process listens there") => return false,
                _ => {}
            }
        }
    };
    let ready = [is_ready(&mut first), is_ready(&mut second)];
    let mut stream = UnixStream::connect(&socket).unwrap();
    let answer = exchange(&mut stream, b"tag\n", 3);
    // strace exits with its daemon.
    let owner = socket_peercred(&stream).unwrap().pid;
    kill_process(owner, Signal::KILL).unwrap();
    second.kill().unwrap();
    second.wait().unwrap();
    assert_eq!((ready, answer.as_slice()), ([true, false], b"OK\n".as_slice()));
    end(&mut first);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_start_does_not_wait_for_a_listener_whose_backlog_is_full() {
    let (dir, _) = new_dir();
    let socket = dir.join("socket");
    let address = SocketAddrUnix::new(&socket).unwrap();
    let new = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    };
    let listener = new();
    bind(&listener, &address).unwrap();
    listen(&listener, 1).unwrap();
    let mut clients = Vec::new();
    loop {
        let client = new();
        match connect(&client, &address) {
            Ok(()) => clients.push(client),
            Err(error) => break assert_eq!(error, Errno::AGAIN),
        }
    }
    let (message, good) = end(&mut spawn(command(), &dir, &socket));
    assert!(!good && message.contains("another process listens there"), "{message}");
    assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    fs::remove_dir_all(dir).unwrap();
}

/// If the mode were set later, others could connect in between.
#[test]
fn a_socket_has_its_mode_when_it_is_created() {
    for (mask, mode) in [("000", 0o600), ("077", 0o666), ("022", 0o660)] {
        let (dir, _) = new_dir();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let events = inotify::WatchFlags::CREATE | inotify::WatchFlags::ATTRIB;
        inotify::add_watch(&watch, &dir, events).unwrap();
        let file = dir.join("dthrottle.toml");
        let text =
            format!("{TEN}\ntable = {{ private = true, size = 1 }}\n[daemon]\nhttp = false\n");
        let keys = format!("listen = {:?}\nsocket_mode = \"{mode:o}\"\n", dir.join("socket"));
        fs::write(&file, text + &keys).unwrap();
        let program = command().get_program().to_owned();
        let mut child = Command::new("sh")
            .args(["-c", &format!("umask {mask}; exec \"$0\" --config \"$1\"")])
            .args([program.as_os_str(), file.as_os_str()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for(&lines(child.stderr.take().unwrap()), "is ready");
        let found = fs::metadata(dir.join("socket")).unwrap().permissions().mode() & 0o777;
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, mode, "umask {mask}: {found:o}");
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(watch, &mut buffer);
        let mut seen = Vec::new();
        loop {
            match reader.next() {
                Ok(event) if event.file_name().is_some_and(|name| name.to_bytes() == b"socket") => {
                    seen.push(event.events());
                }
                Ok(_) => {}
                Err(error) => break assert_eq!(error, Errno::AGAIN),
            }
        }
        assert_eq!(
            seen,
            [inotify::ReadFlags::CREATE],
            "the file is created and its mode is not changed later"
        );
        fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn a_reload_that_waits_for_a_pipe_does_not_delay_the_shutdown() {
    let mut daemon = Daemon::start(TEN, "");
    let file = daemon.dir.join("dthrottle.toml");
    fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    daemon.signal("HUP");
    // Opening a pipe for writing without waiting succeeds once the daemon reads from it.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let start = Instant::now();
    let _writer = loop {
        match open(&file, flags, Mode::empty()) {
            Ok(writer) => break writer,
            Err(error) => assert_eq!(error, Errno::NXIO),
        }
        assert!(start.elapsed() < TIMEOUT, "the reload does not read its file");
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(daemon.exchange(b"tag\n", 3), b"OK\n", "checks are answered during a reload");
    daemon.signal("TERM");
    assert!(end(&mut daemon.child).1);
    assert!(!daemon.socket.exists());
}

#[test]
fn new_connections_that_send_nothing_do_not_displace_a_client() {
    let daemon = Daemon::start("rate = \"1000/s\"", "max_connections = 4");
    let mut client = daemon.connect_tcp();
    assert_eq!(exchange(&mut client, b"x\n", 3), b"OK\n");
    let mut silent: Vec<_> = (0..20).map(|_| daemon.connect_tcp()).collect();
    // The listener is full, so it has closed the first ones.
    for stream in &mut silent[..16] {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
    assert_eq!(exchange(&mut client, b"x\n", 3), b"OK\n");
}
