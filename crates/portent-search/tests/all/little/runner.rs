//! Little programs as subjects of a search: run under a plan, and turned into traces.

use super::machine::{Instruction, Little, Next, Place, World};
use portent_search::{End, History, Operation, Plan, Run, Seen, Step, Subject};
use portent_testing::dice::Dice;
use portent_trace::{
    EventId, EventList, InputEvent, InputOp, LocId, LockId, Mode, Names, ObjectClass, Op, ReadOrder, ThreadId, Trace,
    UpdateOrder, WriteOrder,
};
use std::convert::Infallible;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// How a run goes on after its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunOn {
    /// The thread that runs, as long as it can.
    Stay,
    /// By chance.
    Random,
}

/// A program, and how often it was run.
pub(crate) struct Runner<'p> {
    pub program: &'p Little,
    pub run_on: RunOn,
    pub runs: usize,
    /// Operations at most, in all threads.
    pub bound: usize,
    /// From which run on it is not deterministic.
    pub breaks_at: Option<usize>,
}

impl<'p> Runner<'p> {
    pub(crate) fn new(program: &'p Little, run_on: RunOn) -> Self {
        Runner { program, run_on, runs: 0, bound: 400, breaks_at: None }
    }
}

/// An operation that was done: who, where it was, what was learnt.
struct Done {
    thread: usize,
    place: Place,
    seen: Seen,
}

impl Subject for Runner<'_> {
    type Error = Infallible;

    fn run(&mut self, plan: &Plan) -> Result<Run, Infallible> {
        self.runs += 1;
        let program = self.program;
        let mut world = program.world();
        let mut places: Vec<Place> = (0..program.code.len()).map(|thread| program.start(thread)).collect();
        let mut done = Vec::new();
        let mut step = |thread: usize, world: &mut World, places: &mut Vec<Place>| -> bool {
            for (thread, place) in places.iter().enumerate() {
                world.done[thread] = world.started[thread] && program.next(thread, place) == Next::Done;
            }
            let place = places[thread].clone();
            let Some(seen) = world.step(program, thread, &place) else { return false };
            places[thread] = program.after(thread, &place, seen);
            done.push(Done { thread, place, seen });
            true
        };
        let followed = plan.turns.iter().all(|&thread| step(thread, &mut world, &mut places));
        let (mut dice, mut running) = (Dice::new(plan.seed), plan.turns.last().copied().unwrap_or(0));
        let (threads, mut left) = (program.code.len(), self.bound);
        loop {
            if self.run_on == RunOn::Random || left == 0 {
                running = dice.below(threads);
            }
            let order = (0..threads).map(|more| (running + more) % threads);
            let Some(ran) = order.into_iter().find(|&thread| left > 0 && step(thread, &mut world, &mut places)) else {
                break;
            };
            running = ran;
            left -= 1;
        }
        Ok(self.record(&done, &places, &world, followed, left == 0))
    }
}

