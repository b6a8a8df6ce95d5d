//! How many connections a listener has open at once. When it is full, a further connection closes
//! the one that has been idle longest: idle connections cannot keep others out. Established
//! connections are closed last: new ones that send nothing cannot displace clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The open connections of one listener.
pub(crate) struct Limit {
    permits: Arc<Semaphore>,
    /// The connections, sorted by the order in which they are closed.
    open: Mutex<BTreeMap<Key, Open>>,
    started: Instant,
    accepted: AtomicU64,
}

/// Whether the connection is established, its last activity when it was listed, and its number.
type Key = (bool, u64, u64);

/// An entry of `Limit::open`. Dropping it closes the connection.
struct Open {
    activity: Arc<Activity>,
    _close: oneshot::Sender<()>,
}

/// The last activity of a connection. Times are nanoseconds since `Limit::started`. All accesses
/// are relaxed: `last` orders nothing, and the lock of `Limit::open` orders the others.
struct Activity {
    number: u64,
    last: AtomicU64,
    /// The other parts of its key. They change only under the lock of `Limit::open`.
    listed: AtomicU64,
    established: AtomicBool,
}

/// The permission for one connection, which is returned when it is dropped.
pub(crate) struct Slot {
    limit: Arc<Limit>,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

/// Resolves when the connection must close to make room for another.
pub(crate) type Closed = oneshot::Receiver<()>;

impl Limit {
    /// Allows at most `most` connections, and at least one.
    pub(crate) fn new(most: usize) -> Arc<Limit> {
        Arc::new(Limit {
            permits: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))),
            open: Mutex::default(),
            started: Instant::now(),
            accepted: AtomicU64::new(0),
        })
    }

    /// Returns a slot for a new connection. If the limit is reached, closes the connection that has
    /// been idle longest, if possible one that is not established, and waits until it is closed.
    pub(crate) async fn enter(self: &Arc<Limit>) -> (Slot, Closed) {
        let permit = self.permit().await;
        let (close, closed) = oneshot::channel();
        let activity = Arc::new(Activity {
            number: self.accepted.fetch_add(1, Ordering::Relaxed),
            last: AtomicU64::new(self.now()),
            listed: AtomicU64::new(0),
            established: AtomicBool::new(false),
        });
        let open = Open { activity: Arc::clone(&activity), _close: close };
        self.with_open(|all| list(all, open));
        (Slot { limit: Arc::clone(self), activity, _permit: permit }, closed)
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return permit;
        }
        self.close_longest_idle();
        match Arc::clone(&self.permits).acquire_owned().await {
            Ok(permit) => permit,
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    fn close_longest_idle(&self) {
        self.with_open(|all| {
            // Checks each connection once, because they may become active again and again.
            for _ in 0..all.len() {
                let Some(((_, listed, _), open)) = all.pop_first() else { return };
                if open.activity.last.load(Ordering::Relaxed) == listed {
                    return;
                }
                // The connection was active since it was listed, so it comes later.
                list(all, open);
            }
            all.pop_first();
        });
    }

    fn with_open<T>(&self, work: impl FnOnce(&mut BTreeMap<Key, Open>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}

fn list(all: &mut BTreeMap<Key, Open>, open: Open) {
    let last = open.activity.last.load(Ordering::Relaxed);
    open.activity.listed.store(last, Ordering::Relaxed);
    all.insert(open.activity.key(), open);
}

impl Activity {
    fn key(&self) -> Key {
        let established = self.established.load(Ordering::Relaxed);
        (established, self.listed.load(Ordering::Relaxed), self.number)
    }
}

impl Slot {
    /// Notes that the connection is in use.
    pub(crate) fn touch(&self) {
        self.activity.last.store(self.limit.now(), Ordering::Relaxed);
    }

    /// Marks the connection as established, so that others are closed first. A connection is
    /// established after its first complete line or command; over HTTP, after its first valid
    /// token.
    #[inline]
    pub(crate) fn establish(&self) {
        if self.activity.established.load(Ordering::Relaxed) {
            return;
        }
        self.limit.with_open(|all| {
            let open = all.remove(&self.activity.key());
            self.activity.established.store(true, Ordering::Relaxed);
            // Without an entry, the connection is being closed.
            open.into_iter().for_each(|open| list(all, open));
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limit.with_open(|all| all.remove(&self.activity.key()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the tasks until a waiting `enter` has returned.
    async fn enter(limit: &Arc<Limit>, gone: usize, open: &mut Vec<(Slot, Closed)>) {
        let waiting = tokio::spawn({
            let limit = Arc::clone(limit);
            async move { limit.enter().await }
        });
        while !waiting.is_finished() {
            tokio::task::yield_now().await;
            // The task of a connection does the same.
            open.retain_mut(|(_, closed)| {
                closed.try_recv() == Err(oneshot::error::TryRecvError::Empty)
            });
        }
        open.push(waiting.await.unwrap());
        assert_eq!(limit.accepted.load(Ordering::Relaxed) as usize - open.len(), gone);
    }

    fn numbers(open: &[(Slot, Closed)]) -> Vec<u64> {
        open.iter().map(|(slot, _)| slot.activity.number).collect()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_full_limit_closes_the_connection_that_was_idle_longest() {
        let (limit, mut open) = (Limit::new(3), Vec::new());
        for _ in 0..3 {
            enter(&limit, 0, &mut open).await;
        }
        open[0].0.touch();
        open[1].0.touch();
        enter(&limit, 1, &mut open).await;
        assert_eq!(numbers(&open), [0, 1, 3]);
        enter(&limit, 2, &mut open).await;
        assert_eq!(numbers(&open), [1, 3, 4]);
        open[0].0.touch();
        enter(&limit, 3, &mut open).await;
        assert_eq!(numbers(&open), [1, 4, 5]);
        // A dropped slot makes room without closing a connection.
        open.remove(0);
        enter(&limit, 4, &mut open).await;
        assert_eq!(numbers(&open), [4, 5, 6]);
        // An established connection is closed last.
        open[0].0.establish();
        enter(&limit, 5, &mut open).await;
        enter(&limit, 6, &mut open).await;
        assert_eq!(numbers(&open), [4, 7, 8]);
        drop(open);
        assert_eq!(limit.with_open(|all| all.len()), 0);
    }
}
