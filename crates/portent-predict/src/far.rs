//! Beyond the windows: what the sweep over the whole trace finds, for groups that have no finding yet.

use crate::bug::BugKind;
use crate::key::Key;
use crate::sweep::Sweeper;
use crate::syncp::{Wanted, sweep};
use portent_order::{Goal, Model};

/// Adds sync-preserving races and deadlocks of groups that have no finding.
pub(crate) fn add(sweeper: &mut Sweeper<'_, '_>) {
    let has = |kind| sweeper.options.kinds.contains(&kind);
    let (races, deadlocks) = (has(BugKind::Race), has(BugKind::Deadlock));
    if !races && !deadlocks {
        return;
    }
    let (facts, stop) = (sweeper.facts, sweeper.stop);
    // What `reads` allows, `values` allows, too.
    let model = if sweeper.options.model == Model::Sync { Model::Sync } else { Model::Reads };
    let found = sweeper.found();
    let known = |goal: &Goal| found.contains(&Key::of(facts, goal));
    let stopped = || stop.why().is_some();
    let mut found = sweep(facts.trace, &Wanted { model, races, deadlocks, known: &known, stop: &stopped }).found;
    if sweeper.options.model == Model::Values {
        // With formulas there are exceptions: an event whose formula has no value does not happen.
        found.retain(|(goal, schedule)| facts.checker.check(Model::Values, goal, schedule).is_ok());
    }
    sweeper.adopt(found);
}
