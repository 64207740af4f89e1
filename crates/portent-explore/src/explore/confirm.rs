//! Replaying what was predicted, until it was seen as often as wanted or nothing else is worth a try.
//!
//! What differs from try to try is how the program goes on when the schedule is done, and then which instance of the finding is
//! tried. Nothing is predicted here, and failures that such a run shows are for `cases`.

use super::{Event, Explorer, FIRST, Options, Phase, Replayed, Subject};
use crate::error::Error;
use crate::program::Policy;
use crate::replay::{self, Replay, Script};
use crate::run::Run;
use crate::schedule::{Schedule, ScheduleGoal};
use portent_predict::{BugKind, Finding, Prediction};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

impl Explorer<'_> {
    /// Replays every finding: what was seen, by its id. Replays that did something new go to `new`.
    pub(super) fn replay(
        &mut self,
        subject: &Arc<Subject>,
        prediction: &mut Prediction,
        optimistic: bool,
        explore: bool,
        new: &mut Vec<(Run, usize)>,
    ) -> Result<BTreeMap<String, Replayed>, Error> {
        let (run, total) = (subject.id, prediction.findings.len() as u64);
        let most = new.len() + if explore { Options::NEW_RUNS } else { 0 };
        let mut told: BTreeMap<String, Replayed> = BTreeMap::new();
        // One try of each comes first, and what no run has shown: that need not wait until these are made sure of.
        let again = if self.options.times > 1 { 2 } else { 1 };
        let all = prediction.findings.len();
        for (done, at) in (0..).zip((0..again).flat_map(|_| 0..all)) {
            let is_first = done < all as u64;
            if !is_first && subject.id == FIRST {
                self.behaviours()?;
            }
            let finding = &mut prediction.findings[at];
            self.observer.see(Event::Replaying { run, done: done / again, total });
            if finding.witness.is_none() || self.options.times == 0 {
                continue;
            }
            let before = told.remove(&finding.id);
            if before.is_none() && (!is_first || self.confirmed.contains(&finding.id)) {
                continue;
            }
            // What is no alarm is replayed for what else such a run may show: a few are enough.
            let optional = !is_harm(finding.kind()) && self.options.quick_observations;
            let enough = || self.observations < self.options.observations() / 2 && self.is_out_of_patience();
            if optional && (is_first && self.observations == 0 || enough()) {
                if let Some(before) = before {
                    told.insert(finding.id.clone(), before);
                }
                continue;
            }
            self.observations -= usize::from(optional && is_first);
            // A program that hangs whatever is tried is told as that.
            if self.out_of_time() || self.hangs > 2 * Options::HANGS {
                match before {
                    Some(before) => drop(told.insert(finding.id.clone(), before)),
                    None => self.exploration.not_replayed += usize::from(!optimistic),
                }
                continue;
            }
            let consider = |explorer: &mut Self, run| explorer.consider(run, &subject.run, new, most);
            let (replayed, seen) = match before {
                None => (self.replay_first(subject, finding, consider)?, None),
                Some(before) => self.replay_again(subject, finding, before, consider)?,
            };
            told.insert(finding.id.clone(), replayed);
            if let Some(Finding { bug, object, witness, .. }) = seen {
                // What is told is what was seen.
                (finding.bug, finding.object, finding.witness) = (bug, object, witness);
            }
        }
        if subject.id == FIRST {
            self.behaviours()?;
        }
        Ok(told)
    }

    /// Replays a finding once.
    fn replay_first(
        &mut self,
        subject: &Arc<Subject>,
        finding: &Finding,
        mut ran: impl FnMut(&mut Self, Run),
    ) -> Result<Replayed, Error> {
        let mut replayed = Replayed::default();
        self.replay_instance(subject, finding, (0..1, 1), &mut replayed, &mut ran)?;
        Ok(replayed)
    }

    /// Replays a finding that was replayed once until it has been seen as often as wanted.
    ///
    /// A schedule is followed in the same way every time, so that what was not seen will not be seen by trying the same again,
    /// and what was seen is made sure of. What differs from run to run is how the program goes on when the schedule is done:
    /// which of two racing threads goes first, and who runs then. Where that does not help, other instances may: the one that was
    /// seen instead comes along.
    fn replay_again(
        &mut self,
        subject: &Arc<Subject>,
        finding: &Finding,
        mut replayed: Replayed,
        mut ran: impl FnMut(&mut Self, Run),
    ) -> Result<(Replayed, Option<Finding>), Error> {
        // What is no alarm need not be shown more than once.
        let harm = is_harm(finding.kind());
        let times =
            if harm || !self.options.quick_observations { self.options.times } else { self.options.times.min(1) };
        let mut seen = None;
        // Whatever comes after a schedule cannot mend that it was not followed.
        let left = replayed.hits == 0 && replayed.diverged.is_some();
        if replayed.hits < times && !left {
            self.replay_instance(subject, finding, (1..usize::MAX, times), &mut replayed, &mut ran)?;
        }
        if replayed.hits == 0 && harm && self.options.times > 1 && !self.out_of_time() {
            let deadline = Instant::now() + (self.left() / 8).min(Options::ASKING);
            for other in portent_predict::other_instances(&subject.trace, finding, Options::INSTANCES, deadline) {
                if self.out_of_time() {
                    break;
                }
                let before = replayed.runs;
                self.replay_instance(subject, &other, (0..usize::MAX, times), &mut replayed, &mut ran)?;
                if replayed.hits > 0 {
                    // The finding is this instance from now on: how often the others did not show says nothing of its schedule.
                    replayed.runs -= before;
                    seen = Some(other);
                    break;
                }
            }
        }
        if replayed.hits > 0 {
            // One that was seen has nothing to explain.
            replayed.diverged = None;
        }
        Ok((replayed, seen))
    }

    /// Replays one instance of a finding: in which ways of going on, and how often it is to be seen.
    fn replay_instance(
        &mut self,
        subject: &Arc<Subject>,
        finding: &Finding,
        (ways, times): (Range<usize>, u32),
        replayed: &mut Replayed,
        ran: &mut impl FnMut(&mut Self, Run),
    ) -> Result<(), Error> {
        let (schedule, wanted) = replay::Finding::of(&subject.trace, finding).script(&subject.run)?;
        let all = continuations(&schedule, self.options.times).into_iter().enumerate();
        for (nth, (policy, seed, swapped)) in all.filter(|(nth, _)| ways.contains(nth)) {
            if replayed.runs > 0 && self.out_of_time() {
                break;
            }
            // The very same once more.
            if nth == 1 && replayed.hits == 0 && policy == Policy::Stay && !swapped {
                continue;
            }
            let mut schedule = schedule.clone();
            if let (ScheduleGoal::Race([a, b]), true) = (&schedule.goal, swapped) {
                schedule.goal = ScheduleGoal::Race([*b, *a]);
            }
            let script = Script {
                program: self.program,
                original: &subject.run,
                schedule,
                wanted: wanted.clone(),
                policy,
                seed,
                limit: Some(self.limit()),
                silent: true,
            };
            let replay = script.run()?;
            self.count(Phase::Replayed);
            self.observer.see(Event::ReplaySeen { run: subject.id, finding, replay: &replay });
            self.watch(&replay.run, subject, false);
            replayed.add(&replay, self.exploration.runs);
            if replay.hit && self.confirmed.insert(finding.id.clone()) {
                self.alarms += u64::from(is_harm(finding.kind()));
                self.observer.see(Event::Confirmed { run: subject.id, finding });
            }
            // Whatever comes after a schedule cannot mend that it was not followed.
            let left = !replay.hit && replay.diverged.is_some();
            ran(self, replay.run);
            if left || replayed.hits >= times {
                break;
            }
        }
        Ok(())
    }
}

