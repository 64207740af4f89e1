//! Everything that can happen in a little program, by visiting every state.

use super::machine::{Choice, Instruction, Little, Next, Place, World};
use super::runner::hash;
use portent_search::Seen;
use std::collections::{BTreeSet, HashSet};

/// A thread and its local history.
pub(crate) type Local = (usize, u64);
/// The local history of each thread.
pub(crate) type Cut = Vec<u64>;

#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Cuts of runs that went on until nothing could go on.
    pub ends: BTreeSet<Cut>,
    /// Of those, the ones in which every thread is done or has failed; what each variable then holds.
    pub finished: BTreeSet<Cut>,
    pub finals: BTreeSet<(Cut, usize, i64)>,
    /// The others.
    pub stuck: BTreeSet<Cut>,
    pub failures: BTreeSet<Local>,
    pub races: BTreeSet<(Local, Local)>,
    /// Threads each of which waits for a lock that the next one holds.
    pub cycles: BTreeSet<Vec<Local>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    cut: Cut,
    places: Vec<Place>,
    world: World,
}

/// The facts; `None` if there are more than `most` states.
pub(crate) fn truth(program: &Little, most: usize) -> Option<Facts> {
    let places: Vec<Place> = (0..program.code.len()).map(|thread| program.start(thread)).collect();
    let start = State { cut: vec![0; places.len()], places, world: program.world() };
    let mut facts = Facts::default();
    let (mut seen, mut work) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(mut state) = work.pop() {
        if seen.len() > most {
            return None;
        }
        for (thread, place) in state.places.iter().enumerate() {
            state.world.done[thread] = state.world.started[thread] && program.next(thread, place) == Next::Done;
        }
        let mut goes_on = false;
        for thread in 0..state.places.len() {
            let place = &state.places[thread];
            let choices = 0..state.world.choices(program, thread, place);
            let choices = choices.map(|choice| Choice { wakes: Some(choice), seen: None });
            // That somebody wakes by itself can be, and need not.
            let by_itself = matches!(program.next(thread, place), Next::Does(Instruction::WakeAnyhow(_)))
                .then_some(Choice { wakes: None, seen: Some(Seen::Busy) });
            for choice in choices.chain(by_itself) {
                let mut after = state.clone();
                let Some(learnt) = after.world.step(program, thread, place, choice) else { continue };
                goes_on |= choice.seen.is_none();
                let operation = program.operation(thread, place).expect("it was done");
                after.cut[thread] = hash(after.cut[thread], operation, learnt);
                after.places[thread] = program.after(thread, place, learnt);
                if seen.insert(after.clone()) {
                    work.push(after);
                }
            }
        }
        facts.note(program, &state, goes_on);
    }
    Some(facts)
}

impl Facts {
    fn note(&mut self, program: &Little, state: &State, goes_on: bool) {
        let threads = 0..state.places.len();
        let next: Vec<Option<Instruction>> = threads
            .clone()
            .map(|thread| match program.next(thread, &state.places[thread]) {
                Next::Does(instruction) if state.world.started[thread] => Some(instruction),
                _ => None,
            })
            .collect();
        for thread in threads.clone() {
            if state.world.started[thread] && program.next(thread, &state.places[thread]) == Next::Failed {
                self.failures.insert((thread, state.cut[thread]));
            }
        }
        if !goes_on {
            self.ends.insert(state.cut.clone());
            if next.iter().all(Option::is_none) {
                self.finished.insert(state.cut.clone());
                for (variable, &value) in state.world.variables.iter().enumerate() {
                    self.finals.insert((state.cut.clone(), variable, value));
                }
            } else {
                self.stuck.insert(state.cut.clone());
            }
        }
        for one in threads.clone() {
            for other in 0..one {
                if conflict(next[one], next[other]) {
                    self.races.insert(((other, state.cut[other]), (one, state.cut[one])));
                }
            }
            self.note_cycles(state, &next, &mut vec![one]);
        }
    }

    fn note_cycles(&mut self, state: &State, next: &[Option<Instruction>], path: &mut Vec<usize>) {
        let Some(Instruction::Lock(lock, mode)) = next[path[path.len() - 1]] else { return };
        for &(holder, held) in &state.world.holders[lock] {
            if !held.conflicts_with(mode) {
                continue;
            }
            if holder == path[0] && path.len() > 1 {
                let mut cycle: Vec<Local> = path.iter().map(|&thread| (thread, state.cut[thread])).collect();
                cycle.sort();
                self.cycles.insert(cycle);
            } else if !path.contains(&holder) {
                path.push(holder);
                self.note_cycles(state, next, path);
                path.pop();
            }
        }
    }
}

/// Whether two operations that are both next race.
fn conflict(one: Option<Instruction>, other: Option<Instruction>) -> bool {
    let access = |instruction: Option<Instruction>| match instruction? {
        Instruction::Read { variable, atomic, .. } => Some((variable, false, atomic)),
        Instruction::Write { variable, atomic, .. } => Some((variable, true, atomic)),
        Instruction::Add { variable, .. } | Instruction::CompareExchange { variable, .. } => {
            Some((variable, true, true))
        }
        _ => None,
    };
    match (access(one), access(other)) {
        (Some((x, writes, atomic)), Some((y, also_writes, also_atomic))) => {
            x == y && (writes || also_writes) && !(atomic && also_atomic)
        }
        _ => false,
    }
}
