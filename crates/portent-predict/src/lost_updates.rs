//! The pass that asks about lost updates: few candidates, at the same places as each other, so each group is asked about by itself.
//!
//! A trace that fits one window is asked as a whole, which is exact. Of a longer one, what the clocks refute is refuted; the
//! rest is asked of slices of its causal past, which show, and in `sync` refute; and then, if it is not too long, of the whole
//! trace. What stays open is said.
//!
//! Where two of the accesses can be next at the same time, it is a race, and told as that: a group whose places have one is
//! left out, if races are looked for. So this pass runs after those that look for them.

use crate::asking::Key;
use crate::bug::BugKind;
use crate::causal_past::{Answer, Ask, Causal, Depth, PATIENCE};
use crate::examination::{Examination, Found, Pass};
use crate::kinds::{self, LostUpdates as Group, lost_updates, race_key};
use crate::undecided::{Incomplete, Limit, Status, Why};
use portent_order::engine::{Engine, Tiers, View};
use portent_order::{Goal, Model, Schedule, Verdict};
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// Instances of a group that are asked of a whole trace longer than a window: each costs as much as the trace is long.
const FAR: usize = 4;

/// Looks for lost updates.
pub(crate) struct LostUpdates;

/// What became of a group.
enum Outcome {
    Found { found: Found },
    Refuted,
    Undecided(Limit),
}

impl<'a, 't> Pass<'a, 't> for LostUpdates {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        if !examination.wants(BugKind::LostUpdate) {
            return;
        }
        let stop = || examination.stop.why().is_some();
        let (facts, options) = (examination.facts, examination.options);
        // In `values` a read may take its value from anywhere.
        let clocks = if options.model == Model::Reads { Model::Reads } else { Model::Sync };
        let Some(ordered) = Causal::new(facts, clocks, options.reach, &stop) else {
            let what = "lost updates that were not looked for".to_owned();
            let why = examination.stop.why().unwrap_or(Why::Budget);
            let entry = Incomplete::many(BugKind::LostUpdate, Status::NotExamined, 0, why, what);
            examination.prediction.incomplete.push(Incomplete { at_least: true, ..entry });
            return;
        };
        let mut groups = lost_updates(facts, &|goal| ordered.is_impossible(goal));
        let races = examination.found();
        groups.retain(|group| !is_a_race(examination, &races, &group.goals[0]));
        if groups.is_empty() {
            return;
        }
        let outcomes = if examination.fits() {
            as_a_whole(examination, &groups)
        } else {
            let mut outcomes = near(examination, &ordered, &groups);
            if examination.is_asked_as_a_whole() {
                let open = |at: &usize| matches!(outcomes.get(*at), Some(Outcome::Undecided(_)));
                let open: Vec<usize> = (0..groups.len()).filter(open).collect();
                let left: Vec<&Group> = open.iter().map(|&at| &groups[at]).collect();
                let answers = if left.is_empty() { Vec::new() } else { as_a_whole(examination, left) };
                open.into_iter().zip(answers).for_each(|(at, outcome)| outcomes[at] = outcome);
            }
            outcomes
        };
        tell(examination, &groups, outcomes);
    }
}

/// Whether two of the accesses are a race that was found.
fn is_a_race(examination: &Examination<'_, '_>, races: &FxHashSet<Key>, goal: &Goal) -> bool {
    let Goal::LostUpdate { first, read, remote, second } = *goal else { return false };
    let pairs = [(first, remote), (remote, second), (read, second)];
    pairs.iter().any(|&(a, b)| races.contains(&race_key(examination.facts.trace, a, b)))
}

/// Asks the whole trace, until told to stop.
fn as_a_whole<'g>(examination: &mut Examination<'_, '_>, groups: impl IntoIterator<Item = &'g Group>) -> Vec<Outcome> {
    let view = View::whole(examination.facts.trace, examination.options.model);
    // One engine for all: they share most of what it learns.
    let mut engine = Engine::new(&view);
    let mut outcomes = Vec::new();
    for group in groups {
        let mut found: Option<Found> = None;
        let mut limit = group.more.then_some(Limit::Tries);
        let most = if examination.fits() { group.goals.len() } else { FAR };
        if group.goals.len() > most {
            limit = Some(Limit::Tries);
        }
        for goal in group.goals.iter().take(most) {
            if examination.stop.why().is_some() {
                break;
            }
            match engine.decide(goal, examination.effort()) {
                Verdict::Feasible(schedule) => match &mut found {
                    Some(found) => found.instances += 1,
                    None => found = Some(Found { exact: !group.more, ..Found::new(goal.clone(), schedule) }),
                },
                Verdict::Infeasible => {}
                Verdict::Unknown(why) => limit = Some(Limit::of(why)),
            }
        }
        if examination.stop.why().is_some() && found.is_none() {
            break;
        }
        outcomes.push(match (found, limit) {
            (Some(found), _) => Outcome::Found { found },
            (None, Some(limit)) => Outcome::Undecided(limit),
            (None, None) => Outcome::Refuted,
        });
    }
    examination.prediction.stats.tiers.add(&engine.tiers());
    outcomes
}