impl Runner<'_> {
    /// A run as a trace, with the histories of its threads.
    fn record(&self, done: &[Done], places: &[Place], world: &World, followed: bool, stopped: bool) -> Run {
        let program = self.program;
        let mut names = Names::default();
        let mut named = |class, name: String| names.intern(class, name.as_bytes()).expect("few names");
        // The first thread writes what variables hold at first, and starts those that are there from the start.
        let init = ThreadId::new(named(ObjectClass::Thread, "init".into()) as usize);
        let threads: Vec<usize> =
            (0..program.code.len()).map(|t| named(ObjectClass::Thread, format!("T{t}")) as usize).collect();
        let variables: Vec<u32> =
            (0..program.variables).map(|x| named(ObjectClass::Variable, format!("x{x}"))).collect();
        let locks: Vec<u32> = (0..program.locks).map(|l| named(ObjectClass::Lock, format!("l{l}"))).collect();
        let loc = LocId::from_number(1).expect("a line");
        let event = |thread, op, object, value| InputEvent { thread, op, object, value, loc };
        let mut events = Vec::new();
        events.extend(variables.iter().map(|&x| event(init, InputOp::Write(WriteOrder::Plain), x, Some(0))));
        let mut forked: Vec<Option<usize>> = vec![None; program.code.len()];
        for &thread in &program.started {
            forked[thread] = Some(events.len());
            events.push(event(init, InputOp::Fork, threads[thread] as u32, None));
        }
        let first = events.len();
        for Done { thread, place, seen } in done {
            let value = match seen {
                Seen::Value(value) => Some(*value),
                _ => None,
            };
            let Next::Does(instruction) = program.next(*thread, place) else { unreachable!("it was done") };
            if let Instruction::Fork(other) = instruction {
                forked[other] = forked[other].or(Some(events.len()));
            }
            let (op, object, value) = input(instruction, place, *seen, value);
            let object = match op.class() {
                ObjectClass::Variable => variables[object],
                ObjectClass::Lock => locks[object],
                _ => threads[object] as u32,
            };
            events.push(event(ThreadId::new(threads[*thread]), op, object, value));
        }
        let trace = Trace::from_input(&mut EventList::new(names, events)).expect("a run is well-formed");
        let kernel = |input: usize, thread: usize| -> EventId {
            let own = |&event: &usize| trace.thread(EventId::new(event)).index() == thread;
            EventId::new(trace.lowered(input as u32).rev().find(own).expect("every operation is an event"))
        };
        let mut histories: Vec<Option<History>> = (0..program.code.len())
            .map(|thread| {
                world.started[thread].then(|| History {
                    thread: ThreadId::new(threads[thread]),
                    steps: Vec::new(),
                    end: if stopped { End::Cut } else { self.end(thread, &places[thread]) },
                    born: forked[thread]
                        .map(|input| EventId::new(trace.lowered(input as u32).last().expect("a fork is an event"))),
                })
            })
            .collect();
        for (number, Done { thread, place, seen }) in done.iter().enumerate() {
            let mut operation = program.operation(*thread, place).expect("it was done");
            if self.breaks_at.is_some_and(|run| self.runs >= run) {
                operation.operand += self.runs as i64;
            }
            let observes = program.observes(*thread, place);
            let event = kernel(first + number, threads[*thread]);
            let history = histories[*thread].as_mut().expect("it ran");
            history.steps.push(Step { operation, observes, seen: *seen, event });
            history.born = None;
        }
        Run { trace, threads: histories, too_long: false, followed, inexact: Vec::new() }
    }

    fn end(&self, thread: usize, place: &Place) -> End {
        let operation = |place| self.program.operation(thread, place).expect("there is an operation");
        match self.program.next(thread, place) {
            Next::Done => End::Done,
            Next::Failed => End::Failed(operation(place)),
            Next::Does(instruction) => {
                let op = match instruction {
                    Instruction::Lock(lock, mode) => Some(Op::Acquire(LockId::new(lock), mode)),
                    _ => None,
                };
                End::Waits { operation: operation(place), observes: self.program.observes(thread, place), op }
            }
        }
    }
}

/// What an instruction is in a trace: the operation, its object, the value.
fn input(instruction: Instruction, place: &Place, seen: Seen, value: Option<i64>) -> (InputOp, usize, Option<i64>) {
    let read = |atomic: bool| InputOp::Read(if atomic { ReadOrder::SeqCst } else { ReadOrder::Plain });
    let shared =
        |mode: Mode, exclusive: InputOp, shared: InputOp| if mode == Mode::Shared { shared } else { exclusive };
    match instruction {
        Instruction::Read { variable, atomic, .. } => (read(atomic), variable, value),
        Instruction::Write { variable, value, atomic } => {
            let order = if atomic { WriteOrder::SeqCst } else { WriteOrder::Plain };
            (InputOp::Write(order), variable, Some(place.value(value)))
        }
        Instruction::Add { variable, number, .. } => {
            (InputOp::Update(UpdateOrder::SeqCst), variable, value.map(|old| old + number))
        }
        Instruction::CompareExchange { variable, expected, new, .. } => {
            if value == Some(place.value(expected)) {
                (InputOp::Update(UpdateOrder::SeqCst), variable, Some(place.value(new)))
            } else {
                (read(true), variable, value)
            }
        }
        Instruction::Lock(lock, mode) => (shared(mode, InputOp::Acquire, InputOp::AcquireShared), lock, None),
        Instruction::Try { lock, mode, .. } => match seen {
            Seen::Busy => (shared(mode, InputOp::Busy, InputOp::BusyShared), lock, None),
            _ => (shared(mode, InputOp::Acquire, InputOp::AcquireShared), lock, None),
        },
        Instruction::Unlock(lock, mode) => (shared(mode, InputOp::Release, InputOp::ReleaseShared), lock, None),
        Instruction::Fork(other) => (InputOp::Fork, other, None),
        Instruction::Join(other) => (InputOp::Join, other, None),
        _ => unreachable!("not shared"),
    }
}

/// A local history by itself: what a thread did and learnt, as one number.
pub(crate) fn hash(history: u64, operation: Operation, seen: Seen) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((history, operation, seen))
}
