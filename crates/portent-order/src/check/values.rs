//! What variables hold and threads have read, where values are compared.

use super::Checker;
use super::replay::Replay;
use crate::goal::Writer;
use portent_trace::symbolic::Evaluated;
use portent_trace::{EventId, Op, VarId};

impl Checker<'_> {
    /// What a write of a variable left behind in the trace, where known.
    pub(super) fn value_of(&self, x: VarId, writer: Writer) -> Option<i64> {
        match writer {
            Writer::Init => self.before[x.index()],
            Writer::Event(write) => self.trace.value(write),
        }
    }

    /// Whether a write is known to have the value that a read saw in the trace.
    pub(super) fn same_value(&self, read: EventId, writer: Writer) -> bool {
        let Some(x) = self.trace.op(read).variable() else { return false };
        let value = |writer| self.value_of(x, writer);
        // What an update recorded is what it wrote.
        let seen = if self.trace.op(read).writes() { value(self.saw[read.index()]) } else { self.trace.value(read) };
        seen.is_some_and(|seen| value(writer) == Some(seen))
    }
}

impl Replay<'_, '_> {
    /// The number a variable holds now, where known.
    pub(super) fn content(&self, x: VarId) -> Option<i64> {
        match self.contents.get(&x) {
            Some(&number) => number,
            None => self.checker.value_of(x, self.memory(x)),
        }
    }

    /// What the thread of an event has read, this event included.
    pub(super) fn values_read_by(&self, event: EventId) -> Vec<Option<i64>> {
        let mut values = self.values_read[self.checker.trace.thread(event).index()].clone();
        let op = self.checker.trace.op(event);
        if let (true, Some(x)) = (op.reads(), op.variable()) {
            values.push(self.content(x));
        }
        values
    }

    /// Why an event would not happen as it did, by its formulas; `None` if it would.
    pub(super) fn other_way(&self, event: EventId) -> Option<String> {
        let trace = self.checker.trace;
        let symbols = trace.symbols()?;
        let values = self.values_read_by(event);
        let read = by_number(&values);
        for &(expr, value) in symbols.guards(event) {
            if symbols.dag().evaluate(expr, &read) != Some(value) {
                return Some("its condition or address would be another".into());
            }
        }
        if trace.op(event) == Op::Branch
            && symbols.guards(event).is_empty()
            && self.tainted_threads[trace.thread(event).index()]
        {
            return Some("its thread has read something else".into());
        }
        let expr = symbols.written(event)?;
        let nothing = symbols.dag().outcome(expr, &read) == Evaluated::Nothing;
        nothing.then(|| "what it writes would have no value".into())
    }

    /// Keeps what an event reads and writes, where there are formulas.
    pub(super) fn note(&mut self, event: EventId) {
        let trace = self.checker.trace;
        let Some(symbols) = trace.symbols() else { return };
        let thread = trace.thread(event).index();
        let values = self.values_read_by(event);
        if let (true, Some(x)) = (trace.op(event).writes(), trace.op(event).variable()) {
            let number = match symbols.written(event) {
                None => None,
                Some(expr) => {
                    let number = symbols.dag().evaluate(expr, &by_number(&values));
                    let of = symbols.dag().type_of(expr);
                    let same = |number: i64| trace.value(event).filter(|v| of.truncate(*v) == of.truncate(number));
                    number.map(|number| same(number).unwrap_or(number))
                }
            };
            let as_traced = symbols.written(event).is_none() && !self.tainted_threads[thread];
            if as_traced || (number.is_some() && number == trace.value(event)) {
                self.contents.remove(&x);
            } else {
                self.contents.insert(x, number);
            }
            self.taint(x, !as_traced && number.is_none());
        }
        self.values_read[thread] = values;
    }

    /// Whether a read would now see what may be another value than in the trace.
    pub(super) fn reads_anew(&self, read: EventId) -> bool {
        let Some(x) = self.checker.trace.op(read).variable() else { return false };
        let now = self.memory(x);
        if let Some(&number) = self.contents.get(&x) {
            let read_whole = !self.checker.trace.op(read).writes();
            let seen = if read_whole {
                self.checker.trace.value(read)
            } else {
                self.checker.value_of(x, self.checker.saw[read.index()])
            };
            return number.is_none() || number != seen;
        }
        let same = now == self.checker.saw[read.index()] || self.checker.same_value(read, now);
        !same || self.tainted_variables.contains(&x.index())
    }
}

/// What a thread's reads saw, by the numbers that formulas have for them.
fn by_number(values: &[Option<i64>]) -> impl Fn(u32) -> Option<i64> + '_ {
    |number| values.get(number as usize).copied().flatten()
}
