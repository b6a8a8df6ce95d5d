//! A queue of events, ordered by time and then by the order in which they were added.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Ns;

/// A queue of future events.
pub struct Queue<E> {
    heap: BinaryHeap<Timed<E>>,
    number: u64,
}

struct Timed<E> {
    at: Ns,
    number: u64,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), number: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Ns, event: E) {
        self.number += 1;
        self.heap.push(Timed { at, number: self.number, event });
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<(Ns, E)> {
        self.heap.pop().map(|timed| (timed.at, timed.event))
    }
}

impl<E> PartialEq for Timed<E> {
    fn eq(&self, other: &Timed<E>) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Timed<E> {}

impl<E> PartialOrd for Timed<E> {
    fn partial_cmp(&self, other: &Timed<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Timed<E> {
    /// Reversed, because a heap returns the greatest element first.
    fn cmp(&self, other: &Timed<E>) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_returned_by_time_and_then_in_order_of_insertion() {
        let mut queue = Queue::default();
        for (at, event) in [(3, 'd'), (1, 'a'), (2, 'b'), (3, 'e'), (2, 'c'), (3, 'f')] {
            queue.push(at, event);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcdef");
    }
}
