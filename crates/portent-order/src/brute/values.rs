//! What variables hold, where values are compared.

use super::oracle::{Oracle, State};
use crate::goal::Writer;
use crate::read_rule::ReadRule;
use portent_trace::symbolic::{Evaluated, ExprId, Symbols};
use portent_trace::{EventId, Op, VarId};

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Held {
    Number(i64),
    /// Whatever this write wrote in the trace.
    AsTraced(Writer),
    Tainted,
}

impl Oracle<'_> {
    /// What a write of the variable wrote, where known.
    pub(super) fn written(&self, variable: VarId, writer: Writer) -> Option<i64> {
        match writer {
            Writer::Init => self.initial[variable.index()],
            Writer::Event(e) => self.trace.value(e),
        }
    }

    /// Whether the writer's value is known to be the one that the read expects.
    fn is_expected(&self, read: EventId, writer: Writer) -> bool {
        let expected = match self.trace.op(read) {
            Op::Read(..) => self.trace.value(read),
            Op::Update(x, _) => self.written(x, self.saw[read.index()]),
            _ => None,
        };
        let written = self.trace.op(read).variable().and_then(|x| self.written(x, writer));
        expected.is_some() && expected == written
    }

    /// What a write left behind in the trace.
    pub(super) fn traced(&self, x: VarId, writer: Writer) -> Held {
        self.written(x, writer).map_or(Held::AsTraced(writer), Held::Number)
    }

    /// What an expression over a thread's reads comes out as: a number, tainted, or nothing.
    fn evaluate(&self, symbols: &Symbols, expr: ExprId, seen: &[Held]) -> Option<Held> {
        let number = |read: u32| match seen[read as usize] {
            Held::Number(number) => Some(number),
            _ => None,
        };
        match symbols.dag().outcome(expr, &number) {
            Evaluated::Number(number) => Some(Held::Number(number)),
            Evaluated::Unknown => Some(Held::Tainted),
            Evaluated::Nothing => None,
        }
    }

    /// What the thread of an event has read once its reading part is done.
    pub(super) fn seen_by(&self, state: &State, event: EventId) -> Vec<Held> {
        let mut seen = state.seen[self.trace.thread(event).index()].clone();
        if let Op::Read(x, _) | Op::Update(x, _) = self.trace.op(event) {
            seen.push(state.holds[x.index()]);
        }
        seen
    }

    /// Whether conditions and addresses come out as in the trace, and what is written comes out at all.
    pub(super) fn goes_the_same_way(&self, state: &State, event: EventId) -> bool {
        let Some(symbols) = self.trace.symbols() else { return true };
        let seen = self.seen_by(state, event);
        let guards = symbols.guards(event);
        let kept = |&(expr, value): &(ExprId, i64)| self.evaluate(symbols, expr, &seen) == Some(Held::Number(value));
        let untold = self.trace.op(event) == Op::Branch && guards.is_empty();
        guards.iter().all(kept)
            && !(untold && state.tainted.threads[self.trace.thread(event).index()])
            && symbols.written(event).is_none_or(|expr| self.evaluate(symbols, expr, &seen).is_some())
    }

    /// Whether formulas, if there are any, let a goal's event happen.
    pub(super) fn is_told(&self, state: &State, event: EventId) -> bool {
        self.rule != ReadRule::SameFormulas || self.goes_the_same_way(state, event)
    }

    /// What a write or update leaves behind.
    pub(super) fn leaves(&self, symbols: &Symbols, event: EventId, seen: &[Held], tainted: bool) -> Held {
        let recorded = self.trace.value(event);
        match (symbols.written(event), tainted) {
            (Some(expr), _) => match (self.evaluate(symbols, expr, seen), recorded) {
                // Written by fewer bits than recorded, it is still the same.
                (Some(Held::Number(number)), Some(traced)) => {
                    let of = symbols.dag().type_of(expr);
                    Held::Number(if of.truncate(number) == of.truncate(traced) { traced } else { number })
                }
                (held, _) => held.unwrap_or(Held::Tainted),
            },
            (None, true) => Held::Tainted,
            (None, false) => recorded.map_or(Held::AsTraced(Writer::Event(event)), Held::Number),
        }
    }

    /// Whether a read that sees the challenger is known to see the value it expects.
    pub(super) fn sees_its_value(&self, state: &State, read: EventId, challenger: Writer) -> bool {
        let (ReadRule::SameFormulas, Some(x)) = (self.rule, self.trace.op(read).variable()) else {
            return self.is_expected(read, challenger);
        };
        let expected = match self.trace.op(read) {
            Op::Read(..) => self.trace.value(read),
            _ => self.written(x, self.saw[read.index()]),
        };
        matches!(state.holds[x.index()], Held::Number(number) if Some(number) == expected)
    }

    /// Whether a read sees what makes its thread go on as in the trace.
    pub(super) fn sees_as_good(&self, state: &State, read: EventId) -> bool {
        let Some(x) = self.trace.op(read).variable() else { return true };
        let last = state.last[x.index()];
        if self.rule == ReadRule::SameFormulas {
            let saw = self.saw[read.index()];
            let (held, traced) = (state.holds[x.index()], self.traced(x, saw));
            let expected = match self.trace.op(read) {
                Op::Read(..) => self.trace.value(read).map(Held::Number),
                _ => Some(traced).filter(|held| matches!(held, Held::Number(_))),
            };
            return Some(held) == expected || (last == saw && held == traced);
        }
        !state.tainted.variables[x.index()] && (last == self.saw[read.index()] || self.is_expected(read, last))
    }
}
