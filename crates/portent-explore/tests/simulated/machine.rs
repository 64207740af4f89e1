//! A simulated program: a few threads that share variables and locks, run under any plan.
//!
//! A program is text, so that its lines are its places in the source:
//!
//! ```text
//! thread
//!   lock a
//!   $seen = x           # a read
//!   x = $seen + 1       # a write
//!   unlock a
//!   if $seen == 1 {
//!     assert $seen == 0
//!   }
//! ```
//!
//! `$names` are registers of a thread. `$r = run()` is no event: it gives the number of the run, from 1, as a clock would
//! give the time. The main thread, `T0`, starts all others in order and waits for them.

use portent_explore::{
    AtGoal, End, Error, NotFollowed, Outcome, Plan, Policy, Program, Run, ScheduleGoal, Stuck, WhyNotFollowed,
};
use portent_trace::{InputEvent, InputOp, Names, ObjectClass, ReadOrder, StackColumn, ThreadId, WriteOrder};
use std::cell::Cell;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Value {
    Number(i64),
    Register(String, i64),
}

#[derive(Clone, Debug)]
enum Instruction {
    Read {
        variable: String,
        register: String,
    },
    Write {
        variable: String,
        value: Value,
    },
    Lock(String),
    Unlock(String),
    Fork(usize),
    Join(usize),
    /// Goes on at an instruction if the register has another value. No event.
    Unless {
        register: String,
        is: i64,
        to: usize,
    },
    /// No event.
    Assert {
        register: String,
        is: i64,
    },
    /// No event.
    RunNumber {
        register: String,
    },
}

/// A program that runs in this process.
pub(crate) struct Simulated {
    /// The instructions of each thread, with their lines.
    threads: Vec<Vec<(usize, Instruction)>>,
    runs: Cell<i64>,
}

impl Simulated {
    /// Reads a program.
    pub(crate) fn new(text: &str) -> Simulated {
        let mut threads: Vec<Vec<(usize, Instruction)>> = vec![Vec::new()];
        let mut open = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
            let register = |word: &str| word.strip_prefix('$').expect("a register").to_owned();
            let number = |word: &str| word.parse().expect("a number");
            let code = threads.last_mut().expect("main");
            let instruction = match words[..] {
                [] => continue,
                ["thread"] => {
                    threads.push(Vec::new());
                    continue;
                }
                ["}"] => {
                    let at: usize = open.pop().expect("an open branch");
                    let end = code.len();
                    let Instruction::Unless { to, .. } = &mut code[at].1 else { unreachable!("only branches open") };
                    *to = end;
                    continue;
                }
                ["if", name, "==", is, "{"] => {
                    open.push(code.len());
                    Instruction::Unless { register: register(name), is: number(is), to: 0 }
                }
                ["assert", name, "==", is] => Instruction::Assert { register: register(name), is: number(is) },
                ["lock", name] => Instruction::Lock(name.to_owned()),
                ["unlock", name] => Instruction::Unlock(name.to_owned()),
                [name, "=", "run()"] => Instruction::RunNumber { register: register(name) },
                [name, "=", variable] if name.starts_with('$') => {
                    Instruction::Read { variable: variable.to_owned(), register: register(name) }
                }
                [name, "=", value] if value.starts_with('$') => {
                    Instruction::Write { variable: name.to_owned(), value: Value::Register(register(value), 0) }
                }
                [name, "=", value] => {
                    Instruction::Write { variable: name.to_owned(), value: Value::Number(number(value)) }
                }
                [name, "=", value, "+", more] => {
                    let value = Value::Register(register(value), number(more));
                    Instruction::Write { variable: name.to_owned(), value }
                }
                _ => panic!("line {line}: {text}"),
            };
            code.push((line, instruction));
        }
        let others = 1..threads.len();
        threads[0].extend(others.clone().map(|thread| (0, Instruction::Fork(thread))));
        threads[0].extend(others.map(|thread| (0, Instruction::Join(thread))));
        Simulated { threads, runs: Cell::new(0) }
    }

    /// How often it was run.
    pub(crate) fn runs(&self) -> i64 {
        self.runs.get()
    }
}

