//! Things that are initialised once, as the search sees them: a lock, and a flag that says whether it was done.
//!
//! Whoever comes first runs the initialiser, and the others pass: who that is, each of them learns. So a call takes the lock, reads the
//! flag, and gives the lock back if it is set; the end of the initialiser sets it and gives the lock back. An initialiser that is left by
//! an exception gives the lock back only, as the recorder says anyway.

use crate::run::Run;
use portent_trace::{ByteRange, InputEvent, InputOp, ObjectClass, ReadOrder, StackColumn, WriteOrder};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::ops::Range;

/// A run in which no call runs or passes a once.
pub(super) struct Spelled {
    pub(super) run: Run,
    /// For each event of the run that it was made of, the first of those that stand for it; one more at the end.
    first: Vec<usize>,
    /// Whether something was initialised twice: as another object in the same place may be.
    pub(super) again: bool,
}

impl Spelled {
    /// The events that stand for one.
    pub(super) fn of(&self, at: usize) -> Range<usize> {
        self.first[at]..self.first[at + 1]
    }
}

fn is_once(op: InputOp) -> bool {
    matches!(op, InputOp::OnceBegin | InputOp::OnceEnd | InputOp::OncePass)
}

/// The run with variables for the flags, which are 0 at first; `None` if there are none, or nothing can be named any more.
pub(super) fn with_flags(run: &Run) -> Option<(Run, FxHashMap<u32, u32>)> {
    let mut flags = FxHashMap::default();
    let mut names = run.names.clone();
    for event in run.events.iter().filter(|event| is_once(event.op)) {
        if let Entry::Vacant(vacant) = flags.entry(event.object) {
            let name = format!("once {}", names.name(ObjectClass::Lock, event.object));
            // One byte of a region of its own, where variables are bytes.
            let range = ByteRange { region: u32::MAX - event.object, start: 0, len: 1 };
            let flag = match names.has_ranges() {
                true => names.intern_range(name.as_bytes(), range),
                false => names.intern(ObjectClass::Variable, name.as_bytes()),
            };
            vacant.insert(flag.ok()?);
        }
    }
    if flags.is_empty() {
        return None;
    }
    let mut outcome = run.outcome.clone();
    let mut all: Vec<u32> = flags.values().copied().collect();
    all.sort_unstable();
    outcome.initial.extend(all.into_iter().map(|flag| (flag, 0)));
    let (events, stacks) = (run.events.clone(), run.stacks.clone());
    Some((Run { events, stacks, names, outcome, recording: Vec::new() }, flags))
}

/// The run in which calls that run once are spelled out.
pub(super) fn spell(run: &Run, flags: &FxHashMap<u32, u32>) -> Spelled {
    let mut stacks = StackColumn::default();
    let (mut events, mut first) = (Vec::with_capacity(run.events.len()), Vec::with_capacity(run.events.len() + 1));
    let (mut done, mut again) = (FxHashSet::default(), false);
    for (at, event) in run.events.iter().enumerate() {
        first.push(events.len());
        let flag = flags.get(&event.object).copied().filter(|_| is_once(event.op));
        let lock = |op| InputEvent { op, value: None, ..*event };
        let access = |op, object, value| InputEvent { op, object, value: Some(value), ..*event };
        let (read, write) = (InputOp::Read(ReadOrder::SeqCst), InputOp::Write(WriteOrder::SeqCst));
        match (event.op, flag) {
            (InputOp::OnceBegin, Some(flag)) => {
                again |= done.contains(&flag);
                events.extend([lock(InputOp::Acquire), access(read, flag, 0)]);
            }
            (InputOp::OncePass, Some(flag)) => {
                again |= !done.contains(&flag);
                events.extend([lock(InputOp::Acquire), access(read, flag, 1), lock(InputOp::Release)]);
            }
            (InputOp::OnceEnd, Some(flag)) => {
                done.insert(flag);
                events.extend([access(write, flag, 1), lock(InputOp::Release)]);
            }
            _ => events.push(*event),
        }
        if let Some(stack) = run.stacks.get(at) {
            (first[at]..events.len()).for_each(|new| stacks.set(new, stack));
        }
    }
    first.push(events.len());
    let (names, outcome) = (run.names.clone(), run.outcome.clone());
    Spelled { run: Run { events, stacks, names, outcome, recording: Vec::new() }, first, again }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Outcome};
    use portent_trace::{LocId, Names, ThreadId};

    fn run(ops: &[(usize, InputOp)]) -> Run {
        let mut names = Names::default();
        for name in ["T0", "T1"] {
            names.intern(ObjectClass::Thread, name.as_bytes()).unwrap();
        }
        let object = names.intern(ObjectClass::Lock, b"o").unwrap();
        let loc = LocId::from_number(1).unwrap();
        let event = |&(thread, op): &(usize, InputOp)| InputEvent {
            thread: ThreadId::new(thread),
            op,
            object,
            value: None,
            loc,
        };
        let events = ops.iter().map(event).collect();
        let outcome = Outcome::ended(End::Status(0));
        Run { events, stacks: StackColumn::default(), names, outcome, recording: Vec::new() }
    }

    #[test]
    fn a_once_is_a_lock_and_a_flag() {
        let whole = run(&[(0, InputOp::OnceBegin), (0, InputOp::OnceEnd), (1, InputOp::OncePass)]);
        let (flagged, flags) = with_flags(&whole).unwrap();
        assert_eq!(flagged.outcome.initial, [(flags[&0], 0)]);
        let spelled = spell(&flagged, &flags);
        assert_eq!((0..3).map(|at| spelled.of(at)).collect::<Vec<_>>(), [0..2, 2..4, 4..7]);
        assert_eq!(spelled.run.events.iter().map(|event| event.value).collect::<Vec<_>>(), {
            [None, Some(0), Some(1), None, None, Some(1), None]
        });
        assert!(!spelled.again);
        assert!(with_flags(&run(&[(0, InputOp::Acquire)])).is_none());
    }

    #[test]
    fn what_is_initialised_again_is_said() {
        let twice = run(&[(0, InputOp::OnceBegin), (0, InputOp::OnceEnd), (1, InputOp::OnceBegin)]);
        let (flagged, flags) = with_flags(&twice).unwrap();
        assert!(spell(&flagged, &flags).again);
    }
}
