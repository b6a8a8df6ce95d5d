//! Named tables: files in memory, found by every process of a user that gives the same name.
//!
//! A table is built without a name and then linked to it, so that nobody ever sees half of one,
//! and whoever is killed on the way leaves nothing behind. Of two starters one links; the other
//! opens what the first has made. A file is removed only by who holds its lock, and only if the
//! name still means that file.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, fchmod, fchown, flock,
    linkat, open as open_file,
};
use rustix::process::{Gid, geteuid};

use super::memory::Map;
use crate::error::{Error, ErrorKind};
use crate::table::{Birth, Geometry, PAGE, Region, Unfit};

/// Where tables are looked for and made: memory first, then whatever there is.
const DIRS: [&str; 2] = ["/dev/shm", "/tmp"];
/// How often to start again when names come and go meanwhile.
const TRIES: usize = 100;

/// A table by name.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    /// Where to look, instead of the usual places.
    pub(crate) dir: Option<&'a str>,
    /// Whose members may use it, instead of this user alone.
    pub(crate) group: Option<&'a str>,
    /// Its size, if it is not there yet.
    pub(crate) geometry: Geometry,
    /// What it is born with, if it is not there yet.
    pub(crate) birth: Birth,
}

/// Why there is no table.
pub(crate) enum Refusal {
    /// One is there that must not or cannot be used.
    Wrong(Error),
    /// There is no place for one.
    Nowhere(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Wrong(error)
    }
}

/// Opens a named table, which is made if it is not there.
pub(crate) fn open(asked: &Asked<'_>) -> Result<Region, Refusal> {
    let owner = Owner::of(asked.group)?;
    let dirs = dirs(asked.dir);
    let mut reasons = Vec::new();
    // A table that is there, wherever, comes before a new one.
    for dir in &dirs {
        if let Some(region) = existing(&owner.path(dir, asked.name), owner, asked.birth.boot)? {
            return Ok(region);
        }
    }
    for dir in dirs {
        let path = owner.path(dir, asked.name);
        match open_or_make(&path, owner, asked) {
            Ok(region) => return Ok(region),
            Err(Refusal::Nowhere(why)) => reasons.push(why),
            Err(wrong) => return Err(wrong),
        }
    }
    Err(Refusal::Nowhere(reasons.join("; ")))
}

fn dirs(dir: Option<&str>) -> Vec<&str> {
    dir.map_or(DIRS.to_vec(), |dir| vec![dir])
}

fn open_or_make(path: &Path, owner: Owner, asked: &Asked<'_>) -> Result<Region, Refusal> {
    for _ in 0..TRIES {
        if let Some(region) = existing(path, owner, asked.birth.boot)? {
            return Ok(region);
        }
        let nowhere = |cause: io::Error| {
            let shown = path.display();
            Refusal::Nowhere(format!(
                "cannot make {shown} ({} bytes): {cause}",
                asked.geometry.bytes()
            ))
        };
        let (file, region) = build(path, owner, asked.geometry, &asked.birth).map_err(nowhere)?;
        match link(&file, path) {
            Ok(()) => return Ok(region),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(nowhere(cause)),
        }
    }
    Err(Refusal::Nowhere(format!("{} comes and goes", path.display())))
}

/// The table at a path. Nothing: it is not there, or was left by an earlier start of the machine
/// and is now gone.
pub(crate) fn existing(path: &Path, owner: Owner, boot: [u64; 2]) -> Result<Option<Region>, Error> {
    let Some(file) = find(path, owner)? else { return Ok(None) };
    let region = map(path, &file)?;
    if region.birth().boot == boot {
        return Ok(Some(region));
    }
    remove_file(path, &file).map_err(|cause| wrong(path, cause))?;
    Ok(None)
}

/// All tables, by name.
pub(crate) fn files(owner: Owner, dir: Option<&str>) -> Vec<(String, PathBuf)> {
    let prefix = owner.prefix();
    let mut found = Vec::new();
    for dir in dirs(dir) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            found.extend(name.map(|name| (name.to_string(), entry.path())));
        }
    }
    found.sort();
    found
}

/// Removes the table at a path, whatever it is made of.
pub(crate) fn remove(path: &Path, owner: Owner) -> Result<(), Error> {
    match find(path, owner)? {
        Some(file) => remove_file(path, &file).map_err(|cause| wrong(path, cause)),
        None => Ok(()),
    }
}