impl Program for Simulated {
    fn run(&self, plan: &Plan<'_>) -> Result<Run, Error> {
        self.runs.set(self.runs.get() + 1);
        let mut machine = Machine::new(self);
        let not_followed = machine.follow(plan);
        let goal = match plan.schedule.map(|schedule| &schedule.goal) {
            Some(ScheduleGoal::Race(threads)) => threads.to_vec(),
            Some(ScheduleGoal::Deadlock(threads)) => threads.clone(),
            Some(ScheduleGoal::None) | None => Vec::new(),
        };
        let is_there = !goal.is_empty() && not_followed.is_none();
        let at_goal = is_there.then(|| goal.iter().filter_map(|&thread| machine.at_goal(thread)).collect());
        machine.run_on(plan);
        let stuck: Vec<Stuck> = machine.stuck();
        let end = match (&machine.failed, stuck.is_empty()) {
            (Some(_), _) => End::Signal(6),
            (None, false) => End::Signal(9),
            (None, true) => End::Status(0),
        };
        let assertion = machine.failed.take();
        let deadlock = (assertion.is_none() && !stuck.is_empty()).then_some(stuck);
        let outcome = Outcome { assertion, deadlock, at_goal, not_followed, ..Outcome::ended(end) };
        let (events, names, stacks) = (machine.events, machine.names, StackColumn::default());
        Ok(Run { events, stacks, names, outcome, recording: b"simulated".to_vec() })
    }
}

#[derive(Default)]
struct Thread {
    at: usize,
    exists: bool,
    registers: BTreeMap<String, i64>,
}

