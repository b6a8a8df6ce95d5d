//! Datagrams to send, grouped by destination, so that datagrams of equal size can be sent with one
//! system call.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Socket;
use super::hooks::{ErrorCounters, count};
use crate::cluster::{PeerAddr, To, Transmit};

/// The maximum number of bytes in one call. The system splits them into datagrams, and limits a
/// call to the size of one large datagram.
const MAX_BYTES: usize = 64_000;
/// How long one call of `send` may wait for a full socket buffer, before the remaining datagrams
/// are dropped.
const SEND_TIMEOUT: Duration = Duration::from_millis(20);

/// A queue of datagrams to send.
#[derive(Default)]
pub struct Outbox {
    batches: Vec<Batch>,
    /// The index of the batch of each destination.
    batch_indexes: BTreeMap<DestinationKey, usize>,
    /// The number of datagrams, counted once per receiver.
    sends: usize,
}

/// Datagrams for one destination, stored one after another.
struct Batch {
    to: To,
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

/// Identifies a destination. Lists are compared by pointer, which is valid because a batch holds
/// the list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum DestinationKey {
    One(PeerAddr),
    Each(usize),
    Group,
}

impl Outbox {
    /// The number of datagrams to send, counted once per receiver.
    pub(crate) fn sends(&self) -> usize {
        self.sends
    }

    /// Adds a datagram.
    pub fn push(&mut self, transmit: Transmit) {
        let key = match &transmit.to {
            To::One(address) => DestinationKey::One(*address),
            To::Each(list) => DestinationKey::Each(Arc::as_ptr(list).addr()),
            To::Group => DestinationKey::Group,
        };
        let at = *self.batch_indexes.entry(key).or_insert(self.batches.len());
        if at == self.batches.len() {
            self.batches.push(Batch { to: transmit.to, bytes: Vec::new(), sizes: Vec::new() });
        }
        let batch = &mut self.batches[at];
        self.sends += if let To::Each(list) = &batch.to { list.len() } else { 1 };
        batch.bytes.extend_from_slice(&transmit.bytes);
        batch.sizes.push(transmit.bytes.len());
    }

    /// Sends all datagrams. Those that cannot be sent are counted and dropped. Returns true if any
    /// was sent.
    ///
    /// # Errors
    /// The last error that was caused by the socket itself rather than by a destination.
    pub async fn send(
        &mut self,
        socket: Option<&Socket>,
        group: Option<SocketAddr>,
        counters: &ErrorCounters,
    ) -> io::Result<bool> {
        self.batch_indexes.clear();
        self.sends = 0;
        let mut sender = Sender::new(socket, counters);
        let group = group.map(PeerAddr::from);
        for batch in self.batches.drain(..) {
            let to = match &batch.to {
                To::One(address) => slice::from_ref(address),
                To::Each(list) => list,
                To::Group => group.as_slice(),
            };
            if to.is_empty() && matches!(batch.to, To::Group) {
                count(&counters.send_errors, batch.sizes.len());
            }
            for address in to {
                match address.socket_addr() {
                    Some(address) => sender.send(address, &batch.bytes, &batch.sizes).await,
                    None => count(&counters.send_errors, batch.sizes.len()),
                }
            }
        }
        sender.end()
    }
}

/// Sends batches, one destination after the other.
struct Sender<'a> {
    socket: Option<&'a Socket>,
    counters: &'a ErrorCounters,
    /// When to stop waiting for buffer space. Set when space is first missing.
    until: Option<Instant>,
    sent: bool,
    error: Option<io::Error>,
}