/// Asks slices of causal pasts, until told to stop. `ordered` knows the clocks of the model, or those of `sync`.
fn near<'a, 't>(examination: &mut Examination<'a, 't>, ordered: &Causal<'a, 't>, groups: &[Group]) -> Vec<Outcome> {
    let (facts, options, stopper) = (examination.facts, examination.options, examination.stop);
    let stop = || stopper.why().is_some();
    let other = |model| Causal::new(facts, model, options.reach, &stop);
    // What `sync` refutes is refuted in every model; what `reads` shows is a good guess in `values`. Made when needed.
    let (sync, reads) = (OnceCell::new(), OnceCell::new());
    let refuting =
        || if options.model == Model::Reads { sync.get_or_init(|| other(Model::Sync)).as_ref() } else { Some(ordered) };
    let showing = || {
        if options.model == Model::Values { reads.get_or_init(|| other(Model::Reads)).as_ref() } else { Some(ordered) }
    };
    let mut tiers = Tiers::default();
    let mut outcomes = Vec::new();
    for group in groups {
        let (mut left, mut limit) = (0, group.more.then_some(Limit::Tries));
        let mut shown: Option<(Goal, Schedule)> = None;
        for goal in &group.goals {
            if stop() {
                break;
            }
            if left >= PATIENCE {
                limit = Some(Limit::Tries);
                break;
            }
            let ask = Ask { refute: false, show: Some(options.model), depth: Depth::All, effort: examination.effort() };
            let mut answer = Answer::Undecided(Limit::Reach);
            if let Some(showing) = showing() {
                answer = showing.ask(goal, ask, &mut tiers);
            }
            if let (Answer::Undecided(_), Some(refuting)) = (&answer, refuting()) {
                // Only clocks and relaxed slices of `sync`: there no read is kept, so none has to be free.
                answer = refuting.ask(goal, Ask { refute: true, show: None, ..ask }, &mut tiers);
            }
            match answer {
                Answer::Shown(schedule) => {
                    shown = Some((goal.clone(), schedule));
                    break;
                }
                Answer::Refuted => {}
                Answer::Undecided(why) => {
                    left += 1;
                    limit = Some(why);
                }
            }
        }
        if stop() && shown.is_none() {
            break;
        }
        outcomes.push(match (shown, limit) {
            (Some((goal, schedule)), _) => {
                Outcome::Found { found: Found { exact: false, ..Found::new(goal, schedule) } }
            }
            (None, Some(limit)) => Outcome::Undecided(limit),
            (None, None) => Outcome::Refuted,
        });
    }
    examination.prediction.stats.tiers.add(&tiers);
    outcomes
}

/// Takes in what was found, and says what stays open.
fn tell(examination: &mut Examination<'_, '_>, groups: &[Group], outcomes: Vec<Outcome>) {
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut entries = Vec::new();
    let facts = examination.facts;
    let asked = outcomes.len();
    for (group, outcome) in groups.iter().zip(outcomes) {
        match outcome {
            Outcome::Found { found: one } => found.push(one),
            Outcome::Refuted => {}
            Outcome::Undecided(limit) => {
                let goal = group.goals[0].clone();
                let (places, names) = (kinds::places(facts, &goal), facts.trace.names());
                let why = if limit == Limit::Effort { Why::Budget } else { Why::Window(limit) };
                let entry = Incomplete::at(BugKind::LostUpdate, &places, names, Status::Undecided, why);
                entries.push(Incomplete { groups: true, ..entry });
                open.push(goal);
            }
        }
    }
    let rest = &groups[asked..];
    if !rest.is_empty() {
        let why = examination.stop.why().unwrap_or(Why::Budget);
        let what = "groups of lost_update candidates that were not examined".to_owned();
        let entry = Incomplete::many(BugKind::LostUpdate, Status::NotExamined, rest.len() as u64, why, what);
        entries.push(Incomplete { groups: true, ..entry });
        open.extend(rest.iter().map(|group| group.goals[0].clone()));
    }
    examination.prediction.partial =
        examination.prediction.partial.or(examination.stop.why().filter(|_| asked < groups.len()));
    examination.prediction.incomplete.extend(entries);
    examination.prediction.open.extend(open);
    examination.adopt_counted(found);
}
