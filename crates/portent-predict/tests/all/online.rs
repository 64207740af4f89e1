//! A run is followed in pieces: what is told while it goes on holds of the whole, its schedules are schedules of the whole run, and it
//! does not matter how the run was cut into pieces.

use portent_order::{Goal, Model, Schedule, check};
use portent_predict::online::{Look, Online};
use portent_predict::{Control, Finding, Form, Options, Prediction, predict};
use portent_testing::dice::Dice;
use portent_testing::parallel::each_seed;
use portent_testing::traces::{Shapes, from_std, with_places};
use portent_trace::generate::TinyShape;
use portent_trace::{BatchPlace, EventId, EventList, FunctionBlocks, InputBatch, InputEvent, Names, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Feeds events in pieces of random length, and looks when there is a segment; with `often`, also in between. What each look found.
fn follow(
    names: &Names,
    events: &[InputEvent],
    (options, length): (&Options, usize),
    (dice, often): (&mut Dice, bool),
) -> Vec<Look> {
    let mut online = Online::new(options.clone(), Box::new(|| FunctionBlocks::None), length);
    let mut looks = Vec::new();
    let mut look = |online: &mut Online| looks.push(online.look(names, &Control::default()).unwrap());
    let mut rest = events;
    while !rest.is_empty() {
        let piece = 1 + dice.below(rest.len().min(length + 3));
        let mut batch = InputBatch::default();
        batch.restart(online.events(), BatchPlace::Memory);
        rest[..piece].iter().for_each(|event| batch.push(*event));
        rest = &rest[piece..];
        online.take(&batch);
        while online.is_full() {
            look(&mut online);
        }
        if often && online.waiting() > 0 && dice.percent(30) {
            look(&mut online);
        }
    }
    if online.waiting() > 0 {
        look(&mut online);
    }
    assert_eq!((online.events(), online.passed_over()), (events.len() as u64, 0));
    looks
}

fn ids<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> BTreeSet<String> {
    findings.into_iter().map(|finding| finding.id.clone()).collect()
}

fn all(looks: &[Look]) -> BTreeSet<String> {
    looks.iter().flat_map(|look| ids(&look.findings)).collect()
}

/// The kernel schedule of steps in input events, up to where a goal is reached.
fn schedule(trace: &Trace, finding: &Finding, goal: &Goal) -> Option<Schedule> {
    let witness = finding.witness.as_ref()?;
    let mut own: BTreeMap<usize, std::collections::VecDeque<u32>> = BTreeMap::new();
    let performer = |input: u32| {
        let kernel = trace.lowered(input).next_back().map(|at| trace.thread(EventId::new(at)));
        let skipped = || trace.skipped_inputs().iter().find(|(skipped, _)| *skipped == input).map(|(_, who)| *who);
        kernel.or_else(skipped).unwrap()
    };
    for input in 0..trace.input_len() as u32 {
        own.entry(performer(input).index()).or_default().push_back(input);
    }
    let mut schedule = Schedule::default();
    for step in witness.steps.in_full(trace) {
        for _ in 0..step.events {
            let input = own.get_mut(&step.thread.index()).and_then(|inputs| inputs.pop_front()).unwrap();
            trace.lowered(input).for_each(|at| schedule.push(trace.thread(EventId::new(at))));
        }
    }
    // What belongs to an event that is next, and comes before it: a thread's start.
    let next: Vec<EventId> = match goal {
        Goal::Race { first, second } => vec![*first, *second],
        Goal::Deadlock { waiting } => waiting.clone(),
        _ => Vec::new(),
    };
    for event in next {
        let before = trace.lowered(trace.input_index(event)).start..event.index();
        before.for_each(|at| schedule.push(trace.thread(EventId::new(at))));
    }
    Some(schedule)
}

/// What a whole prediction has, where the end of the run does not matter.
fn lasting(prediction: &Prediction) -> BTreeSet<String> {
    let lasts = |finding: &&Finding| {
        !matches!(finding.goal(), Some(Goal::LostWakeup { .. } | Goal::Stuck { .. } | Goal::FinalValue { .. }))
    };
    ids(prediction.findings.iter().filter(lasts))
}

/// Traces in which each event has a place of its own, so that ids name their events.
fn trace(shapes: &Shapes, seed: u64) -> (Names, Vec<InputEvent>, Trace) {
    let text = with_places(&shapes.tiny(seed).text(), |line, _| format!("f.c:{}", line + 1));
    let (names, events) = from_std(&text);
    let whole = Trace::from_input(&mut EventList::of(&names, &events)).unwrap();
    (names, events, whole)
}

#[test]
fn what_is_told_while_a_run_goes_on_holds_of_the_whole_run() {
    let shapes = Shapes::that(|shape: &TinyShape| !shape.name.contains("wide"));
    let told = each_seed(0..4_000, |seed| {
        let (names, events, whole) = trace(&shapes, seed);
        let mut dice = Dice::new(seed);
        let model = if dice.percent(80) { Model::Reads } else { Model::Sync };
        let options = Options { model, ..Options::default() };
        let offline = predict(&whole, &options, &Control::default());
        let mut told = 0;
        for length in [4, 6, 9, 14] {
            let looks = follow(&names, &events, (&options, length), (&mut dice, true));
            for (finding, look) in looks.iter().flat_map(|look| look.findings.iter().map(move |f| (f, look))) {
                let story =
                    || format!("seed {seed}, {model}, length {length}: {finding:?}\n{}", shapes.tiny(seed).text());
                assert_eq!(look.errors, [] as [String; 0], "{}", story());
                let same = offline.findings.iter().find(|other| other.id == finding.id);
                // A lost update also says that something else does not happen elsewhere in the run.
                let Some(same) = same else {
                    assert!(finding.bug.form() == Form::LostUpdate, "only online: {}", story());
                    continue;
                };
                let places = finding.places().into_iter().zip(same.places());
                for (here, there) in places {
                    let event = here.event.map(|event| look.in_run(event));
                    assert_eq!(event, there.event.map(u64::from), "{}", story());
                }
                if let Some(goal) = same.goal()
                    && let Some(schedule) = schedule(&whole, finding, &goal)
                {
                    let checked = check(&whole, model, &goal, &schedule);
                    checked.unwrap_or_else(|why| panic!("{why}: {schedule:?}, {}", story()));
                }
                told += 1;
            }
        }
        told
    });
    let told: u32 = told.into_iter().sum();
    assert!(told > 5_000, "of {told}");
}

#[test]
fn it_does_not_matter_how_a_run_is_cut_into_pieces() {
    let shapes = Shapes::all();
    let found = each_seed(0..600, |seed| {
        let (names, events, _) = trace(&shapes, seed);
        let options = Options::default();
        let mut dice = Dice::new(seed);
        let mut once = || all(&follow(&names, &events, (&options, 6), (&mut dice, false)));
        let first = once();
        assert_eq!(first, once(), "seed {seed}");
        first.len()
    });
    assert!(found.into_iter().sum::<usize>() > 300);
}

#[test]
fn a_run_of_one_segment_is_told_as_if_it_were_over() {
    let shapes = Shapes::all();
    each_seed(0..600, |seed| {
        let (names, events, whole) = trace(&shapes, seed);
        let options = Options::default();
        let offline = predict(&whole, &options, &Control::default());
        let online = follow(&names, &events, (&options, events.len() + 1), (&mut Dice::new(seed), true));
        let last = online.last().map(|look| ids(&look.findings)).unwrap_or_default();
        assert_eq!(last, lasting(&offline), "seed {seed}");
    });
}

#[test]
fn what_is_passed_over_is_counted_and_what_comes_after_it_is_still_right() {
    let text = "T1|fork(T2)|a.c:1\nT1|acq(l)|a.c:2\nT1|w(x)|a.c:3\nT2|w(y)|b.c:1\nT1|w(y)|a.c:4\nT1|rel(l)|a.c:5\n\
        T2|acq(l)|b.c:2\nT2|w(x)|b.c:3\nT2|rel(l)|b.c:4\nT2|w(z)|b.c:5\nT1|w(z)|a.c:6\n";
    let (names, events) = from_std(text);
    let mut online = Online::new(Options::default(), Box::new(|| FunctionBlocks::None), 6);
    let mut batch = InputBatch::default();
    events.iter().for_each(|event| batch.push(*event));
    online.take(&batch);
    online.pass_over();
    assert_eq!(online.passed_over(), 3);
    let mut found = Vec::new();
    while online.waiting() > 0 {
        let look = online.look(&names, &Control::default()).unwrap();
        found.extend(look.findings.iter().map(|finding| finding.object.clone()));
    }
    // The lock was taken in what was passed over, and is held.
    assert_eq!(found, ["y", "z"]);
}
