//! What the statistics of small traces are.

use super::*;
use crate::format::StdReader;

fn stats(text: &str) -> Stats {
    Stats::collect(&mut StdReader::new(text.as_bytes()), |_| {}).unwrap()
}

#[test]
fn threads_are_counted_from_their_first_to_their_last_event() {
    let stats = stats("A|fork(B)|1\nB|w(x)|2\nB|acq(l)|3\nA|r(y)|4\nB|rel(l)|5\nA|fork(C)|6\n");
    let [a, b, c] = &stats.per_thread[..] else { panic!("{stats:?}") };
    assert_eq!((a.events, a.accesses, a.acquisitions, a.first, a.last), (3, 1, 0, Some(0), Some(5)));
    assert_eq!((b.events, b.accesses, b.acquisitions, b.first, b.last), (3, 1, 1, Some(1), Some(4)));
    assert_eq!((c.events, c.first), (0, None));
}

#[test]
fn only_the_outermost_acquire_counts() {
    let stats = stats("A|acq(l)|1\nA|acq(l)|2\nA|acq(m)|3\nA|rel(m)|4\nA|rel(l)|5\nA|rel(l)|6\nB|acq(l)|7\n");
    let l = &stats.per_lock[0];
    assert_eq!((l.name.as_str(), l.acquisitions, l.threads, l.contended), ("l", 2, 2, 1));
    assert_eq!(stats.nesting, [2, 1]);
    assert_eq!(stats.summary.held_at_end.len(), 1);
    assert_eq!(stats.summary.held_at_end[0].since, 6);
}

#[test]
fn shared_and_failed_tries_are_told_apart() {
    let stats = stats("A|acqs(l)|1\nB|acqs(l)|2\nC|busy(l)|3\n");
    let l = &stats.per_lock[0];
    assert_eq!((l.acquisitions, l.shared, l.failed_tries, l.threads), (2, 2, 1, 3));
    assert!(stats.summary.held_at_end.iter().all(|held| held.shared));
}

#[test]
fn a_read_pairs_with_every_write_it_did_not_see() {
    assert_eq!(stats("A|w(x)|1\nA|w(x)|2\nB|r(x)|3\n").read_write_pairs, 1);
    assert_eq!(stats("B|r(x)|3\nA|w(x)|1\nA|w(x)|2\n").read_write_pairs, 2, "it saw the initial value");
    // The first update saw the initial value, the second saw the first; neither pairs with itself.
    assert_eq!(stats("A|u(x)|1\nB|u(x)|2\n").read_write_pairs, 1);
    assert_eq!(stats("A|r(x)|1\nB|r(x)|2\n").read_write_pairs, 0);
}

#[test]
fn the_busiest_variables_come_first_and_only_ten_of_them() {
    let mut text = String::new();
    for x in 0..20 {
        for _ in 0..=x {
            text.push_str(&format!("A|w(x{x})|1|5\n"));
        }
    }
    let stats = stats(&text);
    let names: Vec<&str> = stats.busiest_variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["x19", "x18", "x17", "x16", "x15", "x14", "x13", "x12", "x11", "x10"]);
    assert_eq!((stats.accesses.with_value, stats.shared_variables, stats.locations), (210, 0, 1));
}

#[test]
fn threads_beyond_the_first_sixty_four_are_counted_once_each() {
    let mut text = String::new();
    for round in 0..2 {
        for thread in 0..100 {
            text.push_str(&format!("T{thread}|r(x)|{round}\n"));
        }
    }
    assert_eq!(stats(&text).busiest_variables[0].threads, 100);
}

#[test]
fn blocks_are_measured_without_their_borders_and_open_ones_are_named() {
    let stats = stats("A|begin(f)|1\nA|begin(g)|2\nA|w(x)|3\nA|end(g)|4\nA|end(f)|5\nB|begin(h)|6\nB|w(x)|7\n");
    assert_eq!(stats.blocks, Blocks { count: 2, longest: 3 });
    assert_eq!(stats.summary.open_blocks, [StillOpen { thread: "B".into(), block: "h".into() }]);
}

#[test]
fn runs_between_switches_are_grouped_by_powers_of_two() {
    let stats = stats("A|w(x)|1\nB|w(x)|2\nB|w(x)|3\nB|w(x)|4\nA|w(x)|5\nA|w(x)|6\n");
    assert_eq!((stats.switches, stats.runs.as_slice()), (2, &[1, 2][..]));
}

#[test]
fn locations_as_numbers_and_as_text_are_different_places() {
    assert_eq!(stats("A|w(x)|1\nA|w(x)|a.c:1\nA|w(x)|1\nA|w(x)|70000\n").locations, 3);
}

#[test]
fn a_trace_that_is_not_well_formed_has_no_statistics() {
    let found = Stats::collect(&mut StdReader::new(&b"A|rel(l)|1\n"[..]), |_| {}).unwrap_err();
    assert!(found.to_string().contains("which it does not hold"), "{found}");
}
