//! Questions at any distance, on the causal past of the goal.
//!
//! In `reads` only the past of the goal's events matters, however long the trace is (docs/src/internals/semantics.md §4): program order, tokens,
//! wake-ups, writers of kept reads, and the releases of sections that would otherwise stay open. A question is asked of
//! a [`Slice`] of that past: first of a few hundred events before the goal's, then of more, at most [`Causal::reach`].
//!
//! | answer | because |
//! |---|---|
//! | shown | a schedule was found, and the checker accepts it |
//! | refuted | the clocks of the whole trace contradict the goal; or a relaxed slice does, which holds wherever it is cut; or the slice is the *whole* past, and the engine is exact |
//! | undecided | anything else: what is impossible in a slice that was cut somewhere proves nothing |
//!
//! `audit` lists the instances of groups that clocks and locks do not refute: all of them, so that a group whose instances
//! are all refuted is refuted.
//!
//! Papers: Sinha et al. work on the past of the goal's events, too, but take it whole; the relaxed slice is ours. Not here: `values`,
//! where a read may take its value from anywhere (what `sync` refutes is refuted there, what `reads` shows is tried); and
//! schedules for final values and lost wake-ups, which take the end of the trace (`end_of_trace`) and are only refuted here.

mod audit;
mod changes;
mod clocks;
mod pass;
mod past;
mod question;

pub(crate) use audit::Audit;
pub(crate) use pass::{Engines, PATIENCE, Prepared, Quick, Thorough, found_by};
pub(crate) use past::{Cut, Past};

use crate::facts::Facts;
use crate::undecided::Limit;
use audit::Audited;
use clocks::Clocks;
use portent_order::engine::{Effort, Engine, Relaxed, Slice, Tiers, View};
use portent_order::{Goal, Model, Naps, Posts, Schedule, Verdict, Writer};
use portent_trace::{CondId, EventId, LockId, Mode, Op, SemId, ThreadId, VarId};
use question::{Question, Writes};
use rustc_hash::{FxHashMap, FxHashSet};

/// Events of the slices that are tried first, one after the other: they settle nearly all that slices settle.
const NEAR: [usize; 2] = [256, 2_048];
/// And then, before [`Causal::reach`]; not where the whole trace is within reach, whose answer is exact.
const BETWEEN: usize = 16_384;
/// How far to look for a moment without locks.
const FAR: u32 = 20_000;

/// The answer to a question.
pub(crate) enum Answer {
    /// It can happen so. The checker has accepted it.
    Shown(Schedule),
    /// It cannot happen.
    Refuted,
    /// Neither is known, for lack of that.
    Undecided(Limit),
}

/// A trace prepared for questions at any distance.
pub(crate) struct Causal<'a, 't> {
    facts: &'a Facts<'t>,
    model: Model,
    clocks: Clocks,
    /// With the posts that let waits through, and the notifies that ended waits, as they were observed; `None` where there are none.
    served: Option<Clocks>,
    writes: Writes,
    posts: Posts,
    naps: Naps,
    /// Whether there are failed tries, semaphores or conditions: events that may need others from anywhere, at choice.
    has_choices: bool,
    /// Events of the longest slice.
    reach: usize,
}

/// What to do with a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// Whether refutations count, and are looked for.
    pub(crate) refute: bool,
    /// The model that schedules must be accepted in, if any are looked for.
    pub(crate) show: Option<Model>,
    pub(crate) depth: Depth,
    pub(crate) effort: Effort,
}

/// Which slices are looked at: what a question costs grows with them, a hundred times from the shortest to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Short ones.
    Near,
    /// The others: short ones have not settled it.
    Far,
    /// All, the short ones first.
    All,
}

/// Positions between which a slice lies.
struct Bounds {
    /// The number of the event from which on it has events.
    index: usize,
    from: Vec<u32>,
    to: Vec<u32>,
}

impl Bounds {
    /// Whether nothing lies below.
    fn is_all(&self) -> bool {
        self.from.iter().all(|&from| from == 0)
    }
}

