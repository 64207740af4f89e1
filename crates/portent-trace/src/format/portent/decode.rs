//! The payload of an events chunk, read: checked against the names, and handed out in slices.
//!
//! The inner loops have no branch that depends on the data, only bounds checks: what to add is selected, not decided. And
//! there are three of them, because the state of all three does not fit the registers.

use super::column::{Cursor, Fault, unzigzag};
use super::encode::{ExpectedStacks, MEMORY, OTHER_OBJECT, VALUE_BY_LAST, VALUE_BY_OBJECT, unzigzag64};
use super::frame::Version;
use crate::ids::LocId;
use crate::input::{BatchPlace, HAS_VALUE, InputBatch, InputOp, THREAD_SHIFT};
use crate::names::{Names, ObjectClass};
use std::hint::select_unpredictable;
use std::ops::Range;

#[derive(Clone, Copy, Default)]
struct Site {
    op: u32,
    loc: u32,
    last_object: u32,
    /// How many objects of the operation's class there are.
    objects: u32,
}

/// How many objects each operation can name; [`NO_OPERATION`] where there is no operation with that code.
pub(super) struct ObjectLimits([u32; 512]);

const NO_OPERATION: u32 = u32::MAX;

impl ObjectLimits {
    pub(super) fn of(names: &Names) -> Self {
        Self(std::array::from_fn(|code| match InputOp::from_code(code as u16).map(InputOp::class) {
            None => NO_OPERATION,
            Some(ObjectClass::None) => 1,
            Some(class) => names.count(class) as u32,
        }))
    }
    /// How many objects the operation with this code, which must be one, can name.
    #[inline]
    pub(super) fn of_operation(&self, code: u32) -> u32 {
        self.0[code as usize % self.0.len()]
    }
    fn get(&self, code: u32) -> Option<u32> {
        self.0.get(code as usize).copied().filter(|&limit| limit != NO_OPERATION)
    }
}

/// A decoded chunk, and how far it has been handed out.
pub(super) struct EventChunk {
    /// Bytes from the start of the file to the chunk.
    pub(super) offset: u64,
    /// Number of its first event.
    pub(super) first: u64,
    at: usize,
    threads: Vec<u32>,
    sites: Vec<u32>,
    codes: Vec<u32>,
    site_table: Vec<Site>,
    objects: Vec<u32>,
    /// Differences of explicit values.
    values: Vec<i64>,
    scratch: [Vec<u32>; 2],
    memory: Box<[i64; MEMORY]>,
    last_value: i64,
    next_site: usize,
    next_object: usize,
    next_value: usize,
    /// Events whose stack is not the expected one, and their stacks.
    stack_changes: [Vec<u32>; 2],
    next_stack: usize,
    expected_stacks: ExpectedStacks,
}

impl Default for EventChunk {
    fn default() -> Self {
        Self {
            offset: 0,
            first: 0,
            at: 0,
            threads: Vec::new(),
            sites: Vec::new(),
            codes: Vec::new(),
            site_table: Vec::new(),
            objects: Vec::new(),
            values: Vec::new(),
            scratch: Default::default(),
            memory: Box::new([0; MEMORY]),
            last_value: 0,
            next_site: 0,
            next_object: 0,
            next_value: 0,
            stack_changes: Default::default(),
            next_stack: 0,
            expected_stacks: ExpectedStacks::default(),
        }
    }
}

impl EventChunk {
    /// How many events were not handed out yet.
    pub(super) fn remaining(&self) -> usize {
        self.codes.len() - self.at
    }

    /// Number of the event that is handed out next.
    pub(super) fn next_event(&self) -> u64 {
        self.first + self.at as u64
    }

    /// Forgets what is left.
    pub(super) fn clear(&mut self) {
        self.codes.clear();
        self.at = 0;
    }

