//! What is to be sent: all datagrams of one round, those for the same destination side by side, so
//! that those of one size can go out by one call.

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

/// The most bytes in one call: less than fits a datagram, of which the system makes them.
const MAX_BYTES: usize = 64_000;
/// How long a round may wait for room in the socket before the rest of it is dropped.
const SEND_TIMEOUT: Duration = Duration::from_millis(20);

/// Datagrams to be sent.
#[derive(Default)]
pub struct Outbox {
    batches: Vec<Batch>,
    /// Where the pack of a destination is.
    batch_indexes: BTreeMap<DestinationKey, usize>,
    sends: usize,
}

/// Datagrams for the same destination, one after the other.
struct Batch {
    to: To,
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

/// Tells destinations apart. Lists by where they are: they stay there while they are in a pack.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum DestinationKey {
    One(PeerAddr),
    Each(usize),
    Group,
}

impl Outbox {
    /// How many datagrams will go out.
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

    /// Sends everything. What cannot be sent is counted and forgotten. Gives the last error that
    /// the socket itself was the cause of, or whether anything could be sent at all.
    ///
    /// # Errors
    /// As said.
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

/// Sends to one destination after the other.
struct Sender<'a> {
    socket: Option<&'a Socket>,
    counters: &'a ErrorCounters,
    /// When to stop waiting for room. Set when room is first missing.
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
                // It cannot send segments after all, and says so from now on.
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

/// How many of the first datagrams can go out by one call: of one size, and a shorter one at last.
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

/// Whether another socket could do better: the others are about where a datagram was to go.
fn is_socket_error(error: &io::Error) -> bool {
    use io::ErrorKind;
    let elsewhere = matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::PermissionDenied
    );
    !elsewhere && !quinn_udp::is_msg_size_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_of_one_size_with_a_shorter_one_at_last() {
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
    fn what_goes_to_the_same_destination_lies_side_by_side() {
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
