//! Received datagrams that have not been handled yet: several buffers, each with one or more
//! datagrams of one sender.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::RecvMeta;

use super::Socket;

/// The number of buffers filled by one call.
const BUFFERS: usize = 16;
/// The maximum number of bytes that the system writes into one buffer.
const BUFFER_LEN: usize = 1 << 16;

/// A queue of received datagrams.
pub struct Inbox {
    bytes: Vec<u8>,
    meta: [RecvMeta; BUFFERS],
    /// The number of filled buffers, the buffer being read, and the bytes of it that were read.
    filled: usize,
    reading: usize,
    read: usize,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox {
            // The system zeroes pages when they are first used, and mostly only the start of each
            // buffer is.
            bytes: vec![0; BUFFERS * BUFFER_LEN],
            meta: [RecvMeta::default(); BUFFERS],
            filled: 0,
            reading: 0,
            read: 0,
        }
    }
}

impl Inbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.reading >= self.filled
    }

    /// Receives datagrams, if all earlier ones have been handled.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` if nothing has arrived.
    pub fn fill(&mut self, socket: &Socket) -> io::Result<()> {
        if !self.is_empty() {
            return Ok(());
        }
        (self.filled, self.reading, self.read) = (0, 0, 0);
        let mut rest = self.bytes.chunks_exact_mut(BUFFER_LEN);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().unwrap_or_default()));
        self.filled = socket.try_receive(&mut buffers, &mut self.meta)?;
        Ok(())
    }

    /// Returns the next datagram and its sender.
    #[allow(clippy::should_implement_trait, reason = "the item borrows from the inbox")]
    pub fn next(&mut self) -> Option<(SocketAddr, &mut [u8])> {
        if self.is_empty() {
            return None;
        }
        let meta = &self.meta[self.reading];
        let len = meta.len.min(BUFFER_LEN);
        let start = self.read;
        let end = start.saturating_add(meta.stride.max(1)).min(len);
        let base = self.reading * BUFFER_LEN;
        if end >= len {
            (self.reading, self.read) = (self.reading + 1, 0);
        } else {
            self.read = end;
        }
        Some((meta.addr, &mut self.bytes[base + start..base + end]))
    }
}
