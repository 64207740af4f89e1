//! Failures that runs showed, each once, with the shortest schedule that leads there.
//!
//! Any run can show one: the recorded run, a replay that was to show something else, a neighbour of either. What is the same is
//! told by what fails and where. At the end each is run again until its schedule is as short as a bounded effort makes it:
//!
//! 1. How much of the schedule is needed? The shortest prefix after which the program, left alone, still fails; found by
//!    halving. One step less, and it passes: that is the nearest passing run, and the two together tell the decisive operation.
//! 2. Which of the switches before that are needed? Each is left out, if the program then still fails.
//!
//! Nothing here is needed for the failure to be true: it happened. A failure that cannot be repeated is told as such.

use crate::failure::Failed;
use crate::run::Run;
use crate::schedule::Schedule;
use portent_predict::Harm;
use std::sync::Arc;

/// A failure that some run showed.
pub(super) struct Case<S> {
    pub(super) failed: Failed,
    /// A schedule that led there.
    pub(super) schedule: Schedule,
    /// The run that it led to: what is told if it cannot be repeated.
    pub(super) run: Run,
    /// The run that the failing one is like.
    pub(super) like: Arc<S>,
    /// Whether the recorded run itself failed so.
    pub(super) observed: bool,
    /// How many runs showed it.
    pub(super) times: u64,
    /// The how many-th of all runs was the first.
    pub(super) first: u64,
}

/// All failures so far.
pub(super) struct Cases<S> {
    all: Vec<Case<S>>,
}

/// So many different failures are kept; a program that fails in more ways has told enough.
const MOST: usize = 64;

impl<S> Default for Cases<S> {
    fn default() -> Self {
        Cases { all: Vec::new() }
    }
}

impl<S> Cases<S> {
    /// Different failures so far; printing something else is none.
    pub(super) fn failures(&self) -> u64 {
        self.all.iter().filter(|case| case.failed.harm != Harm::Output).count() as u64
    }

    /// A run, the how many-th of all, showed a failure.
    pub(super) fn add(&mut self, run: &Run, failed: Failed, like: &Arc<S>, observed: bool, number: u64) {
        let identity = failed.identity();
        let room = self.all.len() < MOST;
        let known = self.all.iter_mut().find(|case| case.failed.identity() == identity);
        let schedule = schedule_to(run, &failed);
        match known {
            Some(case) => {
                case.times += 1;
                if !case.observed && schedule.steps.len() < case.schedule.steps.len() {
                    (case.failed, case.schedule, case.like) = (failed, schedule, Arc::clone(like));
                    case.run = run.clone();
                }
            }
            None if room => {
                let (like, run) = (Arc::clone(like), run.clone());
                self.all.push(Case { failed, schedule, run, like, observed, times: 1, first: number });
            }
            None => {}
        }
    }

    /// All of them, the most telling first.
    pub(super) fn take(&mut self) -> Vec<Case<S>> {
        let mut all = std::mem::take(&mut self.all);
        all.sort_by_key(|case| (case.failed.harm, !case.observed));
        all
    }
}

/// What a run executed up to its failure.
fn schedule_to(run: &Run, failed: &Failed) -> Schedule {
    let ends_there = matches!(failed.harm, Harm::UseAfterFree | Harm::DestroyedInUse | Harm::ClosedInUse);
    let events = match ends_there {
        true => (failed.at.event as usize).saturating_add(1).min(run.events.len()),
        false => run.events.len(),
    };
    let mut schedule = Schedule::default();
    for event in &run.events[..events] {
        schedule.push(event.thread.index() as u32, 1);
    }
    schedule
}

/// The shortest schedule found, and the runs that it was found by.
pub(super) struct Shortest {
    pub(super) schedule: Schedule,
    /// The failing run under it.
    pub(super) fails: Run,
    /// The nearest run that passes, if one was seen.
    pub(super) passes: Option<Run>,
}

/// What a try of a schedule showed.
pub(super) enum Tried {
    /// The same failure.
    Fails(Run),
    /// No failure at all.
    Passes(Run),
    /// Another failure.
    Other,
    /// There was no time left to try.
    NoTime,
}

/// Makes a schedule that fails as short as `attempt` shows it can be. `None` if it does not fail again.
pub(super) fn shorten(schedule: &Schedule, mut attempt: impl FnMut(&Schedule) -> Tried) -> Option<Shortest> {
    let Tried::Fails(fails) = attempt(schedule) else { return None };
    let mut best = Shortest { schedule: schedule.clone(), fails, passes: None };
    // The program may fail by itself.
    match attempt(&Schedule::default()) {
        Tried::Fails(run) => return Some(Shortest { schedule: Schedule::default(), fails: run, passes: None }),
        Tried::Passes(run) => best.passes = Some(run),
        Tried::Other | Tried::NoTime => {}
    }
    shortest_prefix(&mut best, &mut attempt);
    let before = best.schedule.clone();
    while drop_a_switch(&mut best, &mut attempt) {}
    if best.schedule != before {
        nearest_passing(&mut best, &mut attempt);
    }
    Some(best)
}

