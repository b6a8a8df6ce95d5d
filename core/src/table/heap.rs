//! Memory from the allocator, for tests and for platforms without memory maps.
#![allow(unsafe_code, reason = "unsafe code is allowed here; see ARCHITECTURE.md")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::line::Line;
use super::region::Memory;

/// Zeroed memory of this process.
pub(crate) struct Heap {
    base: NonNull<u8>,
    layout: Layout,
}

impl Heap {
    pub(crate) fn new(bytes: usize) -> Heap {
        let layout = Layout::from_size_align(bytes, align_of::<Line>());
        let Ok(layout) = layout else { handle_alloc_error(Layout::new::<Line>()) };
        // SAFETY: the layout is not empty, because every region has a header.
        let base = unsafe { alloc_zeroed(layout) };
        match NonNull::new(base) {
            Some(base) => Heap { base, layout },
            None => handle_alloc_error(layout),
        }
    }
}

// SAFETY: the allocator returned this many zeroed bytes, aligned to a line, and only `drop` frees
// them.
unsafe impl Memory for Heap {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.layout.size()
    }
}

// SAFETY: it owns its memory, whose contents are accessed only through `Region`.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not freed before.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
