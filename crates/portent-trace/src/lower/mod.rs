//! Lowering: from what a front end recorded to the kernel that engines know, refusing what is not well-formed.
//!
//! This is the only place that knows forks, re-entrant locks, semaphores, barriers and the like (docs/src/internals/semantics.md §1). It is
//! one streaming pass with state per thread and per object, never per event. Every rule of "well-formed" is checked here,
//! so a [`Trace`](crate::Trace) that exists is well-formed, and the first offence is reported with its position.
//!
//! What becomes what, and where the rules are:
//!
//! | input | kernel | module |
//! |---|---|---|
//! | `fork t`, `join t` | `snd`, and `rcv` before t's first event; `snd` after t's last event, and `rcv` | `threads` |
//! | re-entrant `acq`/`rel`, `rela`/`acqa` | only the outermost pair | `locks` |
//! | `try`, `trys` | an acquire, of which the trace remembers that nobody waits at it | `locks` |
//! | once | a lock, and a token from the initialiser | `locks` |
//! | `slp`, `ntf`, `nta`, `wak`, `tmo`, and `ntf`/`wai` as tokens | `slp`, `ntf`, `wake` and their pairings | `conditions` |
//! | semaphores | post, wait, failed try | `semaphores` |
//! | latches, futures, barriers, named tokens | tokens | `tokens` |
//! | `hb`, `ha` | tokens: everything declared before | `edges` |
//! | wide accesses | one event per part | `layout` |
//! | nested `begin`/`end` | the outermost pair | `blocks` |
//! | `call`, `ret` | nothing, or an atomic block | `functions`, `blocks` |
//! | `free` | a write, of which the trace remembers what it is | here |

mod blocks;
mod conditions;
mod edges;
mod functions;
mod layout;
mod locks;
mod semaphores;
mod threads;
mod tokens;

#[cfg(test)]
mod tests;

pub use functions::FunctionBlocks;
pub use layout::Layout;
pub use locks::HeldLock;

use crate::error::{Malformed, Problem, TraceError};
use crate::event::{Ending, FenceOrder, Meaning, Mode, Op, Reach, WriteOrder};
use crate::ids::{CondId, EventId, Id, ThreadId, TokenId, VarId};
use crate::input::{
    AccessRun, HAS_VALUE, InputBatch, InputEvent, InputOp, InputSource, READ_CODES, THREAD_SHIFT, is_system_call,
    prefix,
};
use crate::names::{Names, ObjectClass};
use crate::trace::{Batch, EventSource, checked_event};
use layout::low_bytes;
pub(crate) use layout::value_part;

/// A streaming lowering pass. One per trace.
#[derive(Debug, Default)]
pub struct Lowering {
    layout: Layout,
    functions: functions::Functions,
    /// Kernel events so far.
    events: u64,
    /// Input events so far.
    inputs: u64,
    /// Tokens handed out so far.
    tokens: u32,
    threads: Vec<threads::ThreadState>,
    locks: Vec<locks::LockState>,
    /// Value last written to each kernel variable, where it is known.
    memory: Vec<Option<i64>>,
    conditions: Vec<conditions::ConditionState>,
    named_tokens: Vec<tokens::NamedToken>,
    declared: Vec<edges::DeclaredOrder>,
    semaphores: Vec<semaphores::Semaphore>,
    latches: Vec<tokens::Latch>,
    barriers: Vec<tokens::Barrier>,
}

/// What lowering one input event needs at hand: the event itself, its number, the names and the output.
struct Incoming<'a> {
    event: InputEvent,
    origin: u32,
    names: &'a Names,
    out: &'a mut Batch,
}

impl Incoming<'_> {
    fn thread_name(&self) -> String {
        self.names.thread(self.event.thread).to_owned()
    }
    fn object_name(&self) -> String {
        self.names.name(self.event.op.class(), self.event.object).to_owned()
    }
}

impl Lowering {
    /// A pass over a trace whose variables are cut so.
    pub fn new(layout: Layout) -> Self {
        Self { layout, ..Self::default() }
    }
    /// Takes functions for atomic blocks.
    pub fn with_functions(mut self, which: FunctionBlocks) -> Self {
        self.functions.which = which;
        self
    }
    /// How many input events it has seen.
    pub fn inputs(&self) -> u64 {
        self.inputs
    }
    /// How many kernel events it has made.
    pub fn events(&self) -> u64 {
        self.events
    }
    pub(crate) fn tokens(&self) -> usize {
        self.tokens as usize
    }
    pub(crate) fn into_layout(self) -> Layout {
        self.layout
    }

