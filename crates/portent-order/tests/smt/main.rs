//! The order engine against an SMT solver, on traces too long for the oracle (50 to 300 events): without formulas here, with
//! formulas in `formulas`.
//!
//! Needs `z3` on PATH; where there is none, the tests say that they were skipped.

mod formulas;
mod order;

use order::{Facts, all, any, at, complete, facts, last, lt, order, p, sees, z3};
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_trace::generate::{Config, Generator, Start};
use portent_trace::{EventId, Op, Trace};
use std::fmt::Write as _;

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
fn constraints(trace: &Trace, model: Model, f: &Facts) -> String {
    let mut s = order(trace, f, "QF_LIA");
    for event in trace.events() {
        let _ = writeln!(s, "(declare-const {} Bool)", kept(event.id));
    }
    let mut say = |fact: String| {
        let _ = writeln!(s, "(assert {fact})");
    };
    for event in trace.events() {
        let e = event.id;
        match event.op {
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
    s
}

fn goal_formula(trace: &Trace, model: Model, f: &Facts, goal: &Goal) -> String {
    let at = |e: EventId| at(trace, f, e);
    match *goal {
        Goal::Race { first, second } => all(vec![at(first), at(second)]),
        Goal::Nondeterminism { read, challenger } if model == Model::Values => {
            let seen = last(f, trace.op(read).variable().unwrap(), challenger);
            let differs = if f.equal(trace, read, challenger) { "false" } else { "true" };
            all(vec![at(read), seen, solid(trace, f, challenger), differs.into()])
        }
        Goal::Nondeterminism { read, challenger } => {
            all(vec![at(read), last(f, trace.op(read).variable().unwrap(), challenger)])
        }
        Goal::FinalValue { variable, challenger } => {
            let other = trace.value(*f.writes[variable.index()].last().unwrap());
            if model == Model::Values && other.is_some() && other == trace.value(challenger) {
                return "false".into();
            }
            let solid =
                if model == Model::Values { solid(trace, f, Writer::Event(challenger)) } else { all(Vec::new()) };
            all(vec![complete(f), last(f, variable, Writer::Event(challenger)), solid])
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

/// Some goals of every kind but lost wake-ups, evenly picked.
fn goals(trace: &Trace) -> Vec<Goal> {
    let most = if trace.len() > 160 { 3 } else { 8 };
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::LostWakeup);
    let some = |kind| {
        let candidates = brute::candidates(trace, kind);
        let step = (candidates.len() / most).max(1);
        candidates.into_iter().step_by(step).take(most)
    };
    kinds.flat_map(some).collect()
}

/// How often the engine and the solver were asked.
#[derive(Debug, Default)]
struct Asked {
    queries: usize,
    feasible: usize,
    /// Not by the solver, in its time.
    unanswered: usize,
    /// Not by the engine, with its effort.
    unsettled: usize,
}

impl Asked {
    /// Asks both about all goals: the solver with constraints, and a formula for each goal.
    fn compare(&mut self, trace: &Trace, model: Model, constraints: String, goals: &[(Goal, String)], story: &str) {
        let mut script = constraints;
        for (_, formula) in goals {
            let _ = writeln!(script, "(push)\n(assert {formula})\n(check-sat)\n(pop)");
        }
        let answers = z3(&script).unwrap();
        assert_eq!(answers.len(), goals.len(), "{story}: {answers:?}");
        let view = View::whole(trace, model);
        let mut engine = Engine::new(&view);
        for ((goal, _), answer) in goals.iter().zip(answers) {
            let verdict = engine.decide(goal, Effort::default());
            if let Verdict::Feasible(witness) = &verdict {
                check(trace, model, goal, witness).unwrap_or_else(|why| panic!("{story}, {model}, {goal:?}: {why}"));
            }
            self.queries += 1;
            match answer.as_str() {
                "sat" | "unsat" if matches!(verdict, Verdict::Unknown(_)) => self.unsettled += 1,
                "sat" => {
                    self.feasible += 1;
                    let found = matches!(verdict, Verdict::Feasible(_));
                    assert!(found, "{story}, {model}, {goal:?}: missed ({verdict:?})");
                }
                "unsat" => assert_eq!(verdict, Verdict::Infeasible, "{story}, {model}, {goal:?}"),
                "unknown" => self.unanswered += 1,
                other => panic!("{story}, {model}, {goal:?}: {other}"),
            }
        }
    }

    fn finish(&self, least: usize) {
        let Asked { queries, feasible, unanswered, unsettled } = *self;
        println!(
            "{queries} queries, {feasible} feasible, {unanswered} that z3 did not answer in time, {unsettled} that the \
             engine did not settle"
        );
        assert!(queries > least && unanswered * 10 < queries && unsettled * 100 < queries);
        assert!(feasible * 10 > queries && feasible * 10 < queries * 9, "{feasible} of {queries} feasible");
    }
}

/// How many seeds to try; none, loudly, without a solver.
fn seeds(usually: u64) -> u64 {
    if z3("(check-sat)\n").is_none() {
        println!("SKIPPED: no z3 on PATH, so nothing was cross-checked (install the package z3)");
        return 0;
    }
    // More seeds for a longer run: PORTENT_SMT_SEEDS=1000.
    std::env::var("PORTENT_SMT_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usually)
}

#[test]
fn engine_and_smt_solver_agree_on_mid_size_traces() {
    let seeds = seeds(60);
    let mut asked = Asked::default();
    for seed in 1..=seeds {
        let mut generator = Generator::new(config(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let trace = Trace::from_input(&mut generator).unwrap();
        let f = facts(&trace);
        for model in Model::ALL {
            let asks = |goal: Goal| (goal.clone(), goal_formula(&trace, model, &f, &goal));
            let goals: Vec<_> = goals(&trace).into_iter().map(asks).collect();
            asked.compare(&trace, model, constraints(&trace, model, &f), &goals, &format!("seed {seed}"));
        }
    }
    if seeds > 0 {
        asked.finish(30 * seeds as usize);
        assert_eq!(asked.unsettled, 0, "without formulas the engine settles all of these");
    }
}
