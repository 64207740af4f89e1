//! How fast the order engine answers. Prints rates; asserts nothing about time.
//!
//! `cargo bench -p portent-order --bench order [-- NAME]` runs the parts whose name contains NAME.

#[path = "../tests/all/smt/formulas.rs"]
mod formulas;
#[path = "../tests/all/smt/models.rs"]
mod models;
#[path = "../tests/all/smt/order.rs"]
mod order;

use portent_order::engine::{Effort, Engine, Tiers, View};
use portent_order::{Goal, Model, Verdict, check};
use portent_trace::generate::{Config, Generator};
use portent_trace::{EventId, Trace};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

fn generate(config: Config) -> Trace {
    let mut generator = Generator::new(config).unwrap_or_else(|error| panic!("{error}"));
    Trace::from_input(&mut generator).unwrap_or_else(|error| panic!("{error}"))
}

fn preset(name: &str) -> Trace {
    generate(Config::preset(name).expect("a preset"))
}

/// Peak memory of this process so far, in MB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn tiers(tiers: &Tiers) -> String {
    format!(
        "filtered {}, saturated {}, observed {}, guessed {}, searched {}, unknown {}; {} decisions, {} conflicts, {} clauses",
        tiers.filtered,
        tiers.saturated,
        tiers.observed,
        tiers.guessed,
        tiers.searched,
        tiers.unknown,
        tiers.decisions,
        tiers.conflicts,
        tiers.clauses
    )
}

/// Every (read, other write) question of a trace, with a window that covers it.
fn reads(name: &str, trace: &Trace, model: Model) {
    let start = Instant::now();
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    let (mut feasible, mut unknown) = (0u64, 0u64);
    let answered =
        engine.answer_reads(EventId::new(0), Effort::default(), &|| false, &mut |_, _, answer| match answer {
            Some(_) => feasible += 1,
            None => unknown += 1,
        });
    let time = start.elapsed();
    println!(
        "reads/{name}/{model}: {} events, {} questions, {feasible} feasible, {unknown} unknown, {time:.2?} ({:.2} µs each), peak {:.0} MB",
        trace.len(),
        answered.questions,
        time.as_secs_f64() * 1e6 / answered.questions.max(1) as f64,
        peak_memory(),
    );
    println!("    {}", tiers(&engine.tiers()));
}

/// Conflicting pairs of a trace that are not must-ordered by program order, spread evenly.
fn race_goals(trace: &Trace, most: usize) -> Vec<Goal> {
    let mut by_variable: Vec<Vec<EventId>> = vec![Vec::new(); trace.variables()];
    for event in trace.events() {
        if let Some(x) = event.op.variable() {
            by_variable[x.index()].push(event.id);
        }
    }
    let mut goals = Vec::new();
    for accesses in &by_variable {
        for (i, &first) in accesses.iter().enumerate() {
            for &second in &accesses[i + 1..] {
                let conflict = trace.op(first).conflicts_with(trace.op(second));
                let atomic = trace.op(first).is_atomic() && trace.op(second).is_atomic();
                if conflict && !atomic && trace.thread(first) != trace.thread(second) {
                    goals.push(Goal::Race { first, second });
                }
            }
        }
    }
    let step = (goals.len() / most).max(1);
    goals.into_iter().step_by(step).take(most).collect()
}

fn races(name: &str, config: Config, model: Model, most: usize) {
    let trace = generate(config);
    let goals = race_goals(&trace, most);
    let start = Instant::now();
    let view = View::whole(&trace, model);
    let mut engine = Engine::new(&view);
    let mut counts = [0u64; 3];
    let mut witnesses = Vec::new();
    let mut slowest = Duration::ZERO;
    for goal in &goals {
        let one = Instant::now();
        match engine.decide(goal, Effort::default()) {
            Verdict::Feasible(witness) => {
                counts[0] += 1;
                witnesses.push((goal, witness));
            }
            Verdict::Infeasible => counts[1] += 1,
            Verdict::Unknown(_) => counts[2] += 1,
        }
        slowest = slowest.max(one.elapsed());
    }
    let time = start.elapsed();
    for (goal, witness) in &witnesses {
        check(&trace, model, goal, witness).unwrap_or_else(|why| panic!("{goal:?}: {why}"));
    }
    println!(
        "races/{name}/{model}: {} events, {} queries, {} feasible, {} infeasible, {} unknown, {time:.2?} ({:.0} queries/s, slowest {slowest:.2?}), peak {:.0} MB",
        trace.len(),
        goals.len(),
        counts[0],
        counts[1],
        counts[2],
        goals.len() as f64 / time.as_secs_f64(),
        peak_memory(),
    );
    println!("    {}", tiers(&engine.tiers()));
}

