//! Lost updates: engine, oracle and checker agree on every candidate of random traces, in every model; and the classic ones.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Checker, Goal, Kind, Model, Schedule, Verdict, brute, check};
use portent_testing::goals::{engine_agrees, oracle_reaches};
use portent_testing::traces::{Shapes, TinyTrace};
use portent_trace::{EventId, ThreadId, Trace};

fn trace(text: &str) -> Trace {
    Trace::from_std(&text.replace(' ', "\n")).unwrap()
}

/// The lost updates of a trace, by engine and oracle alike, as numbers of events.
fn found(text: &str, model: Model) -> Vec<[usize; 4]> {
    let trace = trace(text);
    let view = View::whole(&trace, model);
    let mut engine = Engine::new(&view);
    let mut found = Vec::new();
    for goal in brute::candidates(&trace, Kind::LostUpdate) {
        let truth = oracle_reaches(&trace, model, &goal, &text);
        engine_agrees(&mut engine, &trace, model, &goal, truth, &text);
        if let (true, Goal::LostUpdate { first, read, remote, second }) = (truth, goal) {
            found.push([first, read, remote, second].map(|event| event.index()));
        }
    }
    found
}

/// The second thread reads what the first wrote, so that `reads` could put nothing in between, were its read not free.
#[test]
fn an_update_split_over_two_sections_is_lost_in_every_model() {
    let split = "T1|acq(m) T1|r(x) T1|rel(m) T1|acq(m) T1|w(x) T1|rel(m) T2|acq(m) T2|r(x) T2|rel(m) T2|acq(m) T2|w(x) T2|rel(m)";
    for model in Model::ALL {
        // The first thread's update is put around the second's; where both reads may change, also the other way round.
        let expected: &[[usize; 4]] =
            if model == Model::Sync { &[[1, 7, 10, 4], [7, 1, 4, 10]] } else { &[[1, 7, 10, 4]] };
        assert_eq!(found(split, model), expected, "{model}");
    }
}

#[test]
fn an_update_in_one_section_is_not_lost() {
    let whole = "T1|acq(m) T1|r(x) T1|w(x) T1|rel(m) T2|acq(m) T2|r(x) T2|w(x) T2|rel(m)";
    Model::ALL.into_iter().for_each(|model| assert_eq!(found(whole, model), [] as [[usize; 4]; 0], "{model}"));
}

#[test]
fn one_that_a_join_orders_is_not_lost() {
    let joined = "T0|fork(T1) T1|r(x) T1|w(x) T0|join(T1) T0|r(x) T0|w(x)";
    Model::ALL.into_iter().for_each(|model| assert_eq!(found(joined, model), [] as [[usize; 4]; 0], "{model}"));
}

/// What the other thread reads may change, but not what it reads beside it on the way to its write.
#[test]
fn only_the_read_of_the_variable_is_free() {
    let beside = "T1|r(x) T1|w(y) T1|w(x) T2|r(x) T2|r(y) T2|w(x)";
    assert_eq!(found(beside, Model::Reads), [[0, 3, 5, 2]]);
    let after = "T1|r(x) T1|w(x) T1|w(y) T2|r(x) T2|r(y) T2|w(x)";
    assert_eq!(found(after, Model::Reads), [] as [[usize; 4]; 0]);
    assert_eq!(found(after, Model::Sync).len(), 2);
}

/// A compare-and-swap overwrites nothing it has not seen; but what it wrote can be overwritten.
#[test]
fn an_atomic_update_can_be_lost_but_loses_nothing() {
    let both = "T1|r(x) T1|w(x) T2|u(x)";
    assert_eq!(found(both, Model::Reads), [[0, 2, 2, 1]]);
    assert_eq!(found("T1|u(x) T2|u(x)", Model::Sync), [] as [[usize; 4]; 0]);
}

