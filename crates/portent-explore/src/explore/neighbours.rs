//! Runs next to a run: the same up to some point, where another thread goes on instead.
//!
//! Predictions say which schedules break something they know of. What a program does where it goes another way, they do not
//! know; but most failures are one or two well-placed switches away from a run that goes well (Musuvathi and Qadeer, *Iterative
//! context bounding*). So each run that is examined is also tried with one switch more, at operations where it can matter:
//! synchronisation, and accesses to what several threads use. A run that does something new this way is examined in turn, which
//! makes two switches, and so on.
//!
//! What this does not do: prove anything. It is bounded in number, and prefers places of the source that were not tried before.

use crate::run::Run;
use crate::schedule::Schedule;
use portent_trace::{InputEvent, InputOp, ObjectClass};
use std::collections::{HashMap, HashSet};

/// Another thread goes on before an event of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    /// Before which event.
    before: usize,
    /// Who goes on.
    to: u32,
}

/// Schedules that follow a run up to an event, not before `from`, and then let another thread go on; at most so many, the most
/// different ones first.
pub(super) fn neighbours(run: &Run, from: usize, most: usize) -> Vec<Schedule> {
    let mut kinds: HashMap<_, Vec<Switch>> = HashMap::new();
    let mut order = Vec::new();
    for switch in switches(run).into_iter().filter(|switch| switch.before >= from) {
        let event = &run.events[switch.before];
        // The same line of a library's header is as many places as it is called from.
        let called = run.stacks.get(switch.before);
        let kind = (event.op, event.loc, called, event.object, event.thread, switch.to);
        let alike = kinds.entry(kind).or_insert_with(|| {
            order.push(kind);
            Vec::new()
        });
        alike.push(switch);
    }
    // Of those that look the same in the source: the first of each, then the last of each, then what is between.
    let mut chosen = Vec::new();
    for turn in 0.. {
        let before = chosen.len();
        for kind in &order {
            let alike = &kinds[kind];
            let at = match turn {
                0 => Some(0),
                1 => Some(alike.len() - 1).filter(|at| *at > 0),
                _ => Some(turn - 1).filter(|at| at + 1 < alike.len()),
            };
            chosen.extend(at.map(|at| alike[at]));
        }
        if chosen.len() >= most || chosen.len() == before {
            break;
        }
    }
    // More than fit are thinned out evenly: the end of a run matters as much as its beginning.
    let step = chosen.len().div_ceil(most.max(1)).max(1);
    let kept = chosen.iter().step_by(step).chain(chosen.iter().skip(1).step_by(step)).take(most.min(chosen.len()));
    kept.map(|switch| schedule(run, *switch)).collect()
}

/// The run up to the switch, and one event of the other thread: it goes on as long as it can.
fn schedule(run: &Run, switch: Switch) -> Schedule {
    let mut schedule = Schedule::default();
    for event in &run.events[..switch.before] {
        schedule.push(event.thread.index() as u32, 1);
    }
    schedule.push(switch.to, 1);
    schedule
}