    /// Lowers the events of `input`, appending to `out`; the error is the first offence, at its position.
    pub fn lower(&mut self, names: &Names, input: &InputBatch, out: &mut Batch) -> Result<(), TraceError> {
        let mut i = 0;
        while i < input.len() {
            i += self.lower_accesses(names, input.accesses(i), out);
            if i < input.len() {
                let event = input.get(i);
                self.lower_one(names, event, out).map_err(|problem| TraceError::at(input.position(i), problem))?;
                i += 1;
            }
        }
        Ok(())
    }

    /// Lowers accesses in bulk, column by column, as far as there is nothing to be said about them; how many that are.
    ///
    /// Most events of most traces are accesses of whole variables by threads that run: each becomes one event, and all
    /// there is to check is that it reads what was last written.
    fn lower_accesses(&mut self, names: &Names, run: AccessRun<'_>, out: &mut Batch) -> usize {
        let room = (EventId::MAX_INDEX as u64).saturating_sub(self.events.max(self.inputs));
        if !self.layout.is_identity() || run.len() as u64 > room {
            return 0;
        }
        let mut len = self.running(run.meta);
        let defined = names.count(ObjectClass::Variable);
        if run.object[..len].iter().fold(0, |most, &object| most.max(object)) as usize >= defined {
            len = run.object.iter().position(|&object| object as usize >= defined).unwrap_or(len).min(len);
        }
        let run = run.first(len);
        // As long as no value is known, none can be wrong.
        let run =
            if self.memory.is_empty() && !run.has_values() { run } else { run.first(self.remember(run, defined)) };
        out.push_accesses(&run, self.inputs as u32);
        self.events += run.len() as u64;
        self.inputs += run.len() as u64;
        run.len()
    }

    /// How many of these events, from the first on, belong to threads that run.
    fn running(&self, metas: &[u32]) -> usize {
        let mut at = 0;
        while at < metas.len() {
            let thread = metas[at] >> THREAD_SHIFT;
            if !self.is_running(ThreadId(thread)) {
                break;
            }
            at += prefix(&metas[at..], |meta| meta >> THREAD_SHIFT == thread);
        }
        at
    }

    /// Notes what accesses of variables below `defined` write, up to the first that reads something else than was last
    /// written; how many that are.
    fn remember(&mut self, run: AccessRun<'_>, defined: usize) -> usize {
        let most = run.object.iter().fold(0, |most, &object| most.max(object)) as usize;
        if most >= self.memory.len() {
            self.memory.resize((most + 1).next_power_of_two().min(defined), None);
        }
        let memory = &mut self.memory[..];
        let is_wrong = |((&meta, &object), value): ((&u32, &u32), Option<i64>)| {
            let slot = &mut memory[object as usize];
            if meta & (HAS_VALUE - 1) < READ_CODES {
                slot.is_some() && value.is_some() && *slot != value
            } else {
                *slot = value;
                false
            }
        };
        run.meta.iter().zip(run.object).zip(run.values()).position(is_wrong).unwrap_or(run.len())
    }

