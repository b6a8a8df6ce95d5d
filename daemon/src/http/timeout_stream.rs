//! A stream that fails when its client does not read for `write_timeout`. Otherwise, a client that
//! never reads its responses would occupy a connection and its buffers for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::daemon::Daemon;
use crate::limit::Slot;

pub(super) struct TimeoutStream {
    stream: TokioIo<TcpStream>,
    slot: Rc<Slot>,
    daemon: Arc<Daemon>,
    /// The timeout of a blocked write. `None` if the last write succeeded.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl TimeoutStream {
    pub(super) fn new(stream: TcpStream, slot: Rc<Slot>, daemon: &Arc<Daemon>) -> TimeoutStream {
        TimeoutStream {
            stream: TokioIo::new(stream),
            slot,
            daemon: Arc::clone(daemon),
            stalled: None,
        }
    }

    fn poll_with_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TokioIo<TcpStream>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            self.stalled = None;
            self.slot.touch();
            return Poll::Ready(written);
        }
        let limit = self.daemon.settings.write_timeout;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(cx));
        self.daemon.state.counts.too_slow.add(1);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for TimeoutStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(cx, into);
        if read.is_ready() {
            this.slot.touch();
        }
        read
    }
}

impl Write for TimeoutStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_with_timeout(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_with_timeout(cx, Write::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_with_timeout(cx, Write::poll_shutdown)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_with_timeout(cx, |stream, cx| stream.poll_write_vectored(cx, parts))
    }
}
