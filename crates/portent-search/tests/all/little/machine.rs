//! What little programs are, and what their instructions do.

use portent_search::{Observes, Operation, Seen, Writes};
use portent_trace::Mode;
use std::collections::BTreeSet;

pub(crate) const REGISTERS: usize = 6;

/// A number that a thread works out for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Number(i64),
    /// A register, and a number to add.
    Register(usize, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Comparison {
    Equal,
    Other,
    Less,
    More,
}

/// A register compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Condition(pub Comparison, pub usize, pub i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Instruction {
    Read {
        variable: usize,
        register: usize,
        atomic: bool,
    },
    Write {
        variable: usize,
        value: Value,
        atomic: bool,
    },
    Add {
        variable: usize,
        number: i64,
        register: usize,
    },
    CompareExchange {
        variable: usize,
        expected: Value,
        new: Value,
        register: usize,
    },
    Lock(usize, Mode),
    Try {
        lock: usize,
        mode: Mode,
        register: usize,
    },
    Unlock(usize, Mode),
    Post(usize),
    /// Takes one from a semaphore.
    Take(usize),
    /// A try to take one, or a wait for it with a time limit.
    TryTake {
        semaphore: usize,
        register: usize,
    },
    /// Falls asleep on a condition; what comes next of the thread's is that it wakes.
    Sleep(usize),
    Wake(usize),
    /// The same with a time limit: woken, or not.
    WakeInTime {
        condition: usize,
        register: usize,
    },
    /// The same, also woken by nobody: nobody can tell.
    WakeAnyhow(usize),
    Notify(usize),
    NotifyAll(usize),
    /// At a barrier, which as many threads use as it needs.
    Arrive(usize),
    Depart(usize),
    CountDown(usize),
    /// Passes a latch.
    Await(usize),
    Fork(usize),
    Join(usize),
    // What follows is nobody else's business.
    Set {
        register: usize,
        value: Value,
    },
    /// Goes on there unless the condition holds.
    Unless(Condition, usize),
    Jump(usize),
    /// Fails unless one of these holds.
    Assert(Condition, Condition),
}

/// A program: the instructions of each thread. Its variables start with 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Little {
    pub code: Vec<Vec<Instruction>>,
    pub variables: usize,
    pub locks: usize,
    /// What each semaphore counts at first.
    pub semaphores: Vec<i64>,
    pub conditions: usize,
    /// How many each barrier is for.
    pub barriers: Vec<usize>,
    /// From where each latch is counted down: as often as the program does, all in all.
    pub latches: Vec<usize>,
    /// Threads that are there from the start.
    pub started: Vec<usize>,
}

/// Where a thread is between two operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    at: usize,
    registers: [i64; REGISTERS],
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Does(Instruction),
    Failed,
    Done,
}

/// What threads share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub variables: Vec<i64>,
    /// Who holds each lock.
    pub holders: Vec<Vec<(usize, Mode)>>,
    pub semaphores: Vec<i64>,
    /// Who sleeps on each condition: all ways in which notifies can have chosen whom to wake.
    pub naps: BTreeSet<Vec<Naps>>,
    /// How often each thread has arrived at each barrier.
    pub arrived: Vec<Vec<usize>>,
    pub latches: Vec<usize>,
    pub started: Vec<bool>,
    pub done: Vec<bool>,
}

/// Who sleeps on a condition, and who has been woken and has not gone on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Naps {
    asleep: BTreeSet<usize>,
    woken: BTreeSet<usize>,
}

/// What is up to those who let things happen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    /// Which of those who sleep a notify wakes; all of them, in worlds of their own, if nobody says.
    pub wakes: Option<usize>,
    /// What is to be learnt, where more than one thing can be.
    pub seen: Option<Seen>,
}

impl Little {
    pub(crate) fn world(&self) -> World {
        World {
            variables: vec![0; self.variables],
            holders: vec![Vec::new(); self.locks],
            semaphores: self.semaphores.clone(),
            naps: BTreeSet::from([vec![Naps::default(); self.conditions]]),
            arrived: vec![vec![0; self.code.len()]; self.barriers.len()],
            latches: self.latches.clone(),
            started: (0..self.code.len()).map(|thread| self.started.contains(&thread)).collect(),
            done: vec![false; self.code.len()],
        }
    }

