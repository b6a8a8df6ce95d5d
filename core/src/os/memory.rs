//! Mapped memory: private, shared with forked children, or backed by a file.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::io;
use std::ptr::{self, NonNull};

#[cfg(target_os = "linux")]
use rustix::mm::mmap;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::table::Memory;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Mapped memory. Its start is aligned to a huge page.
pub(crate) struct Map {
    base: NonNull<u8>,
    len: usize,
}

impl Map {
    /// Zeroed memory of this process. Pages are allocated when they are first used.
    pub(crate) fn private(len: usize) -> io::Result<Map> {
        Map::zeroed(len, MapFlags::PRIVATE)
    }

    /// Zeroed memory, shared with children that are forked later. Pages are allocated when they are
    /// first used.
    pub(crate) fn anonymous(len: usize) -> io::Result<Map> {
        Map::zeroed(len, MapFlags::SHARED)
    }

    fn zeroed(len: usize, sharing: MapFlags) -> io::Result<Map> {
        let flags = sharing | MapFlags::NORESERVE | MapFlags::FIXED;
        Map::at_huge_page(len, |base| {
            // SAFETY: replaces a part of our own reservation, which is not used yet.
            unsafe { mmap_anonymous(base.cast(), len, read_write(), flags) }
        })
    }

    /// The bytes of a file, which must be at least that long: an access beyond its end would fault.
    #[cfg(target_os = "linux")]
    pub(crate) fn file(file: &std::fs::File, len: usize) -> io::Result<Map> {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        Map::at_huge_page(len, |base| {
            // SAFETY: as above.
            unsafe { mmap(base.cast(), len, read_write(), flags, file, 0) }
        })
    }

    /// Reserves addresses, and maps at the first one that is aligned to a huge page.
    fn at_huge_page(
        len: usize,
        map: impl FnOnce(*mut u8) -> rustix::io::Result<*mut std::ffi::c_void>,
    ) -> io::Result<Map> {
        let len = len.next_multiple_of(crate::table::PAGE);
        let room = len.checked_add(HUGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let (none, flags) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address that the system chooses touches no other memory.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), room, none, flags) }?.cast::<u8>();
        let before = start.align_offset(HUGE);
        let base = start.wrapping_add(before);
        let mapped = map(base);
        unmap(start, before);
        unmap(base.wrapping_add(len), HUGE - before);
        if let Err(cause) = mapped {
            unmap(base, len);
            return Err(cause.into());
        }
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Map { base, len })
    }
}

/// Keeps an open file description, and with it the locks on that description, in this process and
/// in all children forked from now on, even after the file's descriptor is closed.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct FilePin(NonNull<u8>);

#[cfg(target_os = "linux")]
impl FilePin {
    pub(crate) fn new(file: &std::fs::File) -> io::Result<FilePin> {
        let (none, len) = (ProtFlags::empty(), crate::table::PAGE);
        // SAFETY: a new mapping at an address that the system chooses touches no other memory. It
        // cannot be accessed, so the file may be shorter.
        let page = unsafe { mmap(ptr::null_mut(), len, none, MapFlags::SHARED, file, 0) }?;
        let page = NonNull::new(page.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(FilePin(page))
    }
}

// SAFETY: it owns its mapping, and nothing refers to it.
#[cfg(target_os = "linux")]
unsafe impl Send for FilePin {}
// SAFETY: as above.
#[cfg(target_os = "linux")]
unsafe impl Sync for FilePin {}

#[cfg(target_os = "linux")]
impl Drop for FilePin {
    fn drop(&mut self) {
        unmap(self.0.as_ptr(), crate::table::PAGE);
    }
}

fn read_write() -> ProtFlags {
    ProtFlags::READ | ProtFlags::WRITE
}

fn unmap(start: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: a part of a mapping of ours to which nothing refers.
        let unmapped = unsafe { munmap(start.cast(), len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

// SAFETY: the system mapped this many bytes to page boundaries, and only `drop` unmaps them.
unsafe impl Memory for Map {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.len
    }

    #[cfg(target_os = "linux")]
    fn prefer_huge_page(&self, offset: usize) {
        if offset.checked_add(HUGE).is_some_and(|end| end <= self.len) {
            let start = self.base.as_ptr().wrapping_add(offset / HUGE * HUGE);
            // The result is ignored, because without support for this the table is only slower.
            // SAFETY: within our mapping, and changes only how the system stores the bytes.
            unsafe { libc::madvise(start.cast(), HUGE, libc::MADV_COLLAPSE) };
        }
    }
}

// SAFETY: it owns its memory, whose contents are accessed only through `Region`.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        unmap(self.base.as_ptr(), self.len);
    }
}
