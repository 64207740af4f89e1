//! The sync-preserving sweep as a pass: for groups that have no finding yet.

use super::{Wanted, sweep};
use crate::bug::BugKind;
use crate::examination::{Examination, Pass};
use crate::kinds;
use portent_order::{Goal, Model};

/// Adds sync-preserving races and deadlocks of groups that have no finding.
pub(crate) struct SyncPreserving;

impl<'a, 't> Pass<'a, 't> for SyncPreserving {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let (races, deadlocks) = (examination.wants(BugKind::Race), examination.wants(BugKind::Deadlock));
        let (facts, stop) = (examination.facts, examination.stop);
        if (!races && !deadlocks) || stop.why().is_some() {
            return;
        }
        // What `reads` allows, `values` allows, too.
        let model = if examination.options.model == Model::Sync { Model::Sync } else { Model::Reads };
        let found = examination.found();
        let known = |goal: &Goal| found.contains(&kinds::key(facts, goal));
        let stopped = || stop.why().is_some();
        let mut found = sweep(facts.trace, &Wanted { model, races, deadlocks, known: &known, stop: &stopped }).found;
        if examination.options.model == Model::Values {
            // With formulas there are exceptions: an event whose formula has no value does not happen.
            found.retain(|(goal, schedule)| facts.checker.check(Model::Values, goal, schedule).is_ok());
        }
        examination.adopt(found);
    }
}