/// Whether findings of a kind are an alarm by themselves.
fn is_harm(kind: BugKind) -> bool {
    matches!(kind, BugKind::Race | BugKind::Deadlock | BugKind::LostUpdate | BugKind::Property | BugKind::Failure)
}

/// How a program can go on when a schedule is done: policy, seed, and whether the second of two racing threads goes first.
fn continuations(schedule: &Schedule, times: u32) -> Vec<(Policy, u64, bool)> {
    let is_race = matches!(schedule.goal, ScheduleGoal::Race(_));
    let mut all = vec![(Policy::Stay, 0, false), (Policy::Stay, 0, is_race), (Policy::RoundRobin, 0, false)];
    all.extend((1..).map(|seed| (Policy::Random, seed, false)).take(times.saturating_sub(3) as usize));
    all.truncate(times.max(1) as usize);
    all
}

impl Replayed {
    /// One more replay, the how many-th run of all.
    fn add(&mut self, replay: &Replay, number: u64) {
        self.runs += 1;
        self.hits += u32::from(replay.hit);
        self.first_run = self.first_run.or(replay.hit.then_some(number));
        if replay.hit && self.hits == 1 {
            self.values = replay.values.iter().copied().collect();
        }
        if replay.hit && self.showed.is_none() {
            let failed = replay.failed.iter().filter(|text| !replay.evidence.contains(text));
            let said: Vec<_> = replay.evidence.iter().chain(failed).cloned().collect();
            self.showed = (!said.is_empty()).then(|| said.join("; "));
        }
        if self.diverged.is_none() {
            self.diverged.clone_from(&replay.diverged);
        }
    }
}