/// How long the SMT solver may take for one question, and for all of a part.
const SOLVER_QUESTION: Duration = Duration::from_secs(10);
const SOLVER_PART: Duration = Duration::from_secs(60);

/// The same questions to the engine and to an SMT solver, both incremental: what each answers in its time.
fn against_solver(name: &str, config: Config, most: usize) {
    let trace = generate(config);
    let goals = race_goals(&trace, most);
    let (constraints, formulas): (String, Vec<String>) = if trace.symbols().is_some() {
        let encoding = formulas::Encoding::new(&trace);
        (encoding.constraints(), goals.iter().map(|goal| encoding.goal(goal)).collect())
    } else {
        let facts = order::facts(&trace);
        let formula = |goal| models::goal_formula(&trace, Model::Values, &facts, goal);
        (models::constraints(&trace, Model::Values, &facts), goals.iter().map(formula).collect())
    };
    let start = Instant::now();
    let Some(mut solver) = Solver::start(&constraints) else {
        println!("solver/{name}: SKIPPED, there is no z3 on PATH (install the package z3)");
        return;
    };
    let (mut asked, mut answered, mut feasible, mut in_its_time) = (0, 0, 0, Duration::ZERO);
    for formula in &formulas {
        if start.elapsed() > SOLVER_PART {
            break;
        }
        asked += 1;
        let answer = solver.ask(formula);
        if matches!(answer.as_str(), "sat" | "unsat") {
            answered += 1;
            feasible += usize::from(answer == "sat");
        }
        in_its_time = start.elapsed();
    }
    drop(solver);
    let start = Instant::now();
    let view = View::whole(&trace, Model::Values);
    let mut engine = Engine::new(&view);
    let verdicts: Vec<Verdict> = goals[..asked].iter().map(|goal| engine.decide(goal, Effort::default())).collect();
    let time = start.elapsed();
    let settled = verdicts.iter().filter(|verdict| !matches!(verdict, Verdict::Unknown(_))).count();
    let found = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Feasible(_))).count();
    let rate = |answers: usize, time: Duration| answers as f64 / time.as_secs_f64();
    println!(
        "solver/{name}: {} events, the first {asked} of {} queries: engine {settled} ({found} feasible) in {time:.2?}, z3 {answered} ({feasible} feasible) in {in_its_time:.2?}",
        trace.len(),
        goals.len(),
    );
    match answered {
        0 => println!("    z3 answered none: {:.0} queries/s against 0", rate(settled, time)),
        _ => println!(
            "    {:.0} queries/s against {:.2}: {:.0} times as fast",
            rate(settled, time),
            rate(answered, in_its_time),
            rate(settled, time) / rate(answered, in_its_time)
        ),
    }
}

