//! Checks that begin after what a witness has in common with the observed order, against checks that execute every step.
//!
//! Witnesses begin as the run did and then go their own way, mostly not for long; most of them are wrong. Verdict, step and reason must
//! be the same.

use portent_order::{Checker, Goal, Model, Schedule, Writer, brute};
use portent_testing::dice::Dice;
use portent_testing::goals::candidates;
use portent_testing::traces::Shapes;
use portent_trace::generate::{Config, Generator, Little};
use portent_trace::{EventId, Op, PairingId, ThreadId, Trace, VarId};

/// What came of the checks of a trace: accepted, rejected.
#[derive(Default)]
struct Tally {
    accepted: u64,
    rejected: u64,
}

impl Tally {
    fn check(&mut self, checker: &Checker<'_>, model: Model, goal: &Goal, witness: &Schedule, story: &str) {
        let (fast, slow) = (checker.check(model, goal, witness), checker.check_step_by_step(model, goal, witness));
        assert_eq!(fast, slow, "{goal:?} in {model} by {:?}: {story}", witness.split());
        *(if slow.is_ok() { &mut self.accepted } else { &mut self.rejected }) += 1;
    }
}

/// The observed order up to some event, and then about so many more steps: as observed without one thread, with changes.
fn detour(trace: &Trace, dice: &mut Dice, begin: usize, more: usize) -> Schedule {
    let mut schedule = Schedule::as_observed(begin);
    let without = ThreadId::new(dice.below(trace.threads() + 2));
    for event in (begin..trace.len().min(begin + more)).map(EventId::new) {
        if dice.percent(2) {
            schedule.push(ThreadId::new(dice.below(trace.threads())));
        }
        if trace.thread(event) != without && !dice.percent(1) {
            schedule.push(trace.thread(event));
        }
    }
    schedule
}

/// A goal of events near some place, most of them none at all.
fn any_goal(trace: &Trace, dice: &mut Dice, near: usize) -> Goal {
    let mut event = || EventId::new((near.saturating_sub(20) + dice.below(60)).min(trace.len() - 1));
    let [one, other, third, fourth] = std::array::from_fn(|_| event());
    let (first, second) = (one.min(other), one.max(other));
    match dice.below(8) {
        0 | 1 => Goal::Race { first, second },
        2 => Goal::Atomicity { first, remote: third, second },
        3 => Goal::LostUpdate { first, read: fourth, remote: third, second },
        4 => Goal::Deadlock { waiting: vec![first, second] },
        5 => Goal::Stuck { waiting: one },
        6 if !trace.pairings().is_empty() => {
            Goal::LostWakeup { pairing: PairingId::new(dice.below(trace.pairings().len())) }
        }
        6 => Goal::FinalValue { variable: VarId::new(dice.below(trace.variables())), challenger: one },
        _ => {
            let challenger = if dice.percent(20) { Writer::Init } else { Writer::Event(other) };
            Goal::Nondeterminism { read: one, challenger }
        }
    }
}

/// The same schedule, what it has in common with the observed order as a number, of which at most `most` is taken.
fn told_by_the_run(trace: &Trace, schedule: &Schedule, most: usize) -> Schedule {
    let steps: Vec<ThreadId> = schedule.steps(trace).collect();
    let same = |at: &usize| steps[*at] == trace.thread(EventId::new(*at));
    let common = (0..steps.len().min(trace.len()).min(most)).take_while(same).count();
    let mut told = Schedule::as_observed(common);
    steps[common..].iter().for_each(|&thread| told.push(thread));
    told
}

#[test]
fn a_check_that_skips_the_observed_beginning_says_what_a_whole_one_says() {
    let mut tally = Tally::default();
    for tiny in Shapes::all().traces(0..3_000) {
        let trace = &tiny.trace;
        let checker = Checker::new(trace);
        let mut dice = Dice::new(tiny.seed);
        for goal in candidates(trace) {
            for model in Model::ALL {
                if let Some(witness) = brute::decide(trace, model, &goal) {
                    let told = told_by_the_run(trace, &witness, dice.below(trace.len() + 1));
                    tally.check(&checker, model, &goal, &told, &tiny.to_string());
                }
                let begin = dice.below(trace.len() + 2);
                tally.check(&checker, model, &goal, &detour(trace, &mut dice, begin, 12), &tiny.to_string());
            }
        }
    }
    assert!(tally.accepted > 5_000 && tally.rejected > 50_000, "{} and {}", tally.accepted, tally.rejected);
}