impl<'a> Sender<'a> {
    fn new(socket: Option<&'a Socket>, counters: &'a ErrorCounters) -> Sender<'a> {
        Sender { socket, counters, until: None, sent: false, error: None }
    }

    fn end(self) -> io::Result<bool> {
        self.error.map_or(Ok(self.sent), Err)
    }

    async fn send(&mut self, to: SocketAddr, bytes: &[u8], sizes: &[usize]) {
        let Some(socket) = self.socket else {
            count(&self.counters.send_errors, sizes.len());
            return;
        };
        let (mut bytes, mut sizes) = (bytes, sizes);
        while !sizes.is_empty() {
            let most = socket.most_segments();
            let datagrams = segment_count(sizes, most);
            let (now, later) = sizes.split_at(datagrams);
            let (contents, rest) = bytes.split_at(now.iter().sum());
            let segment_size = (datagrams > 1).then(|| now[0]);
            match self.send_one(socket, to, contents, segment_size).await {
                // Segmentation offload turned out not to work, so the socket has turned it off.
                // Tries again.
                Err(_) if datagrams > 1 && socket.most_segments() < most => continue,
                Err(error) => {
                    count(&self.counters.send_errors, datagrams);
                    if is_socket_error(&error) {
                        self.error = Some(error);
                    }
                }
                Ok(()) => (self.sent, self.error) = (true, None),
            }
            (bytes, sizes) = (rest, later);
        }
    }

    async fn send_one(
        &mut self,
        socket: &Socket,
        to: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        loop {
            match socket.try_send(to, contents, segment_size) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let until = *self.until.get_or_insert_with(|| Instant::now() + SEND_TIMEOUT);
                    match timeout_at(until, socket.writable()).await {
                        Ok(writable) => writable?,
                        Err(_) => return Err(error),
                    }
                }
                done => return done,
            }
        }
    }
}

/// Returns how many of the first datagrams can be sent with one call: datagrams of one size, and
/// possibly a shorter one at the end.
fn segment_count(sizes: &[usize], most: usize) -> usize {
    let size = sizes.first().copied().unwrap_or(0);
    if size == 0 {
        return 1;
    }
    let most = most.min(MAX_BYTES / size).max(1);
    let equal = sizes.iter().take(most).take_while(|next| **next == size).count();
    let shorter = sizes.get(equal).is_some_and(|next| (1..size).contains(next));
    equal + usize::from(shorter && equal < most)
}

/// Returns true if a new socket could help. The other errors concern the destination.
fn is_socket_error(error: &io::Error) -> bool {
    use io::ErrorKind;
    let is_destination_error = matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::PermissionDenied
    );
    !is_destination_error && !quinn_udp::is_msg_size_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_sends_datagrams_of_one_size_and_a_shorter_one_at_the_end() {
        for (sizes, most, expected) in [
            (vec![5], 64, 1),
            (vec![5, 5, 5], 64, 3),
            (vec![5, 5, 3, 3], 64, 3),
            (vec![5, 3, 3], 64, 2),
            (vec![5, 6], 64, 1),
            (vec![5, 5, 0], 64, 2),
            (vec![0, 0], 64, 1),
            (vec![5, 5, 5], 2, 2),
            (vec![5, 5, 3], 2, 2),
            (vec![5, 3], 1, 1),
            (vec![1232; 100], 64, 51),
            (vec![65_000, 65_000], 64, 1),
            (vec![4; 100], 64, 64),
        ] {
            assert_eq!(segment_count(&sizes, most), expected, "{sizes:?} {most}");
        }
    }

    #[test]
    fn datagrams_for_the_same_destination_are_in_one_batch() {
        let [a, b] = [1, 2].map(|port| PeerAddr::from(SocketAddr::from(([127, 0, 0, 1], port))));
        let list: Arc<[PeerAddr]> = Arc::new([a, b]);
        let other: Arc<[PeerAddr]> = Arc::new([a, b]);
        let mut outbox = Outbox::default();
        let to = [
            To::One(a),
            To::Each(list.clone()),
            To::One(b),
            To::Group,
            To::One(a),
            To::Each(list),
            To::Each(other),
            To::Group,
        ];
        for (i, to) in (1..).zip(to) {
            outbox.push(Transmit { to, bytes: vec![i; usize::from(i)] });
        }
        let sizes: Vec<_> = outbox.batches.iter().map(|batch| batch.sizes.as_slice()).collect();
        assert_eq!(sizes, [&[1, 5][..], &[2, 6], &[3], &[4, 8], &[7]]);
        assert_eq!(outbox.batches[0].bytes, [1, 5, 5, 5, 5, 5]);
    }
}
