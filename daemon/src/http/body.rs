//! Response bodies: a text, or a stream of events until the client disconnects.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Bytes, Frame, SizeHint};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::daemon::Daemon;
use crate::report;

/// How many refused tags the page shows.
const REFUSED: usize = 15;

pub(super) enum Body {
    Text(Option<Bytes>),
    Events(Events),
}

/// A stream with the state of the daemon once a second.
pub(super) struct Events {
    daemon: Arc<Daemon>,
    second: Interval,
    /// The first event has the history of the last minutes.
    first: bool,
    _permit: OwnedSemaphorePermit,
}

pub(super) fn events(daemon: &Arc<Daemon>, permit: OwnedSemaphorePermit) -> Body {
    let mut second = interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Body::Events(Events { daemon: Arc::clone(daemon), second, first: true, _permit: permit })
}

impl Body {
    pub(super) fn of(text: String) -> Body {
        Body::Text(Some(text.into()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Body::Text(text) => text.take(),
            Body::Events(events) => {
                ready!(events.second.poll_tick(cx));
                Some(events.next().into())
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Text(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64)),
            Body::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    fn next(&mut self) -> String {
        let state = &self.daemon.state;
        let (allowed, refused) = self.daemon.decisions();
        let (latest, history) = state.with_history(|history| {
            let seconds: Option<Vec<(u64, u64)>> =
                std::mem::take(&mut self.first).then(|| history.seconds().collect());
            (history.latest(), seconds)
        });
        let event = self.daemon.with_throttle(|throttle| {
            json!({
                "version": env!("CARGO_PKG_VERSION"),
                "uptime_s": state.started.elapsed().as_secs(),
                "allowed": allowed,
                "refused": refused,
                "allowed_per_s": latest.0,
                "refused_per_s": latest.1,
                "history": history,
                "connections": state.counts.connections.get(),
                "cluster": report::peers(throttle),
                "rules": report::rules(throttle),
                "most_refused": report::refused(state, REFUSED),
                "warnings": throttle.warnings(),
            })
        });
        format!("data: {event}\n\n")
    }
}