impl<'a, 't> Causal<'a, 't> {
    /// For questions in `reads` or `sync`; `None` if told to stop.
    pub(crate) fn new(facts: &'a Facts<'t>, model: Model, reach: usize, stop: &dyn Fn() -> bool) -> Option<Self> {
        let clocks = Clocks::new(facts.trace, model, stop)?;
        let writes = Writes::of(facts);
        let is_choice = |op: Op| matches!(op, Op::Busy(..) | Op::Wait(_) | Op::Empty(_) | Op::Wake(_));
        let has_choices = facts.trace.events().any(|event| is_choice(event.op));
        let has_servants = facts.trace.semaphores() > 0 || facts.trace.conditions() > 0;
        let served = if has_servants { Some(Clocks::as_served(facts.trace, model, stop)?) } else { None };
        let posts = Posts::of(facts.trace);
        let naps = Naps::of(facts.trace);
        Some(Causal { facts, model, clocks, served, writes, posts, naps, has_choices, reach })
    }

    fn program(&self, thread: usize) -> &[EventId] {
        self.facts.steps.program(ThreadId::new(thread))
    }
    fn threads(&self) -> usize {
        self.facts.trace.threads()
    }
    /// The thread of an event and its position there.
    fn place(&self, event: EventId) -> (usize, u32) {
        let thread = self.facts.trace.thread(event).index();
        (thread, self.position(thread, event.index()))
    }
    /// How many events of a thread come before event number `index` of the trace.
    fn position(&self, thread: usize, index: usize) -> u32 {
        self.program(thread).partition_point(|event| event.index() < index) as u32
    }
    /// Whether a thread holds no lock after that many events.
    fn is_free(&self, thread: usize, count: u32) -> bool {
        let program = self.program(thread);
        match program.get(count as usize) {
            Some(&next) => self.facts.held(next).is_empty(),
            None => program.last().is_none_or(|&last| match self.facts.trace.op(last) {
                Op::Acquire(..) => false,
                Op::Release(..) => self.facts.held(last).len() == 1,
                _ => self.facts.held(last).is_empty(),
            }),
        }
    }

    /// Whether the clocks or the locks refute a goal.
    pub(crate) fn is_impossible(&self, goal: &Goal) -> bool {
        self.question(goal).is_none()
    }

    /// Answers a question; `tiers` gets what that took.
    pub(crate) fn ask(&self, goal: &Goal, ask: Ask, tiers: &mut Tiers) -> Answer {
        let Some(question) = self.question(goal) else {
            tiers.queries += 1;
            tiers.filtered += 1;
            return if ask.refute { Answer::Refuted } else { Answer::Undecided(Limit::Reach) };
        };
        let (needed, closed) = self.upper(&question);
        let (mut limit, mut whole) = (Limit::Reach, None);
        for size in self.sizes(ask.depth) {
            let Some(bounds) = self.bounds(&question, &needed, size) else { continue };
            let all = bounds.is_all();
            // Where it can be asked of everything, that is exact, and costs no more.
            if all && size == self.reach {
                whole = self.with_everything(goal, &question, ask, tiers);
                match whole.take() {
                    Some(Answer::Undecided(why)) => whole = Some(Answer::Undecided(why)),
                    Some(answer) => return answer,
                    None => {}
                }
            }
            let events = self.events(&bounds);
            let exact = all && closed && !question.to_the_end && !self.has_choices(&question, &bounds, &events);
            if ask.refute
                && !exact
                && let Verdict::Infeasible = self.relaxed(goal, &question, &bounds, &events, ask.effort, tiers)
            {
                return Answer::Refuted;
            }
            if !question.to_the_end && (ask.show.is_some() || exact) {
                match self.strict(goal, &bounds, events, ask, tiers) {
                    Answer::Refuted if !exact => {}
                    Answer::Undecided(why) if !exact => limit = why,
                    answer => return answer,
                }
            }
            if all {
                break;
            }
        }
        whole.or_else(|| self.with_everything(goal, &question, ask, tiers)).unwrap_or(Answer::Undecided(limit))
    }

    /// Events of the slices to look at, one after the other.
    fn sizes(&self, depth: Depth) -> impl Iterator<Item = usize> + use<> {
        let (reach, whole) = (self.reach, self.facts.trace.len() <= self.reach);
        let near = NEAR.into_iter().filter(move |_| depth != Depth::Far);
        let between = Some(BETWEEN).filter(|_| depth != Depth::Near && !whole);
        let last = Some(reach).filter(|&reach| depth != Depth::Near || reach <= NEAR[0]);
        near.chain(between).filter(move |&size| size < reach).chain(last)
    }

