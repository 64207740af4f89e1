//! A test's items spread over all cores.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

/// Does something with every seed, on all cores; what came of it, in the order of the seeds. The first panic is passed on.
pub fn each_seed<T: Send>(seeds: Range<u64>, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push((seed, work(seed)));
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let mut done: Vec<(u64, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(seed, _)| *seed);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Does something with every item, on all cores; panics at the end with everything that went wrong, under the items' names.
pub fn each<T: Sync>(items: &[T], name: impl Fn(&T) -> String, work: impl Fn(&T) -> Result<(), String> + Sync) {
    let results = each_seed(0..items.len() as u64, |at| work(&items[at as usize]));
    let failures = items.iter().zip(results).filter_map(|(item, result)| Some((item, result.err()?)));
    let failures: Vec<String> = failures.map(|(item, error)| format!("=== {}: {error}\n", name(item))).collect();
    assert!(failures.is_empty(), "{} of {} failed\n{}", failures.len(), items.len(), failures.concat());
}

#[test]
fn results_come_in_the_order_of_their_seeds() {
    assert_eq!(each_seed(3..200, |seed| seed * 2), (3..200).map(|seed| seed * 2).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "1 of 3 failed\n=== item 2: it is even\n")]
fn what_failed_is_told_by_name() {
    let odd = |n: &i32| if n % 2 == 1 { Ok(()) } else { Err("it is even".to_owned()) };
    each(&[1, 2, 3], |n| format!("item {n}"), odd);
}
