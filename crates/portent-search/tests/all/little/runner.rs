//! Little programs as subjects of a search: run under a plan, and turned into traces.

use super::machine::{Choice, Instruction, Little, Next, Place, World};
use portent_search::{End, History, Operation, Plan, Run, Seen, Step, Subject};
use portent_testing::dice::Dice;
use portent_trace::{
    CondId, EventId, EventList, InputEvent, InputOp, LocId, LockId, Mode, Names, ObjectClass, Op, ReadOrder, SemId,
    ThreadId, Trace, UpdateOrder, VarId, WriteOrder,
};
use std::collections::BTreeSet;
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
    /// How runs ended in which somebody waits for ever: what each thread wants to do, whoever spins anything of its loop.
    pub hangs: BTreeSet<Vec<Option<Operation>>>,
}

impl<'p> Runner<'p> {
    pub(crate) fn new(program: &'p Little, run_on: RunOn) -> Self {
        Runner { program, run_on, runs: 0, bound: 400, breaks_at: None, hangs: BTreeSet::new() }
    }
}

/// An operation that was done: who, where it was, what was learnt.
#[derive(Clone)]
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
        let mut done: Vec<Done> = Vec::new();
        let mut held: Vec<Option<Vec<Done>>> = vec![None; program.code.len()];
        let mut spins = Vec::new();
        let mut step = |thread: usize, wanted: Option<Seen>, world: &mut World, places: &mut Vec<Place>| -> bool {
            // What was planned may go round.
            let (ruled, choice) = (wanted.is_none(), Choice { wakes: None, seen: wanted });
            for (thread, place) in places.iter().enumerate() {
                world.done[thread] = world.started[thread] && program.next(thread, place) == Next::Done;
            }
            let (place, before) = (places[thread].clone(), world.clone());
            let Some(seen) = world.step(program, thread, &place, choice) else { return false };
            let next = Done { thread, place, seen };
            let own: Vec<&Done> = done.iter().filter(|done| done.thread == thread).chain([&next]).collect();
            held[thread] = spinning(program, &own).filter(|_| ruled).map(|iteration| iteration.to_vec());
            if let Some(iteration) = &held[thread] {
                spins.push(self.told(iteration));
                let sees_the_same =
                    |one: &Done| before.clone().step(program, thread, &one.place, choice) == Some(one.seen);
                if iteration.iter().all(sees_the_same) {
                    *world = before;
                    // The last one planned is to do what no run has done, which may be spinning.
                    let planned = plan.turns.len().saturating_sub(1);
                    take_back(program, &mut done, thread, iteration.len(), planned);
                    return false;
                }
            }
            places[thread] = program.after(thread, &next.place, seen);
            done.push(next);
            true
        };
        let mut planned = plan.turns.iter().zip(&plan.seen);
        let followed = planned.all(|(&thread, &seen)| step(thread, Some(seen), &mut world, &mut places));
        let (mut dice, mut running) = (Dice::new(plan.seed), plan.turns.last().copied().unwrap_or(0));
        let (threads, mut left) = (program.code.len(), self.bound);
        loop {
            if self.run_on == RunOn::Random || left == 0 {
                running = dice.below(threads);
            }
            let order = (0..threads).map(|more| (running + more) % threads);
            let Some(ran) = order.into_iter().find(|&thread| left > 0 && step(thread, None, &mut world, &mut places))
            else {
                break;
            };
            running = ran;
            left -= 1;
        }
        self.note_hang(&places, &world, &held);
        let run = self.record(&done, &places, &world, followed, left == 0);
        Ok(Run { spins, ..run })
    }
}

/// If the last operation of a thread completes an iteration equal to the one before that changes nothing and leaves the thread as it was:
/// that iteration.
fn spinning(program: &Little, own: &[&Done]) -> Option<Vec<Done>> {
    (1..=own.len() / 2).find_map(|length| {
        let (before, iteration) = own.split_at(own.len() - length);
        let same = |(a, b): (&&Done, &&Done)| {
            let did = |done: &Done| (program.operation(done.thread, &done.place), done.seen);
            did(a) == did(b) && program.is_pure(b.thread, &b.place, b.seen)
        };
        let last = iteration[length - 1];
        let stays = program.after(last.thread, &last.place, last.seen) == iteration[0].place;
        let equal = before[before.len() - length..].iter().zip(iteration).all(same);
        (equal && stays).then(|| iteration.iter().map(|&done| done.clone()).collect())
    })
}

/// Takes back what a thread did that waits in a loop, as far as it went round more than once, and nothing that was planned.
fn take_back(program: &Little, done: &mut Vec<Done>, thread: usize, length: usize, planned: usize) {
    loop {
        let own: Vec<usize> = (0..done.len()).filter(|&at| done[at].thread == thread).collect();
        let all: Vec<&Done> = own.iter().map(|&at| &done[at]).collect();
        if spinning(program, &all).is_none_or(|iteration| iteration.len() != length)
            || own[own.len() - length] < planned
        {
            return;
        }
        for &at in own.iter().rev().take(length) {
            done.remove(at);
        }
    }
}