    /// The last resort: all that may happen, if it is not too much. That is exact, wherever the holders of failed tries
    /// and the posts for waits are.
    fn with_everything(&self, goal: &Goal, question: &Question, ask: Ask, tiers: &mut Tiers) -> Option<Answer> {
        if question.to_the_end || !self.has_choices || ask.depth == Depth::Near {
            return None;
        }
        let to = self.with_stops(question, question.limits.clone());
        let bounds = self.bounds(question, &to, self.reach).filter(Bounds::is_all)?;
        Some(self.strict(goal, &bounds, self.events(&bounds), ask, tiers))
    }

    /// Positions above what the question needs at which nobody holds a lock but who is stopped: what lies beyond is not
    /// needed by anything. And whether such positions were found.
    fn upper(&self, question: &Question) -> (Vec<u32>, bool) {
        if question.everything {
            return ((0..self.threads()).map(|t| self.program(t).len() as u32).collect(), true);
        }
        let clocks = self.served.as_ref().unwrap_or(&self.clocks);
        let mut cut = vec![0; question.needs.len()];
        question.needs.iter().enumerate().for_each(|(t, &count)| clocks.join(&mut cut, t, count));
        let (mut changed, mut closed) = (true, true);
        while std::mem::take(&mut changed) {
            for t in 0..cut.len() {
                if question.stops.iter().any(|&(stopped, _)| stopped == t) {
                    continue;
                }
                let limit = question.limits[t].min(self.program(t).len() as u32);
                let far = limit.min(cut[t].saturating_add(FAR));
                let free = (cut[t]..far).find(|&at| self.is_free(t, at));
                closed &= free.is_some() || far == limit || cut[t] > limit;
                let before = cut.clone();
                clocks.join(&mut cut, t, free.unwrap_or(far));
                changed |= before != cut;
            }
        }
        (self.with_stops(question, cut), closed)
    }

    /// Whether something in a slice may need what is not there: whoever holds a lock for a failed try may be anywhere, and so
    /// may a post that lets a wait through, or a notify. Why a notify woke nobody may be anywhere, too.
    fn has_choices(&self, question: &Question, bounds: &Bounds, events: &[EventId]) -> bool {
        if !self.has_choices {
            return false;
        }
        let trace = self.facts.trace;
        let mut waited: FxHashSet<SemId> = FxHashSet::default();
        let mut woken: FxHashSet<CondId> = FxHashSet::default();
        for &event in events {
            match trace.op(event) {
                Op::Busy(..) | Op::Empty(_) => return true,
                Op::Wait(s) => drop(waited.insert(s)),
                Op::Wake(_) if trace.pairing_of_wake(event).is_none() => return true,
                Op::Wake(c) => drop(woken.insert(c)),
                _ => {}
            }
        }
        let posts = waited.into_iter().flat_map(|s| self.posts.of_semaphore(s));
        let waits = woken.into_iter().flat_map(|c| self.naps.of_condition(c));
        let notifies = waits.filter(|&&event| matches!(trace.op(event), Op::Notify(..)));
        posts.chain(notifies).any(|&servant| {
            let (t, at) = self.place(servant);
            at >= bounds.to[t] && at < question.limits[t]
        })
    }

    /// The same, with the goal's own events.
    fn with_stops(&self, question: &Question, mut cut: Vec<u32>) -> Vec<u32> {
        for (t, count) in cut.iter_mut().enumerate() {
            *count = (*count).min(self.program(t).len() as u32);
        }
        for &(t, at) in &question.events {
            cut[t] = cut[t].max(at + 1);
        }
        for &(t, at) in &question.stops {
            cut[t] = at + 1;
        }
        cut
    }

