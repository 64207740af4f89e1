//! Where threads come from: what the program calls them, which function of the user's they run, and the line that started
//! them.

use crate::lookup::Lookup;
use crate::place;
use crate::report::At;
use portent_trace::{EventId, Object, ObjectClass, ThreadId, Trace, short_function};

/// A thread of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What places and witnesses call it.
    pub thread: String,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// The user's function that it runs.
    pub routine: Option<String>,
    /// The line that started it; none for the first thread.
    pub started: Option<At>,
}

impl Begun {
    /// Whether there is more to say about it than what its first event does.
    pub(crate) fn is_known(&self) -> bool {
        self.name.is_some() || self.routine.is_some()
    }
}

/// The threads of some events, each once, in the order of their numbers.
pub(crate) fn of_events(trace: &Trace, lookup: &Lookup, events: impl Iterator<Item = EventId>) -> Vec<Begun> {
    let mut threads: Vec<ThreadId> = events.map(|event| trace.thread(event)).collect();
    threads.sort_unstable_by_key(|thread| thread.index());
    threads.dedup();
    threads.into_iter().map(|thread| begun(trace, lookup, thread)).collect()
}

fn begun(trace: &Trace, lookup: &Lookup, thread: ThreadId) -> Begun {
    let names = trace.names();
    let name = match names.object(ObjectClass::Thread, thread.index() as u32).object {
        Object::Thread { name, .. } => name.map(str::to_owned),
        _ => None,
    };
    Begun {
        thread: names.thread(thread).to_owned(),
        name,
        routine: routine(trace, lookup.program(thread)),
        started: lookup.fork_of(trace, thread).map(|fork| place::of_event(trace, fork)),
    }
}

/// The outermost function of the user's own code that a thread is in, when it is first in one.
fn routine(trace: &Trace, program: &[EventId]) -> Option<String> {
    /// What libraries do before they call the user's function takes fewer events.
    const FIRST: usize = 256;
    program.iter().take(FIRST).find_map(|&event| {
        trace.stack(event)?;
        let frames = trace.stack_of(event);
        let outermost = frames.iter().rev().find(|frame| frame.user && !frame.function.is_empty())?;
        Some(short_function(&outermost.function))
    })
}
