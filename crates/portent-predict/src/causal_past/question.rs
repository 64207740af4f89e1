//! From a goal to what it needs of each thread, and what the clocks of the whole trace have against it.

use super::Causal;
use crate::facts::Facts;
use portent_order::{Goal, Model, Writer};
use portent_trace::{EventId, LocId, Op, Reach, ThreadId, VarId};

/// What a goal needs.
pub(super) struct Question {
    /// How many events of each thread must have happened, closed under the past.
    pub(super) needs: Vec<u32>,
    /// Threads that the goal stops, and before which of their events.
    pub(super) stops: Vec<(usize, u32)>,
    /// Thread and position of the goal's events.
    pub(super) events: Vec<(usize, u32)>,
    /// How many events of each thread may happen.
    pub(super) limits: Vec<u32>,
    /// The number of an event that a slice must reach down to.
    pub(super) from: usize,
    /// Whether every event must have happened.
    pub(super) everything: bool,
    /// Whether it can only be decided in view of the last event of every thread.
    pub(super) to_the_end: bool,
}

impl Causal<'_, '_> {
    /// What a goal needs; `None` if the clocks or the locks refute it.
    pub(super) fn question(&self, goal: &Goal) -> Option<Question> {
        let threads = self.threads();
        let mut needs = vec![0; threads];
        let (mut stops, mut others): (Vec<EventId>, Vec<EventId>) = (Vec::new(), Vec::new());
        let (mut everything, mut to_the_end) = (false, false);
        match *goal {
            Goal::Race { first, second } => stops = vec![first, second],
            Goal::Deadlock { ref waiting } => stops = waiting.clone(),
            Goal::Nondeterminism { read, challenger } => {
                stops = vec![read];
                if let Writer::Event(c) = challenger {
                    others = vec![c];
                    let (t, at) = self.place(c);
                    self.clocks.join(&mut needs, t, at + 1);
                }
            }
            Goal::FinalValue { variable, challenger } => {
                others = vec![challenger];
                (everything, to_the_end) = (true, true);
                let ends: Vec<u32> = (0..threads).map(|t| self.program(t).len() as u32).collect();
                if self.is_overwritten(variable, Writer::Event(challenger), &ends) {
                    return None;
                }
            }
            Goal::Atomicity { first, remote, second } => {
                stops = vec![second];
                others = vec![first, remote];
                let ((t, e1), (u, f), (_, e2)) = (self.place(first), self.place(remote), self.place(second));
                // What the remote access saw may change, but not what its thread read before.
                self.clocks.join(&mut needs, u, f);
                needs[u] = needs[u].max(f + 1);
                if needs[t] > e2 || self.clocks.past(t, e1 + 1, u) > f {
                    return None;
                }
            }
            Goal::LostUpdate { first, read, remote, second } => {
                stops = vec![second];
                others = vec![first, read, remote];
                let ((t, e1), (u, f), (_, e2)) = (self.place(first), self.place(remote), self.place(second));
                self.needs_of_update(read, remote, &mut needs);
                if needs[t] > e2 || self.clocks.past(t, e1 + 1, u) > f {
                    return None;
                }
            }
            Goal::Stuck { waiting } => {
                to_the_end = true;
                stops = vec![waiting];
            }
            Goal::LostWakeup { pairing } => {
                to_the_end = true;
                let pairing = self.facts.trace.pairings()[pairing.index()];
                stops = vec![pairing.wake];
                others = vec![pairing.sleep, pairing.notify];
                let ((t, sleep), (u, notify)) = (self.place(pairing.sleep), self.place(pairing.notify));
                self.clocks.join(&mut needs, u, notify + 1);
                // A notify that finds it asleep may wake another; not if it wakes everybody, or there is nobody else.
                let wakes_all = self.facts.trace.op(pairing.notify) == Op::Notify(pairing.condition, Reach::All);
                if needs[t] > sleep && (wakes_all || self.naps.is_alone(pairing.condition)) {
                    return None;
                }
            }
        }
        let stopped: Vec<(usize, u32)> = stops.iter().map(|&event| self.place(event)).collect();
        for &(t, at) in &stopped {
            self.clocks.join(&mut needs, t, at);
        }
        if stopped.iter().any(|&(t, at)| needs[t] > at) {
            return None;
        }
        if matches!(goal, Goal::Race { .. } | Goal::Deadlock { .. }) {
            let share = |(i, &a): (usize, &EventId)| stops[i + 1..].iter().any(|&b| self.facts.share_a_lock(a, b));
            if stops.iter().enumerate().any(share) {
                return None;
            }
        }
        if let Goal::Nondeterminism { read, challenger } = *goal
            && self.facts.trace.op(read).variable().is_some_and(|x| self.is_overwritten(x, challenger, &needs))
        {
            return None;
        }
        let limit = |t: usize| {
            let by = |&(stop, at): &(usize, u32)| if stop == t { at } else { self.clocks.without(t, stop, at) };
            stopped.iter().map(by).min().unwrap_or(u32::MAX)
        };
        let limits = (0..threads).map(limit).collect();
        // Where the first access of a block lies below a slice, it has happened.
        let first = match goal {
            Goal::Atomicity { first, .. } | Goal::LostUpdate { first, .. } => Some(*first),
            _ => None,
        };
        let inside = stops.iter().chain(&others).filter(|event| Some(**event) != first);
        let from = inside.map(|event| event.index()).min().unwrap_or(0);
        let events = stopped.iter().copied().chain(others.iter().map(|&event| self.place(event))).collect();
        Some(Question { needs, stops: stopped, events, limits, from, everything, to_the_end })
    }

