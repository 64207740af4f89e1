//! Symbolic traces: how what a thread wrote, branched on and accessed depends on what it read.
//!
//! A formula belongs to an event: the value that a write or update wrote, the condition of a branch, the address of an
//! access. It is an expression over the thread's reads so far. A condition or an address must come out as it did in the
//! trace for the event to happen at all; a value that comes out differently is what later reads see. Formulas are a
//! table beside the events (most traces have none), which readers fill and [`Symbols`] ties to kernel events. A branch may
//! also have another side: what its thread would have done otherwise ([`Trace::other_side`]).

mod compiled;
mod expr;
pub(crate) mod side;
mod text;

pub use compiled::Compiled;
pub use expr::{Dag, Evaluated, ExprId, Node, Operator, Type, Untyped};
pub use side::{OtherSide, SideEvent};
pub use text::{Formulas, SideText};

use crate::error::{Position, Problem, TraceError};
use crate::event::{Event, Mode, Op};
use crate::ids::{EventId, LockId, VarId};
use crate::trace::Trace;
use rustc_hash::FxHashMap;

/// The formulas of a trace, by kernel event.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    dag: Dag,
    written: FxHashMap<EventId, ExprId>,
    guards: FxHashMap<EventId, Vec<(ExprId, i64)>>,
    sides: FxHashMap<EventId, Vec<SideEvent>>,
}

impl Symbols {
    /// The expressions.
    pub fn dag(&self) -> &Dag {
        &self.dag
    }
    /// What a write or update writes.
    pub fn written(&self, event: EventId) -> Option<ExprId> {
        self.written.get(&event).copied()
    }
    /// Expressions that must have these values for the event to happen as it did.
    pub fn guards(&self, event: EventId) -> &[(ExprId, i64)] {
        self.guards.get(&event).map_or(&[], Vec::as_slice)
    }

    /// What the thread would have done had this branch gone the other way, as far as that is recorded.
    pub fn side(&self, branch: EventId) -> Option<&[SideEvent]> {
        self.sides.get(&branch).map(Vec::as_slice)
    }

    /// Ties formulas to the events of a trace, and holds them against what it recorded.
    pub(crate) fn bind(
        formulas: Formulas,
        sides: Vec<(u32, SideEvent, bool)>,
        trace: &Trace,
    ) -> Result<Symbols, TraceError> {
        let mut symbols = Symbols { dag: formulas.dag, ..Symbols::default() };
        let mut by_event: FxHashMap<EventId, Vec<(bool, ExprId, u32)>> = FxHashMap::default();
        for (input, is_address, expr) in formulas.of {
            let wrong = |why: &str| wrong(input, why);
            let bears = |&e: &EventId| trace.op(e).variable().is_some() || trace.op(e) == Op::Branch;
            let mut events = trace.lowered(input).map(EventId::new).filter(bears);
            let (Some(event), None) = (events.next(), events.next()) else {
                return Err(wrong("its event is not one access or branch for the engines"));
            };
            by_event.entry(event).or_default().push((is_address, expr, input));
        }
        let mut sides_of: FxHashMap<EventId, Vec<(u32, SideEvent)>> = FxHashMap::default();
        for (input, mut side, located) in sides {
            let mut events = trace.lowered(input).map(EventId::new);
            let branch = events.find(|&event| trace.op(event) == Op::Branch);
            let branch = branch.ok_or_else(|| wrong(input, "only a branch has another side"))?;
            if !located {
                side.loc = trace.event(branch).loc;
            }
            sides_of.entry(branch).or_default().push((input, side));
        }
        let mut reads: Vec<Vec<Option<i64>>> = vec![Vec::new(); trace.threads()];
        // Formulas of a thread share much: each part is evaluated once.
        let mut evaluated = vec![expr::Memo::default(); trace.threads()];
        let mut held: Vec<Vec<(LockId, Mode)>> = vec![Vec::new(); trace.threads()];
        let mut recorded = RecordedReads::default();
        for event in trace.events() {
            let seen = &mut reads[event.thread.index()];
            let before = seen.len();
            seen.extend(recorded.step(&event));
            for (is_address, expr, input) in by_event.remove(&event.id).unwrap_or_default() {
                // The address of an access was known before it read.
                let usable = if is_address { before } else { seen.len() };
                if symbols.dag.needs(expr) > usable {
                    return Err(wrong(input, "it names a read that the thread has not made"));
                }
                let read = |read: u32| seen.get(read as usize).copied().flatten();
                let value = match symbols.dag.outcome_with(&mut evaluated[event.thread.index()], expr, &read) {
                    Evaluated::Number(value) => value,
                    Evaluated::Unknown => return Err(wrong(input, "a read that it depends on has no recorded value")),
                    Evaluated::Nothing => {
                        return Err(wrong(input, "it has no value: it divides by zero, or casts what does not fit"));
                    }
                };
                if is_address || event.op == Op::Branch {
                    symbols.guards.entry(event.id).or_default().push((expr, value));
                } else if event.op.writes() {
                    let of = symbols.dag.type_of(expr);
                    if event.value.is_none_or(|recorded| of.truncate(recorded) != of.truncate(value)) {
                        return Err(wrong(input, "the event did not write its value"));
                    }
                    symbols.written.insert(event.id, expr);
                } else {
                    return Err(wrong(input, "expected a write, an update or a branch"));
                }
            }
            side::step(&mut held[event.thread.index()], event.op);
            if let Some(side) = sides_of.remove(&event.id) {
                let truth = |&(expr, _): &(ExprId, i64)| symbols.dag.type_of(expr) == Type::BOOL;
                if !symbols.guards(event.id).first().is_some_and(truth) {
                    let why = "a branch with another side needs a condition that is true or false";
                    return Err(wrong(side[0].0, why));
                }
                let made = reads[event.thread.index()].len();
                symbols.add_side(event.id, side, made, held[event.thread.index()].clone())?;
            }
        }
        Ok(symbols)
    }
}

/// What reads saw in a trace, worked out event by event. A read says it itself; an update says what it wrote, and saw what
/// the last write wrote, or before every write what reads saw there, if they all saw the same.
#[derive(Debug, Default)]
pub struct RecordedReads {
    held: FxHashMap<VarId, Held>,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    /// What reads saw before every write.
    Initial(i64),
    /// They saw different things.
    Disputed,
    Written(Option<i64>),
}

impl RecordedReads {
    /// What the next event of the trace saw, if it reads; `Some(None)` if that is not known.
    pub fn step(&mut self, event: &Event) -> Option<Option<i64>> {
        let x = event.op.variable()?;
        let before = match self.held.get(&x) {
            Some(Held::Initial(value)) => Some(*value),
            Some(Held::Written(value)) => *value,
            Some(Held::Disputed) | None => None,
        };
        match (self.held.get(&x), event.op, event.value) {
            (_, Op::Write(..) | Op::Update(..), value) => drop(self.held.insert(x, Held::Written(value))),
            (None, _, Some(value)) => drop(self.held.insert(x, Held::Initial(value))),
            (Some(Held::Initial(other)), _, Some(value)) if *other != value => {
                self.held.insert(x, Held::Disputed);
            }
            _ => {}
        }
        match event.op {
            Op::Read(..) => Some(event.value),
            Op::Update(..) => Some(before),
            _ => None,
        }
    }
}

fn wrong(input: u32, why: &str) -> TraceError {
    let position = Position::Event { index: u64::from(input), line: None, byte: None };
    TraceError::at(position, Problem::Formula(why.to_owned()))
}
