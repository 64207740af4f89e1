//! What only the end of the trace can tell: final values, wake-ups that are lost for good, and in `values` everything that is
//! left. First a window's length of it is asked; then the whole trace, which is exact, if that is not too long.

use crate::board::State;
use crate::causal_past::PATIENCE;
use crate::examination::{Examination, Pass};
use crate::request::Options;
use crate::undecided::Limit;
use portent_order::engine::{Engine, View};
use portent_order::{Goal, Model, Schedule, Verdict};

/// Asks the end of the trace.
pub(crate) struct EndOfTrace;

impl<'a, 't> Pass<'a, 't> for EndOfTrace {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        if examination.stop.why().is_some() {
            return;
        }
        let events = examination.facts.trace.len();
        let window = examination.options.window.max(2).min(events);
        let whole = examination.is_asked_as_a_whole();
        for len in [window, events].into_iter().filter(|&len| len == window || whole) {
            let mut open = examination.still_open();
            open.retain(|&g| match examination.board.groups[g].candidate.goal {
                Goal::FinalValue { .. } | Goal::LostWakeup { .. } => true,
                _ => examination.options.model == Model::Values,
            });
            if open.is_empty() || !ask_last(examination, &open, len) {
                return;
            }
        }
    }
}

/// Asks about groups on the last events of the trace; `false` if told to stop.
fn ask_last(examination: &mut Examination<'_, '_>, open: &[usize], len: usize) -> bool {
    let trace = examination.facts.trace;
    let first = trace.len() - len;
    let mut views = View::spans(trace, examination.options.model, std::iter::once(first..trace.len()));
    let Some(view) = views.next() else { return false };
    // One engine for all: they share most of what it learns.
    let mut engine = Engine::new(&view);
    let mut found = Vec::new();
    for &g in open {
        let instances = &examination.board.groups[g].instances;
        let Some((state, shown)) = ask_group(examination, instances, &mut engine, len) else {
            examination.adopt(found);
            return false;
        };
        let group = &mut examination.board.groups[g];
        found.extend(shown);
        match state {
            State::Refuted if group.more => group.state = State::Undecided(Limit::Tries),
            State::Open => {}
            state => group.state = state,
        }
    }
    examination.prediction.stats.tiers.add(&engine.tiers());
    examination.adopt(found);
    true
}

/// What becomes of a group by asking about these instances, and the one that was shown; `None` if told to stop.
fn ask_group(
    examination: &Examination<'_, '_>,
    instances: &[Goal],
    engine: &mut Engine<'_, '_>,
    len: usize,
) -> Option<(State, Option<(Goal, Schedule)>)> {
    let mut left = 0;
    let mut limit = Limit::Reach;
    for goal in instances {
        if examination.stop.why().is_some() {
            return None;
        }
        if left >= PATIENCE {
            limit = Limit::Tries;
            break;
        }
        let mut effort = examination.effort();
        if matches!(goal, Goal::LostWakeup { .. }) && len > Options::WINDOW {
            // Whether everybody else must be stuck takes long to find out.
            effort.conflicts /= 40;
        }
        match engine.decide(goal, effort) {
            Verdict::Feasible(schedule) => return Some((State::Open, Some((goal.clone(), schedule)))),
            Verdict::Infeasible if len == examination.facts.trace.len() => {}
            Verdict::Infeasible => left += 1,
            Verdict::Unknown(why) => {
                left += 1;
                limit = Limit::of(why);
            }
        }
    }
    Some((if left == 0 { State::Refuted } else { State::Undecided(limit) }, None))
}