    /// Where a thread begins.
    pub(crate) fn start(&self, thread: usize) -> Place {
        self.settle(thread, Place { at: 0, registers: [0; REGISTERS] })
    }

    /// Does what is nobody else's business.
    fn settle(&self, thread: usize, mut place: Place) -> Place {
        let holds = |place: &Place, Condition(how, register, number): Condition| match how {
            Comparison::Equal => place.registers[register] == number,
            Comparison::Other => place.registers[register] != number,
            Comparison::Less => place.registers[register] < number,
            Comparison::More => place.registers[register] > number,
        };
        for _ in 0..1000 {
            match self.code[thread].get(place.at) {
                Some(&Instruction::Set { register, value }) => {
                    place.registers[register] = place.value(value);
                    place.at += 1;
                }
                Some(&Instruction::Unless(condition, to)) => {
                    place.at = if holds(&place, condition) { place.at + 1 } else { to };
                }
                Some(&Instruction::Jump(to)) => place.at = to,
                Some(&Instruction::Assert(one, other)) if holds(&place, one) || holds(&place, other) => place.at += 1,
                _ => return place,
            }
        }
        panic!("an endless loop that does nothing");
    }

    pub(crate) fn next(&self, thread: usize, place: &Place) -> Next {
        match self.code[thread].get(place.at) {
            None => Next::Done,
            Some(Instruction::Assert(..)) => Next::Failed,
            Some(&instruction) => Next::Does(instruction),
        }
    }

    /// Where a thread goes on after an operation from which it learnt this.
    pub(crate) fn after(&self, thread: usize, place: &Place, seen: Seen) -> Place {
        let mut place = place.clone();
        let number = match seen {
            Seen::Value(value) => value,
            Seen::Taken => 1,
            Seen::Nothing | Seen::Busy => 0,
        };
        match self.code[thread][place.at] {
            Instruction::Read { register, .. }
            | Instruction::Add { register, .. }
            | Instruction::CompareExchange { register, .. }
            | Instruction::TryTake { register, .. }
            | Instruction::WakeInTime { register, .. }
            | Instruction::Try { register, .. } => place.registers[register] = number,
            _ => {}
        }
        place.at += 1;
        self.settle(thread, place)
    }

    /// What a thread is about to do, as its history determines it; also where it fails.
    pub(crate) fn operation(&self, thread: usize, place: &Place) -> Option<Operation> {
        let instruction = *self.code[thread].get(place.at)?;
        let shared = |mode: Mode| u32::from(mode == Mode::Shared);
        let (kind, object, operand) = match instruction {
            Instruction::Read { variable, .. } => (0, variable, 0),
            Instruction::Write { variable, value, .. } => (1, variable, place.value(value)),
            Instruction::Add { variable, number, .. } => (2, variable, number),
            Instruction::CompareExchange { variable, expected, new, .. } => {
                (3, variable, place.value(expected) * 1000 + place.value(new))
            }
            Instruction::Lock(lock, mode) => (4 + shared(mode), lock, 0),
            Instruction::Try { lock, mode, .. } => (6 + shared(mode), lock, 0),
            Instruction::Unlock(lock, mode) => (8 + shared(mode), lock, 0),
            Instruction::Fork(other) => (10, other, 0),
            Instruction::Join(other) => (11, other, 0),
            Instruction::Assert(..) => (12, 0, 0),
            Instruction::Post(semaphore) => (13, semaphore, 0),
            Instruction::Take(semaphore) => (14, semaphore, 0),
            Instruction::TryTake { semaphore, .. } => (15, semaphore, 0),
            Instruction::Sleep(condition) => (16, condition, 0),
            Instruction::Wake(condition) => (17, condition, 0),
            Instruction::WakeInTime { condition, .. } => (18, condition, 0),
            Instruction::Notify(condition) => (19, condition, 0),
            Instruction::NotifyAll(condition) => (20, condition, 0),
            Instruction::Arrive(barrier) => (21, barrier, 0),
            Instruction::Depart(barrier) => (22, barrier, 0),
            Instruction::CountDown(latch) => (23, latch, 0),
            Instruction::Await(latch) => (24, latch, 0),
            Instruction::WakeAnyhow(condition) => (25, condition, 0),
            Instruction::Set { .. } | Instruction::Unless(..) | Instruction::Jump(_) => return None,
        };
        // Threads with equal code share their places.
        let body = self.code.iter().position(|code| *code == self.code[thread])?;
        Some(Operation { place: (body * 1000 + place.at) as u64, kind, object: object as u64, operand })
    }

