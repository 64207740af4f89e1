//! Independent pieces of work, spread over threads; results in their order, whatever the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` gives for each number below `items`.
pub(crate) fn spread<T: Send>(jobs: usize, items: usize, work: impl Fn(usize) -> Option<T> + Sync) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..items).map(|_| None).collect());
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= items {
                return;
            }
            let result = work(at);
            results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[at] = result;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(items) {
            scope.spawn(run);
        }
        run();
    });
    results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}
