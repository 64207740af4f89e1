//! The order engine against an SMT solver, on traces too long for the oracle (50 to 300 events).
//!
//! The encoding here is SOLVER.md's, written down eagerly and independently of the engine. Needs `z3` on PATH; where
//! there is none, the test says that it was skipped.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_trace::generate::{Config, Generator, Start};
use portent_trace::{EventId, Mode, Op, Trace, VarId};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Facts of a trace that the encoding needs.
struct Facts {
    program: Vec<Vec<EventId>>,
    saw: Vec<Writer>,
    writes: Vec<Vec<EventId>>,
    /// Lock, mode, acquire, release.
    scopes: Vec<(usize, Mode, EventId, Option<EventId>)>,
    branches: bool,
    /// Initial values, where reads recorded them.
    initial: Vec<Option<i64>>,
}

impl Facts {
    /// The reads of a thread before an event of it.
    fn reads_before<'a>(&'a self, trace: &'a Trace, event: EventId) -> impl Iterator<Item = EventId> + 'a {
        let program = &self.program[trace.thread(event).index()];
        program.iter().copied().filter(move |&e| e < event && trace.op(e).reads())
    }
    /// Whether a write has the value that a read saw; there are no updates here.
    fn equal(&self, trace: &Trace, read: EventId, writer: Writer) -> bool {
        let value = match writer {
            Writer::Init => self.initial[trace.op(read).variable().unwrap().index()],
            Writer::Event(w) => trace.value(w),
        };
        value.is_some() && value == trace.value(read)
    }
}

fn facts(trace: &Trace) -> Facts {
    let mut f = Facts {
        program: vec![Vec::new(); trace.threads()],
        saw: Vec::new(),
        writes: vec![Vec::new(); trace.variables()],
        scopes: Vec::new(),
        branches: trace.events().any(|e| e.op == Op::Branch),
        initial: vec![None; trace.variables()],
    };
    for event in trace.events() {
        f.program[event.thread.index()].push(event.id);
        let last = event.op.variable().and_then(|x| f.writes[x.index()].last().copied());
        f.saw.push(last.map_or(Writer::Init, Writer::Event));
        if let (Op::Read(x, _), None, Some(_)) = (event.op, last, event.value) {
            f.initial[x.index()] = event.value;
        }
        match event.op {
            op if op.writes() => f.writes[op.variable().unwrap().index()].push(event.id),
            Op::Acquire(lock, mode) => f.scopes.push((lock.index(), mode, event.id, None)),
            Op::Release(lock, mode) => {
                let mine = |s: &&mut (usize, Mode, EventId, Option<EventId>)| {
                    (s.0, s.1) == (lock.index(), mode) && s.3.is_none() && trace.thread(s.2) == event.thread
                };
                f.scopes.iter_mut().rev().find(mine).unwrap().3 = Some(event.id);
            }
            _ => {}
        }
    }
    f
}

fn p(event: EventId) -> String {
    format!("p{}", event.index())
}
fn lt(a: impl Into<String>, b: impl Into<String>) -> String {
    format!("(< {} {})", a.into(), b.into())
}
fn any(parts: Vec<String>) -> String {
    if parts.is_empty() { "false".into() } else { format!("(or {})", parts.join(" ")) }
}
fn all(parts: Vec<String>) -> String {
    if parts.is_empty() { "true".into() } else { format!("(and {})", parts.join(" ")) }
}

/// "The read sees what it expects."
fn kept(read: EventId) -> String {
    format!("k{}", read.index())
}
/// What a write wrote is what it wrote in the trace.
fn solid(trace: &Trace, f: &Facts, writer: Writer) -> String {
    match writer {
        Writer::Event(w) if f.branches => all(f.reads_before(trace, w).map(kept).collect()),
        _ => "true".into(),
    }
}
/// The read comes after the write, and no other write comes between.
fn sees(trace: &Trace, f: &Facts, e: EventId, writer: Writer) -> String {
    let mut parts = Vec::new();
    if let Writer::Event(w) = writer {
        parts.push(lt(p(w), p(e)));
    }
    let writes = f.writes[trace.op(e).variable().unwrap().index()].iter();
    for &d in writes.filter(|&&d| d != e && Writer::Event(d) != writer) {
        let mut order = vec![lt(p(e), p(d))];
        if let Writer::Event(w) = writer {
            order.push(lt(p(d), p(w)));
        }
        parts.push(any(order));
    }
    all(parts)
}