/// One event less, and the program should pass.
fn nearest_passing(best: &mut Shortest, attempt: &mut impl FnMut(&Schedule) -> Tried) {
    let mut schedule = best.schedule.clone();
    match schedule.steps.pop() {
        Some((thread, events @ 2..)) => schedule.steps.push((thread, events - 1)),
        Some(_) => {}
        None => return,
    }
    if let Tried::Passes(run) = attempt(&schedule) {
        best.passes = Some(run);
    }
}

/// Finds the shortest prefix that fails: by steps first, of which there are few, then by the events of its last step.
fn shortest_prefix(best: &mut Shortest, attempt: &mut impl FnMut(&Schedule) -> Tried) {
    let steps = best.schedule.steps.clone();
    let of_steps = |count: usize| steps[..count].to_vec();
    let done = halve(best, steps.len(), of_steps, attempt);
    let kept = best.schedule.steps.clone();
    let Some((&(thread, events), before)) = kept.split_last().filter(|_| done) else { return };
    let of_events = |count: usize| before.iter().copied().chain([(thread, count as u64)]).collect();
    halve(best, events as usize, of_events, attempt);
}

/// Halves between what passes and `bad`, which fails, until they are next to each other; whether there was time for that.
fn halve(
    best: &mut Shortest,
    mut bad: usize,
    steps: impl Fn(usize) -> Vec<(u32, u64)>,
    attempt: &mut impl FnMut(&Schedule) -> Tried,
) -> bool {
    let mut good = 0;
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let schedule = Schedule { steps: steps(middle), ..Schedule::default() };
        match attempt(&schedule) {
            Tried::Fails(run) => {
                bad = middle;
                (best.schedule, best.fails) = (schedule, run);
            }
            Tried::Passes(run) => {
                good = middle;
                best.passes = Some(run);
            }
            Tried::Other => good = middle,
            Tried::NoTime => return false,
        }
    }
    true
}

/// Leaves out one switch, if the program then still fails: `A B A` becomes `A B` or `B A`, with all events of each.
fn drop_a_switch(best: &mut Shortest, attempt: &mut impl FnMut(&Schedule) -> Tried) -> bool {
    let steps = best.schedule.steps.clone();
    for at in (0..steps.len().saturating_sub(1)).rev() {
        let again = (at + 2..steps.len()).find(|&later| steps[later].0 == steps[at].0);
        // Joined with its next turn, later; or its next turn now.
        let candidates = match again {
            Some(later) => {
                let mut joined_later = steps.clone();
                joined_later[later].1 += steps[at].1;
                joined_later.remove(at);
                let mut joined_now = steps.clone();
                joined_now[at].1 += steps[later].1;
                joined_now.remove(later);
                vec![joined_later, joined_now]
            }
            None => {
                let mut without = steps.clone();
                without.remove(at);
                vec![without]
            }
        };
        for candidate in candidates {
            let mut schedule = Schedule::default();
            candidate.iter().for_each(|&(thread, events)| schedule.push(thread, events));
            if schedule.steps.len() >= steps.len() {
                continue;
            }
            match attempt(&schedule) {
                Tried::Fails(run) => {
                    (best.schedule, best.fails) = (schedule, run);
                    return true;
                }
                Tried::NoTime => return false,
                Tried::Passes(_) | Tried::Other => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Outcome};
    use portent_trace::{Names, StackColumn};

    fn run() -> Run {
        let outcome = Outcome::ended(End::Status(0));
        Run {
            events: Vec::new(),
            stacks: StackColumn::default(),
            names: Names::default(),
            outcome,
            recording: Vec::new(),
        }
    }

    /// A program that fails if thread 1 executes its third event before thread 0 executes its sixth.
    fn attempt(schedule: &Schedule) -> Tried {
        let (mut first, mut second) = (0, 0);
        for &(thread, events) in &schedule.steps {
            match thread {
                0 => first += events,
                _ => second += events,
            }
            if second >= 3 && first < 6 {
                return Tried::Fails(run());
            }
        }
        Tried::Passes(run())
    }

    fn schedule(steps: &[(u32, u64)]) -> Schedule {
        Schedule { steps: steps.to_vec(), ..Schedule::default() }
    }

    #[test]
    fn a_schedule_becomes_as_short_as_what_it_shows_needs() {
        let long = schedule(&[(0, 2), (1, 1), (0, 1), (1, 1), (0, 2), (1, 9), (0, 30)]);
        let found = shorten(&long, attempt).unwrap();
        assert_eq!(found.schedule.steps, [(1, 3)]);
        assert!(found.passes.is_some());
    }

    #[test]
    fn what_does_not_fail_again_is_not_shortened() {
        assert!(shorten(&schedule(&[(0, 9), (1, 9)]), attempt).is_none());
    }

    #[test]
    fn without_time_the_schedule_stays() {
        let long = schedule(&[(0, 2), (1, 5)]);
        let mut tries = 0;
        let found = shorten(&long, |schedule| {
            tries += 1;
            if tries > 1 { Tried::NoTime } else { attempt(schedule) }
        });
        assert_eq!(found.unwrap().schedule, long);
    }
}
