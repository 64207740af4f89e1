//! The payload of an events chunk, written: columns of what cannot be foreseen.
//!
//! A *site* is an operation at a location. An event names its site (0 for one that is new in the chunk, so that traces
//! whose every event has its own location stay small), whether it touches the object the site touched last, and how its
//! value follows from values before it. Stacks are listed where they are not the expected ones. Everything starts anew with
//! each chunk.

use super::column::{self, zigzag};
use crate::input::{HAS_VALUE, InputBatch, InputOp, THREAD_SHIFT};
use rustc_hash::FxHashMap;

/// How many values are remembered, by the low bits of their object's number. Part of the format.
pub(super) const MEMORY: usize = 4096;

/// Bit of an event's code: the object is not the one the site touched last.
pub(super) const OTHER_OBJECT: u32 = 1;
/// Values in the upper bits of an event's code: no value; the remembered value; a difference to the remembered value;
/// a difference to the value last stored as a difference.
pub(super) const VALUE_SAME: u32 = 1;
pub(super) const VALUE_BY_OBJECT: u32 = 2;
pub(super) const VALUE_BY_LAST: u32 = 3;

#[inline]
fn zigzag64(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}
#[inline]
pub(super) fn unzigzag64(n: u64) -> i64 {
    ((n >> 1) ^ (n & 1).wrapping_neg()) as i64
}

#[derive(Default)]
struct Columns {
    threads: Vec<u32>,
    sites: Vec<u32>,
    codes: Vec<u32>,
    site_ops: Vec<u32>,
    site_locs: Vec<u32>,
    site_objects: Vec<u32>,
    objects: Vec<u32>,
    values_low: Vec<u32>,
    values_high: Vec<u32>,
}

/// Appends the events of `batch` as a payload.
pub(super) fn encode(batch: &InputBatch, out: &mut Vec<u8>) {
    let mut columns = Columns::default();
    let mut site_of: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut last_object: Vec<u32> = Vec::new();
    let mut memory = vec![0i64; MEMORY];
    let mut last_value = 0i64;
    let run = batch.columns();
    for (i, value) in run.values().enumerate() {
        let (meta, object) = (run.meta[i], run.object[i]);
        let key = (meta & (HAS_VALUE - 1), run.loc[i].to_bits());
        let fresh = last_object.len() as u32;
        let site = *site_of.entry(key).or_insert(fresh);
        let mut code = 0;
        if site == fresh {
            columns.sites.push(0);
            columns.site_ops.push(key.0);
            columns.site_locs.push(key.1);
            columns.site_objects.push(object);
            last_object.push(object);
        } else {
            columns.sites.push(site + 1);
            let last = std::mem::replace(&mut last_object[site as usize], object);
            if last != object {
                code |= OTHER_OBJECT;
                columns.objects.push(zigzag(object.wrapping_sub(last)));
            }
        }
        if let Some(value) = value {
            let remembered = std::mem::replace(&mut memory[object as usize % MEMORY], value);
            let by_object = zigzag64(value.wrapping_sub(remembered));
            let by_last = zigzag64(value.wrapping_sub(last_value));
            if by_object == 0 {
                code |= VALUE_SAME << 1;
            } else {
                let (how, difference) =
                    if by_last < by_object { (VALUE_BY_LAST, by_last) } else { (VALUE_BY_OBJECT, by_object) };
                code |= how << 1;
                columns.values_low.push(difference as u32);
                columns.values_high.push((difference >> 32) as u32);
                last_value = value;
            }
        }
        columns.codes.push(code);
        columns.threads.push(meta >> THREAD_SHIFT);
    }
    let stacks = encode_stacks(batch);
    for count in [columns.site_ops.len(), columns.objects.len(), columns.values_low.len(), stacks.at.len()] {
        out.extend((count as u32).to_le_bytes());
    }
    column::write(&columns.threads, false, out);
    column::write(&columns.sites, false, out);
    column::write(&columns.codes, false, out);
    column::write(&columns.site_ops, false, out);
    column::write(&columns.site_locs, true, out);
    column::write(&columns.site_objects, true, out);
    column::write(&columns.objects, false, out);
    column::write(&columns.values_low, false, out);
    column::write(&columns.values_high, false, out);
    column::write(&stacks.at, true, out);
    column::write(&stacks.stacks, false, out);
}

/// Events whose stack is not the expected one, and their stacks.
#[derive(Default)]
struct StackChanges {
    at: Vec<u32>,
    stacks: Vec<u32>,
}

fn encode_stacks(batch: &InputBatch) -> StackChanges {
    let mut changes = StackChanges::default();
    let (stacks, metas) = (batch.stacks().numbers(), batch.columns().meta);
    if stacks.iter().all(|&stack| stack == 0) {
        return changes;
    }
    let mut expected = ExpectedStacks::default();
    for (i, &meta) in metas.iter().enumerate() {
        let stack = stacks.get(i).copied().unwrap_or(0);
        let thread = expected.of(meta >> THREAD_SHIFT);
        if thread.expected != stack {
            changes.at.push(i as u32);
            changes.stacks.push(stack);
        }
        thread.event(meta & (HAS_VALUE - 1), stack);
    }
    changes
}

/// The stack that the next event of each thread has, if nobody says otherwise: that of the thread's last event, except
/// that a return leads back to where the call came from. Part of the format.
#[derive(Default)]
pub(super) struct ExpectedStacks(FxHashMap<u32, ThreadStacks>);

#[derive(Default)]
pub(super) struct ThreadStacks {
    pub(super) expected: u32,
    /// What was expected before each call that has not returned, as far as this chunk shows.
    callers: Vec<u32>,
}

impl ExpectedStacks {
    pub(super) fn of(&mut self, thread: u32) -> &mut ThreadStacks {
        self.0.entry(thread).or_default()
    }
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl ThreadStacks {
    /// The thread has had an event with this operation and this stack.
    #[inline]
    pub(super) fn event(&mut self, op: u32, stack: u32) {
        if op == u32::from(InputOp::Return.code()) {
            self.expected = self.callers.pop().unwrap_or(0);
        } else {
            if op == u32::from(InputOp::Call.code()) {
                self.callers.push(self.expected);
            }
            self.expected = stack;
        }
    }
}