/// Puts another table in the place of the one at a path.
pub(crate) fn replace(
    path: &Path,
    owner: Owner,
    geometry: Geometry,
    birth: &Birth,
    fill: impl FnOnce(Region),
) -> Result<(), Error> {
    let swap = || {
        let (file, region) = build(path, owner, geometry, birth)?;
        fill(region);
        // A rename needs a name to start from.
        let passing = path.with_file_name(format!(".dthrottle.{}", std::process::id()));
        fs::remove_file(&passing).or_else(|cause| match cause.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(cause),
        })?;
        link(&file, &passing)?;
        fs::rename(&passing, path)
    };
    swap().map_err(|cause| wrong(path, cause))
}

/// The file at a path, if it is ours.
fn find(path: &Path, owner: Owner) -> Result<Option<File>, Error> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match open_file(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(cause) => return Err(wrong(path, io::Error::from(cause))),
    };
    let meta = file.metadata().map_err(|cause| wrong(path, cause))?;
    if !meta.is_file() {
        return Err(wrong(path, "not a plain file"));
    }
    owner.check(&meta).map_err(|why| wrong(path, why))?;
    Ok(Some(file))
}

fn map(path: &Path, file: &File) -> Result<Region, Error> {
    let len = file.metadata().map_err(|cause| wrong(path, cause))?.len();
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len < PAGE || len % PAGE != 0 {
        return Err(wrong(path, "not a table"));
    }
    let map = Map::file(file, len).map_err(|cause| wrong(path, cause))?;
    Region::existing(Box::new(map)).map_err(|unfit| match unfit {
        Unfit::NotATable => wrong(path, "not a table"),
        Unfit::Layout { found, ours } => wrong(
            path,
            format!(
                "made by another version of dthrottle (layout {found}, this one has {ours}); \
                 choose another name, or remove it when nobody uses it"
            ),
        ),
    })
}

/// A new table without a name.
fn build(
    path: &Path,
    owner: Owner,
    geometry: Geometry,
    birth: &Birth,
) -> io::Result<(File, Region)> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(open_file(dir, flags, Mode::RUSR | Mode::WUSR)?);
    owner.give(&file)?;
    let len = geometry.bytes();
    // Now, and not by a signal when the memory is first touched.
    fallocate(&file, FallocateFlags::empty(), 0, len as u64)?;
    let map = Map::file(&file, len)?;
    let region = Region::newborn(Box::new(map), geometry, birth);
    Ok((file, region.ok_or_else(|| io::Error::other("too short"))?))
}

/// Gives a file its name. The name must be free.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes a file, if the name still means it.
fn remove_file(path: &Path, file: &File) -> io::Result<()> {
    flock(file, FlockOperation::LockExclusive)?;
    match fs::symlink_metadata(path) {
        Ok(now) if now.ino() == file.metadata()?.ino() => fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Who may use a table.
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
                let message = format!("no group {group:?} in /etc/group; give its number");
                Err(Error::config("table.group", message))
            }
        }
    }

    /// The path of a table.
    pub(crate) fn path(self, dir: impl AsRef<Path>, name: &str) -> PathBuf {
        dir.as_ref().join(format!("{}{name}", self.prefix()))
    }

    /// What the names of all its files begin with.
    pub(crate) fn prefix(self) -> String {
        match self {
            Owner::User(id) => format!("dthrottle-{id}-"),
            Owner::Group(id) => format!("dthrottle-g{id}-"),
        }
    }

    fn check(self, meta: &fs::Metadata) -> Result<(), String> {
        let mode = meta.mode() & 0o777;
        match self {
            Owner::User(id) if meta.uid() != id => {
                Err(format!("it belongs to user {}, not to {id}", meta.uid()))
            }
            Owner::Group(id) if meta.gid() != id => {
                Err(format!("it belongs to group {}, not to {id}", meta.gid()))
            }
            Owner::User(_) if mode & 0o077 != 0 => {
                Err(format!("others may use it (mode {mode:o}, not 600)"))
            }
            Owner::Group(_) if mode & 0o007 != 0 => {
                Err(format!("others may use it (mode {mode:o}, not 660)"))
            }
            _ => Ok(()),
        }
    }

    fn give(self, file: &File) -> io::Result<()> {
        if let Owner::Group(id) = self {
            fchown(file, None, Some(Gid::from_raw(id)))?;
            fchmod(file, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?;
        }
        Ok(())
    }
}

/// A group's number.
fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").ok()?;
    let mut lines = groups.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| match fields.next() == Some(name) {
        true => fields.nth(1)?.parse().ok(),
        false => None,
    })
}

/// This start of the machine.
pub(crate) fn boot() -> [u64; 2] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(id >> 64) as u64, id as u64]
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> Error {
    let message = format!("cannot use the table {}: {why}", path.display());
    Error::new(ErrorKind::File, message)
}
