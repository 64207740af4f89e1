//! Where a run can leave its trace: engine, oracle and checker on random small traces, with random lists of events that the cut
//! must contain. Nothing false, nothing missed; one engine answers all questions about a trace.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{At, Checker, Divergence, Model, Outcome, Recorded, Verdict, brute};
use portent_testing::dice::Dice;
use portent_testing::traces::{Shapes, TinyTrace};
use portent_trace::{EventId, Mode, Op, ReadOrder, SemId, ThreadId, Trace, UpdateOrder, VarId};

#[derive(Default, Debug)]
struct Count {
    questions: u64,
    feasible: u64,
    with_lists: u64,
    feasible_with_lists: u64,
    searched: u64,
}

/// What a thread could still want to do at the end of a trace.
fn pending(trace: &Trace, dice: &mut Dice) -> Divergence {
    let thread = ThreadId::new(dice.below(trace.threads()));
    let mode = if dice.below(3) == 0 { Mode::Shared } else { Mode::Exclusive };
    let lock = trace.lock_ids().nth(dice.below(trace.locks()));
    let receive = trace.events().filter(|e| matches!(e.op, Op::Receive(_))).nth(dice.below(3));
    let x = VarId::new(dice.below(trace.variables()));
    let slept = trace.events().rfind(|e| e.thread == thread && matches!(e.op, Op::Sleep(_)));
    let op = match (dice.below(6), lock, receive) {
        (0 | 1, Some(lock), _) => Op::Acquire(lock, mode),
        (2, _, Some(receive)) => receive.op,
        (4, ..) if trace.semaphores() > 0 => Op::Wait(SemId::new(dice.below(trace.semaphores()))),
        (4 | 5, ..) if let Some(Op::Sleep(condition)) = slept.map(|sleep| sleep.op) => Op::Wake(condition),
        (3, ..) => Op::Update(x, UpdateOrder::SeqCst),
        _ => Op::Read(x, ReadOrder::Plain),
    };
    let sees = op.reads() && trace.variables() > 0;
    let outcome = match dice.below(3) {
        value if sees => Outcome::Sees(value as i64),
        0 if matches!(op, Op::Wait(_) | Op::Wake(_)) => Outcome::Fails,
        _ => Outcome::Goes,
    };
    Divergence::new(At::End(thread, op), outcome)
}

fn compare(tiny: &TinyTrace, model: Model, count: &mut Count) {
    let trace = &tiny.trace;
    if trace.is_empty() || (model == Model::Values && Recorded::of(trace) != Recorded::Values) {
        return;
    }
    let (view, checker, mut dice) = (View::whole(trace, model), Checker::new(trace), Dice::new(tiny.seed));
    let mut engine = Engine::new(&view);
    let mut questions = brute::divergences(trace);
    let most = 12;
    while questions.len() > most {
        questions.swap_remove(dice.below(questions.len()));
    }
    questions.extend((0..3).map(|_| pending(trace, &mut dice)));
    let wakes: Vec<EventId> = trace.events().filter(|e| matches!(e.op, Op::Wake(_))).map(|e| e.id).collect();
    questions.retain(|q| trace.variables() > 0 || matches!(q.outcome, Outcome::Goes | Outcome::Fails));
    for mut question in questions {
        for lists in [0, 1 + dice.below(3)] {
            let mut list = || (0..1 + dice.below(3)).map(|_| EventId::new(dice.below(trace.len()))).collect();
            question.contain_one_of = (0..lists).map(|_| list()).collect();
            let more = if lists > 0 { dice.below(3) / 2 } else { 0 };
            question.meanwhile = (0..more).map(|_| At::Event(EventId::new(dice.below(trace.len())))).collect();
            question.asleep.clear();
            for &wake in wakes.iter().filter(|_| lists > 0 && dice.below(4) == 0) {
                question.meanwhile.push(At::Event(wake));
                question.asleep.push(trace.thread(wake));
            }
            let truth = brute::diverges(trace, model, &question);
            let checked = |witness| checker.check_divergence(model, &question, &witness);
            let reached = truth.is_some();
            let good = truth.map_or(Ok(()), checked);
            good.unwrap_or_else(|why| panic!("the oracle's witness is none: {why}: {question:?} in {model}, {tiny}"));
            match engine.diverges(&question, Effort::default()) {
                Verdict::Feasible(witness) => {
                    let good = checked(witness);
                    good.unwrap_or_else(|why| panic!("no witness: {why}: {question:?} in {model}, {tiny}"));
                    assert!(reached, "the checker accepts what cannot be: {question:?} in {model}, {tiny}");
                }
                Verdict::Infeasible => assert!(!reached, "the engine missed it: {question:?} in {model}, {tiny}"),
                Verdict::Unknown(why) => panic!("unknown ({why}): {question:?} in {model}, {tiny}"),
            }
            count.questions += 1;
            count.feasible += u64::from(reached);
            count.with_lists += u64::from(lists > 0);
            count.feasible_with_lists += u64::from(lists > 0 && reached);
        }
    }
    count.searched += engine.tiers().searched;
}

fn run(traces: u64, first_seed: u64) {
    for model in [Model::Values, Model::Reads] {
        let mut count = Count::default();
        for tiny in Shapes::all().traces(first_seed..first_seed + traces) {
            compare(&tiny, model, &mut count);
        }
        let waits = Shapes::that(|shape| shape.bare_waits || shape.semaphores);
        for tiny in waits.traces(first_seed..first_seed + traces / 4) {
            compare(&tiny, model, &mut count);
        }
        println!("{model}: {traces} traces, {count:?}");
        assert!(count.feasible * 10 > count.questions && count.feasible * 10 < count.questions * 9, "{count:?}");
        assert!(count.feasible_with_lists * 20 > count.with_lists, "{count:?}");
        assert!(count.searched > traces / 10, "the search had hardly anything to do: {count:?}");
    }
}

#[test]
fn engine_and_oracle_agree_on_where_runs_can_leave_random_traces() {
    run(20_000, 7);
}

#[test]
#[ignore = "a nightly-style run: a million traces, about half an hour"]
fn engine_and_oracle_agree_on_where_runs_can_leave_a_million_traces() {
    run(1_000_000, 1 << 34);
}
