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

use crate::bug::BugKind;
use crate::combine::{findings, merge};
use crate::facts::Facts;
use crate::finding::{Decisive, Finding, Incomplete, OtherBranch, Status, Why};
use crate::key::Key;
use crate::predict::{Control, Options, Prediction};
use crate::spread::spread;
use crate::sweep::{Open, Stop, Sweeper, Task};
use portent_order::Model;
use portent_trace::symbolic::{OtherSide, SideEvent, Symbols, Type};
use portent_trace::{EventId, LocId, LockId, Op, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Branches at one place, with one outcome, that are tried.
const PER_PLACE: usize = 8;
/// Branches that are tried in all.
const MOST: usize = 512;
/// Events of a side that was seen elsewhere.
const LONGEST: usize = 64;
/// Events with formulas, up to which a trace longer than a window is looked at as a whole.
const LIGHT: usize = 1_000;

/// A branch to try.
struct Flip {
    branch: EventId,
    side: Vec<SideEvent>,
    seen: Option<EventId>,
}

/// What came of one.
type Tried = (Vec<(Key, Finding)>, Prediction);

/// Kinds of bug that are looked for behind branches.
fn looks_for(kind: BugKind) -> bool {
    !matches!(kind, BugKind::Nondeterminism | BugKind::Property)
}

/// Whether there may be anything to look behind.
pub(crate) fn has_any(trace: &Trace, options: &Options) -> bool {
    options.model == Model::Values && trace.symbols().is_some() && options.kinds.iter().copied().any(looks_for)
}

/// Looks behind the branches of a trace with formulas; `known` are the groups that have a finding.
pub(crate) fn examine(
    facts: &Facts<'_>,
    options: &Options,
    stop: &Stop<'_>,
    mut known: FxHashSet<Key>,
    prediction: &mut Prediction,
) {
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
        prediction.findings.extend(found.into_iter().filter_map(|(key, finding)| known.insert(key).then_some(finding)));
    }
    if left > 0 {
        prediction.partial = prediction.partial.or(stop.why());
    }
    let not_tried = (Status::NotExamined, Why::Branches, left, "branches that did not go the other way");
    let only_near = (Status::Undecided, Why::Window, in_part, "branches whose other side was looked at from near only");
    for (status, why, count, what) in [not_tried, only_near].into_iter().filter(|(_, _, count, _)| *count > 0) {
        for &kind in &options.kinds {
            prediction.incomplete.push(Incomplete {
                kind,
                status,
                events: None,
                count: count as u64,
                groups: false,
                // What there is behind them is not known.
                at_least: true,
                why,
                what: what.to_owned(),
            });
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
fn try_one(trace: &Trace, symbols: &Symbols, flip: &Flip, options: &Options, reach: usize, stop: &Stop<'_>) -> Tried {
    let mut told = Prediction::default();
    let whole = trace.len() <= reach;
    let (before, after) = if whole { (trace.len(), trace.len()) } else { (reach / 2, reach - reach / 2) };
    let end = flip.branch.index() + 1 + after;
    let other = trace.other_side(flip.branch, &flip.side, end).or_else(|| {
        // Its locks are never free: what comes before the first of them can happen all the same.
        let locks = flip.side.iter().position(|event| matches!(event.op, Op::Acquire(..)))?;
        trace.other_side(flip.branch, &flip.side[..locks], end)
    });
    let Some(OtherSide { trace: flipped, first }) = other.filter(|other| other.first < other.trace.len()) else {
        return (Vec::new(), told);
    };
    let flipped = Arc::new(flipped);
    let facts = Facts::new(&flipped);
    let control = Control::default();
    let mut sweeper = Sweeper::new(&facts, options, &control, stop);
    let span = flip.branch.index().saturating_sub(before)..flipped.len();
    sweeper.sweep(&[Task { span, fresh: first }], &Open::all());
    told.partial = stop.why();
    let (groups, _) = merge(std::mem::take(&mut sweeper.outcomes), &mut told);
    let mut found = findings(&facts, options.model, groups, &mut told.incomplete);
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
    let keyed = found.into_iter().filter_map(|finding| Some((Key::of(&facts, &finding.goal()?), finding)));
    let mut keyed: Vec<(Key, Finding)> = keyed.collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    (keyed, told)
}

/// The branches to try, in the order of the trace, and how many more there are.
fn flips(facts: &Facts<'_>, symbols: &Symbols) -> (Vec<Flip>, usize) {
    let trace = facts.trace;
    let places = Places::of(trace, symbols);
    let mut of_place: FxHashMap<(LocId, bool), Vec<EventId>> = FxHashMap::default();
    for &(branch, outcome) in &places.branches {
        let seen = places.at.contains_key(&(trace.event(branch).loc, !outcome));
        if symbols.side(branch).is_some() || seen {
            of_place.entry((trace.event(branch).loc, outcome)).or_default().push(branch);
        }
    }
    let (mut flips, mut left) = (Vec::new(), 0);
    for ((loc, outcome), branches) in of_place {
        // Spread over the run: what threads have done by then differs.
        let tried = branches.len().min(PER_PLACE);
        left += branches.len() - tried;
        for branch in (0..tried).map(|i| branches[i * branches.len() / tried]) {
            let recorded = symbols.side(branch).map(|side| (side.to_vec(), None));
            let others = places.at.get(&(loc, !outcome)).into_iter().flatten();
            let mut seen = others.map(|&other| (places.side_after(facts, symbols, other, branch), Some(other)));
            let found = recorded.or_else(|| seen.find(|(side, _)| !side.is_empty()));
            flips.extend(found.map(|(side, seen)| Flip { branch, side, seen }));
        }
    }
    flips.sort_by_key(|flip| (flip.seen.is_some(), flip.branch));
    left += flips.len().saturating_sub(MOST);
    flips.truncate(MOST);
    (flips, left)
}

/// What a place in the source is about, if it is always about the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Variable(VarId),
    Lock(LockId),
    Many,
}

fn about(op: Op) -> Option<About> {
    match op {
        Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => Some(About::Variable(x)),
        Op::Acquire(lock, _) | Op::Release(lock, _) => Some(About::Lock(lock)),
        _ => None,
    }
}

/// The branches of a trace, and what its places are about.
struct Places {
    /// Branches with a condition that is true or false, and which way they went.
    branches: Vec<(EventId, bool)>,
    /// Some of them, by place and outcome.
    at: FxHashMap<(LocId, bool), Vec<EventId>>,
    about: FxHashMap<LocId, About>,
    /// How many reads the thread of a branch has made by then.
    reads: FxHashMap<EventId, u32>,
}

impl Places {
    fn of(trace: &Trace, symbols: &Symbols) -> Places {
        let mut places = Places {
            branches: Vec::new(),
            at: FxHashMap::default(),
            about: FxHashMap::default(),
            reads: FxHashMap::default(),
        };
        let mut made = vec![0; trace.threads()];
        for event in trace.events() {
            made[event.thread.index()] += u32::from(event.op.reads());
            if let Some(about) = about(event.op) {
                let known = places.about.entry(event.loc).or_insert(about);
                if *known != about {
                    *known = About::Many;
                }
            }
            if let (Op::Branch, &[(condition, outcome)]) = (event.op, symbols.guards(event.id))
                && symbols.dag().type_of(condition) == Type::BOOL
            {
                places.branches.push((event.id, outcome != 0));
                places.reads.insert(event.id, made[event.thread.index()]);
                let at = places.at.entry((event.loc, outcome != 0)).or_default();
                if at.len() < PER_PLACE {
                    at.push(event.id);
                }
            }
        }
        places
    }

    /// What followed one branch, as far as the thread of another could do the same.
    fn side_after(&self, facts: &Facts<'_>, symbols: &Symbols, seen: EventId, branch: EventId) -> Vec<SideEvent> {
        let trace = facts.trace;
        let program = facts.steps.program(trace.thread(seen));
        let after = program.partition_point(|&event| event <= seen);
        let (base, made) = (self.reads[&seen], self.reads[&branch]);
        let mut held: Vec<_> = facts.held(branch).to_vec();
        let mut side = Vec::new();
        for event in program[after..].iter().take(LONGEST).map(|&event| trace.event(event)) {
            let known = about(event.op).is_some_and(|about| self.about.get(&event.loc) == Some(&about));
            let fits = match event.op {
                Op::Acquire(lock, _) => held.iter().all(|(other, _)| *other != lock),
                Op::Release(lock, mode) => held.contains(&(lock, mode)),
                _ => true,
            };
            if !known || !fits || !symbols.guards(event.id).is_empty() {
                break;
            }
            match event.op {
                Op::Acquire(lock, mode) => held.push((lock, mode)),
                Op::Release(lock, mode) => held.retain(|h| *h != (lock, mode)),
                _ => {}
            }
            // What was computed from earlier reads of the other thread is not known here.
            let own = |&expr: &_| symbols.dag().reads(expr).first().is_none_or(|&read| read >= base);
            let written = symbols.written(event.id).filter(own);
            side.push(SideEvent { op: event.op, loc: event.loc, written, shift: i64::from(made) - i64::from(base) });
        }
        side
    }
}