/// Every switch that may matter, in the order of the run.
fn switches(run: &Run) -> Vec<Switch> {
    let shared = shared_variables(&run.events);
    let threads = run.events.iter().map(|event| event.thread.index() + 1).max().unwrap_or(0);
    // For each thread, where its events are.
    let mut of_thread: Vec<Vec<usize>> = vec![Vec::new(); threads];
    for (at, event) in run.events.iter().enumerate() {
        of_thread[event.thread.index()].push(at);
    }
    let mut alive = vec![false; threads];
    let mut done = vec![0; threads];
    let mut held: HashMap<u32, usize> = HashMap::new();
    let mut found = Vec::new();
    for (at, event) in run.events.iter().enumerate() {
        let me = event.thread.index();
        alive[me] = true;
        // The thread that ran would go on here: somebody else goes on instead. Where it has just made way, a third one may.
        if matters(event, &shared) {
            let previous = at.checked_sub(1).map(|before| run.events[before].thread.index());
            for other in (0..threads).filter(|&other| other != me && alive[other] && Some(other) != previous) {
                let next = of_thread[other].get(done[other]).map(|&next| &run.events[next]);
                if next.is_some_and(|next| may_go_on(next, other, &held)) {
                    found.push(Switch { before: at, to: other as u32 });
                }
            }
        }
        done[me] += 1;
        match event.op {
            InputOp::Acquire | InputOp::AcquireAll => drop(held.insert(event.object, me)),
            InputOp::Release | InputOp::ReleaseAll => drop(held.remove(&event.object)),
            InputOp::Fork => {
                if let Some(born) = alive.get_mut(event.object as usize) {
                    *born = true;
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether the order of this operation and others' can make a difference that no other switch makes as well.
///
/// A thread that holds a lock and touches only what that lock protects can as well be interrupted before it takes the lock: so
/// releases, sleeping (which is done under the lock) and accesses to what a lock protects throughout do not count.
fn matters(event: &InputEvent, shared: &HashSet<u32>) -> bool {
    match event.op {
        op if op.is_access() => shared.contains(&event.object),
        InputOp::Call | InputOp::Return | InputOp::Begin | InputOp::End => false,
        InputOp::Release | InputOp::ReleaseShared | InputOp::ReleaseAll | InputOp::Sleep | InputOp::Join => false,
        op => op.class() != ObjectClass::None || op == InputOp::Branch,
    }
}

/// Whether a thread is not known to be unable to execute its next event.
fn may_go_on(next: &InputEvent, owner: usize, held: &HashMap<u32, usize>) -> bool {
    match next.op {
        InputOp::Acquire | InputOp::AcquireShared | InputOp::AcquireAll => {
            held.get(&next.object).is_none_or(|holder| *holder == owner)
        }
        // What it waits for in the system may be what only the others can do.
        InputOp::Join | InputOp::Receive | InputOp::Branch => false,
        _ => true,
    }
}

/// Variables that several threads access, one of them writes, and no lock protects throughout (Savage et al., *Eraser*; what its
/// first thread does before others come needs no lock).
fn shared_variables(events: &[InputEvent]) -> HashSet<u32> {
    struct Use {
        first: usize,
        several: bool,
        written: bool,
        /// Locks that were held at every access since others came.
        locks: Option<Vec<u32>>,
    }
    let mut uses: HashMap<u32, Use> = HashMap::new();
    let mut held: HashMap<usize, Vec<u32>> = HashMap::new();
    for event in events {
        let owner = event.thread.index();
        let mine = held.entry(owner).or_default();
        match event.op {
            InputOp::Acquire | InputOp::AcquireAll | InputOp::AcquireShared => mine.push(event.object),
            InputOp::Release | InputOp::ReleaseShared => {
                if let Some(at) = mine.iter().rposition(|lock| *lock == event.object) {
                    mine.swap_remove(at);
                }
            }
            InputOp::ReleaseAll => mine.retain(|lock| *lock != event.object),
            op if op.is_access() => {
                let fresh = Use { first: owner, several: false, written: false, locks: None };
                let used = uses.entry(event.object).or_insert(fresh);
                used.several |= used.first != owner;
                used.written |= !matches!(op, InputOp::Read(_));
                if used.several {
                    match &mut used.locks {
                        Some(locks) => locks.retain(|lock| mine.contains(lock)),
                        none => *none = Some(mine.clone()),
                    }
                }
            }
            _ => {}
        }
    }
    let unprotected = |used: &Use| used.several && used.written && used.locks.as_ref().is_none_or(Vec::is_empty);
    uses.into_iter().filter(|(_, used)| unprotected(used)).map(|(variable, _)| variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Outcome};
    use portent_trace::{InputBatch, InputSource, StackColumn, format::StdReader};

    /// The run of a text. Threads are numbered as they are first named, and a line's object is named before its thread: so that
    /// `T0` is thread 0, the text starts with an event of its own.
    fn run(text: &str) -> Run {
        let text = format!("T0|branch|0\n{text}");
        let mut source = StdReader::new(text.as_bytes());
        let (mut events, mut batch) = (Vec::new(), InputBatch::default());
        while source.next_batch(&mut batch).unwrap() {
            events.extend(batch.iter());
        }
        let names = source.take_names();
        Run {
            events,
            stacks: StackColumn::default(),
            names,
            outcome: Outcome::ended(End::Status(0)),
            recording: Vec::new(),
        }
    }

    #[test]
    fn a_thread_that_exists_can_come_before_whatever_matters() {
        let run = run("T0|fork(T1)|1\nT0|w(x)|2\nT0|w(private)|3\nT1|r(x)|4\nT0|join(T1)|5\n");
        let steps: Vec<_> = neighbours(&run, 0, 10).into_iter().map(|schedule| schedule.steps).collect();
        // Before the write of x; before T1's read nobody else can go on but who just did, and a join cannot.
        assert_eq!(steps, [vec![(0, 2), (1, 1)]]);
    }

    #[test]
    fn locks_that_are_held_are_not_tried() {
        let text = "T0|fork(T1)|1\nT0|acq(l)|2\nT0|w(x)|3\nT0|rel(l)|4\nT1|acq(l)|5\nT1|w(x)|6\nT1|rel(l)|7\n";
        let steps: Vec<_> = neighbours(&run(text), 0, 10).into_iter().map(|schedule| schedule.steps).collect();
        assert_eq!(steps, [vec![(0, 2), (1, 1)]]);
    }

    #[test]
    fn of_many_the_most_different_are_kept() {
        let mut text = String::from("T0|fork(T1)|1\n");
        text.extend((0..100).map(|at| format!("T0|w(x)|{}\n", 2 + at % 2)));
        text.push_str("T1|r(x)|9\n");
        let kept = neighbours(&run(&text), 0, 4);
        assert_eq!(kept.len(), 4);
        let before = |schedule: &Schedule| schedule.steps[0].1;
        assert_eq!(kept.iter().map(before).take(2).collect::<Vec<_>>(), [2, 3]);
        assert!(kept.iter().any(|schedule| before(schedule) > 90));
    }
}
