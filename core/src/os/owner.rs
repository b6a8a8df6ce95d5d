//! The owner of a named table, and the directories for its file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod, fchown, statfs};
use rustix::process::{Gid, geteuid};

use crate::error::Error;

/// Directories in which every user can create files.
const OPEN_DIRS: [&str; 2] = ["/dev/shm", "/tmp"];
/// Only root can create files or directories here, so no other user can occupy the name of a table.
pub(crate) const PROTECTED: &str = "/run/dthrottle";
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The user or the group that may use a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    User(u32),
    Group(u32),
}

impl Owner {
    pub(crate) fn of(group: Option<&str>) -> Result<Owner, Error> {
        let Some(group) = group else { return Ok(Owner::User(geteuid().as_raw())) };
        match group.parse().ok().or_else(|| group_id(group)) {
            Some(id) => Ok(Owner::Group(id)),
            None => {
                let message = format!("must be a group of /etc/group or its number, got {group:?}");
                Err(Error::config("table.group", message))
            }
        }
    }

    /// The directories of a table without the setting `dir`, in the order in which all processes
    /// try them. They depend only on the owner and the machine, never on the environment, so that a
    /// service, a shell and a cron job find the same table.
    pub(crate) fn dirs(self) -> Vec<PathBuf> {
        let mut dirs = self.protected_dirs().unwrap_or_default();
        dirs.extend(OPEN_DIRS.map(PathBuf::from));
        dirs
    }

    /// For root, `/run/dthrottle`. For others, the directories in it that belong to them, which
    /// root or systemd (`RuntimeDirectory=dthrottle/NAME`) created. Empty if `/run` is not in
    /// memory.
    fn protected_dirs(self) -> io::Result<Vec<PathBuf>> {
        let is_roots = |path: &Path| {
            fs::symlink_metadata(path).map(|meta| meta.is_dir() && Owner::User(0).controls(&meta))
        };
        let run = Path::new("/run");
        if !is_roots(run)? || statfs(run)?.f_type as u64 != TMPFS_MAGIC {
            return Ok(Vec::new());
        }
        let protected = Path::new(PROTECTED);
        match is_roots(protected) {
            Ok(true) => {}
            // The first table of a process of root creates it.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            _ => return Ok(Vec::new()),
        }
        if let Owner::User(0) = self {
            return Ok(vec![protected.into()]);
        }
        let entries = fs::read_dir(protected)?.flatten();
        let ours = entries.filter(|entry| {
            // `metadata` of a directory entry does not follow links.
            entry.metadata().is_ok_and(|meta| meta.is_dir() && self.controls(&meta))
        });
        let mut dirs: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
        dirs.sort();
        Ok(dirs)
    }

    /// Returns true if only this owner and root can create files in a directory.
    fn controls(self, dir: &fs::Metadata) -> bool {
        match self {
            Owner::User(id) => dir.uid() == id && dir.mode() & 0o022 == 0,
            Owner::Group(id) => dir.gid() == id && dir.mode() & 0o032 == 0o030,
        }
    }

    /// The path of a table's file.
    pub(crate) fn path(self, dir: impl AsRef<Path>, name: &str) -> PathBuf {
        dir.as_ref().join(format!("{}{name}", self.prefix()))
    }

    /// The prefix of the names of all files of this owner.
    pub(crate) fn prefix(self) -> String {
        match self {
            Owner::User(id) => format!("dthrottle-{id}-"),
            Owner::Group(id) => format!("dthrottle-g{id}-"),
        }
    }

    /// Returns an error if a file belongs to another user or group.
    pub(crate) fn check_owner(self, meta: &fs::Metadata) -> Result<(), String> {
        let expected = match self {
            Owner::User(id) if meta.uid() != id => format!("not to user {}", user(id)),
            Owner::Group(id) if meta.gid() != id => {
                format!("and to group {}, not to group {id}", meta.gid())
            }
            _ => return Ok(()),
        };
        Err(format!(
            "it belongs to user {}, {expected}; remove it, or set `dir` of the table to a directory \
             in which no other user can create files",
            user(meta.uid())
        ))
    }

    /// Returns an error if a file belongs to another user or group, or if others may access it.
    pub(crate) fn check(self, meta: &fs::Metadata) -> Result<(), String> {
        self.check_owner(meta)?;
        let mode = meta.mode() & 0o777;
        let (others, right) = match self {
            Owner::User(_) => (0o077, 600),
            Owner::Group(_) => (0o007, 660),
        };
        match mode & others {
            0 => Ok(()),
            _ => Err(format!(
                "it must have mode {right}, because other users can access it, got {mode:o}"
            )),
        }
    }

    /// Makes this owner the owner of a new file and sets its mode. Independent of the umask.
    pub(crate) fn set_owner_of(self, file: &File) -> io::Result<()> {
        let mut mode = Mode::RUSR | Mode::WUSR;
        if let Owner::Group(id) = self {
            fchown(file, None, Some(Gid::from_raw(id)))?;
            mode |= Mode::RGRP | Mode::WGRP;
        }
        Ok(fchmod(file, mode)?)
    }
}

/// A user's number, with the name if `/etc/passwd` has it.
fn user(id: u32) -> String {
    let id = id.to_string();
    match entry("/etc/passwd", (2, &id), 0) {
        Some(name) => format!("{id} ({name})"),
        None => id,
    }
}

/// A group's number.
fn group_id(name: &str) -> Option<u32> {
    entry("/etc/group", (0, name), 2)?.parse().ok()
}

/// Finds the line whose field `key` has this value in a file such as `/etc/passwd`, and returns its
/// field `wanted`.
fn entry(file: &str, (key, value): (usize, &str), wanted: usize) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.get(key) == Some(&value))?;
    fields.get(wanted).map(ToString::to_string)
}
