//! Files in memory that back named tables and other memory of a name. Every process of a user finds
//! them by that name.
//!
//! A file is built without a name and then linked, so no process sees a half-built one, and a
//! process that is killed leaves nothing behind. If two processes create a table at the same
//! moment, one of them links its file and the other opens that file. A file is removed only by a
//! process that holds its lock, and only if the name still refers to that file.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, fstatvfs, linkat,
    open as open_file,
};
use rustix::io::Errno;

use super::fresh;
use super::memory::Map;
use super::owner::{Owner, PROTECTED};
use crate::config::check_table_name;
use crate::error::{Error, ErrorKind};
use crate::table::{Geometry, Memory, PAGE, Region, RegionError, TableParams};

/// How often to start again if the name appears or disappears in the meantime.
const TRIES: usize = 100;
/// How long to wait, and how often, if there is no space: other processes that start at the same
/// moment reserve space for the same table, and release it when one of them has created it.
const NO_SPACE_PAUSE: Duration = Duration::from_millis(10);
const NO_SPACE_TRIES: usize = 50;

/// Memory that a named file holds.
pub(crate) trait NamedMemory: Sized {
    /// Suffix of the file name after the table's name. Unless empty, it contains a character that
    /// table names cannot have.
    const SUFFIX: &str;
    /// The size of the memory, if it can be chosen.
    type Shape: Copy;

    fn bytes(shape: Self::Shape) -> usize;
    /// Initializes zeroed memory. Returns `None` if it is too short.
    fn create(memory: Box<dyn Memory>, shape: Self::Shape, params: &TableParams) -> Option<Self>;
    /// Opens memory that another process initialized.
    fn existing(memory: Box<dyn Memory>) -> Result<Self, RegionError>;
    fn params(&self) -> TableParams;
}

impl NamedMemory for Region {
    const SUFFIX: &str = "";
    type Shape = Geometry;

    fn bytes(shape: Geometry) -> usize {
        shape.bytes()
    }

    fn create(memory: Box<dyn Memory>, shape: Geometry, params: &TableParams) -> Option<Region> {
        Region::create(memory, shape, params)
    }

    fn existing(memory: Box<dyn Memory>) -> Result<Region, RegionError> {
        Region::existing(memory)
    }

    fn params(&self) -> TableParams {
        Region::params(self)
    }
}

/// How to open the memory of a name.
pub(crate) struct NamedOptions<'a, M: NamedMemory> {
    pub(crate) name: &'a str,
    /// The directory of the file. `None`: the directories of [`Owner::dirs`].
    pub(crate) dir: Option<&'a str>,
    /// The group whose members may use the file. `None`: only this user may.
    pub(crate) group: Option<&'a str>,
    /// The size of a new file.
    pub(crate) shape: M::Shape,
    /// The parameters of a new file.
    pub(crate) params: TableParams,
}

/// Memory that was opened or created, with its file.
pub(crate) struct NamedFile<M> {
    pub(crate) memory: M,
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

/// Why memory could not be opened.
pub(crate) enum OpenError {
    /// A file of this name exists but must not or cannot be used.
    Invalid(Error),
    /// No directory has room for a file, or none can be written to.
    Unavailable(String),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        OpenError::Invalid(error)
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        match error {
            OpenError::Invalid(error) => error,
            OpenError::Unavailable(why) => Error::new(ErrorKind::File, why),
        }
    }
}

/// Opens the memory of a name, or creates it.
pub(crate) fn open<M: NamedMemory>(
    options: &NamedOptions<'_, M>,
) -> Result<NamedFile<M>, OpenError> {
    let owner = Owner::of(options.group)?;
    if fresh::is_on()? {
        return fresh::open(fresh_path::<M>(owner, options.dir, options.name), options);
    }
    let dirs = dirs(owner, options.dir);
    let mut reasons = Vec::new();
    // An existing table in any directory has precedence over a new one.
    for (i, dir) in dirs.iter().enumerate() {
        match existing(&path_of::<M>(owner, dir, options.name), owner, options.params.boot) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // A foreign file in a later directory is ignored, because that directory may not be
            // needed.
            Err(OpenError::Invalid(_)) if i > 0 => {}
            Err(error) => return Err(error),
        }
    }
    for dir in dirs {
        let path = path_of::<M>(owner, &dir, options.name);
        match open_or_create(&path, owner, options) {
            Ok(found) => return Ok(found),
            Err(OpenError::Unavailable(why)) => reasons.push(why),
            Err(error) => return Err(error),
        }
    }
    Err(OpenError::Unavailable(reasons.join("; ")))
}

/// The key of a fresh table. No directory is accessed.
fn fresh_path<M: NamedMemory>(owner: Owner, dir: Option<&str>, name: &str) -> PathBuf {
    path_of::<M>(owner, Path::new(dir.unwrap_or_default()), name)
}

fn path_of<M: NamedMemory>(owner: Owner, dir: &Path, name: &str) -> PathBuf {
    owner.path(dir, &format!("{name}{}", M::SUFFIX))
}

