//! The models of traces without formulas as SMT problems: what reads may see, and what goals want. Also what
//! `benches/order.rs` asks the solver.

use super::order::{Facts, all, any, at, complete, last, lt, order, p, sees};
use portent_order::{Goal, Model, Writer};
use portent_trace::{EventId, Op, Trace};
use std::fmt::Write as _;

/// "The read sees what it expects."
fn kept(read: EventId) -> String {
    format!("k{}", read.index())
}
/// What a write wrote is what it wrote in the trace.
fn trusted(trace: &Trace, f: &Facts, writer: Writer) -> String {
    match writer {
        Writer::Event(w) if f.branches => all(f.reads_before(trace, w).map(kept).collect()),
        _ => "true".into(),
    }
}

/// What holds in a model of every reordering of a trace without formulas.
pub(super) fn constraints(trace: &Trace, model: Model, f: &Facts) -> String {
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
                let choices = sources.map(|w| all(vec![sees(trace, f, e, w), trusted(trace, f, w)])).collect();
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

/// What holds of one that reaches a goal.
pub(super) fn goal_formula(trace: &Trace, model: Model, f: &Facts, goal: &Goal) -> String {
    let at = |e: EventId| at(trace, f, e);
    match *goal {
        Goal::Race { first, second } => all(vec![at(first), at(second)]),
        Goal::Nondeterminism { read, challenger } if model == Model::Values => {
            let seen = last(f, trace.op(read).variable().unwrap(), challenger);
            let differs = if f.equal(trace, read, challenger) { "false" } else { "true" };
            all(vec![at(read), seen, trusted(trace, f, challenger), differs.into()])
        }
        Goal::Nondeterminism { read, challenger } => {
            all(vec![at(read), last(f, trace.op(read).variable().unwrap(), challenger)])
        }
        Goal::FinalValue { variable, challenger } => {
            let other = trace.value(*f.writes[variable.index()].last().unwrap());
            if model == Model::Values && other.is_some() && other == trace.value(challenger) {
                return "false".into();
            }
            let trusted =
                if model == Model::Values { trusted(trace, f, Writer::Event(challenger)) } else { all(Vec::new()) };
            all(vec![complete(f), last(f, variable, Writer::Event(challenger)), trusted])
        }
        Goal::Atomicity { first, remote, second } => {
            let kept = all(vec![at(second), lt(p(first), p(remote)), lt(p(remote), "z")]);
            let free = all(vec![at(second), at(remote)]);
            let stops = model == Model::Reads || (model == Model::Values && !f.branches);
            if stops && trace.op(remote).reads() { any(vec![kept, free]) } else { kept }
        }
        Goal::Deadlock { ref waiting } => all(waiting.iter().map(|&e| at(e)).collect()),
        Goal::LostWakeup { .. } | Goal::LostUpdate { .. } | Goal::Stuck { .. } => {
            unreachable!("not asked of the SMT solver")
        }
    }
}