/// Once it has read something else, the other thread does nothing after its write but release its locks.
#[test]
fn nobody_relies_on_what_comes_after_a_changed_update() {
    let relied = "T1|r(x) T1|w(z) T2|r(z) T2|r(x) T2|w(x) T2|snd(k) T1|rcv(k) T1|w(x)";
    assert_eq!(found(relied, Model::Reads), [[0, 3, 4, 7]], "it sees what it saw");
    let changed = "T3|w(x) T1|r(x) T2|r(x) T2|w(x) T2|snd(k) T1|rcv(k) T1|w(x)";
    assert_eq!(found(changed, Model::Reads), [[1, 2, 3, 6]]);
    let trace = trace("T1|r(x) T1|w(x) T2|r(x) T2|w(x) T2|w(y)");
    let goal = Goal::LostUpdate { first: event(0), read: event(2), remote: event(3), second: event(1) };
    let schedule = |threads: &[usize]| threads.iter().map(|&t| ThreadId::new(t)).collect::<Schedule>();
    assert_eq!(check(&trace, Model::Reads, &goal, &schedule(&[0, 1, 1, 0])), Ok(()));
    assert!(check(&trace, Model::Reads, &goal, &schedule(&[0, 1, 1, 1, 0])).is_err());
    assert_eq!(check(&trace, Model::Sync, &goal, &schedule(&[0, 1, 1, 1, 0])), Ok(()));
}

#[test]
fn what_is_no_update_is_no_goal() {
    let trace = trace("T1|r(x) T1|r(x) T1|w(x) T2|r(x) T2|w(x) T2|w(x) T2|r(y) T2|w(y)");
    let checker = Checker::new(&trace);
    let observed: Schedule = trace.events().map(|e| e.thread).collect();
    for [first, read, remote, second] in [[0, 3, 4, 2], [1, 3, 5, 2], [1, 6, 7, 2], [1, 4, 4, 2], [3, 3, 4, 4]] {
        let goal =
            Goal::LostUpdate { first: event(first), read: event(read), remote: event(remote), second: event(second) };
        let why = checker.check(Model::Sync, &goal, &observed).unwrap_err().why;
        assert!(why.starts_with("not a goal"), "{why}");
    }
}

fn event(number: usize) -> EventId {
    EventId::new(number)
}

/// How many traces a comparison looks at; another number for a longer run: PORTENT_TRACES=1000000.
fn traces() -> u64 {
    std::env::var("PORTENT_TRACES").ok().and_then(|n| n.parse().ok()).unwrap_or(12_000)
}

/// Every lost update of a trace, in a model, by both.
fn compare(trace: &Trace, model: Model, counts: &mut [u64; 2], story: &dyn std::fmt::Display) {
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    for goal in brute::candidates(trace, Kind::LostUpdate) {
        let truth = oracle_reaches(trace, model, &goal, story);
        engine_agrees(&mut engine, trace, model, &goal, truth, story);
        counts[usize::from(truth)] += 1;
    }
}

#[test]
fn engine_and_oracle_agree_on_every_lost_update_of_random_traces() {
    for model in Model::ALL {
        let mut counts = [0u64; 2];
        for tiny in Shapes::all().traces(0..traces()) {
            compare(&tiny.trace, model, &mut counts, &tiny);
        }
        println!("{model}: {} infeasible, {} feasible", counts[0], counts[1]);
        assert!(counts.iter().all(|&count| count > 20), "{model}: {counts:?}");
    }
}

/// Random programs of threads that update a variable, behind locks or not, in one section or in two, and access another one,
/// take branches and send each other tokens in between; run once, with values or without.
fn updating(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    const UPDATES: [&str; 8] = [
        "acq(m) r(x) rel(m) acq(m) w(x) rel(m)",
        "acq(m) r(x) w(x) rel(m)",
        "acq(n) r(x) rel(n) acq(m) w(x) w(y) rel(m)",
        "r(x) r(y) w(x)",
        "r(x) w(y) r(y) w(x)",
        "acq(m) r(x) acq(n) w(x) rel(m) rel(n)",
        "u(x)",
        "r(x) rcv(k) w(x)",
    ];
    const OTHERS: [&str; 8] = ["r(x)", "w(x)", "w(y)", "r(y)", "branch", "snd(k)", "acq(m) w(y) rel(m)", ""];
    let branches = pick(3) == 0;
    let values = pick(2) == 0;
    let mut threads: Vec<Vec<&str>> = (0..2 + pick(2)).map(|_| Vec::new()).collect();
    for thread in &mut threads {
        for part in [OTHERS[pick(8)], UPDATES[pick(8)], OTHERS[pick(8)]] {
            thread.extend(part.split_whitespace().filter(|op| branches || *op != "branch"));
        }
    }
    // Each token is sent once at most.
    let mut is_sent = false;
    for thread in &mut threads {
        thread.retain(|op| *op != "snd(k)" || !std::mem::replace(&mut is_sent, true));
    }
    threads.iter_mut().for_each(|thread| thread.retain(|op| *op != "rcv(k)" || is_sent));
    let (mut at, mut owner) = (vec![0; threads.len()], [None; 2]);
    let (mut memory, mut sent, mut text, mut line) = ([0i64; 2], false, String::new(), 0);
    let lock = |op: &str| usize::from(op.contains("(n)"));
    for _ in 0..200 {
        let t = pick(threads.len());
        let Some(&op) = threads[t].get(at[t]) else { continue };
        if (op.starts_with("acq") && owner[lock(op)].is_some()) || (op == "rcv(k)" && !sent) {
            continue;
        }
        let x = usize::from(op.contains("(y)"));
        let value = match op.split('(').next() {
            Some("acq") => {
                owner[lock(op)] = Some(t);
                None
            }
            Some("rel") => {
                owner[lock(op)] = None;
                None
            }
            Some("snd") => {
                sent = true;
                None
            }
            Some("r") => Some(memory[x]),
            Some("w" | "u") => {
                memory[x] += pick(3) as i64 - 1;
                Some(memory[x])
            }
            _ => None,
        };
        at[t] += 1;
        line += 1;
        text += &format!("T{t}|{op}|{line}");
        if let Some(value) = value.filter(|_| values) {
            text += &format!("|{value}");
        }
        text += "\n";
    }
    text
}