fn constraints(trace: &Trace, model: Model, f: &Facts) -> String {
    let mut s = String::from("(set-logic QF_LIA)\n(set-option :timeout 10000)\n(declare-const z Int)\n");
    for event in trace.events() {
        let _ = writeln!(s, "(declare-const {} Int)\n(declare-const {} Bool)", p(event.id), kept(event.id));
    }
    let mut say = |fact: String| {
        let _ = writeln!(s, "(assert {fact})");
    };
    for event in trace.events() {
        // Positions are distinct from the cut, so that every event is before or after it.
        say(any(vec![lt(p(event.id), "z"), lt("z", p(event.id))]));
    }
    for program in &f.program {
        for pair in program.windows(2) {
            say(lt(p(pair[0]), p(pair[1])));
        }
    }
    for event in trace.events() {
        let e = event.id;
        match event.op {
            Op::Receive(token) => trace.senders(token).iter().for_each(|&send| say(lt(p(send), p(e)))),
            Op::Wake(_) => {
                if let Some(k) = trace.pairing_of_wake(e) {
                    let pairing = trace.pairings()[k.index()];
                    say(lt(p(pairing.notify), p(e)));
                    say(any(vec![lt("z", p(e)), lt(p(pairing.sleep), p(pairing.notify))]));
                }
            }
            Op::Busy(lock, mode) => {
                let mut holders = vec![lt("z", p(e))];
                for &(l, m, acquire, release) in &f.scopes {
                    if l == lock.index() && m.conflicts_with(mode) && trace.thread(acquire) != event.thread {
                        let mut held = vec![lt(p(acquire), p(e))];
                        held.extend(release.map(|release| lt(p(e), p(release))));
                        holders.push(all(held));
                    }
                }
                say(any(holders));
            }
            op if op.reads() && model == Model::Reads => {
                say(any(vec![lt("z", p(e)), sees(trace, f, e, f.saw[e.index()])]));
            }
            op if op.reads() && model == Model::Values => {
                let writes = f.writes[op.variable().unwrap().index()].iter().map(|&w| Writer::Event(w));
                let sources = writes.chain([Writer::Init]);
                let sources = sources.filter(|&w| w == f.saw[e.index()] || f.equal(trace, e, w));
                let choices = sources.map(|w| all(vec![sees(trace, f, e, w), solid(trace, f, w)])).collect();
                say(format!("(=> {} {})", kept(e), any(choices)));
                if !f.branches {
                    say(any(vec![lt("z", p(e)), kept(e)]));
                }
            }
            Op::Branch if model == Model::Values => {
                say(any(vec![lt("z", p(e)), all(f.reads_before(trace, e).map(kept).collect())]));
            }
            _ => {}
        }
    }
    for (i, &(l1, m1, a1, r1)) in f.scopes.iter().enumerate() {
        for &(l2, m2, a2, r2) in &f.scopes[i + 1..] {
            if l1 == l2 && m1.conflicts_with(m2) && trace.thread(a1) != trace.thread(a2) {
                let mut order = vec![lt("z", p(a1)), lt("z", p(a2))];
                order.extend(r1.map(|r| lt(p(r), p(a2))));
                order.extend(r2.map(|r| lt(p(r), p(a1))));
                say(any(order));
            }
        }
    }
    s
}

fn goal_formula(trace: &Trace, model: Model, f: &Facts, goal: &Goal) -> String {
    let at = |e: EventId| {
        let program = &f.program[trace.thread(e).index()];
        let place = program.partition_point(|&x| x < e);
        let mut parts = vec![lt("z", p(e))];
        if place > 0 {
            parts.push(lt(p(program[place - 1]), "z"));
        }
        all(parts)
    };
    let last = |x: VarId, c: Writer| {
        let mut parts = Vec::new();
        if let Writer::Event(c) = c {
            parts.push(lt(p(c), "z"));
        }
        for &d in f.writes[x.index()].iter().filter(|&&d| Writer::Event(d) != c) {
            let mut order = vec![lt("z", p(d))];
            if let Writer::Event(c) = c {
                order.push(lt(p(d), p(c)));
            }
            parts.push(any(order));
        }
        all(parts)
    };
    match *goal {
        Goal::Race { first, second } => all(vec![at(first), at(second)]),
        Goal::Nondeterminism { read, challenger } if model == Model::Values => {
            let seen = last(trace.op(read).variable().unwrap(), challenger);
            let differs = if f.equal(trace, read, challenger) { "false" } else { "true" };
            all(vec![at(read), seen, solid(trace, f, challenger), differs.into()])
        }
        Goal::Nondeterminism { read, challenger } => {
            all(vec![at(read), last(trace.op(read).variable().unwrap(), challenger)])
        }
        Goal::FinalValue { variable, challenger } => {
            let other = trace.value(*f.writes[variable.index()].last().unwrap());
            if model == Model::Values && other.is_some() && other == trace.value(challenger) {
                return "false".into();
            }
            let solid =
                if model == Model::Values { solid(trace, f, Writer::Event(challenger)) } else { all(Vec::new()) };
            let ends = f.program.iter().filter_map(|t| t.last()).map(|&e| lt(p(e), "z"));
            all(ends.chain([last(variable, Writer::Event(challenger)), solid]).collect())
        }
        Goal::Atomicity { first, remote, second } => {
            let kept = all(vec![at(second), lt(p(first), p(remote)), lt(p(remote), "z")]);
            let free = all(vec![at(second), at(remote)]);
            let stops = model == Model::Reads || (model == Model::Values && !f.branches);
            if stops && trace.op(remote).reads() { any(vec![kept, free]) } else { kept }
        }
        Goal::Deadlock { ref waiting } => all(waiting.iter().map(|&e| at(e)).collect()),
        Goal::LostWakeup { .. } => unreachable!("not asked of the SMT solver"),
    }
}