    #[inline]
    fn lower_one(&mut self, names: &Names, event: InputEvent, out: &mut Batch) -> Result<(), Problem> {
        let origin = checked_event(self.inputs)?.0;
        self.inputs += 1;
        let mut incoming = Incoming { event, origin, names, out };
        let s = &mut incoming;
        if !self.is_running(event.thread) {
            self.start_thread(s)?;
        }
        if event.op.gives_way() || (event.op == InputOp::Send && incoming_is_system_call(s)) {
            self.give_way(s)?;
        }
        match event.op {
            InputOp::Read(order) => self.access(s, Access::Read, |x| Op::Read(x, order)),
            InputOp::Write(order) => self.access(s, Access::Write, |x| Op::Write(x, order)),
            InputOp::Update(order) => self.access(s, Access::Write, |x| Op::Update(x, order)),
            InputOp::Acquire => self.acquire(s, Mode::Exclusive),
            InputOp::AcquireShared => self.acquire(s, Mode::Shared),
            InputOp::TryAcquire => self.try_acquire(s, Mode::Exclusive),
            InputOp::TryAcquireShared => self.try_acquire(s, Mode::Shared),
            InputOp::Release => self.release(s, Mode::Exclusive),
            InputOp::ReleaseShared => self.release(s, Mode::Shared),
            InputOp::Busy => self.busy(s, Mode::Exclusive),
            InputOp::BusyShared => self.busy(s, Mode::Shared),
            InputOp::ReleaseAll => self.release_all(s),
            InputOp::AcquireAll => self.acquire_all(s),
            InputOp::Fork => self.fork(s),
            InputOp::Join => self.join(s),
            InputOp::Send => self.send_named(s),
            InputOp::Receive => self.receive_named(s),
            InputOp::Sleep => self.sleep(s),
            InputOp::Notify => self.notify(s, Reach::One),
            InputOp::NotifyAll => self.notify(s, Reach::All),
            InputOp::Wake | InputOp::WakeInTime => self.wake(s, conditions::By::Notify),
            InputOp::TimeOut | InputOp::WakeByItself => self.wake(s, conditions::By::Itself),
            InputOp::Await => self.await_token(s),
            InputOp::SemaphoreInit => self.semaphore_init(s),
            InputOp::Post => self.post(s),
            InputOp::SemaphoreWait | InputOp::SemaphoreTry => self.semaphore_wait(s),
            InputOp::SemaphoreBusy => self.semaphore_busy(s),
            InputOp::CountDown => self.count_down(s),
            InputOp::LatchWait => self.latch_wait(s),
            InputOp::Arrive => self.arrive(s),
            InputOp::Depart => self.depart(s),
            InputOp::OnceBegin => self.acquire(s, Mode::Exclusive),
            InputOp::OnceEnd => self.once_end(s),
            InputOp::OncePass => self.once_pass(s),
            InputOp::Begin => self.begin(s),
            InputOp::End => self.end(s),
            InputOp::Branch => self.emit(s, Op::Branch).map(drop),
            InputOp::Call => self.call(s),
            InputOp::Return => self.ret(s),
            InputOp::Free => self.finish(s, Ending::Memory),
            InputOp::Destroy => self.finish(s, Ending::Object),
            InputOp::HappensBefore => self.happens_before(s),
            InputOp::HappensAfter => self.happens_after(s),
            InputOp::FenceAcquire => self.emit(s, Op::Fence(FenceOrder::Acquire)).map(drop),
            InputOp::FenceRelease => self.emit(s, Op::Fence(FenceOrder::Release)).map(drop),
            InputOp::Fence => self.emit(s, Op::Fence(FenceOrder::AcqRel)).map(drop),
        }
    }

    /// A write of which the trace remembers that it ends something.
    fn finish(&mut self, incoming: &mut Incoming<'_>, ending: Ending) -> Result<(), Problem> {
        incoming.out.endings.push((incoming.origin, ending));
        self.access(incoming, Access::Write, |x| Op::Write(x, WriteOrder::Plain))
    }

    /// Emits a kernel event of the stepping thread.
    #[inline]
    fn emit(&mut self, incoming: &mut Incoming<'_>, op: Op) -> Result<EventId, Problem> {
        self.emit_as(incoming, incoming.event.thread, op, None)
    }

    #[inline]
    fn emit_as(
        &mut self,
        incoming: &mut Incoming<'_>,
        thread: ThreadId,
        op: Op,
        value: Option<i64>,
    ) -> Result<EventId, Problem> {
        let id = checked_event(self.events)?;
        self.events += 1;
        incoming.out.push(thread, op, value, incoming.event.loc, incoming.origin);
        Ok(id)
    }

    /// Notes an input event that became no kernel event.
    fn skip(&mut self, incoming: &mut Incoming<'_>) {
        incoming.out.skipped.push((incoming.origin, incoming.event.thread));
    }

    fn fresh_token(&mut self, incoming: &mut Incoming<'_>, meaning: Meaning) -> Result<TokenId, Problem> {
        let too_many = Problem::TooMany { what: TokenId::WHAT, limit: TokenId::MAX_INDEX as u64 + 1 };
        let token = TokenId::from_index(self.tokens as usize).ok_or(too_many)?;
        self.tokens += 1;
        incoming.out.meanings.push(meaning);
        Ok(token)
    }

    #[inline]
    fn access(&mut self, incoming: &mut Incoming<'_>, access: Access, op: impl Fn(VarId) -> Op) -> Result<(), Problem> {
        let InputEvent { thread, object, value, .. } = incoming.event;
        if !self.layout.is_identity() {
            return self.split_access(incoming, access, op);
        }
        let slot = grown(&mut self.memory, incoming, ObjectClass::Variable)?;
        match access {
            Access::Write => *slot = value,
            Access::Read if slot.is_none() || value.is_none() || *slot == value => {}
            Access::Read => return Err(wrong_value(incoming, incoming.object_name(), *slot, value)),
        }
        self.emit_as(incoming, thread, op(VarId(object)), value).map(drop)
    }

