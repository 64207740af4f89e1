//! Slices: any events of a trace as a window, for questions whose events lie far apart.
//!
//! A slice is what each thread does between two of its positions. What lies below the lower ones has happened in observed
//! order, so a schedule that is found in the slice goes on from there. That is sound, and like every window it is not
//! complete: in `reads` something below may have to happen later, or not at all.
//!
//! **A relaxed slice is the other half.** It has only constraints that every reordering of the *whole* trace obeys when
//! it is looked at through the slice's events: program order, tokens, critical sections and reads-from among them. What
//! depends on where the slice was cut is dropped:
//! - sections that began below it, and sections that end above it, unless the goal stops their thread inside;
//! - counts of semaphores and who sleeps on conditions, but for the posts and notifies that every reordering has before a wait or wake;
//! - failed tries, whose holder may be anywhere; whether threads are stuck at the end (lost wake-ups);
//! - reads of what a variable holds below it, unless every write of the variable in the slice comes after that
//!   ([`Relaxed::after`]): only then must such a read come before them all.
//!
//! It may have events from further below beside the others, so that less is dropped: the acquire of a section, the write
//! that a read saw. What lies between them is missing, so the order that comes through it is given ([`Relaxed::orders`]).
//!
//! So what is impossible in a relaxed slice is impossible, wherever it was cut: that is a refutation. What is possible in
//! it means nothing.

use super::index::{Node, Source};
use super::window::{Act, Window};
use crate::conditions::Naps;
use crate::goal::Writer;
use crate::semaphores::Posts;
use portent_trace::{EventId, LockId, Mode, Op, SemId, ThreadId, Trace, VarId};
use rustc_hash::FxHashSet;

/// Some events of a trace: of each thread, those between two positions.
pub struct Slice<'a> {
    /// Ascending.
    pub events: Vec<EventId>,
    /// Locks held below it; none for a relaxed slice.
    pub held: Vec<(ThreadId, LockId, Mode)>,
    /// The write that a read or update saw in the trace.
    pub saw: &'a dyn Fn(EventId) -> Writer,
    /// Whether an event is below the slice.
    pub below: &'a dyn Fn(EventId) -> bool,
    /// What a variable holds below it; for a relaxed slice, its initial value.
    pub base: &'a dyn Fn(VarId) -> Writer,
    /// By how much the posts and waits below it have moved the count of a semaphore; not asked of a relaxed slice.
    pub counted: &'a dyn Fn(SemId) -> i64,
    /// What is known of the waits of the trace.
    pub naps: &'a Naps,
    /// Whether only what holds wherever it was cut counts.
    pub relaxed: Option<Relaxed<'a>>,
}

/// What a relaxed slice has to know.
pub struct Relaxed<'a> {
    /// Threads that the goal stops at their last event of the slice.
    pub stopped: &'a [ThreadId],
    /// Order that every reordering obeys and that does not follow from the slice's events: before, after.
    pub orders: Vec<(EventId, EventId)>,
    /// Posts that come before a wait in every reordering: all that it knows of semaphores.
    pub posts: &'a Posts,
    /// Whether a write of the slice (the second) comes after one below it (the first) in every reordering that has both.
    pub after: &'a dyn Fn(EventId, EventId) -> bool,
}

impl Slice<'_> {
    /// Acquires whose sections end above the slice, for all that is known, though their thread could go on.
    pub(super) fn loose(&self, trace: &Trace) -> FxHashSet<EventId> {
        let mut loose = FxHashSet::default();
        let Some(relaxed) = &self.relaxed else { return loose };
        let mut ended: FxHashSet<(ThreadId, LockId, Mode)> = FxHashSet::default();
        for &event in self.events.iter().rev() {
            let thread = trace.thread(event);
            match trace.op(event) {
                Op::Release(lock, mode) => drop(ended.insert((thread, lock, mode))),
                Op::Acquire(lock, mode)
                    if !ended.remove(&(thread, lock, mode)) && !relaxed.stopped.contains(&thread) =>
                {
                    loose.insert(event);
                }
                _ => {}
            }
        }
        loose
    }
}

impl Window<'_> {
    /// Reads of what is below the slice see it whatever is done to them, if a write of the slice could come before that.
    pub(super) fn free_base_readers(&mut self, slice: &Slice<'_>, relaxed: &Relaxed<'_>) {
        for x in self.variables.ids() {
            let readers = std::mem::take(&mut self.variables[x].base_readers);
            let writes: Vec<Node> = self.writes_of(x).collect();
            let (mut kept, mut known) = (Vec::new(), None);
            for read in readers {
                let keeps = match (slice.saw)(self.event(read)) {
                    Writer::Init => true,
                    Writer::Event(writer) => match known {
                        Some((of, keeps)) if of == writer => keeps,
                        _ => {
                            let keeps = writes.iter().all(|&d| d == read || (relaxed.after)(writer, self.event(d)));
                            known = Some((writer, keeps));
                            keeps
                        }
                    },
                };
                if keeps {
                    kept.push(read);
                    continue;
                }
                debug_assert_eq!(self.saw[read], Some(Source::Base));
                self.saw[read] = None;
                if let Act::Update(x) = self.act[read] {
                    self.act[read] = Act::Write(x);
                }
            }
            self.variables[x].base_readers = kept;
        }
    }
}
