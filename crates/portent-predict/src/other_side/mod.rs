//! Branches that go the other way: what could go wrong on sides that the recorded run did not take.
//!
//! Recipe negates a branch and looks for races behind it. Here the trace is written again with the other side in place of
//! what followed the branch ([`Trace::other_side`]), and examined like any other: same engine, same checker, and every
//! schedule that is found makes the branch go the other way by what it reads. What the other side does was recorded with
//! the branch, or it was seen elsewhere: another branch at the same place went that way, and what its thread did next is
//! taken over up to its next branch, as far as the places it came to have only ever been about one variable or lock.
//!
//! Nondeterminism is not looked for: what was not done saw nothing that could change. Nor are properties, nor two branches
//! that go the other way at once.

mod flips;

use crate::answers::{findings, merge};
use crate::asking::{Key, Open};
use crate::bug::BugKind;
use crate::examination::{Examination, Pass};
use crate::facts::Facts;
use crate::finding::{Decisive, Finding, OtherBranch};
use crate::kinds;
use crate::prediction::Prediction;
use crate::request::{Control, Options, Stop};
use crate::spread::spread;
use crate::undecided::{Incomplete, Limit, Status, Why};
use crate::windows::{Task, sweep};
use flips::{Flip, flips};
use portent_order::Model;
use portent_trace::symbolic::{OtherSide, Symbols};
use portent_trace::{EventId, Op, Trace};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Events with formulas, up to which a trace longer than a window is looked at as a whole.
const LIGHT: usize = 1_000;

/// What came of one.
type Tried = (Vec<(Key, Finding)>, Prediction);

/// Kinds of bug that are looked for behind branches.
fn looks_for(kind: BugKind) -> bool {
    !matches!(kind, BugKind::Nondeterminism | BugKind::LostUpdate | BugKind::Property)
}

/// Whether there may be anything to look behind.
pub(crate) fn has_any(trace: &Trace, options: &Options) -> bool {
    options.model == Model::Values && trace.symbols().is_some() && options.kinds.iter().copied().any(looks_for)
}

/// Looks behind the branches of a trace with formulas.
pub(crate) struct OtherSides<'s> {
    /// When to stop: this pass has a share of the time of its own.
    pub(crate) stop: &'s Stop,
    /// The groups that have a finding.
    pub(crate) known: FxHashSet<Key>,
}

impl<'a, 't> Pass<'a, 't> for OtherSides<'_> {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let (facts, options, stop) = (examination.facts, examination.options, self.stop);
        let prediction = &mut examination.prediction;
        let Some(symbols) = facts.trace.symbols().filter(|_| has_any(facts.trace, options)) else { return };
        let kinds: Vec<BugKind> = options.kinds.iter().copied().filter(|&kind| looks_for(kind)).collect();
        let (flips, mut left) = flips(facts, symbols);
        let jobs = options.jobs;
        let options = Options { kinds, jobs: 1, ..options.clone() };
        let reach = reach(facts.trace, symbols, &options);
        let tried = spread(jobs, flips.len(), |at| {
            stop.why().is_none().then(|| try_one(facts.trace, symbols, &flips[at], &options, reach, stop))
        });
        let mut in_part = 0;
        for tried in tried {
            let Some((found, told)) = tried else {
                left += 1;
                continue;
            };
            left += usize::from(told.partial.is_some());
            in_part += usize::from(told.partial.is_none() && facts.trace.len() > reach);
            prediction.incomplete.extend(told.incomplete);
            prediction.errors.extend(told.errors);
            prediction.stats.tiers.add(&told.stats.tiers);
            prediction
                .findings
                .extend(found.into_iter().filter_map(|(key, finding)| self.known.insert(key).then_some(finding)));
        }
        if left > 0 {
            prediction.partial = prediction.partial.or(stop.why());
        }
        let not_tried = (Status::NotExamined, Why::Branches, left, "branches that did not go the other way");
        let only_near = (
            Status::Undecided,
            Why::Window(Limit::Reach),
            in_part,
            "branches whose other side was looked at from near only",
        );
        for (status, why, count, what) in [not_tried, only_near].into_iter().filter(|(_, _, count, _)| *count > 0) {
            for &kind in &options.kinds {
                let entry = Incomplete::many(kind, status, count as u64, why, what.to_owned());
                // What there is behind them is not known.
                prediction.incomplete.push(Incomplete { at_least: true, ..entry });
            }
        }
    }
}

