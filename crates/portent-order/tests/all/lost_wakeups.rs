//! Lost wake-ups (docs/src/internals/semantics.md §3): the oracle, the checker and the engine, each with code of its own.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Schedule, Verdict, brute, check};
use portent_testing::goals::{engine_agrees, oracle_reaches};
use portent_testing::traces::Shapes;
use portent_trace::generate::TinyShape;
use portent_trace::{PairingId, ThreadId, Trace};

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
    assert_eq!(both_late.why, "another notify would wake it");
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

/// T2 sleeps before T3's notify, which is its own: the notify takes T2, and T1 sleeps on.
#[test]
fn a_notify_one_whose_own_sleeper_is_asleep_leaves_the_other_alone() {
    let text = "T1|slp(c) T1|snd(z) T4|ntf(c) T1|wak(c) T2|slp(c) T3|rcv(z) T3|ntf(c) T2|wak(c)";
    for model in Model::ALL {
        assert!(decide(&trace(text), model, 0).is_some(), "{model}");
        // A notify-all takes everybody.
        assert_eq!(decide(&trace(&text.replace("T3|ntf(c)", "T3|nta(c)")), model, 0), None, "{model}");
    }
}

/// The same, but T2 sleeps only after T1 has gone on: while T1 sleeps, T3's notify finds nobody else.
#[test]
fn a_notify_one_whose_own_sleeper_cannot_be_asleep_yet_wakes_the_other() {
    let trace =
        trace("T1|slp(c) T1|snd(z) T4|ntf(c) T1|wak(c) T1|snd(y) T2|rcv(y) T2|slp(c) T3|rcv(z) T3|ntf(c) T2|wak(c)");
    for model in Model::ALL {
        assert_eq!(decide(&trace, model, 0), None, "{model}");
        assert!(decide(&trace, model, 1).is_some(), "{model}: T3 notifies before T2 sleeps");
    }
}

/// What the oracle calls a lost wake-up, read by the letter.
#[test]
fn notifies_after_a_lost_sleep_have_their_own_sleepers_before_them() {
    let (mut harmless, mut kept) = (0, 0);
    for tiny in crowds().traces(0..20_000) {
        let trace = &tiny.trace;
        for (k, pairing) in trace.pairings().iter().enumerate() {
            let Some(witness) = brute::decide(trace, Model::Sync, &lost(k)) else { continue };
            let mut at = vec![0; trace.threads()];
            let mut executed = Vec::new();
            for thread in witness.steps() {
                let mine = trace.events().filter(|event| event.thread == thread);
                executed.extend(mine.map(|event| event.id).nth(at[thread.index()]));
                at[thread.index()] += 1;
            }
            // By hand: every notify on the condition after the sleep has its own sleeper before it, of another thread.
            let when = |event| executed.iter().position(|&e| e == event);
            let slept = when(pairing.sleep).unwrap();
            assert!(when(pairing.notify).unwrap() < slept, "{tiny}");
            kept += 1;
            for notify in trace.pairings().iter().filter(|other| other.condition == pairing.condition) {
                let Some(notified) = when(notify.notify).filter(|&at| at > slept) else { continue };
                assert_eq!(trace.woken_by(notify.notify).len(), 1, "{tiny}");
                assert!(when(notify.sleep).is_some_and(|asleep| asleep < notified), "{tiny}");
                assert_ne!(trace.thread(notify.sleep), trace.thread(pairing.sleep), "{tiny}");
                harmless += 1;
            }
        }
    }
    assert!(harmless > 50 && kept > 500, "{harmless} notifies of others after the sleep, in {kept} lost wake-ups");
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
