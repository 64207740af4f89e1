//! What the operations of a run could see: the values that its variables have in it.

use crate::subject::{Observes, Seen};
use portent_order::Writer;
use portent_trace::{EventId, Op, ThreadId, Trace};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The values that the variables of a trace have.
pub(crate) struct Written {
    /// Of each variable that several threads access. Of the others, no read can see anything else.
    values: Vec<BTreeSet<i64>>,
    /// Reads and writes (or what was there before) that need a look: if the read can see the write, nobody knows what it sees, or
    /// whether that is what it saw.
    pub unknown: Vec<(EventId, Writer)>,
    /// Reads in several parts, and writes (or what was there before) that left something else than what they saw.
    pub in_parts: Vec<(EventId, Writer)>,
}

/// What is known of a variable.
#[derive(Clone, Default)]
struct Variable {
    thread: Option<ThreadId>,
    is_shared: bool,
    writers: Vec<(Writer, Option<i64>)>,
    /// What reads of what was there before saw.
    init: BTreeSet<i64>,
    /// The reads, which write each saw by its place among the writers, and the value if they recorded one.
    reads: Vec<(EventId, usize, Option<i64>, bool)>,
}

impl Written {
    pub(crate) fn of(trace: &Trace, in_parts: &[EventId]) -> Self {
        let in_parts: FxHashSet<EventId> = in_parts.iter().copied().collect();
        let mut variables: Vec<Variable> = vec![Variable::default(); trace.variables()];
        for event in trace.events() {
            let Some(x) = event.op.variable() else { continue };
            let variable = &mut variables[x.index()];
            if variable.writers.is_empty() {
                variable.writers.push((Writer::Init, None));
            }
            variable.is_shared |= variable.thread.is_some_and(|thread| thread != event.thread);
            variable.thread = Some(event.thread);
            if event.op.reads() {
                let saw = variable.writers.len() - 1;
                variable.reads.push((event.id, saw, event.value, event.op.writes()));
                if let (0, Op::Read(..)) = (saw, event.op) {
                    variable.init.extend(event.value);
                }
            }
            if event.op.writes() {
                variable.writers.push((Writer::Event(event.id), event.value));
            }
        }
        let (mut values, mut unknown, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for variable in &mut variables {
            if !variable.is_shared || variable.reads.is_empty() {
                values.push(BTreeSet::new());
                continue;
            }
            if let (1, Some(init)) = (variable.init.len(), variable.writers.first_mut()) {
                init.1 = variable.init.first().copied();
            }
            values.push(variable.writers.iter().filter_map(|(_, value)| *value).collect());
            for &(read, saw, recorded, updates) in &variable.reads {
                // What an update recorded is what it wrote.
                let expected = if updates { variable.writers[saw].1 } else { recorded };
                let others = variable.writers.iter().enumerate().filter(|&(at, _)| at != saw);
                if in_parts.contains(&read) {
                    let differ = others.filter(|(_, (_, value))| expected.is_none() || *value != expected);
                    parts.extend(differ.map(|(_, (writer, _))| (read, *writer)));
                    continue;
                }
                let doubtful = others.filter(|(_, (writer, value))| {
                    (expected.is_none() || value.is_none()) && *writer != Writer::Event(read)
                });
                unknown.extend(doubtful.map(|(_, (writer, _))| (read, *writer)));
            }
        }
        Written { values, unknown, in_parts: parts }
    }

    /// The outcomes that an operation could have beside the one that it had.
    pub(crate) fn others(&self, observes: Observes, op: Op, had: Option<Seen>) -> Vec<Seen> {
        let all: Vec<Seen> = match observes {
            Observes::Nothing if had.is_none() => vec![Seen::Nothing],
            Observes::Nothing => Vec::new(),
            Observes::Value(_) => {
                let values = op.variable().map(|x| &self.values[x.index()]);
                values.into_iter().flatten().map(|&value| Seen::Value(value)).collect()
            }
            Observes::Try | Observes::Wakes => vec![Seen::Taken, Seen::Busy],
        };
        all.into_iter().filter(|&seen| Some(seen) != had).collect()
    }
}