fn dirs(owner: Owner, dir: Option<&str>) -> Vec<PathBuf> {
    dir.map_or_else(|| owner.dirs(), |dir| vec![dir.into()])
}

fn open_or_create<M: NamedMemory>(
    path: &Path,
    owner: Owner,
    options: &NamedOptions<'_, M>,
) -> Result<NamedFile<M>, OpenError> {
    let mut no_space = 0;
    for _ in 0..TRIES + NO_SPACE_TRIES {
        if let Some(found) = existing(path, owner, options.params.boot)? {
            return Ok(found);
        }
        let unavailable = |cause: io::Error| {
            let shown = path.display();
            OpenError::Unavailable(format!(
                "cannot create {shown} ({} bytes): {cause}",
                M::bytes(options.shape)
            ))
        };
        let (file, memory) = match build(path, owner, options.shape, &options.params) {
            Ok(built) => built,
            Err(cause) if is_no_space(&cause) && no_space < NO_SPACE_TRIES => {
                no_space += 1;
                thread::sleep(NO_SPACE_PAUSE);
                continue;
            }
            Err(cause) => return Err(unavailable(cause)),
        };
        match link(&file, path) {
            Ok(()) => return Ok(NamedFile { memory, file, path: path.into() }),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(unavailable(cause)),
        }
    }
    Err(OpenError::Unavailable(format!(
        "other processes keep creating and removing {}",
        path.display()
    )))
}

fn is_no_space(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Opens the file at a path. Returns `None` if there is none, or if it was left from an earlier
/// boot and has now been removed.
fn existing<M: NamedMemory>(
    path: &Path,
    owner: Owner,
    boot: Boot,
) -> Result<Option<NamedFile<M>>, OpenError> {
    let Some(file) = find(path, owner)? else { return Ok(None) };
    let memory: M = map(path, &file)?;
    if !is_stale(&memory, boot) {
        return Ok(Some(NamedFile { memory, file, path: path.into() }));
    }
    remove_file(path, &file).map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied => unusable(
            path,
            "it was left by an earlier start of the machine, and only its owner may remove it",
        ),
        _ => unusable(path, cause),
    })?;
    Ok(None)
}

/// Opens the file at a path without removing or creating anything.
pub(crate) fn inspect<M: NamedMemory>(path: &Path, owner: Owner) -> Result<Option<M>, Error> {
    let Some(file) = find(path, owner)? else { return Ok(None) };
    let memory = map(path, &file)?;
    match is_stale(&memory, boot()) {
        true => Err(unusable(path, "it was left by an earlier start of the machine")),
        false => Ok(Some(memory)),
    }
}

/// Opens the memory of a name if it exists and can be used.
pub(crate) fn find_named<M: NamedMemory>(
    name: &str,
    group: Option<&str>,
    dir: Option<&str>,
) -> Option<M> {
    let owner = Owner::of(group).ok()?;
    if fresh::is_on().ok()? {
        return fresh::find(&fresh_path::<M>(owner, dir, name));
    }
    let mut dirs = dirs(owner, dir).into_iter();
    dirs.find_map(|dir| inspect(&path_of::<M>(owner, &dir, name), owner).ok()?)
}

/// Returns true if a table is from an earlier boot. A boot ID that cannot be read counts as this
/// boot.
fn is_stale(memory: &impl NamedMemory, boot: Boot) -> bool {
    let born = memory.params().boot;
    born != boot && born != UNKNOWN_BOOT && boot != UNKNOWN_BOOT
}

/// Lists all files of one kind of memory, with the names of their tables.
pub(crate) fn files<M: NamedMemory>(owner: Owner, dir: Option<&str>) -> Vec<(String, PathBuf)> {
    let prefix = owner.prefix();
    let mut found = Vec::new();
    for dir in dirs(owner, dir) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name =
                name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(M::SUFFIX));
            let name = name.filter(|name| check_table_name(name).is_ok());
            found.extend(name.map(|name| (name.to_string(), entry.path())));
        }
    }
    // The sort is stable: of several tables with the same name, the one that `open` uses comes
    // first.
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Removes the file at a path, whether or not its contents are valid.
pub(crate) fn remove(path: &Path, owner: Owner) -> Result<(), Error> {
    fs::remove_file(temporary_path(path)).ok();
    match find_file(path, owner)? {
        Some((file, _)) => remove_file(path, &file).map_err(|cause| unusable(path, cause)),
        None => Ok(()),
    }
}

/// The temporary name of a table that will replace another one.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}"))
}

/// Replaces the table at a path with a new one. `fill` copies the contents.
pub(crate) fn replace(
    path: &Path,
    owner: Owner,
    shape: Geometry,
    params: &TableParams,
    fill: impl FnOnce(Region),
) -> Result<(), Error> {
    let Some(old) = find(path, owner)? else {
        return Err(unusable(path, "it does not exist any more"));
    };
    let swap = || {
        // Serializes concurrent replacements.
        flock(&old, FlockOperation::LockExclusive)?;
        let (file, region) = build(path, owner, shape, params)?;
        fill(region);
        // A rename needs a source name. A file of that name was left by a process that was killed
        // here.
        let temporary = temporary_path(path);
        fs::remove_file(&temporary).or_else(|cause| match cause.kind() {
            io::ErrorKind::NotFound => Ok(()),
            kind => Err(io::Error::new(kind, format!("{}: {cause}", temporary.display()))),
        })?;
        link(&file, &temporary)?;
        fs::rename(&temporary, path)
    };
    swap().map_err(|cause| unusable(path, cause))
}