    /// Takes a payload of `count` events, followed by slack; on a fault the chunk is empty.
    pub(super) fn load(
        &mut self,
        padded: &[u8],
        count: usize,
        names: &Names,
        limits: &ObjectLimits,
        version: Version,
    ) -> Result<(), Fault> {
        self.clear();
        let mut codes = std::mem::take(&mut self.codes);
        self.load_columns(padded, count, names, limits, version, &mut codes)?;
        self.codes = codes;
        self.memory.fill(0);
        self.last_value = 0;
        (self.next_site, self.next_object, self.next_value, self.next_stack) = (0, 0, 0, 0);
        self.expected_stacks.clear();
        Ok(())
    }

    fn load_columns(
        &mut self,
        padded: &[u8],
        count: usize,
        names: &Names,
        limits: &ObjectLimits,
        version: Version,
        codes: &mut Vec<u32>,
    ) -> Result<(), Fault> {
        let mut cursor = Cursor::new(padded);
        let sites = cursor.u32()? as usize;
        let objects = cursor.u32()? as usize;
        let values = cursor.u32()? as usize;
        let stacks = if version == Version::One { 0 } else { cursor.u32()? as usize };
        if sites > count || objects > count || values > count || stacks > count {
            return Err("it claims more sites, objects, values or stacks than events");
        }
        cursor.column(count, &mut self.threads)?;
        cursor.column(count, &mut self.sites)?;
        cursor.column(count, codes)?;
        if max(&self.threads) as usize >= names.count(ObjectClass::Thread) {
            return Err("an event belongs to a thread that is not defined");
        }
        if codes.iter().fold(0, |all, code| all | code) > 7 {
            return Err("an event has an unknown code");
        }
        self.load_sites(&mut cursor, sites, names, limits)?;
        cursor.column(objects, &mut self.objects)?;
        let [lows, highs] = &mut self.scratch;
        cursor.column(values, lows)?;
        cursor.column(values, highs)?;
        let [at, to] = &mut self.stack_changes;
        cursor.column(stacks, at)?;
        cursor.column(stacks, to)?;
        if !at.is_sorted_by(|a, b| a < b) || at.last().is_some_and(|&last| last as usize >= count) {
            return Err("stacks of events are not in order");
        }
        if max(to) as usize > names.stacks().len() {
            return Err("an event has a call stack that is not defined");
        }
        if !cursor.is_at_end() {
            return Err("bytes are left over at its end");
        }
        self.values.clear();
        let parts = lows.iter().zip(highs);
        self.values.extend(parts.map(|(&low, &mut high)| unzigzag64(u64::from(low) | (u64::from(high) << 32))));
        // The loops look at the next number before they know whether they need it.
        self.objects.push(0);
        self.values.push(0);
        Ok(())
    }

    fn load_sites(
        &mut self,
        cursor: &mut Cursor<'_>,
        sites: usize,
        names: &Names,
        limits: &ObjectLimits,
    ) -> Result<(), Fault> {
        let column = &mut self.scratch[0];
        self.site_table.clear();
        self.site_table.resize(sites, Site::default());
        cursor.column(sites, column)?;
        for (site, &code) in self.site_table.iter_mut().zip(column.iter()) {
            site.objects = limits.get(code).ok_or("an operation is not known here")?;
            site.op = code;
        }
        cursor.column(sites, column)?;
        for (site, &loc) in self.site_table.iter_mut().zip(column.iter()) {
            let entry = LocId::from_bits(loc).table_index();
            if entry.is_some_and(|entry| entry >= names.location_table().len()) {
                return Err("a location is not defined");
            }
            site.loc = loc;
        }
        cursor.column(sites, column)?;
        for (site, &object) in self.site_table.iter_mut().zip(column.iter()) {
            site.last_object = object;
        }
        Ok(())
    }

    /// Replaces the contents of `batch` by up to `limit` events.
    pub(super) fn next(&mut self, limit: usize, batch: &mut InputBatch) -> Result<(), Fault> {
        let count = self.remaining().min(limit);
        let (from, to) = (self.at, self.at + count);
        let columns = batch.overwrite(self.first + from as u64, BatchPlace::Chunk(self.offset), count);
        self.next_objects(from..to, columns.meta, columns.object, columns.loc)?;
        self.next_values(from..to, columns.object, columns.value)?;
        let threads = self.threads[from..to].iter().zip(&self.codes[from..to]);
        for (meta, (&thread, &code)) in columns.meta.iter_mut().zip(threads) {
            *meta |= (u32::from(code > OTHER_OBJECT) * HAS_VALUE) | (thread << THREAD_SHIFT);
        }
        if !self.stack_changes[0].is_empty() {
            self.next_stacks(from..to, batch);
        }
        self.at = to;
        if self.remaining() == 0 {
            let used = (self.next_site, self.next_object + 1, self.next_value + 1);
            if used != (self.site_table.len(), self.objects.len(), self.values.len()) {
                return Err(DO_NOT_ADD_UP);
            }
        }
        Ok(())
    }

