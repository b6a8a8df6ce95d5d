//! Runs independent work on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for each item. The results are in the order of the items.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        // Relaxed: it does not matter which thread takes an item.
        while let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < items.len())
        {
            let result = work(&items[i]);
            *results[i].lock().expect("no thread panics while it holds the lock") = Some(result);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(worker);
        }
    });
    let done = |result: Mutex<Option<R>>| {
        result.into_inner().expect("no thread panics while it holds the lock")
    };
    results.into_iter().filter_map(done).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let squares: Vec<u64> = items.iter().map(|n| n * n).collect();
        assert_eq!(super::each(&items, |n| n * n), squares);
        assert!(super::each(&[] as &[u64], |n| *n).is_empty());
    }
}