    /// Adds what an update in two steps needs, whatever it reads: the past of its read, and what its thread does from there on
    /// to its write.
    fn needs_of_update(&self, read: EventId, write: EventId, needs: &mut [u32]) {
        let trace = self.facts.trace;
        let ((u, g), (_, f)) = (self.place(read), self.place(write));
        self.clocks.join(needs, u, g);
        for &event in &self.program(u)[g as usize + 1..=(f as usize).max(g as usize)] {
            let from: Vec<EventId> = match trace.op(event) {
                Op::Read(..) | Op::Update(..) if self.model == Model::Reads => match self.facts.saw(event) {
                    Writer::Event(writer) => vec![writer],
                    Writer::Init => Vec::new(),
                },
                Op::Receive(token) => trace.senders(token).to_vec(),
                Op::Wait(_) => self.posts.forced(event).to_vec(),
                Op::Wake(_) => self.naps.forced(event).into_iter().collect(),
                _ => Vec::new(),
            };
            for (t, at) in from.into_iter().map(|event| self.place(event)).filter(|(t, _)| *t != u) {
                self.clocks.join(needs, t, at + 1);
            }
        }
        needs[u] = needs[u].max(f + 1);
    }

    /// Whether another write below the cut comes after this one in every reordering.
    pub(super) fn is_overwritten(&self, x: VarId, writer: Writer, cut: &[u32]) -> bool {
        let Writer::Event(writer) = writer else {
            return self.writes.of_variable(x).any(|(t, places)| places.first().is_some_and(|&place| place < cut[t]));
        };
        let (t, at) = self.place(writer);
        self.writes.of_variable(x).any(|(u, places)| {
            let below = places.partition_point(|&place| place < cut[u]);
            let Some(&last) = below.checked_sub(1).map(|at| &places[at]) else { return false };
            if u == t { last > at } else { self.clocks.past(u, last + 1, t) > at }
        })
    }
}

/// Positions of one thread by source location.
type ByPlace = Vec<(LocId, Vec<u32>)>;

/// Where threads write the variables that more than one of them accesses.
pub(crate) struct Writes {
    /// For each variable, its threads.
    lists: Vec<Vec<(u32, Vec<u32>)>>,
}

impl Writes {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        /// Nobody yet; then a thread; then more than one.
        const NOBODY: u32 = u32::MAX;
        const MANY: u32 = u32::MAX - 1;
        let trace = facts.trace;
        let mut who = vec![NOBODY; trace.variables()];
        for event in trace.events() {
            if let Some(x) = event.op.variable() {
                let (who, thread) = (&mut who[x.index()], event.thread.index() as u32);
                *who = if *who == NOBODY || *who == thread { thread } else { MANY };
            }
        }
        let mut lists: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); trace.variables()];
        let mut position = vec![0u32; trace.threads()];
        for event in trace.events() {
            let t = event.thread.index();
            if let Some(x) = event.op.variable().filter(|x| event.op.writes() && who[x.index()] == MANY) {
                let threads = &mut lists[x.index()];
                match threads.iter_mut().find(|(thread, _)| *thread == t as u32) {
                    Some((_, places)) => places.push(position[t]),
                    None => threads.push((t as u32, vec![position[t]])),
                }
            }
            position[t] += 1;
        }
        Writes { lists }
    }

    /// The threads that write a variable, and where.
    pub(super) fn of_variable(&self, x: VarId) -> impl Iterator<Item = (usize, &[u32])> {
        self.lists[x.index()].iter().map(|(t, places)| (*t as usize, places.as_slice()))
    }

    /// For each variable and each of its threads, where it writes, by source location.
    pub(super) fn by_place(&self, facts: &Facts<'_>) -> Vec<Vec<ByPlace>> {
        let by_place = |(t, places): &(u32, Vec<u32>)| {
            let program = facts.steps.program(ThreadId::new(*t as usize));
            let mut lists: Vec<(LocId, Vec<u32>)> = Vec::new();
            for &place in places {
                let loc = facts.trace.event(program[place as usize]).loc;
                match lists.iter_mut().find(|(known, _)| *known == loc) {
                    Some((_, list)) => list.push(place),
                    None => lists.push((loc, vec![place])),
                }
            }
            lists
        };
        self.lists.iter().map(|threads| threads.iter().map(by_place).collect()).collect()
    }

    /// The last write of a shared variable below a cut, in observed order.
    pub(super) fn last(&self, facts: &Facts<'_>, x: VarId, cut: &[u32]) -> Option<EventId> {
        let last = |(t, places): (usize, &[u32])| {
            let below = places.partition_point(|&place| place < cut[t]).checked_sub(1)?;
            Some(facts.steps.program(ThreadId::new(t))[places[below] as usize])
        };
        self.of_variable(x).filter_map(last).max()
    }
}
