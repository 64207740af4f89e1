//! Lost wake-ups (docs/src/internals/semantics.md §3): the oracle, the checker and the engine, each with code of its own.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Schedule, Verdict, brute, check};
use portent_testing::goals::{engine_agrees, oracle_reaches};
use portent_testing::traces::Shapes;
use portent_trace::generate::TinyShape;
use portent_trace::{Op, PairingId, Reach, ThreadId, Trace};

fn trace(text: &str) -> Trace {
    Trace::from_std(&text.replace(' ', "\n")).unwrap()
}

fn lost(k: usize) -> Goal {
    Goal::LostWakeup { pairing: PairingId::new(k) }
}

/// Shapes of traces in which several threads wait on one condition.
fn crowds() -> Shapes {
    let shapes: Vec<TinyShape> = TinyShape::all().filter(|shape| shape.bare_waits).collect();
    let larger = shapes.iter().map(|shape| TinyShape { threads: 4, events: 16, ..shape.clone() });
    larger.chain(shapes.clone()).collect()
}

/// Whether a wake-up can be lost; the oracle and the engine must say the same.
fn decide(trace: &Trace, model: Model, k: usize) -> Option<Schedule> {
    let truth = brute::decide(trace, model, &lost(k));
    let view = View::whole(trace, model);
    match Engine::new(&view).decide(&lost(k), Effort::default()) {
        Verdict::Feasible(witness) => check(trace, model, &lost(k), &witness).unwrap(),
        verdict => assert_eq!((verdict, &truth), (Verdict::Infeasible, &None), "{k} in {model}"),
    }
    truth
}

fn schedule(threads: &[usize]) -> Schedule {
    threads.iter().map(|&thread| ThreadId::new(thread)).collect()
}

/// Issue 13: T1's second notify woke T0's second sleep in the recording. Where T0 is still in its first, it wakes that.
#[test]
fn a_notify_that_wakes_the_same_thread_later_is_not_harmless_to_it_now() {
    let trace = trace("T0|slp(c) T0|snd(t) T1|ntf(c) T0|wak(c) T0|slp(c) T1|rcv(t) T1|ntf(c) T0|wak(c)");
    for model in Model::ALL {
        assert_eq!(decide(&trace, model, 0), None, "{model}");
        assert!(decide(&trace, model, 1).is_some(), "{model}: both notifies can come before the second sleep");
    }
    let both_late = check(&trace, Model::Sync, &lost(0), &schedule(&[1, 0, 0, 1, 1])).unwrap_err();
    assert_eq!(both_late.why, "a notify would wake it");
}

/// Issue 13: T3 reads what T4 has overwritten. It does not wait for anything: it would go on to its notify.
#[test]
fn a_thread_before_a_read_that_it_cannot_keep_is_not_blocked() {
    let text = "T1|slp(c) T1|snd(z) T2|ntf(c) T1|wak(c) T3|rcv(z) T3|r(x)|6|0 T3|ntf(c) T4|w(x)|8|1";
    for text in [text.to_owned(), format!("{text} T3|branch"), text.replace("T3|ntf(c)", "T3|branch T3|ntf(c)")] {
        let trace = trace(&text);
        for model in Model::ALL {
            assert_eq!(decide(&trace, model, 0), None, "{model}: {text}");
        }
        let stopped_at_the_read = check(&trace, Model::Reads, &lost(0), &schedule(&[1, 0, 0, 3, 2])).unwrap_err();
        assert_eq!(stopped_at_the_read.why, "another thread can go on");
    }
}

/// T2 sleeps before T3's notify, which may take T2 as well as T1.
#[test]
fn a_notify_one_that_wakes_somebody_else_leaves_the_other_alone() {
    let text = "T1|slp(c) T1|snd(z) T4|ntf(c) T1|wak(c) T2|slp(c) T3|rcv(z) T3|ntf(c) T2|wak(c)";
    for model in Model::ALL {
        assert!(decide(&trace(text), model, 0).is_some(), "{model}");
        // A notify-all takes everybody.
        assert_eq!(decide(&trace(&text.replace("T3|ntf(c)", "T3|nta(c)")), model, 0), None, "{model}");
    }
}

/// The same, but T2 sleeps only after T1 has gone on: while T1 sleeps, T3's notify finds nobody else.
#[test]
fn a_notify_one_that_finds_nobody_else_wakes_the_other() {
    let trace =
        trace("T1|slp(c) T1|snd(z) T4|ntf(c) T1|wak(c) T1|snd(y) T2|rcv(y) T2|slp(c) T3|rcv(z) T3|ntf(c) T2|wak(c)");
    for model in Model::ALL {
        assert_eq!(decide(&trace, model, 0), None, "{model}");
        assert!(decide(&trace, model, 1).is_some(), "{model}: T3 notifies before T2 sleeps");
    }
}

