//! Whether some reordering reaches what is wanted: depth first, every state once.

use super::WitnessType;
use super::oracle::{Oracle, State};
use super::values::Held;
use crate::divergence::Divergence;
use crate::goal::{Goal, Writer};
use portent_trace::{EventId, Op, ThreadId};
use std::collections::HashSet;

/// What a search is for.
pub(super) enum Wanted<'g> {
    Goal(&'g Goal),
    Divergence(&'g Divergence),
    Shape { read: EventId, challenger: Writer, shape: WitnessType },
    Stuck,
}

impl Oracle<'_> {
    /// The state after an event if it is possible, allowed by the model and no dead end for what is wanted.
    fn step(&self, state: &State, event: EventId, wanted: &Wanted<'_>) -> Option<State> {
        if !self.possible(state, event) {
            return None;
        }
        match *wanted {
            Wanted::Goal(&Goal::Atomicity { first, remote, second }) => {
                let thread = self.trace.thread(event);
                if thread == self.trace.thread(remote) && state.remote_stopped {
                    return None;
                }
                let in_order = match event {
                    e if e == remote => self.done(state, first) && !self.done(state, second),
                    e if e == second => self.done(state, remote),
                    _ => true,
                };
                let free = self.rule.frees_reads() && (event == remote || event == second);
                if !in_order || !(free || self.keeps_read(state, event)) {
                    return None;
                }
                let mut after = self.after(state, event);
                after.remote_stopped |= event == remote && !self.keeps_read(state, event);
                Some(after)
            }
            Wanted::Goal(&Goal::LostUpdate { first, read, remote, second }) => {
                let thread = self.trace.thread(remote).index();
                let over = state.position[thread] >= self.end_of_update(remote);
                if self.trace.thread(event).index() == thread && state.remote_stopped && over {
                    return None;
                }
                let in_order = match event {
                    e if e == remote => self.done(state, first) && !self.done(state, second),
                    e if e == second => self.done(state, remote),
                    _ => true,
                };
                let kept = self.keeps_read(state, event);
                if !in_order || !(kept || (self.rule.frees_reads() && event == read)) {
                    return None;
                }
                let mut after = self.after(state, event);
                after.remote_stopped |= !kept;
                Some(after)
            }
            Wanted::Shape { read, challenger, shape } => {
                let w = self.saw[read.index()];
                let happened = |x: Writer| matches!(x, Writer::Event(e) if self.done(state, e)) || x == Writer::Init;
                let allowed = if event == read {
                    happened(challenger) && !self.sees_the_same(state, read)
                } else if self.trace.thread(event) == self.trace.thread(read) && self.done(state, read) {
                    false
                } else if Writer::Event(event) == w {
                    match shape {
                        WitnessType::ReadBeforeWrite => self.done(state, read),
                        WitnessType::Overwritten => true,
                        WitnessType::WithoutWrite => false,
                    }
                } else {
                    let early = Writer::Event(event) == challenger && shape == WitnessType::Overwritten && !happened(w);
                    !early
                };
                (allowed && (event == read || self.keeps_read(state, event))).then(|| self.after(state, event))
            }
            Wanted::Goal(_) | Wanted::Divergence(_) | Wanted::Stuck => {
                self.keeps_read(state, event).then(|| self.after(state, event))
            }
        }
    }

    fn reached(&self, state: &State, wanted: &Wanted<'_>) -> bool {
        match *wanted {
            Wanted::Goal(&Goal::Race { first, second }) => {
                [first, second].iter().all(|&e| self.next(state, e) && self.is_told(state, e))
            }
            Wanted::Goal(&Goal::Nondeterminism { read, challenger }) => {
                let Some(x) = self.trace.op(read).variable() else { return false };
                self.next(state, read)
                    && self.is_told(state, read)
                    && state.last[x.index()] == challenger
                    && !(self.rule.compares_values()
                        && (state.tainted.variables[x.index()] || self.sees_its_value(state, read, challenger)))
            }
            Wanted::Divergence(question) => self.is_divergence(state, question),
            Wanted::Stuck => !self.complete(state) && (0..self.program.len()).all(|t| self.stuck(state, t)),
            Wanted::Goal(&Goal::FinalValue { variable, challenger }) => {
                let mut writes = self.trace.events().filter(|e| e.op.writes() && e.op.variable() == Some(variable));
                let (seen, other) = (writes.next_back().and_then(|e| e.value), self.trace.value(challenger));
                let other = match state.holds.get(variable.index()) {
                    None => other,
                    Some(Held::Number(number)) => Some(*number),
                    Some(_) => None,
                };
                let same = state.tainted.variables[variable.index()] || (seen.is_some() && seen == other);
                self.complete(state)
                    && state.last[variable.index()] == Writer::Event(challenger)
                    && !(self.rule.compares_values() && same)
            }
            Wanted::Goal(&Goal::Atomicity { second, .. } | &Goal::LostUpdate { second, .. }) => {
                self.done(state, second)
            }
            Wanted::Goal(Goal::Deadlock { waiting }) => {
                waiting.iter().all(|&e| self.next(state, e)) && self.is_cycle(waiting)
            }
            Wanted::Goal(&Goal::LostWakeup { pairing }) => {
                let pairing = self.trace.pairings()[pairing.index()];
                let sleeper = self.trace.thread(pairing.sleep).index();
                let others_wait = (0..self.program.len()).all(|t| t == sleeper || self.waits(state, t));
                let notified = self.done(state, pairing.notify);
                notified && self.next(state, pairing.wake) && !self.possible(state, pairing.wake) && others_wait
            }
            Wanted::Goal(&Goal::Stuck { waiting }) => {
                self.can_wait(waiting)
                    && self.next(state, waiting)
                    && (0..self.program.len()).all(|t| self.waits(state, t))
            }
            Wanted::Shape { read, shape, .. } => {
                let written = match self.saw[read.index()] {
                    Writer::Init => shape != WitnessType::ReadBeforeWrite,
                    Writer::Event(w) => self.done(state, w) == (shape != WitnessType::WithoutWrite),
                };
                let init_is_not_left_out = self.saw[read.index()] != Writer::Init || shape != WitnessType::WithoutWrite;
                self.done(state, read) && written && init_is_not_left_out
            }
        }
    }

    /// The position of a thread at which it has made a write, and released each lock that it held there.
    fn end_of_update(&self, write: EventId) -> usize {
        let thread = self.trace.thread(write).index();
        let at = self.rank[write.index()];
        let mut left = self.held[thread][at].clone();
        let mut end = at + 1;
        while !left.is_empty() && end < self.program[thread].len() {
            if let Op::Release(lock, mode) = self.trace.op(self.program[thread][end]) {
                left.retain(|held| *held != (lock, mode));
            }
            end += 1;
        }
        end
    }

    /// Each acquire waits for a lock that the thread of the next one holds at its own acquire.
    fn is_cycle(&self, waiting: &[EventId]) -> bool {
        (0..waiting.len()).all(|i| self.waits_for(waiting[i], waiting[(i + 1) % waiting.len()]))
    }

    pub(super) fn waits_for(&self, acquire: EventId, holder: EventId) -> bool {
        let Op::Acquire(lock, mode) = self.trace.op(acquire) else { return false };
        if self.trace.tries(acquire) {
            return false;
        }
        let held = &self.held[self.trace.thread(holder).index()][self.rank[holder.index()]];
        held.iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
    }

    /// A path to a state that reaches what is wanted: depth first, every state once.
    pub(super) fn search(&self, wanted: &Wanted<'_>) -> Option<Vec<ThreadId>> {
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        self.visit(self.start(), wanted, &mut seen, &mut path).then_some(path)
    }

    fn visit(&self, state: State, wanted: &Wanted<'_>, seen: &mut HashSet<State>, path: &mut Vec<ThreadId>) -> bool {
        if self.reached(&state, wanted) {
            return true;
        }
        if seen.contains(&state) {
            return false;
        }
        for thread in 0..self.program.len() {
            let Some(&event) = self.program[thread].get(state.position[thread]) else { continue };
            if let Some(after) = self.step(&state, event, wanted) {
                path.push(ThreadId::new(thread));
                if self.visit(after, wanted, seen, path) {
                    return true;
                }
                path.pop();
            }
        }
        seen.insert(state);
        false
    }
}