    /// The last events up to `to`, at most so many; `None` if that is not enough for the question.
    fn bounds(&self, question: &Question, to: &[u32], size: usize) -> Option<Bounds> {
        let count = |from: usize| -> usize {
            let counts = to.iter().enumerate().map(|(t, &to)| to.saturating_sub(self.position(t, from)) as usize);
            counts.sum()
        };
        if count(question.from) > size {
            return None;
        }
        let (mut low, mut high) = (0, question.from);
        while low < high {
            let middle = (low + high) / 2;
            if count(middle) <= size {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let from = to.iter().enumerate().map(|(t, &to)| to.min(self.position(t, low)));
        Some(Bounds { index: low, from: from.collect(), to: to.to_vec() })
    }

    fn events(&self, bounds: &Bounds) -> Vec<EventId> {
        let ranges = bounds.from.iter().zip(&bounds.to).enumerate();
        let mut events: Vec<EventId> =
            ranges.flat_map(|(t, (&from, &to))| self.program(t)[from as usize..to as usize].iter().copied()).collect();
        events.sort_unstable();
        events
    }

    fn is_below(&self, bounds: &Bounds, event: EventId) -> bool {
        let (t, at) = self.place(event);
        at < bounds.from[t]
    }

    /// What every reordering of the whole trace obeys, looked at through the slice.
    fn relaxed(
        &self,
        goal: &Goal,
        question: &Question,
        bounds: &Bounds,
        events: &[EventId],
        effort: Effort,
        tiers: &mut Tiers,
    ) -> Verdict {
        let stopped: Vec<ThreadId> = question.stops.iter().map(|&(t, _)| ThreadId::new(t)).collect();
        let after = |writer: EventId, write: EventId| {
            let ((t, at), (u, place)) = (self.place(writer), self.place(write));
            // The goal's own update may read something else: what it saw says nothing then.
            let count = place + u32::from(!question.events.contains(&(u, place)));
            if t == u { at < place } else { self.clocks.past(u, count, t) > at }
        };
        let extra = self.extra(bounds, events, &after);
        let orders = self.orders(bounds, &extra);
        let mut all = extra;
        all.extend_from_slice(events);
        all.sort_unstable();
        let slice = Slice {
            events: all,
            held: Vec::new(),
            saw: &|read| self.facts.saw(read),
            below: &|event| self.is_below(bounds, event),
            base: &|_| Writer::Init,
            counted: &|_| 0,
            naps: &self.naps,
            relaxed: Some(Relaxed { stopped: &stopped, orders, posts: &self.posts, after: &after }),
        };
        self.decide(goal, &slice, effort, tiers)
    }

    /// Events from below that say more about a slice: the acquires of sections that began there, and the writes that its reads
    /// saw there, if a write of the slice may come before them.
    fn extra(&self, bounds: &Bounds, events: &[EventId], after: &dyn Fn(EventId, EventId) -> bool) -> Vec<EventId> {
        let trace = self.facts.trace;
        let mut extra: Vec<EventId> = Vec::new();
        for (thread, lock, mode) in self.held(bounds) {
            let below = &self.program(thread.index())[..bounds.from[thread.index()] as usize];
            let mut back = below.iter().rev().take(FAR as usize).copied();
            extra.extend(back.find(|&event| trace.op(event) == Op::Acquire(lock, mode)));
        }
        if self.model == Model::Reads {
            let mut writes: FxHashMap<VarId, Vec<EventId>> = FxHashMap::default();
            let mut seen: FxHashSet<(VarId, EventId)> = FxHashSet::default();
            for &event in events {
                let op = trace.op(event);
                let Some(x) = op.variable() else { continue };
                if let Writer::Event(writer) = self.facts.saw(event)
                    && op.reads()
                    && self.is_below(bounds, writer)
                {
                    seen.insert((x, writer));
                }
                if op.writes() {
                    writes.entry(x).or_default().push(event);
                }
            }
            let loose = |(x, writer): &(VarId, EventId)| {
                writes.get(x).is_some_and(|writes| writes.iter().any(|&write| !after(*writer, write)))
            };
            extra.extend(seen.iter().filter(|seen| loose(seen)).map(|(_, writer)| *writer));
        }
        extra.sort_unstable();
        extra.dedup();
        extra
    }

    /// What of a slice, and of the extra events, must come after the extra events.
    fn orders(&self, bounds: &Bounds, extra: &[EventId]) -> Vec<(EventId, EventId)> {
        let places: Vec<(usize, u32)> = extra.iter().map(|&event| self.place(event)).collect();
        let mut orders = Vec::new();
        for (&event, &(t, at)) in extra.iter().zip(&places) {
            for u in (0..self.threads()).filter(|&u| u != t) {
                let knows = self.clocks.without(u, t, at);
                let others = places.iter().filter(|&&(v, place)| v == u && place >= knows).map(|&(_, place)| place);
                let slice = Some(knows.max(bounds.from[u])).filter(|&place| place < bounds.to[u]);
                let first = others.chain(slice).min();
                orders.extend(first.map(|place| (event, self.program(u)[place as usize])));
            }
        }
        orders
    }

    /// Looks for a schedule that goes on from what lies below the slice. `Refuted` says that there is none from there.
    fn strict(&self, goal: &Goal, bounds: &Bounds, events: Vec<EventId>, ask: Ask, tiers: &mut Tiers) -> Answer {
        let base = |x: VarId| self.writes.last(self.facts, x, &bounds.from).map_or(Writer::Init, Writer::Event);
        let slice = Slice {
            events,
            held: self.held(bounds),
            saw: &|read| self.facts.saw(read),
            below: &|event| self.is_below(bounds, event),
            base: &base,
            counted: &|semaphore| self.counted(bounds, semaphore),
            naps: &self.naps,
            relaxed: None,
        };
        match self.decide(goal, &slice, ask.effort, tiers) {
            Verdict::Infeasible if ask.refute => Answer::Refuted,
            Verdict::Infeasible => Answer::Undecided(Limit::Reach),
            Verdict::Unknown(why) => Answer::Undecided(Limit::of(why)),
            Verdict::Feasible(rest) => {
                let Some(model) = ask.show else { return Answer::Undecided(Limit::Reach) };
                // Everything as observed below the slice is nearest to what happened; what the goal needs of it always does.
                let mut near = [self.after_all(bounds, &rest), self.after(bounds, &rest)].into_iter();
                let shown = near.find(|schedule| self.facts.checker.check(model, goal, schedule).is_ok());
                shown.map_or(Answer::Undecided(Limit::Reach), Answer::Shown)
            }
        }
    }

    fn decide(&self, goal: &Goal, slice: &Slice<'_>, effort: Effort, tiers: &mut Tiers) -> Verdict {
        let view = View::slice(self.facts.trace, self.model, slice);
        let mut engine = Engine::new(&view);
        let verdict = engine.decide(goal, effort);
        tiers.add(&engine.tiers());
        verdict
    }

    /// The locks held below a slice.
    fn held(&self, bounds: &Bounds) -> Vec<(ThreadId, LockId, Mode)> {
        let mut held = Vec::new();
        for (t, &from) in bounds.from.iter().enumerate().filter(|(_, from)| **from > 0) {
            if let Some(&next) = self.program(t).get(from as usize) {
                held.extend(self.facts.held(next).iter().map(|&(lock, mode)| (ThreadId::new(t), lock, mode)));
            } else if !self.is_free(t, from) {
                // Nothing of the thread is left: what it holds at its end it held before its last event, or took there.
                let last = self.program(t)[from as usize - 1];
                let mut at_end = self.facts.held(last).to_vec();
                match self.facts.trace.op(last) {
                    Op::Acquire(lock, mode) => at_end.push((lock, mode)),
                    Op::Release(lock, mode) => at_end.retain(|held| *held != (lock, mode)),
                    _ => {}
                }
                held.extend(at_end.into_iter().map(|(lock, mode)| (ThreadId::new(t), lock, mode)));
            }
        }
        held
    }

    /// By how much the posts and waits below a slice have moved the count of a semaphore.
    fn counted(&self, bounds: &Bounds, semaphore: SemId) -> i64 {
        self.posts.moved(semaphore, |event| self.is_below(bounds, event))
    }

    /// The observed order of everything before a slice, and then the rest.
    fn after_all(&self, bounds: &Bounds, rest: &Schedule) -> Schedule {
        let mut schedule = Schedule::as_observed(bounds.index);
        rest.steps(self.facts.trace).for_each(|thread| schedule.push(thread));
        schedule
    }

    /// The observed order of what lies below a slice, and then the rest.
    fn after(&self, bounds: &Bounds, rest: &Schedule) -> Schedule {
        let trace = self.facts.trace;
        // All that happened up to the first event that does not lie below.
        let next =
            |(t, &from): (usize, &u32)| self.program(t).get(from as usize).map_or(trace.len(), |event| event.index());
        let common = bounds.from.iter().enumerate().map(next).min().unwrap_or(0);
        let last = |(t, &from): (usize, &u32)| Some(self.program(t)[from.checked_sub(1)? as usize].index() + 1);
        let ends: Vec<usize> = bounds.from.iter().enumerate().map(|end| last(end).unwrap_or(0)).collect();
        let mut schedule = Schedule::as_observed(common);
        for event in (common..ends.iter().copied().max().unwrap_or(0)).map(EventId::new) {
            let thread = trace.thread(event);
            if event.index() < ends[thread.index()] {
                schedule.push(thread);
            }
        }
        rest.steps(trace).for_each(|thread| schedule.push(thread));
        schedule
    }
}
