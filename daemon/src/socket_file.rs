//! The file of a Unix socket. It belongs to the daemon that made it, and only that daemon removes it.
//!
//! Finding a file that nobody answers, removing it and making a new one are several steps, and so
//! are looking whose file it is and removing it. Daemons that start or end at one path take turns:
//! each holds a lock on the file `PATH.lock`, which exists only as long as it is held.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::umask;
use tracing::{info, warn};

/// Far longer than a daemon holds the lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// A socket's file, removed when this is dropped.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// No other file has it while the socket is open.
    identity: Identity,
}

/// Device and number of a file.
type Identity = (u64, u64);

/// Listens at a path. A file that a daemon left behind when it was killed is replaced.
///
/// Changes the umask for a moment: no other thread may make files meanwhile.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    if let Some(dir) = path.parent()
        && !dir.exists()
    {
        DirBuilder::new().mode(0o755).create(dir)?;
    }
    let _lock = Lock::take(path)?;
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::other("there is a file that is not a socket; remove it"));
        }
        if has_listener(path)? {
            let message = "another daemon answers there; stop it, or listen elsewhere";
            return Err(io::Error::other(message));
        }
        fs::remove_file(path)?;
    }
    // The file is made with its mode: no user can connect before it is set.
    let previous = umask(Mode::from_raw_mode(!mode & 0o777));
    let listener = UnixListener::bind(path);
    umask(previous);
    let listener = listener?;
    let identity = identity(&fs::symlink_metadata(path)?);
    Ok((listener, SocketFile { path: path.into(), identity }))
}

/// Whether a process listens at a path. Never waits: a connection that does not fit the other's
/// backlog is an answer, too.
fn has_listener(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(cause) => Err(cause.into()),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let path = self.path.display();
        let _lock = match Lock::take(&self.path) {
            Ok(lock) => lock,
            Err(error) => return warn!("{path} is left behind: {error}"),
        };
        // Its place may have been taken by another daemon since.
        let is_ours = |meta: &fs::Metadata| identity(meta) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| is_ours(&meta))
            && let Err(error) = fs::remove_file(&self.path)
        {
            warn!("{path} is left behind: {error}");
        }
    }
}

/// The right to make or remove the file at a path.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(socket: &Path) -> io::Result<Lock> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let named = |cause: Errno| {
            io::Error::new(io::Error::from(cause).kind(), format!("{}: {cause}", path.display()))
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let start = Instant::now();
        let mut has_waited = false;
        while start.elapsed() < LOCK_LIMIT {
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(named)?);
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Unless its last holder has removed it just now.
                Ok(()) => match fs::symlink_metadata(&path) {
                    Ok(meta) if identity(&meta) == identity(&file.metadata()?) => {
                        return Ok(Lock { path, _file: file });
                    }
                    _ => continue,
                },
                Err(Errno::WOULDBLOCK) => {}
                Err(cause) => return Err(named(cause)),
            }
            if !has_waited {
                info!("waiting for another daemon that starts or ends at {}", socket.display());
                has_waited = true;
            }
            thread::sleep(LOCK_RETRY);
        }
        let message =
            format!("another process has held {} for {LOCK_LIMIT:?}; stop it", path.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked: a daemon that waits for this file sees that it has no name any more.
        let _ = fs::remove_file(&self.path);
    }
}

fn identity(meta: &fs::Metadata) -> Identity {
    (meta.dev(), meta.ino())
}