#[test]
fn engine_and_oracle_agree_on_programs_that_update() {
    for model in Model::ALL {
        let mut counts = [0u64; 2];
        for seed in 0..traces() {
            let text = updating(seed);
            let trace = Trace::from_std(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
            compare(&trace, model, &mut counts, &format_args!("seed {seed}\n{text}"));
        }
        println!("{model}: {} infeasible, {} feasible", counts[0], counts[1]);
        assert!(counts.iter().all(|&count| count * 10 > traces()), "{model}: {counts:?}");
    }
}

/// Every interleaving of small traces, held against the oracle by the checker.
#[test]
fn a_lost_update_is_feasible_exactly_if_the_checker_accepts_some_interleaving() {
    fn extend(left: &mut Vec<usize>, path: &mut Vec<ThreadId>, all: &mut Vec<Schedule>) {
        all.push(path.iter().copied().collect());
        for t in 0..left.len() {
            if left[t] > 0 {
                left[t] -= 1;
                path.push(ThreadId::new(t));
                extend(left, path, all);
                path.pop();
                left[t] += 1;
            }
        }
    }
    let (mut counts, mut small) = ([0u64; 2], 0);
    for tiny in Shapes::all().traces(0..2 * traces()) {
        let trace = &tiny.trace;
        let goals = brute::candidates(trace, Kind::LostUpdate);
        if trace.len() > 9 || trace.threads() > 3 || goals.is_empty() {
            continue;
        }
        small += 1;
        let mut left: Vec<usize> =
            trace.thread_ids().map(|t| trace.events().filter(|e| e.thread == t).count()).collect();
        let mut schedules = Vec::new();
        extend(&mut left, &mut Vec::new(), &mut schedules);
        let checker = Checker::new(trace);
        for goal in goals {
            for model in Model::ALL {
                let oracle = brute::decide(trace, model, &goal);
                let accepted = schedules.iter().find(|schedule| checker.check(model, &goal, schedule).is_ok());
                assert_eq!(oracle.is_some(), accepted.is_some(), "{goal:?} in {model}: {accepted:?}: {tiny}");
                counts[usize::from(accepted.is_some())] += 1;
            }
        }
    }
    println!("{small} traces, {counts:?}");
    assert!(small > 100 && counts.iter().all(|&count| count > 50), "{small} traces, {counts:?}");
}

#[test]
fn lost_updates_of_windows_are_lost_updates_of_the_trace() {
    let mut shown = 0;
    for tiny in Shapes::all().traces(0..3_000) {
        let TinyTrace { trace, .. } = &tiny;
        for model in Model::ALL {
            for view in View::windows(trace, model, 6) {
                let mut engine = Engine::new(&view);
                for goal in brute::candidates(trace, Kind::LostUpdate) {
                    if let Verdict::Feasible(witness) = engine.decide(&goal, Effort::default()) {
                        check(trace, model, &goal, &witness)
                            .unwrap_or_else(|why| panic!("{why}: {goal:?} in {model}, {tiny}"));
                        shown += 1;
                    }
                }
            }
        }
    }
    assert!(shown > 100, "{shown}");
}