/// Traces of 50 to 300 events in many styles; no updates, whose freedom in atomicity goals this encoding leaves out.
fn config(seed: u64) -> Config {
    let pick = |salt: u64, most: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (salt * 7 % 50)) % most;
    Config {
        seed,
        events: 50 + pick(1, if seed.is_multiple_of(5) { 250 } else { 100 }),
        threads: 2 + pick(2, 4) as u32,
        variables: 4 + pick(3, 12) as u32,
        locks: 1 + pick(4, 4) as u32,
        blocks: 4,
        block_share: 0.5,
        truncated: seed.is_multiple_of(2),
        start: if seed.is_multiple_of(3) { Start::Unforked } else { Start::Flat },
        quantum: 1 + pick(5, 8) as u32,
        reads: 0.4,
        updates: 0.0,
        values: 0.9,
        branches: if seed.is_multiple_of(3) { 0.1 } else { 0.0 },
        local: 0.1,
        unguarded: 0.3,
        guarded: 0.7,
        section: 2,
        nesting: 3,
        hand_over_hand: if seed.is_multiple_of(4) { 0.5 } else { 0.0 },
        shared: if seed.is_multiple_of(3) { 0.4 } else { 0.0 },
        busy: if seed.is_multiple_of(7) { 0.05 } else { 0.0 },
        conditions: (seed % 3) as u32,
        waits: if seed.is_multiple_of(3) { 0.0 } else { 0.1 },
        tokens: (seed % 4) as u32,
        token_events: if seed.is_multiple_of(4) { 0.0 } else { 0.05 },
        ..Config::default()
    }
}

fn z3(script: &str) -> Option<Vec<String>> {
    let mut child = Command::new("z3").arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(script.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn engine_and_smt_solver_agree_on_mid_size_traces() {
    if z3("(check-sat)\n").is_none() {
        println!("SKIPPED: no z3 on PATH, so nothing was cross-checked (install the package z3)");
        return;
    }
    // More seeds for a longer run: PORTENT_SMT_SEEDS=1000.
    let seeds = std::env::var("PORTENT_SMT_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60u64);
    let (mut asked, mut feasible, mut unanswered) = (0, 0, 0);
    for seed in 1..=seeds {
        let mut generator = match Generator::new(config(seed)) {
            Ok(generator) => generator,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let trace = Trace::from_input(&mut generator).unwrap();
        let f = facts(&trace);
        for model in Model::ALL {
            let mut goals = Vec::new();
            for kind in Kind::ALL.into_iter().filter(|k| *k != Kind::LostWakeup) {
                let mut candidates = brute::candidates(&trace, kind);
                let most = if trace.len() > 160 { 3 } else { 8 };
                let step = (candidates.len() / most).max(1);
                goals.extend(candidates.drain(..).step_by(step).take(most));
            }
            let mut script = constraints(&trace, model, &f);
            for goal in &goals {
                let _ =
                    writeln!(script, "(push)\n(assert {})\n(check-sat)\n(pop)", goal_formula(&trace, model, &f, goal));
            }
            let answers = z3(&script).unwrap();
            assert_eq!(answers.len(), goals.len(), "seed {seed}: {answers:?}");
            let view = View::whole(&trace, model);
            let mut engine = Engine::new(&view);
            for (goal, answer) in goals.iter().zip(answers) {
                let verdict = engine.decide(goal, Effort::default());
                if let Verdict::Feasible(witness) = &verdict {
                    check(&trace, model, goal, witness)
                        .unwrap_or_else(|why| panic!("seed {seed}, {model}, {goal:?}: {why}"));
                }
                asked += 1;
                match answer.as_str() {
                    "sat" => {
                        feasible += 1;
                        assert!(
                            matches!(verdict, Verdict::Feasible(_)),
                            "seed {seed}, {model}, {goal:?}: missed ({verdict:?})"
                        );
                    }
                    "unsat" => assert_eq!(verdict, Verdict::Infeasible, "seed {seed}, {model}, {goal:?}"),
                    _ => unanswered += 1,
                }
            }
        }
    }
    println!("{asked} queries, {feasible} feasible, {unanswered} that z3 did not answer in time");
    assert!(asked > 2_000 && unanswered * 10 < asked);
    assert!(feasible * 10 > asked && feasible * 10 < asked * 9, "{feasible} of {asked} feasible");
}
