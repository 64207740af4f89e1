//! What several tests ask of goals.

use portent_order::{Goal, Writer};
use portent_trace::{Op, Trace, VarId};

/// Whether the read of a goal would see, or the variable end with, the value it had in the trace, as far as that is recorded.
/// `values` wants another.
pub(crate) fn is_of_the_same_value(trace: &Trace, goal: &Goal) -> bool {
    let accesses = |x: VarId| trace.events().filter(move |event| event.op.variable() == Some(x));
    let written = |x: VarId, writer: Writer| match writer {
        Writer::Event(write) => trace.value(write),
        // The value before the first write, where a read recorded it.
        Writer::Init => accesses(x).take_while(|e| !e.op.writes()).find_map(|e| e.value),
    };
    match *goal {
        Goal::Nondeterminism { read, challenger } => {
            let Some(x) = trace.op(read).variable() else { return false };
            let before = accesses(x).take_while(|e| e.id < read).filter(|e| e.op.writes()).last();
            let saw = written(x, before.map_or(Writer::Init, |e| Writer::Event(e.id)));
            // What an update recorded is what it wrote.
            let expected = if matches!(trace.op(read), Op::Update(..)) { saw } else { trace.value(read) };
            expected.is_some() && expected == written(x, challenger)
        }
        Goal::FinalValue { variable, challenger } => {
            let last = accesses(variable).rfind(|e| e.op.writes());
            last.and_then(|e| e.value) == trace.value(challenger)
        }
        _ => false,
    }
}
