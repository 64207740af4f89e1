//! Predicts with several threads what one thread predicts.
//!
//! This is the program that the tests of the command record, predict and replay: Portent's own concurrency under Portent
//! (crates/portent/tests/native/by_itself.rs). It is small, so that few events are recorded, and uses every way in which the threads of a
//! prediction meet: windows handed out, groups claimed, outcomes gathered, progress told.

use portent_predict::{BugKind, Control, Options, predict};
use portent_trace::Trace;
use std::sync::atomic::{AtomicU64, Ordering};

/// Two threads take a lock in turn, and one reads beside it what the other wrote: reads that could see something else, in
/// every window.
fn run(rounds: usize) -> String {
    (0..rounds).map(|_| "T1|w(x)|1\nT1|acq(l)|2\nT1|rel(l)|3\nT2|acq(l)|4\nT2|rel(l)|5\nT2|r(x)|6\n").collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = Trace::from_std(&run(4))?;
    let told = AtomicU64::new(0);
    let progress = |done: u64, _: u64| {
        told.fetch_max(done, Ordering::Relaxed);
    };
    let control = Control { progress: Some(&progress), ..Control::default() };
    let found = |jobs: usize| {
        let options = Options { kinds: vec![BugKind::Nondeterminism], window: 8, jobs, ..Options::default() };
        let findings = predict(&trace, &options, &control).findings;
        findings.into_iter().map(|finding| (finding.id, finding.instances)).collect::<Vec<_>>()
    };
    let (alone, together) = (found(1), found(3));
    println!("{} findings; with three threads {}", alone.len(), together.len());
    assert_eq!(alone, together);
    assert_eq!(told.into_inner(), trace.len() as u64);
    Ok(())
}
