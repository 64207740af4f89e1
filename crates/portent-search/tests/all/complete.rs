//! What a search sees and what can be predicted from its runs, held against everything that can happen.

use crate::little::generate::{Profile, program};
use crate::little::machine::Little;
use crate::little::runner::{RunOn, Runner, hash};
use crate::little::truth::{Cut, Facts, Local, truth};
use portent_order::engine::{Effort, Engine};
use portent_order::{At, Divergence, Goal, Outcome, Verdict};
use portent_search::{End, History, Observes, Options, Plan, Run, Spins, Subject, Visit, explore, resume, stuck_cuts};
use portent_testing::parallel::each_seed;
use portent_trace::{LockId, Mode, Op};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What a search found.
#[derive(Default)]
struct Found {
    facts: Facts,
    /// The cuts of the runs, and the histories of each thread on the way.
    runs: Vec<Cut>,
    ways: Vec<Vec<BTreeSet<u64>>>,
}

fn hashes(history: &Option<History>) -> Vec<u64> {
    let mut all = vec![0];
    for step in history.iter().flat_map(|history| &history.steps) {
        all.push(hash(all[all.len() - 1], step.operation, step.seen));
    }
    all
}

fn holds(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Feasible(_) => true,
        Verdict::Infeasible => false,
        Verdict::Unknown(why) => panic!("unknown: {why}"),
    }
}

/// A place at which a thread can wait for a lock.
struct Waiting {
    local: Local,
    at: At,
    lock: LockId,
    mode: Mode,
    holds: Vec<(LockId, Mode)>,
}

impl Found {
    fn note(&mut self, run: &Run, engine: &mut Engine<'_, '_>) {
        let ways: Vec<Vec<u64>> = run.threads.iter().map(hashes).collect();
        let cut: Cut = ways.iter().map(|way| way[way.len() - 1]).collect();
        let finished = |history: &History| matches!(history.end, End::Done | End::Failed(_));
        for (thread, history) in run.threads.iter().enumerate() {
            if matches!(history, Some(History { end: End::Failed(_), .. })) {
                self.facts.failures.insert((thread, cut[thread]));
            }
        }
        if run.threads.iter().flatten().all(finished) {
            self.facts.finished.insert(cut.clone());
            self.finals(run, &cut, engine);
        }
        self.facts.ends.insert(cut.clone());
        self.races(run, &ways, engine);
        self.cycles(run, &ways, engine);
        self.runs.push(cut);
        self.ways.push(ways.into_iter().map(|way| way.into_iter().collect()).collect());
    }

    fn stuck(&mut self, run: &Run, spins: &Spins, engine: &mut Engine<'_, '_>) {
        let ways: Vec<Vec<u64>> = run.threads.iter().map(hashes).collect();
        let stuck = stuck_cuts(run, spins, engine, 100_000, Effort::default()).expect("few combinations");
        for steps in stuck.into_keys() {
            self.facts.stuck.insert(steps.iter().enumerate().map(|(thread, &steps)| ways[thread][steps]).collect());
        }
    }

    fn finals(&mut self, run: &Run, cut: &Cut, engine: &mut Engine<'_, '_>) {
        let mut last = vec![None; run.trace.variables()];
        for event in run.trace.events().filter(|event| event.op.writes()) {
            last[event.op.variable().expect("it writes").index()] = Some(event);
        }
        for (variable, last) in last.into_iter().enumerate() {
            let last = last.expect("variables are written at first");
            self.facts.finals.insert((cut.clone(), variable, last.value.expect("values are known")));
            for event in run.trace.events().filter(|e| e.op.writes() && e.op.variable() == last.op.variable()) {
                let goal = Goal::FinalValue { variable: last.op.variable().expect("it writes"), challenger: event.id };
                let found = (cut.clone(), variable, event.value.expect("values are known"));
                if event.id != last.id
                    && !self.facts.finals.contains(&found)
                    && holds(engine.decide(&goal, Effort::default()))
                {
                    self.facts.finals.insert(found);
                }
            }
        }
    }

    fn races(&mut self, run: &Run, ways: &[Vec<u64>], engine: &mut Engine<'_, '_>) {
        let steps = |thread: usize| run.threads[thread].iter().flat_map(|history| history.steps.iter().enumerate());
        for one in 0..run.threads.len() {
            for other in 0..one {
                for (i, a) in steps(other) {
                    for (j, b) in steps(one) {
                        let (x, y) = (access(run, a), access(run, b));
                        let (Some((x, writes, atomic)), Some((y, also_writes, also_atomic))) = (x, y) else { continue };
                        let race = ((other, ways[other][i]), (one, ways[one][j]));
                        let conflict = x == y && (writes || also_writes) && !(atomic && also_atomic);
                        if !conflict || self.facts.races.contains(&race) {
                            continue;
                        }
                        let meanwhile = vec![At::Event(b.event)];
                        let both = Divergence { meanwhile, ..Divergence::new(At::Event(a.event), Outcome::Any) };
                        if holds(engine.diverges(&both, Effort::default())) {
                            self.facts.races.insert(race);
                        }
                    }
                }
            }
        }
    }

