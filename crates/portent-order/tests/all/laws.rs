//! Laws between the models (docs/src/internals/semantics.md §4): what `reads` finds, `sync` finds, and so does `values` where values are recorded.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, brute};
use portent_testing::goals::is_of_the_same_value;
use portent_testing::traces::Shapes;
use portent_trace::generate::TinyShape;
use portent_trace::{Event, Op, Trace};

/// The goals of a kind that a trace poses and that can be reached in a model: by the oracle, and by the engine.
fn reached(trace: &Trace, model: Model, kind: Kind, goals: &[Goal]) -> Vec<[bool; 2]> {
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    let by_both = |goal: &Goal| {
        let by_engine = match engine.decide(goal, Effort::default()) {
            Verdict::Feasible(_) => true,
            Verdict::Infeasible => false,
            Verdict::Unknown(why) => panic!("unknown ({why}): {goal:?}, {kind:?} in {model}"),
        };
        [brute::decide(trace, model, goal).is_some(), by_engine]
    };
    goals.iter().map(by_both).collect()
}

/// Holds every goal of every kind of random traces to "what `reads` finds, the other model finds", exceptions aside.
fn finds_what_reads_finds(
    other: Model,
    shapes: &Shapes,
    counts: impl Fn(&Trace) -> bool,
    is_excepted: impl Fn(&Trace, &Goal) -> bool,
) {
    for kind in Kind::ALL {
        let (mut traces, mut found, mut excepted, mut more) = (0, 0, 0, 0);
        for tiny in shapes.traces(0..12_000) {
            let trace = &tiny.trace;
            if !counts(trace) {
                continue;
            }
            traces += 1;
            let goals = brute::candidates(trace, kind);
            let answers =
                reached(trace, Model::Reads, kind, &goals).into_iter().zip(reached(trace, other, kind, &goals));
            for (goal, (in_reads, in_other)) in goals.iter().zip(answers) {
                for (reads, other_says) in in_reads.into_iter().zip(in_other) {
                    let exception = reads && !other_says && is_excepted(trace, goal);
                    excepted += u32::from(exception);
                    found += u32::from(reads);
                    more += u32::from(other_says && !reads);
                    assert!(
                        !reads || other_says || exception,
                        "`reads` finds {goal:?}, and `{other}` does not: {tiny}"
                    );
                }
            }
        }
        println!("{other}, {kind:?}: {traces} traces, {found} found in reads, {excepted} exceptions, {more} more");
        assert!(traces >= 2_000 && found > 100, "{kind:?}: {found} found in {traces} traces");
    }
}

#[test]
fn what_reads_finds_sync_finds() {
    finds_what_reads_finds(Model::Sync, &Shapes::all(), |_| true, |_, _| false);
}

#[test]
fn what_reads_finds_values_finds_where_every_access_has_its_value() {
    let shapes = Shapes::all().map(|shape| TinyShape { values: true, forgetful: false, ..shape });
    let valued = |trace: &Trace| trace.events().all(|event| event.op.variable().is_none() || event.value.is_some());
    finds_what_reads_finds(Model::Values, &shapes, valued, |trace, goal| {
        is_of_the_same_value(trace, goal) || relies_on_a_changed_update(trace, goal)
    });
}

/// Whether the remote access is an update that another thread read; in a trace without branches, where each read matters.
fn relies_on_a_changed_update(trace: &Trace, goal: &Goal) -> bool {
    let Goal::Atomicity { remote, .. } = *goal else { return false };
    let behind = |event: &Event| event.id > remote && event.op.variable() == trace.op(remote).variable();
    let overwritten = trace.events().filter(behind).find(|event| event.op.writes()).map(|event| event.id);
    let sees = |event: &Event| event.op.reads() && overwritten.is_none_or(|write| event.id <= write);
    let mut readers = trace.events().filter(behind).filter(sees);
    matches!(trace.op(remote), Op::Update(..))
        && trace.events().all(|event| event.op != Op::Branch)
        && readers.any(|event| event.thread != trace.thread(remote))
}

/// An exception that random traces hardly ever show. T2's update comes after T1's write, sees 5 and may leave anything
/// behind; T3 reads it, which lets T1 go on to its second write. `reads` asks only who wrote, `values` what was written.
#[test]
fn values_does_not_rely_on_what_an_update_writes_that_saw_another_value() {
    let text = "T2|u(x)|1|1 T3|r(x)|2|1 T3|snd(k)|3 T1|begin(b)|4 T1|w(x)|5|5 T1|rcv(k)|6 T1|w(x)|7|6 T1|end(b)|8";
    let decide = |text: &str| {
        let trace = Trace::from_std(&text.replace(' ', "\n")).unwrap();
        let goals = brute::candidates(&trace, Kind::Atomicity);
        assert_eq!(goals.len(), 1 + usize::from(text.contains("T3|r(x)")));
        let remote = goals.iter().filter(|goal| matches!(goal, Goal::Atomicity { remote, .. } if remote.index() == 0));
        let goals: Vec<Goal> = remote.cloned().collect();
        Model::ALL.map(|model| reached(&trace, model, Kind::Atomicity, &goals)[0])
    };
    assert_eq!(decide(text), [[true; 2], [true; 2], [false; 2]], "sync, reads, values");
    // Where branches are recorded, T3 may read anything: it takes none.
    assert_eq!(decide(&format!("{text} T4|branch|9")), [[true; 2]; 3]);
    assert_eq!(decide(&text.replace("T3|r(x)|2|1", "T3|branch|2")), [[true; 2]; 3]);
}