    /// One event per part of the variable, with its bytes of the value.
    fn split_access(
        &mut self,
        incoming: &mut Incoming<'_>,
        access: Access,
        op: impl Fn(VarId) -> Op,
    ) -> Result<(), Problem> {
        let InputEvent { thread, object, value, .. } = incoming.event;
        check_defined(incoming, ObjectClass::Variable)?;
        self.memory.resize(self.layout.parts(incoming.names), None);
        let width = incoming.names.range(object).map_or(8, |range| range.len);
        let parts: Vec<(VarId, u64, u32)> = self.layout.split(incoming.names, object).collect();
        for (part, offset, len) in parts {
            let value = value_part(value, width, offset, len);
            let bytes = value.map(|value| low_bytes(value, len.max(1)));
            let slot = &mut self.memory[part.index()];
            match access {
                Access::Write => *slot = bytes,
                Access::Read if slot.is_none() || bytes.is_none() || *slot == bytes => {}
                Access::Read => {
                    let name = self.layout.part_name(incoming.names, part).into_owned();
                    return Err(wrong_value(incoming, name, *slot, bytes));
                }
            }
            self.emit_as(incoming, thread, op(part), value)?;
        }
        Ok(())
    }
}

/// Whether an access leaves a value behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

#[cold]
fn wrong_value(incoming: &Incoming<'_>, variable: String, holds: Option<i64>, found: Option<i64>) -> Problem {
    let (Some(expected), Some(found)) = (holds, found) else { unreachable!("only known values are compared") };
    Malformed::WrongValue { thread: incoming.thread_name(), variable, found, expected }.into()
}

/// The state of the event's object, growing the table to the objects that are defined.
#[inline]
fn grown<'t, T: Default + Clone>(
    table: &'t mut Vec<T>,
    incoming: &Incoming<'_>,
    class: ObjectClass,
) -> Result<&'t mut T, Problem> {
    let object = incoming.event.object as usize;
    if object >= table.len() {
        check_defined(incoming, class)?;
        // In steps: a file that defines millions of objects and uses one should not pay for them all at once.
        let defined = incoming.names.count(class);
        table.resize((object + 1).next_power_of_two().min(defined), T::default());
    }
    Ok(&mut table[object])
}

#[cold]
fn undefined(class: ObjectClass, id: u32) -> Problem {
    Malformed::Undefined { what: class.what(), id }.into()
}

#[inline]
fn check_defined(incoming: &Incoming<'_>, class: ObjectClass) -> Result<(), Problem> {
    if (incoming.event.object as usize) < incoming.names.count(class) {
        Ok(())
    } else {
        Err(undefined(class, incoming.event.object))
    }
}

/// The kernel events of an input, batch by batch.
pub struct Lowered<S> {
    source: S,
    input: InputBatch,
    lowering: Option<Lowering>,
}

impl<S: InputSource> Lowered<S> {
    /// Lowers what `source` yields.
    pub fn new(source: S) -> Self {
        Self { source, input: InputBatch::default(), lowering: None }
    }
    /// The source behind it.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// The input events behind the last batch.
    pub fn input(&self) -> &InputBatch {
        &self.input
    }
    /// How many input events were read.
    pub fn inputs(&self) -> u64 {
        self.lowering.as_ref().map_or(0, Lowering::inputs)
    }
    /// How many kernel events they became.
    pub fn events(&self) -> u64 {
        self.lowering.as_ref().map_or(0, Lowering::events)
    }
}

impl<S: InputSource> EventSource for Lowered<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        let lowering = match &mut self.lowering {
            Some(lowering) => lowering,
            empty => empty.insert(Lowering::new(Layout::of(self.source.names())?)),
        };
        batch.restart(u32::try_from(lowering.events).unwrap_or(u32::MAX));
        // A batch of calls and inner acquires lowers to nothing; that is not the end.
        while batch.is_empty() {
            if !self.source.next_batch(&mut self.input)? {
                return Ok(false);
            }
            lowering.lower(self.source.names(), &self.input, batch)?;
        }
        Ok(true)
    }
    fn names(&self) -> &Names {
        self.source.names()
    }
}

/// Whether a send says that its thread came back from the system.
fn incoming_is_system_call(incoming: &Incoming<'_>) -> bool {
    let token = incoming.event.object as usize;
    token < incoming.names.count(ObjectClass::Token)
        && is_system_call(incoming.names.table(ObjectClass::Token).get(token))
}

/// The condition an event names.
fn condition(incoming: &Incoming<'_>) -> CondId {
    CondId(incoming.event.object)
}