struct Machine<'a> {
    program: &'a Simulated,
    threads: Vec<Thread>,
    variables: BTreeMap<String, i64>,
    holders: BTreeMap<String, usize>,
    failed: Option<String>,
    events: Vec<InputEvent>,
    names: Names,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Simulated) -> Machine<'a> {
        let mut names = Names::default();
        let mut threads = Vec::new();
        for number in 0..program.threads.len() {
            names.intern(ObjectClass::Thread, format!("T{number}").as_bytes()).expect("few threads");
            threads.push(Thread { exists: number == 0, ..Thread::default() });
        }
        Machine {
            program,
            threads,
            variables: BTreeMap::new(),
            holders: BTreeMap::new(),
            failed: None,
            events: Vec::new(),
            names,
        }
    }

    /// The event that a thread is about to execute, after what is no event; `None` if it has ended or failed.
    fn pending(&mut self, thread: usize) -> Option<(usize, Instruction)> {
        loop {
            let (line, instruction) = self.program.threads[thread].get(self.threads[thread].at)?.clone();
            let state = &mut self.threads[thread];
            let value = |name: &str| state.registers.get(name).copied().unwrap_or(0);
            match &instruction {
                Instruction::Unless { register, is, to } => {
                    state.at = if value(register) == *is { state.at + 1 } else { *to };
                }
                Instruction::Assert { register, is } => {
                    if value(register) != *is {
                        self.failed.get_or_insert(format!("${register} == {is} (line {line})"));
                        return None;
                    }
                    state.at += 1;
                }
                Instruction::RunNumber { register } => {
                    state.registers.insert(register.clone(), self.program.runs());
                    state.at += 1;
                }
                _ => return Some((line, instruction)),
            }
        }
    }

    fn is_enabled(&mut self, thread: usize) -> bool {
        if !self.threads[thread].exists || self.failed.is_some() {
            return false;
        }
        match self.pending(thread) {
            None => false,
            Some((_, Instruction::Lock(name))) => !self.holders.contains_key(&name),
            Some((_, Instruction::Join(other))) => self.pending(other).is_none() && self.failed.is_none(),
            Some(_) => true,
        }
    }

    /// Executes the next event of a thread that is enabled.
    fn step(&mut self, thread: usize) {
        let Some((line, instruction)) = self.pending(thread) else { return };
        let state = &mut self.threads[thread];
        let (op, name, value) = match instruction {
            Instruction::Read { variable, register } => {
                let value = self.variables.get(&variable).copied().unwrap_or(0);
                state.registers.insert(register, value);
                (InputOp::Read(ReadOrder::Plain), variable, Some(value))
            }
            Instruction::Write { variable, value } => {
                let value = match value {
                    Value::Number(number) => number,
                    Value::Register(name, more) => state.registers.get(&name).copied().unwrap_or(0) + more,
                };
                self.variables.insert(variable.clone(), value);
                (InputOp::Write(WriteOrder::Plain), variable, Some(value))
            }
            Instruction::Lock(name) => {
                self.holders.insert(name.clone(), thread);
                (InputOp::Acquire, name, None)
            }
            Instruction::Unlock(name) => {
                self.holders.remove(&name);
                (InputOp::Release, name, None)
            }
            Instruction::Fork(other) => (InputOp::Fork, format!("T{other}"), None),
            Instruction::Join(other) => (InputOp::Join, format!("T{other}"), None),
            _ => unreachable!("pending stops at events only"),
        };
        self.threads[thread].at += 1;
        if let (InputOp::Fork, Some(other)) = (op, name.strip_prefix('T').and_then(|n| n.parse::<usize>().ok())) {
            self.threads[other].exists = true;
        }
        let object = self.names.intern(op.class(), name.as_bytes()).expect("few names");
        let loc = self.names.intern_location(format!("sim.c:{line}").as_bytes()).expect("few places");
        self.events.push(InputEvent { thread: ThreadId::new(thread), op, object, value, loc });
    }

    /// Follows the schedule of a plan, if there is one; where that is not possible.
    fn follow(&mut self, plan: &Plan<'_>) -> Option<NotFollowed> {
        for (step, &(thread, events)) in (0..).zip(&plan.schedule?.steps) {
            let number = thread as usize;
            for done in 0..events {
                let why = if !self.threads.get(number).is_some_and(|thread| thread.exists) {
                    WhyNotFollowed::NoThread
                } else if let Some((line, _)) = self.pending(number) {
                    if self.is_enabled(number) {
                        self.step(number);
                        continue;
                    }
                    WhyNotFollowed::NotPossible { op: None, object: None, place: format!("sim.c:{line}") }
                } else {
                    WhyNotFollowed::Ended { left: events - done }
                };
                return Some(NotFollowed { step, thread, why });
            }
        }
        None
    }

    /// Goes on by policy, until nobody can move.
    fn run_on(&mut self, plan: &Plan<'_>) {
        let mut chance = plan.seed;
        // Whoever the schedule let run last goes on.
        let last = plan.schedule.and_then(|schedule| schedule.steps.last());
        let mut running = last.map_or(0, |(thread, _)| *thread as usize);
        loop {
            let enabled: Vec<usize> = (0..self.threads.len()).filter(|&thread| self.is_enabled(thread)).collect();
            let Some(&first) = enabled.first() else { return };
            running = match plan.policy {
                Policy::Random => {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    enabled[(chance >> 33) as usize % enabled.len()]
                }
                _ if enabled.contains(&running) => running,
                _ => first,
            };
            self.step(running);
        }
    }

    fn at_goal(&mut self, thread: u32) -> Option<AtGoal> {
        let enabled = self.is_enabled(thread as usize);
        let (line, instruction) = self.pending(thread as usize)?;
        let (op, object) = match instruction {
            Instruction::Read { variable, .. } => (InputOp::Read(ReadOrder::Plain), variable),
            Instruction::Write { variable, .. } => (InputOp::Write(WriteOrder::Plain), variable),
            Instruction::Lock(name) => (InputOp::Acquire, name),
            Instruction::Unlock(name) => (InputOp::Release, name),
            _ => return None,
        };
        let id = u64::from(self.names.intern(op.class(), object.as_bytes()).expect("few names"));
        let (object, place) = (Some(object), format!("sim.c:{line}"));
        Some(AtGoal { thread, op: Some(op), memory: 8 * id..8 * id + 8, object, place, enabled })
    }

    /// Threads that cannot go on, when nobody can.
    fn stuck(&mut self) -> Vec<Stuck> {
        let started = (0..self.threads.len()).filter(|&thread| self.threads[thread].exists);
        let waits = |(thread, (line, _)): (usize, (usize, Instruction))| Stuck {
            thread: thread as u32,
            asleep: false,
            spins: false,
            waits: None,
            place: format!("sim.c:{line}"),
            sentence: format!("T{thread} waits at sim.c:{line}"),
        };
        let started: Vec<usize> = started.collect();
        started.into_iter().filter_map(|thread| Some((thread, self.pending(thread)?))).map(waits).collect()
    }
}
