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
    /// For how many events; then the first goes on again. `None`: as long as it can.
    until: Option<usize>,
}

/// Schedules that follow a run up to an event, not before `from`, and then let another thread go on; at most so many, the most
/// different ones first.
///
/// Of two accesses of a thread to what others write, each write of another thread that comes later is also put in between: a
/// switch there and back (Farzan et al.'s triples, every instance of them).
pub(super) fn neighbours(run: &Run, from: usize, most: usize) -> Vec<Schedule> {
    let later = |switches: Vec<Switch>| switches.into_iter().filter(|switch| switch.before >= from).collect();
    let there = varied(run, later(switches(run)), most);
    // A read that is followed by a write is where most is lost.
    let (updates, others) = windows(run);
    let mut and_back = varied(run, later(updates), most.div_ceil(2));
    let room = most.div_ceil(2).saturating_sub(and_back.len());
    and_back.extend(varied(run, later(others), room));
    let longer = there.len().max(and_back.len());
    let both = (0..longer).flat_map(|at| [there.get(at), and_back.get(at)]).flatten();
    both.take(most).map(|switch| schedule(run, *switch)).collect()
}

/// At most so many switches, the most different ones first.
fn varied(run: &Run, switches: Vec<Switch>, most: usize) -> Vec<Switch> {
    let mut kinds: HashMap<_, Vec<Switch>> = HashMap::new();
    let mut order = Vec::new();
    for switch in switches {
        // The same line of a library's header is as many places as it is called from.
        let what = |at: usize| (run.events[at].op, run.events[at].loc, run.stacks.get(at), run.events[at].object);
        let kind = (what(switch.before), run.events[switch.before].thread, switch.to, switch.until.map(what));
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
    kept.copied().collect()
}

/// The run up to the switch, and the other thread: an event, after which it goes on as long as it can, or all up to an event, and
/// then the first again.
fn schedule(run: &Run, switch: Switch) -> Schedule {
    let mut schedule = Schedule::default();
    let (before, after) = run.events.split_at(switch.before);
    for event in before {
        schedule.push(event.thread.index() as u32, 1);
    }
    match switch.until {
        None => schedule.push(switch.to, 1),
        Some(until) => {
            let its = after[..=until - switch.before].iter().filter(|event| event.thread.index() as u32 == switch.to);
            schedule.push(switch.to, its.count() as u64);
            schedule.push(after[0].thread.index() as u32, 1);
        }
    }
    schedule
}

/// Writes of other threads put between two accesses of a thread to the same variable: those that the run has after the second.
/// First those between a read and a write.
fn windows(run: &Run) -> (Vec<Switch>, Vec<Switch>) {
    /// Writes that are put into one place, at most.
    const WRITES: usize = 8;
    let shared = shared_variables(&run.events);
    let mut writes: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, event) in run.events.iter().enumerate() {
        if event.op.is_access() && !matches!(event.op, InputOp::Read(_)) && shared.contains(&event.object) {
            writes.entry(event.object).or_default().push(at);
        }
    }
    // Whether a thread's last access to a variable was a read.
    let mut accessed: HashMap<(usize, u32), bool> = HashMap::new();
    let (mut updates, mut rest) = (Vec::new(), Vec::new());
    for (at, event) in run.events.iter().enumerate() {
        let Some(writes) = writes.get(&event.object).filter(|_| event.op.is_access()) else { continue };
        let reads = matches!(event.op, InputOp::Read(_));
        let Some(read) = accessed.insert((event.thread.index(), event.object), reads) else { continue };
        let found = if read && !reads { &mut updates } else { &mut rest };
        let later = writes.partition_point(|write| *write <= at);
        let others = writes[later..].iter().filter(|write| run.events[**write].thread != event.thread);
        for &write in others.take(WRITES) {
            let to = run.events[write].thread.index() as u32;
            found.push(Switch { before: at, to, until: Some(write) });
        }
    }
    (updates, rest)
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
    // Who is not started is there from the beginning.
    let mut alive = vec![true; threads];
    for event in run.events.iter().filter(|event| event.op == InputOp::Fork) {
        if let Some(born) = alive.get_mut(event.object as usize) {
            *born = false;
        }
    }
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
                    found.push(Switch { before: at, to: other as u32, until: None });
                }
            }
        }
        done[me] += 1;
        match event.op {
            InputOp::Acquire | InputOp::TryAcquire | InputOp::AcquireAll => drop(held.insert(event.object, me)),
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
            InputOp::Acquire
            | InputOp::AcquireAll
            | InputOp::AcquireShared
            | InputOp::TryAcquire
            | InputOp::TryAcquireShared => mine.push(event.object),
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