/// T1 sleeps before T3 notifies, always. But if T2 is woken first, sleeps again and is woken again, both notifies of T3 are used up; unless
/// T4's comes after that.
#[test]
fn a_notify_that_another_sleeper_takes_is_lost_though_it_came_in_time() {
    let text = "T1|slp(c) T1|snd(a) T2|slp(c) T2|snd(b) T3|rcv(a) T3|rcv(b) T3|ntf(c) T1|wak(c) T3|ntf(c) T2|wak(c) \
        T2|slp(c) T4|ntf(c) T2|wak(c)";
    let late = text.replace("T4|ntf(c)", "T2|snd(e) T4|rcv(e) T4|ntf(c)");
    for model in Model::ALL {
        assert!(decide(&trace(text), model, 0).is_some(), "{model}");
        assert_eq!(decide(&trace(&late), model, 0), None, "{model}");
    }
}

/// What the oracle calls a lost wake-up, read by the letter: after the sleep there are no more notifies than waits of others that they ended.
#[test]
fn notifies_after_a_lost_sleep_have_woken_others() {
    let (mut late, mut stolen, mut kept) = (0, 0, 0);
    for tiny in crowds().traces(0..20_000) {
        let trace = &tiny.trace;
        for (k, pairing) in trace.pairings().iter().enumerate() {
            let Some(witness) = brute::decide(trace, Model::Sync, &lost(k)) else { continue };
            let mut at = vec![0; trace.threads()];
            let mut executed = Vec::new();
            for thread in witness.steps(trace) {
                let mine = trace.events().filter(|event| event.thread == thread);
                executed.extend(mine.map(|event| event.id).nth(at[thread.index()]));
                at[thread.index()] += 1;
            }
            let when = |event| executed.iter().position(|&e| e == event);
            let slept = when(pairing.sleep).unwrap();
            stolen += u32::from(when(pairing.notify).unwrap() > slept);
            kept += 1;
            let after = executed[slept..].iter().map(|&event| trace.op(event));
            let notifies = after.filter(|op| matches!(op, Op::Notify(c, _) if *c == pairing.condition));
            let notifies: Vec<Op> = notifies.collect();
            assert!(!notifies.contains(&Op::Notify(pairing.condition, Reach::All)), "{tiny}");
            let others = trace.pairings().iter().filter(|other| other.condition == pairing.condition);
            let woken = others.filter(|other| when(other.wake).is_some_and(|woke| woke > slept)).count();
            assert!(notifies.len() <= woken, "{tiny}");
            late += notifies.len();
        }
    }
    println!("{late} notifies after the sleep, {stolen} stolen, in {kept} lost wake-ups");
    assert!(late > 50 && stolen > 20 && kept > 500, "{late} notifies, {stolen} stolen, in {kept} lost wake-ups");
}

/// Several waits and notifies on one condition, by the engine and by the oracle, in every model.
#[test]
fn engine_and_oracle_agree_where_many_wait_on_one_condition() {
    let (mut crowded, mut counts) = (0, [[0u32; 2]; 3]);
    for tiny in crowds().traces(0..25_000) {
        let trace = &tiny.trace;
        crowded += usize::from(trace.pairings().len() > 1);
        for (m, model) in Model::ALL.into_iter().enumerate() {
            let view = View::whole(trace, model);
            let mut engine = Engine::new(&view);
            for goal in brute::candidates(trace, Kind::LostWakeup) {
                let truth = oracle_reaches(trace, model, &goal, &tiny);
                engine_agrees(&mut engine, trace, model, &goal, truth, &tiny);
                counts[m][usize::from(truth)] += 1;
            }
        }
    }
    println!("{crowded} traces with several waits; {counts:?}");
    assert!(crowded > 3_000 && counts.iter().flatten().all(|&count| count > 500), "{crowded}, {counts:?}");
}

/// Whom notifies wake matters to every kind of goal: who is woken goes on.
#[test]
fn engine_and_oracle_agree_on_every_goal_of_traces_full_of_waits() {
    let (mut answers, mut others) = (0, 0);
    let kinds = [Kind::Race, Kind::Nondeterminism, Kind::FinalValue, Kind::Atomicity, Kind::Deadlock];
    let bare = TinyShape::all().filter(|shape| shape.bare_waits);
    let accesses = bare.map(|shape| TinyShape { wait_heavy: false, events: 12, ..shape });
    for tiny in accesses.collect::<Shapes>().traces(1 << 22..(1 << 22) + 20_000) {
        let trace = &tiny.trace;
        others +=
            usize::from(trace.events().any(|e| matches!(e.op, Op::Wake(_)) && trace.pairing_of_wake(e.id).is_none()));
        for model in Model::ALL {
            let view = View::whole(trace, model);
            let mut engine = Engine::new(&view);
            for goal in kinds.into_iter().flat_map(|kind| brute::candidates(trace, kind)) {
                let truth = oracle_reaches(trace, model, &goal, &tiny);
                engine_agrees(&mut engine, trace, model, &goal, truth, &tiny);
                answers += 1;
            }
        }
    }
    println!("{answers} answers; {others} traces with time-outs");
    assert!(answers > 100_000 && others > 2_000, "{answers}, {others}");
}