    fn cycles(&mut self, run: &Run, ways: &[Vec<u64>], engine: &mut Engine<'_, '_>) {
        let mut all = Vec::new();
        for (thread, history) in run.threads.iter().enumerate() {
            let Some(history) = history else { continue };
            let mut held = Vec::new();
            for (i, step) in history.steps.iter().enumerate() {
                let op = run.trace.op(step.event);
                if let (Op::Acquire(lock, mode), Observes::Nothing) = (op, step.observes) {
                    let (local, at) = ((thread, ways[thread][i]), At::Event(step.event));
                    all.push(Waiting { local, at, lock, mode, holds: held.clone() });
                }
                match op {
                    Op::Acquire(lock, mode) => held.push((lock, mode)),
                    Op::Release(lock, mode) => held.retain(|&other| other != (lock, mode)),
                    _ => {}
                }
            }
            if let End::Waits { op: Some(op @ Op::Acquire(lock, mode)), .. } = history.end {
                let (local, at) = ((thread, ways[thread][history.steps.len()]), At::End(history.thread, op));
                all.push(Waiting { local, at, lock, mode, holds: held });
            }
        }
        for first in 0..all.len() {
            self.cycles_from(&all, &mut vec![first], engine);
        }
    }

    fn cycles_from(&mut self, all: &[Waiting], path: &mut Vec<usize>, engine: &mut Engine<'_, '_>) {
        let waits_for = |one: &Waiting, other: &Waiting| {
            other.holds.iter().any(|&(lock, mode)| lock == one.lock && mode.conflicts_with(one.mode))
        };
        let (first, last) = (&all[path[0]], &all[path[path.len() - 1]]);
        if path.len() > 1 && waits_for(last, first) {
            let mut cycle: Vec<Local> = path.iter().map(|&at| all[at].local).collect();
            cycle.sort();
            let meanwhile = path[1..].iter().map(|&at| all[at].at).collect();
            let question = Divergence { meanwhile, ..Divergence::new(first.at, Outcome::Fails) };
            if !self.facts.cycles.contains(&cycle) && holds(engine.diverges(&question, Effort::default())) {
                self.facts.cycles.insert(cycle);
            }
        }
        for next in 0..all.len() {
            let new = path.iter().all(|&at| all[at].local.0 != all[next].local.0);
            if new && waits_for(last, &all[next]) {
                path.push(next);
                self.cycles_from(all, path, engine);
                path.pop();
            }
        }
    }

    /// Whether some run has all of a cut.
    fn covers(&self, cut: &Cut) -> bool {
        self.ways.iter().any(|ways| cut.iter().zip(ways).all(|(history, way)| way.contains(history)))
    }
}

/// Variable, whether it writes, whether it is atomic. A compare-exchange counts as a write whatever it sees.
fn access(run: &Run, step: &portent_search::Step) -> Option<(usize, bool, bool)> {
    let op = run.trace.op(step.event);
    let exchanges = matches!(step.observes, Observes::Value(portent_search::Writes::If(_)));
    Some((op.variable()?.index(), op.writes() || exchanges, op.is_atomic()))
}

#[derive(Default, Debug)]
struct Count {
    programs: u64,
    too_large: u64,
    runs: u64,
    behaviours: u64,
    questions: u64,
    failures: u64,
    stuck: u64,
    races: u64,
    cycles: u64,
    covered_only: u64,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.programs += other.programs;
        self.too_large += other.too_large;
        self.runs += other.runs;
        self.behaviours += other.behaviours;
        self.questions += other.questions;
        self.failures += other.failures;
        self.stuck += other.stuck;
        self.races += other.races;
        self.cycles += other.cycles;
        self.covered_only += other.covered_only;
    }
}

/// A program whose plans are noted.
struct Noted<'p> {
    runner: Runner<'p>,
    plans: Vec<Plan>,
}

impl Subject for Noted<'_> {
    type Error = Infallible;
    fn run(&mut self, plan: &Plan) -> Result<Run, Infallible> {
        self.plans.push(plan.clone());
        self.runner.run(plan)
    }
}

/// The plans of a search that ends after so many runs.
fn plans_of(program: &Little, run_on: RunOn, runs: usize) -> Vec<Plan> {
    let mut noted = Noted { runner: Runner::new(program, run_on), plans: Vec::new() };
    let options = Options { runs, ..Options::default() };
    let Ok(explored) = explore(&mut noted, &options, &mut |_| ControlFlow::Continue(()));
    assert_eq!(explored.runs, noted.plans.len());
    noted.plans
}