/// How many events around a branch are looked at: all, unless that would take too long.
fn reach(trace: &Trace, symbols: &Symbols, options: &Options) -> usize {
    let has_formula = |event: &EventId| symbols.written(*event).is_some() || !symbols.guards(*event).is_empty();
    let is_light = || (0..trace.len()).map(EventId::new).filter(has_formula).count() <= LIGHT;
    if trace.len() <= options.reach && is_light() { options.window.max(trace.len()) } else { options.window }
}

/// What there is behind one branch.
fn try_one(trace: &Trace, symbols: &Symbols, flip: &Flip, options: &Options, reach: usize, stop: &Stop) -> Tried {
    let whole = trace.len() <= reach;
    let (before, after) = if whole { (trace.len(), trace.len()) } else { (reach / 2, reach - reach / 2) };
    let end = flip.branch.index() + 1 + after;
    let other = trace.other_side(flip.branch, &flip.side, end).or_else(|| {
        // Its locks are never free: what comes before the first of them can happen all the same.
        let locks = flip.side.iter().position(|event| matches!(event.op, Op::Acquire(..)))?;
        trace.other_side(flip.branch, &flip.side[..locks], end)
    });
    let Some(OtherSide { trace: flipped, first }) = other.filter(|other| other.first < other.trace.len()) else {
        return (Vec::new(), Prediction::default());
    };
    let flipped = Arc::new(flipped);
    let facts = Facts::new(&flipped);
    let control = Control::default();
    let mut examination = Examination::new(&facts, options, &control, stop);
    let span = flip.branch.index().saturating_sub(before)..flipped.len();
    sweep(&mut examination, &[Task { span, fresh: first }], &Open::all());
    let partial = stop.why();
    let (groups, _) = merge(&mut examination);
    let mut told = Prediction { partial, ..examination.prediction };
    let mut found = findings(&facts, options.model, groups, &mut told.incomplete, &|| stop.why().is_some());
    // The other side's events are none of the input's.
    let is_input = |event: &u32| u64::from(*event) < trace.input_len();
    told.incomplete.iter_mut().filter_map(|entry| entry.events.as_mut()).for_each(|events| events.retain(is_input));
    let Some(&(condition, was)) = symbols.guards(flip.branch).first() else { return (Vec::new(), told) };
    let thread = trace.thread(flip.branch);
    let reads: Vec<EventId> =
        facts.steps.program(thread).iter().copied().filter(|&event| flipped.op(event).reads()).collect();
    for finding in &mut found {
        finding.flags.needs_other_branch = true;
        // A detector that watches the run does not see what the run does not do.
        finding.flags.beyond_hb = finding.kind() == BugKind::Race;
        finding.instances_exact = false;
        finding.bug.places_mut().into_iter().for_each(|place| place.event = place.event.filter(is_input));
        let numbers = finding.witness.as_ref().and_then(|witness| facts.checker.numbers(&witness.schedule).ok());
        let numbers = numbers.unwrap_or_default();
        let decisive = |number: u32| {
            let &read = reads.get(number as usize)?;
            let was = match trace.op(read) {
                Op::Update(..) => None,
                _ => trace.value(read),
            };
            let is = numbers.iter().find(|numbers| numbers.event == read).and_then(|numbers| numbers.read);
            Some(Decisive { read, was, is })
        };
        finding.other_branch = Some(OtherBranch {
            trace: flipped.clone(),
            first,
            branch: flip.branch,
            outcome: was == 0,
            seen: flip.seen.map(|seen| trace.input_index(seen)),
            reads: symbols.dag().reads(condition).into_iter().filter_map(decisive).collect(),
        });
    }
    let keyed = found.into_iter().filter_map(|finding| Some((kinds::key(&facts, &finding.goal()?), finding)));
    let mut keyed: Vec<(Key, Finding)> = keyed.collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    (keyed, told)
}
