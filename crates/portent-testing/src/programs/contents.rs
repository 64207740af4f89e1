//! What a trace holds, as far as tests ask for it.

use super::matches;
use portent_trace::format::{OpenOptions, open};
use portent_trace::{
    InputBatch, InputEvent, InputOp, InputSource, Names, ObjectClass, StackColumn, StackFrame, user_frame,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of a trace.
#[derive(Debug)]
pub struct Contents {
    /// Its events.
    pub events: Vec<InputEvent>,
    stacks: StackColumn,
    names: Names,
}

/// Reads a whole trace; it should be a small one.
pub fn read(path: &Path) -> Result<Contents, String> {
    let mut source = open(path, OpenOptions::default()).map_err(|error| error.to_string())?;
    let (mut batch, mut events, mut stacks) = (InputBatch::default(), Vec::new(), StackColumn::default());
    while source.next_batch(&mut batch).map_err(|error| error.to_string())? {
        stacks.append(events.len(), batch.stacks(), 0..batch.len());
        events.extend(batch.iter());
    }
    Ok(Contents { events, stacks, names: source.take_names() })
}

/// As in STD text, with memory order.
fn text(op: InputOp) -> String {
    let order = match op {
        InputOp::Read(order) => format!("{order:?}"),
        InputOp::Write(order) => format!("{order:?}"),
        InputOp::Update(order) => format!("{order:?}"),
        _ => return op.text().to_owned(),
    };
    let suffix = match order.as_str() {
        "Relaxed" => ".rlx",
        "Consume" => ".con",
        "Acquire" => ".acq",
        "Release" => ".rel",
        "AcqRel" => ".ar",
        "SeqCst" => ".sc",
        _ => "",
    };
    format!("{}{suffix}", op.text())
}

impl Contents {
    /// Whether an event is by this thread, this operation, and of an object that fits the pattern.
    pub fn is(&self, event: usize, thread: &str, op: &str, object: &str) -> bool {
        let event = &self.events[event];
        let class = event.op.class();
        let name = if class == ObjectClass::None { "" } else { self.names.name(class, event.object) };
        self.names.thread(event.thread) == thread && event.op.text() == op && matches(object, name)
    }
    /// The line of the innermost place of an event in the user's own code.
    pub fn user_line(&self, event: usize) -> Option<u32> {
        self.names.location(self.user_place(event)?.location).line
    }
    /// The function that place is in.
    pub fn user_function(&self, event: usize) -> Option<String> {
        Some(self.user_place(event)?.function)
    }
    fn user_place(&self, event: usize) -> Option<StackFrame> {
        let mut frames = self.names.stack_frames(self.events[event].loc, self.stacks.get(event));
        Some(frames.swap_remove(user_frame(&frames)?))
    }

    /// How many events of each operation there are; accesses with a memory order count with and without it.
    pub fn ops(&self) -> BTreeMap<String, u64> {
        let mut by_code = BTreeMap::new();
        for event in &self.events {
            *by_code.entry(event.op.code()).or_insert(0) += 1;
        }
        let mut ops = BTreeMap::new();
        for (op, count) in by_code.into_iter().filter_map(|(code, count)| Some((InputOp::from_code(code)?, count))) {
            let (full, bare) = (text(op), op.text());
            if full != bare {
                *ops.entry(bare.to_owned()).or_insert(0) += count;
            }
            *ops.entry(full).or_insert(0) += count;
        }
        ops
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.names.count(ObjectClass::Thread)
    }

    /// Whether something of a class (`variable`, `lock`, `thread`) has a name like this.
    pub fn has(&self, class: &str, pattern: &str) -> bool {
        self.named(class).any(|name| matches(pattern, name))
    }

    /// The names of a class.
    pub fn named(&self, class: &str) -> impl Iterator<Item = &str> {
        let class = match class {
            "variable" => ObjectClass::Variable,
            "lock" => ObjectClass::Lock,
            _ => ObjectClass::Thread,
        };
        self.names.table(class).iter()
    }

    /// The events of the thread with this short name: `T1` is `T1` or `T1:reader`.
    fn of<'a>(&'a self, short: &'a str) -> impl Iterator<Item = &'a InputEvent> {
        let is_it =
            move |name: &str| name == short || name.strip_prefix(short).is_some_and(|rest| rest.starts_with(':'));
        self.events.iter().filter(move |event| is_it(self.names.thread(event.thread)))
    }

    /// How many events a thread has before its `nth` (from 0) event of an operation on an object.
    pub fn before(&self, thread: &str, op: &str, object: &str, nth: usize) -> usize {
        let name = |event: &InputEvent| self.names.name(event.op.class(), event.object);
        let hit = |event: &InputEvent| text(event.op) == op && matches(object, name(event));
        let places: Vec<usize> = (0..).zip(self.of(thread)).filter(|(_, event)| hit(event)).map(|(i, _)| i).collect();
        *places.get(nth).unwrap_or_else(|| panic!("{thread} has only {} events {op}({object})", places.len()))
    }

    /// How many events a thread has.
    pub fn count(&self, thread: &str) -> usize {
        self.of(thread).count()
    }
}