/// An SMT solver that is asked one question after the other.
struct Solver {
    child: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Solver {
    fn start(constraints: &str) -> Option<Self> {
        let mut child = Command::new("z3").arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut input = child.stdin.take()?;
        let answers = BufReader::new(child.stdout.take()?).lines();
        writeln!(input, "{constraints}(set-option :timeout {})", SOLVER_QUESTION.as_millis()).ok()?;
        Some(Solver { child, input, answers })
    }
    fn ask(&mut self, formula: &str) -> String {
        let asked = writeln!(self.input, "(push)\n(assert {formula})\n(check-sat)\n(pop)");
        let answer = asked.ok().and_then(|()| self.answers.next()?.ok());
        answer.unwrap_or_else(|| panic!("z3 has ended"))
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All reads of a trace, window by window, and a sample of races in each: how cost grows.
fn growth(name: &str, config: Config, window: usize) {
    let trace = generate(config);
    let start = Instant::now();
    let (mut windows, mut questions, mut races, mut unknown) = (0u64, 0u64, 0u64, 0u64);
    let mut all = Tiers::default();
    for view in View::windows(&trace, Model::Reads, window) {
        let mut engine = Engine::new(&view);
        windows += 1;
        questions += engine
            .answer_reads(EventId::new(0), Effort::default(), &|| false, &mut |_, _, answer| {
                unknown += u64::from(answer.is_none())
            })
            .questions;
        let span = view.span();
        for goal in window_races(&trace, span.first, span.len, 50) {
            races += 1;
            unknown += u64::from(matches!(engine.decide(&goal, Effort::default()), Verdict::Unknown(_)));
        }
        all.add(&engine.tiers());
    }
    let time = start.elapsed();
    println!(
        "growth/{name}: {} events, {windows} windows of {window}, {questions} read questions, {races} race queries, {unknown} unknown, {time:.2?} ({:.2} µs per event), peak {:.0} MB",
        trace.len(),
        time.as_secs_f64() * 1e6 / trace.len() as f64,
        peak_memory(),
    );
    println!("    {}", tiers(&all));
}

/// Some conflicting pairs of neighbours in a window.
fn window_races(trace: &Trace, first: usize, len: usize, most: usize) -> Vec<Goal> {
    let mut last: Vec<Option<EventId>> = vec![None; trace.variables()];
    let mut goals = Vec::new();
    for event in (first..first + len).map(EventId::new) {
        let Some(x) = trace.op(event).variable() else { continue };
        if let Some(before) = last[x.index()].replace(event)
            && trace.thread(before) != trace.thread(event)
            && trace.op(before).conflicts_with(trace.op(event))
            && !(trace.op(before).is_atomic() && trace.op(event).is_atomic())
        {
            goals.push(Goal::Race { first: before, second: event });
        }
    }
    let step = (goals.len() / most).max(1);
    goals.into_iter().step_by(step).take(most).collect()
}

fn window(events: u64, threads: u32, variables: u32, locks: u32) -> Config {
    Config { events, threads, variables, locks, seed: 7, unguarded: 0.1, local: 0.2, ..Config::default() }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let run = |name: &str, part: &dyn Fn()| {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            part();
        }
    };
    run("growth/length", &|| {
        for events in [1_000, 10_000, 100_000, 1_000_000] {
            growth(&format!("length {events}"), window(events, 8, 200, 40), 2_000);
        }
    });
    run("growth/threads", &|| {
        for threads in [2, 4, 8, 16, 32, 64] {
            growth(&format!("threads {threads}"), window(20_000, threads, 200, 40), 2_000);
        }
    });
    for model in [Model::Reads, Model::Sync, Model::Values] {
        run("reads/daisy", &|| reads("daisy", &preset("daisy"), model));
        run("reads/thrift", &|| reads("thrift", &preset("thrift"), model));
        run("races/2000", &|| {
            races("2000 events, 8 threads, 160 variables, 20 locks", window(2_000, 8, 160, 20), model, 5_000)
        });
        run("races/contended", &|| {
            races("2000 events, 8 threads, 10 variables, 3 locks", window(2_000, 8, 10, 3), model, 2_000)
        });
        let few = window(2_000, 8, 160, 20);
        let hot = window(2_000, 8, 10, 3);
        for (name, read_branches, symbolic) in [
            ("no branches", 0.0, false),
            ("30 % of reads with a branch", 0.3, false),
            ("30 % of reads with a branch, formulas", 0.3, true),
        ] {
            let with = |config: &Config| Config {
                values: 1.0,
                read_branches: Some(read_branches),
                symbolic,
                ..config.clone()
            };
            run("values/2000", &|| races(&format!("2000 events with values, {name}"), with(&few), model, 5_000));
            run("values/contended", &|| races(&format!("contended, with values, {name}"), with(&hot), model, 500));
        }
        for (events, variables, locks) in [(2_000, 160, 20), (500, 40, 5), (500, 10, 3)] {
            run("values/reads", &|| {
                let trace = generate(Config { symbolic: true, ..window(events, 8, variables, locks) });
                reads(&format!("{events} events, {variables} variables, formulas"), &trace, model);
            });
        }
        run("races/10000", &|| {
            races("10000 events, 8 threads, 400 variables, 40 locks", window(10_000, 8, 400, 40), model, 1_000)
        });
    }
    // No updates: the encoding without formulas leaves out what they are free to do.
    let with = |events, variables, locks| Config { values: 1.0, updates: 0.0, ..window(events, 8, variables, locks) };
    for (events, variables, locks) in [(250, 40, 5), (500, 40, 5), (2_000, 160, 20)] {
        for (name, read_branches, symbolic) in
            [("30 % of reads with a branch", 0.3, false), ("30 % of reads with a branch, formulas", 0.3, true)]
        {
            let config = Config { read_branches: Some(read_branches), symbolic, ..with(events, variables, locks) };
            run(&format!("solver/{events}"), &|| {
                against_solver(&format!("{events} events, {name}"), config.clone(), 50)
            });
        }
    }
}