    /// Whether an operation from which a thread learnt this has changed nothing.
    pub(crate) fn is_pure(&self, thread: usize, place: &Place, seen: Seen) -> bool {
        match self.code[thread].get(place.at) {
            Some(Instruction::Read { .. }) => true,
            Some(&Instruction::CompareExchange { expected, .. }) => seen != Seen::Value(place.value(expected)),
            Some(Instruction::Try { .. } | Instruction::TryTake { .. }) => seen == Seen::Busy,
            _ => false,
        }
    }

    pub(crate) fn observes(&self, thread: usize, place: &Place) -> Observes {
        match self.code[thread].get(place.at) {
            Some(Instruction::Read { .. }) => Observes::Value(Writes::Never),
            Some(Instruction::Add { .. }) => Observes::Value(Writes::Always),
            Some(&Instruction::CompareExchange { expected, .. }) => Observes::Value(Writes::If(place.value(expected))),
            Some(Instruction::Try { .. } | Instruction::TryTake { .. } | Instruction::WakeInTime { .. }) => {
                Observes::Try
            }
            Some(Instruction::WakeAnyhow(_)) => Observes::Wakes,
            _ => Observes::Nothing,
        }
    }
}

impl Place {
    pub(crate) fn value(&self, value: Value) -> i64 {
        match value {
            Value::Number(number) => number,
            Value::Register(register, more) => self.registers[register] + more,
        }
    }
}

impl World {
    /// Whether another thread keeps this one from taking a lock.
    pub(crate) fn is_held(&self, thread: usize, lock: usize, mode: Mode) -> bool {
        self.holders[lock].iter().any(|&(holder, held)| holder != thread && held.conflicts_with(mode))
    }

    /// Among how many sleepers the next operation of a thread chooses; 1 if it does not.
    pub(crate) fn choices(&self, program: &Little, thread: usize, place: &Place) -> usize {
        match program.next(thread, place) {
            Next::Does(Instruction::Notify(condition)) => {
                self.naps.iter().map(|naps| naps[condition].asleep.len()).max().unwrap_or(0).max(1)
            }
            _ => 1,
        }
    }

    /// Keeps the worlds in which a thread has been woken or still sleeps, and ends its sleep; whether there are any.
    fn wake(&mut self, thread: usize, condition: usize, woken: bool) -> bool {
        let end = |naps: &Vec<Naps>| {
            let mut naps = naps.clone();
            let Naps { asleep, woken: called } = &mut naps[condition];
            let ended = if woken { called.remove(&thread) } else { asleep.remove(&thread) };
            ended.then_some(naps)
        };
        let after: BTreeSet<Vec<Naps>> = self.naps.iter().filter_map(end).collect();
        let can = !after.is_empty();
        if can {
            self.naps = after;
        }
        can
    }

    fn change_naps(&mut self, condition: usize, change: impl Fn(&Naps) -> Vec<Naps>) {
        let all = std::mem::take(&mut self.naps);
        let changed = |naps: Vec<Naps>| {
            let one = change(&naps[condition]).into_iter();
            one.map(move |one| {
                naps.iter()
                    .cloned()
                    .enumerate()
                    .map(|(at, old)| if at == condition { one.clone() } else { old })
                    .collect()
            })
            .collect::<Vec<Vec<Naps>>>()
        };
        self.naps = all.into_iter().flat_map(changed).collect();
    }