/// Explores a program and holds what it found against the truth.
///
/// With `stop`, a search that ends after so many runs is gone on with by another.
fn compare(program: &Little, run_on: RunOn, stop: Option<usize>, most: usize, story: &dyn Fn() -> String) -> Count {
    let Some(facts) = truth(program, most) else { return Count { too_large: 1, ..Count::default() } };
    let (mut runner, mut found) = (Runner::new(program, run_on), Found::default());
    let earlier = stop.map(|runs| plans_of(program, run_on, runs)).unwrap_or_default();
    let explored = resume(&mut runner, &Options::default(), &earlier, &mut |visit: Visit<'_, '_, '_>| {
        if visit.is_over {
            found.stuck(visit.run, visit.spins, visit.engine);
        } else {
            found.note(visit.run, visit.engine);
        }
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap_or_else(|never| match never {});
    assert!(explored.is_complete(), "not complete: {:?}: {}", explored.incomplete, story());
    let distinct: BTreeSet<&Cut> = found.runs.iter().collect();
    assert_eq!(distinct.len(), runner.runs, "a run in vain: {}", story());
    let unreal: Vec<_> = found.runs.iter().filter(|cut| !facts.ends.contains(*cut)).collect();
    assert!(unreal.is_empty(), "runs that cannot be: {unreal:?}: {}", story());
    let missed: Vec<_> = facts.ends.iter().filter(|cut| !found.covers(cut)).collect();
    assert!(missed.is_empty(), "{} of {} ends are missed: {}", missed.len(), facts.ends.len(), story());
    assert_eq!(found.facts.finished, facts.finished, "ends: {}", story());
    assert_eq!(found.facts.finals, facts.finals, "final values: {}", story());
    assert_eq!(found.facts.failures, facts.failures, "failures: {}", story());
    assert_eq!(found.facts.races, facts.races, "races: {}", story());
    assert_eq!(found.facts.cycles, facts.cycles, "cycles: {}", story());
    assert_eq!(found.facts.stuck, facts.stuck, "stuck: {}", story());
    assert!(runner.runs <= facts.ends.len(), "more runs than behaviours: {}", story());
    Count {
        programs: 1,
        too_large: 0,
        runs: runner.runs as u64,
        behaviours: facts.ends.len() as u64,
        questions: explored.questions,
        failures: facts.failures.len() as u64,
        stuck: facts.stuck.len() as u64,
        races: facts.races.len() as u64,
        cycles: facts.cycles.len() as u64,
        covered_only: (facts.ends.len() - runner.runs) as u64,
    }
}

fn run(programs: u64, first_seed: u64, size: usize, most: usize) {
    let counts = each_seed(first_seed..first_seed + programs, |seed| {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let run_on = if (seed / Profile::ALL.len() as u64).is_multiple_of(2) { RunOn::Stay } else { RunOn::Random };
        // What waits in many ways needs more.
        let more = matches!(profile, Profile::Locks | Profile::Semaphores | Profile::Conditions | Profile::All);
        let size = if more { size + 3 } else { size };
        let program = program(seed, profile, size);
        let stop = (seed % 3 == 0).then_some(1 + seed as usize % 7);
        compare(&program, run_on, stop, most, &|| {
            format!("seed {seed}, {profile:?}, {run_on:?}, stopped {stop:?}\n{program:#?}")
        })
    });
    let mut all = Count::default();
    counts.iter().for_each(|count| all.add(count));
    println!("{all:?}");
    for (number, profile) in Profile::ALL.into_iter().enumerate() {
        let mut of = Count::default();
        let seeds = first_seed..first_seed + programs;
        let own = seeds.zip(&counts).filter(|(seed, _)| *seed as usize % Profile::ALL.len() == number);
        own.for_each(|(_, count)| of.add(count));
        println!("{profile:?}: {of:?}");
        assert!(of.programs * 10 > programs / Profile::ALL.len() as u64 * 8, "{profile:?}: {of:?}");
        assert!(of.behaviours * 2 > of.programs * 3 && of.failures > 0 && of.races > 0, "{profile:?}: {of:?}");
        let waits = !matches!(profile, Profile::Atomics);
        assert!(!waits || of.stuck > 0, "{profile:?}: {of:?}");
    }
    assert!(all.programs * 10 > programs * 9, "most programs are too large: {all:?}");
    assert!(all.failures > 0 && all.stuck > 0 && all.cycles > 0 && all.races > 0, "{all:?}");
}

#[test]
fn nothing_is_missed_or_invented_on_random_programs() {
    run(22_000, 1, 9, 3_000);
}

#[test]
#[ignore = "a nightly-style run: 200,000 programs and 20,000 larger ones, about twenty minutes"]
fn nothing_is_missed_or_invented_on_very_many_random_programs() {
    run(200_000, 1 << 32, 9, 3_000);
    run(20_000, 1 << 33, 15, 20_000);
}