impl Runner<'_> {
    /// An iteration as the search knows it.
    fn told(&self, iteration: &[Done]) -> Vec<(Operation, Seen)> {
        let one = |done: &Done| Some((self.program.operation(done.thread, &done.place)?, done.seen));
        iteration.iter().filter_map(one).collect()
    }

    fn note_hang(&mut self, places: &[Place], world: &World, held: &[Option<Vec<Done>>]) {
        let program = self.program;
        let wants = |thread: usize| match (&held[thread], program.next(thread, &places[thread])) {
            (Some(iteration), _) => self.told(iteration).iter().map(|(operation, _)| *operation).min(),
            (None, Next::Does(_)) if world.started[thread] => program.operation(thread, &places[thread]),
            _ => None,
        };
        let all: Vec<Option<Operation>> = (0..places.len()).map(wants).collect();
        if all.iter().any(Option::is_some) {
            self.hangs.insert(all);
        }
    }

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
        let mut all = |class: ObjectClass, letter: char, count: usize| -> Vec<u32> {
            (0..count).map(|number| named(class, format!("{letter}{number}"))).collect()
        };
        let locks = all(ObjectClass::Lock, 'l', program.locks);
        let semaphores = all(ObjectClass::Semaphore, 's', program.semaphores.len());
        let conditions = all(ObjectClass::Condition, 'c', program.conditions);
        let barriers = all(ObjectClass::Barrier, 'b', program.barriers.len());
        let latches = all(ObjectClass::Latch, 'f', program.latches.len());
        let loc = LocId::from_number(1).expect("a line");
        let event = |thread, op, object, value| InputEvent { thread, op, object, value, loc };
        let mut events = Vec::new();
        events.extend(variables.iter().map(|&x| event(init, InputOp::Write(WriteOrder::Plain), x, Some(0))));
        let counts = semaphores.iter().zip(&program.semaphores);
        events.extend(counts.map(|(&s, &count)| event(init, InputOp::SemaphoreInit, s, Some(count))));
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
                ObjectClass::Semaphore => semaphores[object],
                ObjectClass::Condition => conditions[object],
                ObjectClass::Barrier => barriers[object],
                ObjectClass::Latch => latches[object],
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
        Run {
            trace,
            threads: histories,
            too_long: false,
            followed,
            spins: Vec::new(),
            in_parts: Vec::new(),
            inexact: Vec::new(),
        }
    }

    fn end(&self, thread: usize, place: &Place) -> End {
        let operation = |place| self.program.operation(thread, place).expect("there is an operation");
        match self.program.next(thread, place) {
            Next::Done => End::Done,
            Next::Failed => End::Failed(operation(place)),
            Next::Does(instruction) => {
                let op = match instruction {
                    Instruction::Lock(lock, mode) | Instruction::Try { lock, mode, .. } => {
                        Some(Op::Acquire(LockId::new(lock), mode))
                    }
                    Instruction::Read { variable, .. } => Some(Op::Read(VarId::new(variable), ReadOrder::SeqCst)),
                    Instruction::CompareExchange { variable, .. } => {
                        Some(Op::Update(VarId::new(variable), UpdateOrder::SeqCst))
                    }
                    Instruction::Take(semaphore) | Instruction::TryTake { semaphore, .. } => {
                        Some(Op::Wait(SemId::new(semaphore)))
                    }
                    Instruction::Wake(condition) | Instruction::WakeAnyhow(condition) => {
                        Some(Op::Wake(CondId::new(condition)))
                    }
                    // As many threads use a barrier as it needs, and a latch is counted down no more than it must be: where
                    // some did not come, they do not in any reordering.
                    _ => None,
                };
                End::Waits { operation: Some(operation(place)), observes: self.program.observes(thread, place), op }
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
        Instruction::Post(semaphore) => (InputOp::Post, semaphore, None),
        Instruction::Take(semaphore) => (InputOp::SemaphoreWait, semaphore, None),
        Instruction::TryTake { semaphore, .. } => match seen {
            Seen::Busy => (InputOp::SemaphoreBusy, semaphore, None),
            _ => (InputOp::SemaphoreWait, semaphore, None),
        },
        Instruction::Sleep(condition) => (InputOp::Sleep, condition, None),
        Instruction::Wake(condition) => (InputOp::Wake, condition, None),
        Instruction::WakeAnyhow(condition) => match seen {
            Seen::Busy => (InputOp::WakeByItself, condition, None),
            _ => (InputOp::Wake, condition, None),
        },
        Instruction::WakeInTime { condition, .. } => match seen {
            Seen::Busy => (InputOp::TimeOut, condition, None),
            _ => (InputOp::Wake, condition, None),
        },
        Instruction::Notify(condition) => (InputOp::Notify, condition, None),
        Instruction::NotifyAll(condition) => (InputOp::NotifyAll, condition, None),
        Instruction::Arrive(barrier) => (InputOp::Arrive, barrier, None),
        Instruction::Depart(barrier) => (InputOp::Depart, barrier, None),
        Instruction::CountDown(latch) => (InputOp::CountDown, latch, None),
        Instruction::Await(latch) => (InputOp::LatchWait, latch, None),
        Instruction::Fork(other) => (InputOp::Fork, other, None),
        Instruction::Join(other) => (InputOp::Join, other, None),
        _ => unreachable!("not shared"),
    }
}

/// A local history by itself: what a thread did and learnt, as one number.
pub(crate) fn hash(history: u64, operation: Operation, seen: Seen) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((history, operation, seen))
}