    /// Does the next operation of a thread: what it learns; `None` if it cannot happen now, and then nothing has.
    pub(crate) fn step(&mut self, program: &Little, thread: usize, place: &Place, choice: Choice) -> Option<Seen> {
        let Next::Does(instruction) = program.next(thread, place) else { return None };
        if !self.started[thread] {
            return None;
        }
        Some(match instruction {
            Instruction::Read { variable, .. } => Seen::Value(self.variables[variable]),
            Instruction::Write { variable, value, .. } => {
                self.variables[variable] = place.value(value);
                Seen::Nothing
            }
            Instruction::Add { variable, number, .. } => {
                let old = self.variables[variable];
                self.variables[variable] = old + number;
                Seen::Value(old)
            }
            Instruction::CompareExchange { variable, expected, new, .. } => {
                let old = self.variables[variable];
                if old == place.value(expected) {
                    self.variables[variable] = place.value(new);
                }
                Seen::Value(old)
            }
            Instruction::Lock(lock, mode) => {
                if self.is_held(thread, lock, mode) {
                    return None;
                }
                self.holders[lock].push((thread, mode));
                Seen::Nothing
            }
            Instruction::Try { lock, mode, .. } => {
                if self.is_held(thread, lock, mode) {
                    Seen::Busy
                } else {
                    self.holders[lock].push((thread, mode));
                    Seen::Taken
                }
            }
            Instruction::Unlock(lock, mode) => {
                self.holders[lock].retain(|&holding| holding != (thread, mode));
                Seen::Nothing
            }
            Instruction::Post(semaphore) => {
                self.semaphores[semaphore] += 1;
                Seen::Nothing
            }
            Instruction::Take(semaphore) => {
                if self.semaphores[semaphore] == 0 {
                    return None;
                }
                self.semaphores[semaphore] -= 1;
                Seen::Nothing
            }
            Instruction::TryTake { semaphore, .. } => {
                if self.semaphores[semaphore] == 0 {
                    Seen::Busy
                } else {
                    self.semaphores[semaphore] -= 1;
                    Seen::Taken
                }
            }
            Instruction::Sleep(condition) => {
                self.change_naps(condition, |naps| {
                    let mut naps = naps.clone();
                    naps.asleep.insert(thread);
                    vec![naps]
                });
                Seen::Nothing
            }
            Instruction::Wake(condition) => {
                if !self.wake(thread, condition, true) {
                    return None;
                }
                Seen::Nothing
            }
            Instruction::WakeAnyhow(condition) => {
                let woken = choice.seen != Some(Seen::Busy);
                if !self.wake(thread, condition, woken) {
                    return None;
                }
                if woken { Seen::Taken } else { Seen::Busy }
            }
            Instruction::WakeInTime { condition, .. } => {
                let first = choice.seen != Some(Seen::Busy);
                let woken = if self.wake(thread, condition, first) { first } else { !first };
                if woken != first {
                    self.wake(thread, condition, woken);
                }
                if woken { Seen::Taken } else { Seen::Busy }
            }
            Instruction::Notify(condition) => {
                self.change_naps(condition, |naps| {
                    let wakes = |&one: &usize| {
                        let mut naps = naps.clone();
                        naps.asleep.remove(&one);
                        naps.woken.insert(one);
                        naps
                    };
                    let all: Vec<Naps> = naps.asleep.iter().map(wakes).collect();
                    match choice.wakes {
                        _ if all.is_empty() => vec![naps.clone()],
                        Some(one) => vec![all[one].clone()],
                        None => all,
                    }
                });
                Seen::Nothing
            }
            Instruction::NotifyAll(condition) => {
                self.change_naps(condition, |naps| {
                    vec![Naps { asleep: BTreeSet::new(), woken: &naps.woken | &naps.asleep }]
                });
                Seen::Nothing
            }
            Instruction::Arrive(barrier) => {
                self.arrived[barrier][thread] += 1;
                Seen::Nothing
            }
            Instruction::Depart(barrier) => {
                let round = self.arrived[barrier][thread];
                let there = self.arrived[barrier].iter().filter(|&&arrived| arrived >= round).count();
                if there < program.barriers[barrier] {
                    return None;
                }
                Seen::Nothing
            }
            Instruction::CountDown(latch) => {
                self.latches[latch] -= 1;
                Seen::Nothing
            }
            Instruction::Await(latch) => {
                if self.latches[latch] > 0 {
                    return None;
                }
                Seen::Nothing
            }
            Instruction::Fork(other) => {
                self.started[other] = true;
                Seen::Nothing
            }
            Instruction::Join(other) => {
                if !self.done[other] {
                    return None;
                }
                Seen::Nothing
            }
            Instruction::Set { .. } | Instruction::Unless(..) | Instruction::Jump(_) | Instruction::Assert(..) => {
                unreachable!("not shared")
            }
        })
    }
}