/// A trace in which every object is changed hundreds of times.
fn busy(seed: u64) -> Trace {
    let config = Config {
        seed,
        events: 4_000,
        threads: 6,
        variables: 12,
        locks: 4,
        guarded: 0.5,
        section: 2,
        shared: 0.4,
        busy: 0.02,
        reentrant: 0.1,
        updates: 0.1,
        quantum: 3,
        conditions: 2,
        waits: 0.1,
        semaphores: 2,
        semaphore_events: 0.08,
        tokens: 4,
        token_events: 0.02,
        values: if seed.is_multiple_of(3) { 0.9 } else { 0.0 },
        branches: if seed.is_multiple_of(6) { 0.05 } else { 0.0 },
        blocks: 40,
        ..Config::default()
    };
    Trace::from_input(&mut Generator::new(config).unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

#[test]
fn the_same_holds_of_long_traces_in_which_objects_change_often() {
    let mut tally = Tally::default();
    for seed in 0..12 {
        let trace = busy(seed);
        let checker = Checker::new(&trace);
        let mut dice = Dice::new(seed);
        let story = format!("seed {seed}");
        for _ in 0..250 {
            let begin = dice.below(trace.len());
            // Pairs of accesses that can race: a random pair hardly ever is one.
            let goal = match dice.percent(50) {
                true => any_goal(&trace, &mut dice, begin),
                false => neighbours(&trace, begin).unwrap_or_else(|| any_goal(&trace, &mut dice, begin)),
            };
            let model = dice.one_of(&Model::ALL);
            let more = dice.below(80);
            tally.check(&checker, model, &goal, &detour(&trace, &mut dice, begin, more), &story);
            tally.check(&checker, model, &goal, &Schedule::as_observed(begin), &story);
        }
    }
    assert!(tally.accepted > 20 && tally.rejected > 2_000, "{} and {}", tally.accepted, tally.rejected);
}

/// The first two conflicting accesses from some event on that are next after all before the first of them.
fn neighbours(trace: &Trace, begin: usize) -> Option<Goal> {
    let events: Vec<EventId> = (begin..trace.len().min(begin + 60)).map(EventId::new).collect();
    let is_next = |event: EventId| events.iter().find(|e| trace.thread(**e) == trace.thread(event)) == Some(&event);
    let conflict =
        |a: EventId, b: EventId| trace.thread(a) != trace.thread(b) && trace.op(a).conflicts_with(trace.op(b));
    let pairs = events.iter().flat_map(|&a| events.iter().map(move |&b| (a, b))).filter(|(a, b)| a < b);
    let mut next = pairs.filter(|&(a, b)| conflict(a, b) && is_next(a) && is_next(b));
    next.next().map(|(first, second)| Goal::Race { first, second })
}

#[test]
fn nothing_is_skipped_of_a_trace_whose_order_is_no_run() {
    // The branch goes the other way: the observed order of that trace cannot be executed beyond it.
    let mut tally = Tally::default();
    let mut others = 0;
    for seed in 1..=2_000 {
        let (text, _) = Little::new(seed).run(seed);
        let trace = Trace::from_std(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let Some(symbols) = trace.symbols() else { continue };
        for branch in trace.events().filter(|event| event.op == Op::Branch) {
            let other = symbols.side(branch.id).and_then(|side| trace.other_side(branch.id, side, trace.len()));
            let Some(other) = other else { continue };
            others += 1;
            let checker = Checker::new(&other.trace);
            let mut dice = Dice::new(seed);
            for _ in 0..4 {
                let begin = dice.below(other.trace.len() + 1);
                let goal = any_goal(&other.trace, &mut dice, begin);
                for model in Model::ALL {
                    let schedule = detour(&other.trace, &mut dice, begin, 6);
                    tally.check(&checker, model, &goal, &schedule, &format!("seed {seed}: {text}"));
                }
            }
        }
    }
    assert!(others > 200, "{others} other sides");
}