/// Opens the file at a path if it belongs to the owner and no other user may access it.
fn find(path: &Path, owner: Owner) -> Result<Option<File>, OpenError> {
    let Some((file, meta)) = find_file(path, owner)? else { return Ok(None) };
    owner.check(&meta).map_err(|why| unusable(path, why))?;
    Ok(Some(file))
}

/// Opens the file at a path if it belongs to the owner.
fn find_file(path: &Path, owner: Owner) -> Result<Option<(File, fs::Metadata)>, OpenError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = open_file(path, flags, Mode::empty()).map(File::from);
    let meta = match &opened {
        Ok(file) => file.metadata(),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        // The owner is checked below even if the file cannot be opened, so that the error names the
        // owner.
        Err(cause) => fs::symlink_metadata(path).map_err(|_| io::Error::from(*cause)),
    };
    let meta = meta.map_err(|cause| unusable(path, cause))?;
    owner.check_owner(&meta).map_err(|why| unusable(path, why))?;
    match opened {
        Ok(file) if meta.is_file() => Ok(Some((file, meta))),
        Ok(_) => Err(unusable(path, "not a plain file").into()),
        Err(Errno::LOOP) => Err(unusable(path, "it is a link").into()),
        // Other processes may be able to write to the file. A new table in another directory would
        // count separately from theirs, so none is created.
        Err(Errno::ROFS) => Err(OpenError::Unavailable(unusable(path, Errno::ROFS).to_string())),
        Err(cause) => Err(unusable(path, io::Error::from(cause)).into()),
    }
}

/// Maps the memory of a file.
pub(super) fn map<M: NamedMemory>(path: &Path, file: &File) -> Result<M, Error> {
    let len = file.metadata().map_err(|cause| unusable(path, cause))?.len();
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len < PAGE || len % PAGE != 0 {
        return Err(unusable(path, "it is not a table"));
    }
    let map = Map::file(file, len).map_err(|cause| unusable(path, cause))?;
    M::existing(Box::new(map)).map_err(|unfit| match unfit {
        RegionError::NotATable => unusable(path, "it is not a table"),
        RegionError::Layout { found, ours } => unusable(
            path,
            format!(
                "it was created by another version of dthrottle (layout {found}, not {ours}); \
                 use another name, or remove it when no process uses it"
            ),
        ),
    })
}

/// Creates a file without a name.
fn build<M: NamedMemory>(
    path: &Path,
    owner: Owner,
    shape: M::Shape,
    params: &TableParams,
) -> io::Result<(File, M)> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    if dir == Path::new(PROTECTED) {
        make_protected(dir)?;
    }
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(open_file(dir, flags, Mode::RUSR | Mode::WUSR)?);
    owner.set_owner_of(&file)?;
    let len = M::bytes(shape);
    let disk = fstatvfs(&file)?;
    // Check the free space first, because `fallocate` would reserve and clear all of it before it
    // fails. The whole system needs `/run`, so a table takes at most half of the free space there.
    // A file system without a limit reports 0 blocks.
    let room = if dir.starts_with("/run") { 2 * len } else { len };
    if disk.f_blocks > 0 && disk.f_bavail.saturating_mul(disk.f_frsize) < room as u64 {
        return Err(Errno::NOSPC.into());
    }
    // Reserve all space now. Otherwise the process would get SIGBUS when it first touches the
    // memory.
    fallocate(&file, FallocateFlags::empty(), 0, len as u64)?;
    let map = Map::file(&file, len)?;
    let memory = M::create(Box::new(map), shape, params);
    Ok((file, memory.ok_or_else(|| io::Error::other("too short"))?))
}

/// Creates the directory of root's tables, which other users may enter. Independent of the umask.
fn make_protected(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => fs::set_permissions(dir, fs::Permissions::from_mode(0o755)),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Gives a file its name, which must not exist yet.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes a file if the name still refers to it.
fn remove_file(path: &Path, file: &File) -> io::Result<()> {
    flock(file, FlockOperation::LockExclusive)?;
    match fs::symlink_metadata(path) {
        Ok(now) if now.ino() == file.metadata()?.ino() => fs::remove_file(path),
        _ => Ok(()),
    }
}

/// A boot ID.
type Boot = [u64; 2];
const UNKNOWN_BOOT: Boot = [0; 2];

/// The boot ID of the running system.
pub(crate) fn boot() -> Boot {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(id >> 64) as u64, id as u64]
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> Error {
    let message = format!("cannot use the table {}: {why}", path.display());
    Error::new(ErrorKind::File, message)
}