    /// Operations, locations and objects.
    fn next_objects(
        &mut self,
        range: Range<usize>,
        metas: &mut [u32],
        objects: &mut [u32],
        locs: &mut [LocId],
    ) -> Result<(), Fault> {
        let (mut next_site, mut next_object) = (self.next_site, self.next_object);
        let (sites, changes) = (&mut self.site_table[..], &self.objects[..]);
        let mut undefined = false;
        let inputs = self.sites[range.clone()].iter().zip(&self.codes[range]);
        for (((&site, &code), (meta, object)), loc) in inputs.zip(metas.iter_mut().zip(objects)).zip(locs) {
            let is_new = site == 0;
            let index = select_unpredictable(is_new, next_site, (site as usize).wrapping_sub(1));
            next_site += usize::from(is_new);
            let Some(site) = sites.get_mut(index) else { return Err("a site is not in its table") };
            let Some(&change) = changes.get(next_object) else { return Err(DO_NOT_ADD_UP) };
            let other = code & OTHER_OBJECT;
            next_object += other as usize;
            let change = select_unpredictable(other != 0, unzigzag(change), 0);
            let touched = site.last_object.wrapping_add(change);
            site.last_object = touched;
            undefined |= touched >= site.objects;
            *meta = site.op;
            *object = touched;
            *loc = LocId::from_bits(site.loc);
        }
        (self.next_site, self.next_object) = (next_site, next_object);
        if undefined { Err("an event refers to an object that is not defined") } else { Ok(()) }
    }

    fn next_values(&mut self, range: Range<usize>, objects: &[u32], values: &mut [i64]) -> Result<(), Fault> {
        let (mut next_value, mut last) = (self.next_value, self.last_value);
        let (changes, memory) = (&self.values[..], &mut self.memory);
        for ((&code, &object), value) in self.codes[range].iter().zip(objects).zip(values) {
            let Some(&change) = changes.get(next_value) else { return Err(DO_NOT_ADD_UP) };
            let how = code >> 1;
            let explicit = how >= VALUE_BY_OBJECT;
            next_value += usize::from(explicit);
            let change = select_unpredictable(explicit, change, 0);
            let remembered = &mut memory[object as usize % MEMORY];
            let base = select_unpredictable(how == VALUE_BY_LAST, last, *remembered);
            let known = base.wrapping_add(change);
            // Without a value this changes nothing: the difference is zero.
            *remembered = known;
            last = select_unpredictable(explicit, known, last);
            *value = known & -i64::from(how != 0);
        }
        (self.next_value, self.last_value) = (next_value, last);
        Ok(())
    }

    fn next_stacks(&mut self, range: Range<usize>, batch: &mut InputBatch) {
        let [at, to] = &self.stack_changes;
        let mut stacks = std::mem::take(batch.stacks_mut());
        let metas = batch.columns().meta;
        for ((i, stack), &meta) in range.clone().zip(stacks.overwrite(range.len())).zip(metas) {
            let thread = self.expected_stacks.of(meta >> THREAD_SHIFT);
            let changes = at.get(self.next_stack) == Some(&(i as u32));
            *stack = if changes { to[self.next_stack] } else { thread.expected };
            self.next_stack += usize::from(changes);
            thread.event(meta & (HAS_VALUE - 1), *stack);
        }
        *batch.stacks_mut() = stacks;
    }
}

const DO_NOT_ADD_UP: Fault = "its sites, objects or values do not add up";

fn max(column: &[u32]) -> u32 {
    column.iter().copied().fold(0, u32::max)
}
