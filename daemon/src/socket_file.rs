//! The file of a Unix socket. Only the daemon that created it removes it.
//!
//! Replacing a stale file takes several steps, and so does removing one's own file. Two daemons
//! that start or end at the same path must not do this at the same time. Each holds a lock on the
//! file `PATH.lock`, which exists only while it is held.

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
    /// No other file has this identity while the socket is open.
    identity: Identity,
}

/// Device and number of a file.
type Identity = (u64, u64);

/// Listens at a path. Replaces a file that a killed daemon left.
///
/// Changes the umask temporarily, so no other thread may create files at the same time.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    if let Some(dir) = path.parent()
        && !dir.exists()
    {
        DirBuilder::new().mode(0o755).create(dir)?;
    }
    let _lock = Lock::take(path)?;
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::other("the file exists and is not a socket; remove it"));
        }
        if has_listener(path)? {
            let message = "another process listens there; stop it, or choose another path";
            return Err(io::Error::other(message));
        }
        fs::remove_file(path)?;
    }
    // The umask gives the file its mode at once. A later chmod would let users connect before it.
    let previous = umask(Mode::from_raw_mode(!mode & 0o777));
    let listener = UnixListener::bind(path);
    umask(previous);
    let listener = listener?;
    let identity = identity(&fs::symlink_metadata(path)?);
    Ok((listener, SocketFile { path: path.into(), identity }))
}

/// Whether a process listens at a path. Does not wait: an error because of a full backlog also
/// shows that a process listens.
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
            Err(error) => return warn!("cannot remove {path}: {error}"),
        };
        // Another daemon may have created a new file at this path.
        let is_ours = |meta: &fs::Metadata| identity(meta) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| is_ours(&meta))
            && let Err(error) = fs::remove_file(&self.path)
        {
            warn!("cannot remove {path}: {error}");
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
                // The previous holder may have removed the file before this lock was taken.
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
                info!(
                    "waiting for another daemon that is starting or ending at {}",
                    socket.display()
                );
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
        // Removed while it is locked, so that a waiting daemon sees that its file is gone.
        let _ = fs::remove_file(&self.path);
    }
}

fn identity(meta: &fs::Metadata) -> Identity {
    (meta.dev(), meta.ino())
}
