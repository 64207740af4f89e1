//! What a trace holds, as far as tests ask for it.

use crate::program::matches;
use portent_trace::format::{OpenOptions, open};
use portent_trace::{InputBatch, InputOp, InputSource, Names, ObjectClass};
use std::collections::BTreeMap;
use std::path::Path;

/// An event, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) thread: String,
    /// As in STD text, with memory order.
    pub(crate) op: String,
    pub(crate) object: String,
}

/// The contents of a trace.
pub(crate) struct Contents {
    pub(crate) events: Vec<Event>,
    names: Names,
}

/// Reads a whole trace; it should be a small one.
pub(crate) fn read(path: &Path) -> Result<Contents, String> {
    let mut source = open(path, OpenOptions::default()).map_err(|error| error.to_string())?;
    let (mut batch, mut raw) = (InputBatch::default(), Vec::new());
    while source.next_batch(&mut batch).map_err(|error| error.to_string())? {
        raw.extend(batch.iter());
    }
    let names = source.take_names();
    let event = |event: &portent_trace::InputEvent| Event {
        thread: names.thread(event.thread).to_owned(),
        op: text(event.op),
        object: match event.op.class() {
            ObjectClass::None => String::new(),
            class => names.name(class, event.object).to_owned(),
        },
    };
    Ok(Contents { events: raw.iter().map(event).collect(), names })
}

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
    /// How many events of each operation there are; accesses with a memory order count with and without it.
    pub(crate) fn ops(&self) -> BTreeMap<String, u64> {
        let mut ops = BTreeMap::new();
        for event in &self.events {
            *ops.entry(event.op.clone()).or_insert(0) += 1;
            if let Some((bare, _)) = event.op.split_once('.') {
                *ops.entry(bare.to_owned()).or_insert(0) += 1;
            }
        }
        ops
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.names.count(ObjectClass::Thread)
    }

    /// Whether something of a class (`variable`, `lock`, `thread`) has a name like this.
    pub(crate) fn has(&self, class: &str, pattern: &str) -> bool {
        self.named(class).any(|name| matches(pattern, name))
    }

    /// The names of a class.
    pub(crate) fn named(&self, class: &str) -> impl Iterator<Item = &str> {
        let class = match class {
            "variable" => ObjectClass::Variable,
            "lock" => ObjectClass::Lock,
            _ => ObjectClass::Thread,
        };
        self.names.table(class).iter()
    }

    /// The full name of the thread with this short one: `T1` is `T1` or `T1:reader`.
    pub(crate) fn thread(&self, short: &str) -> String {
        let with_name = format!("{short}:");
        self.named("thread")
            .find(|name| *name == short || name.starts_with(&with_name))
            .unwrap_or_else(|| panic!("no thread {short} in the trace"))
            .to_owned()
    }

    /// How many events a thread has before its `nth` (from 0) event of an operation on an object.
    pub(crate) fn before(&self, thread: &str, op: &str, object: &str, nth: usize) -> usize {
        let thread = self.thread(thread);
        let own: Vec<&Event> = self.events.iter().filter(|event| event.thread == thread).collect();
        let hit = |event: &Event| event.op == op && matches(object, &event.object);
        let places: Vec<usize> = (0..own.len()).filter(|&i| hit(own[i])).collect();
        *places.get(nth).unwrap_or_else(|| panic!("{thread} has {} events {op}({object}): {own:#?}", places.len()))
    }

    /// How many events a thread has.
    pub(crate) fn count(&self, thread: &str) -> usize {
        let thread = self.thread(thread);
        self.events.iter().filter(|event| event.thread == thread).count()
    }
}
