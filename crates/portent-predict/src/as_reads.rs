//! In `values`: what `reads` would find, looked for as `reads` looks for it.
//!
//! Elsewhere `values` asks about instances that the clocks of `sync` let through, and gives a group up when it could not decide the first
//! few. Most of these may be such as `reads` knows to be impossible, and the one that it shows comes after them, or is not
//! even listed. So what is still open is gone through once more: the best instance of each group by the clocks of
//! `reads`, then every one that those let through.

use crate::board::Candidate;
use crate::bug::BugKind;
use crate::causal_past::{Ask, Audit, Depth, Engines, Prepared, found_by};
use crate::examination::{Examination, Pass};
use crate::stream::best_of;
use portent_order::{Goal, Model};

/// Shows what `reads` shows, of groups that `values` has left open.
pub(crate) struct AsReads<'p, 'a, 't>(pub(crate) &'p Prepared<'a, 't>);

impl<'a, 't> Pass<'a, 't> for AsReads<'_, 'a, 't> {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let Some(Some(engines)) = self.0.get() else { return };
        if examination.options.model == Model::Values {
            show(examination, engines, best);
            show(examination, engines, every);
        }
    }
}

/// The instances to ask about of each candidate; `None` if told to stop.
type Listing = fn(&Examination<'_, '_>, &Engines<'_, '_>, &[Candidate]) -> Option<Vec<Vec<Goal>>>;

fn best(examination: &Examination<'_, '_>, _: &Engines<'_, '_>, candidates: &[Candidate]) -> Option<Vec<Vec<Goal>>> {
    let stop = || examination.stop.why().is_some();
    let near = examination.options.window.max(2) / 2;
    let best = best_of(examination.facts, Model::Reads, candidates, near, &stop)?;
    Some(best.into_iter().map(|goal| goal.into_iter().collect()).collect())
}

fn every(
    examination: &Examination<'_, '_>,
    engines: &Engines<'_, '_>,
    candidates: &[Candidate],
) -> Option<Vec<Vec<Goal>>> {
    let stop = || examination.stop.why().is_some();
    let candidates: Vec<&Candidate> = candidates.iter().collect();
    let reads = engines.showing()?;
    let audit = Audit::of(reads, &candidates, &stop)?;
    let instances = |candidate: &&Candidate| (!stop()).then(|| audit.instances(reads, candidate).instances);
    candidates.iter().map(instances).collect()
}

/// Asks about the instances of what is still open, as `reads` does.
fn show(examination: &mut Examination<'_, '_>, engines: &Engines<'_, '_>, listing: Listing) {
    let mut open = examination.still_open();
    // Of reads and final values all that change are listed anyway.
    let is_told = |kind| matches!(kind, BugKind::Race | BugKind::Atomicity | BugKind::Deadlock);
    open.retain(|&g| is_told(examination.board.groups[g].kind));
    if open.is_empty() || examination.stop.why().is_some() {
        return;
    }
    let candidates: Vec<Candidate> = open.iter().map(|&g| examination.board.groups[g].candidate.clone()).collect();
    let Some(instances) = listing(examination, engines, &candidates) else { return };
    let ask = Ask { refute: true, show: Some(Model::Values), depth: Depth::All, effort: examination.effort() };
    let found = found_by(examination, engines, &instances, ask);
    examination.take(found, Vec::new());
}
