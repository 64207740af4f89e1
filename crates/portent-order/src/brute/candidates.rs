//! Every goal that a trace poses.

use super::oracle::Oracle;
use crate::goal::{Goal, Kind, Model, Writer};
use portent_trace::{EventId, Op, PairingId, Trace, VarId};

/// Every goal of a kind that the trace poses, feasible or not, in order.
pub fn candidates(trace: &Trace, kind: Kind) -> Vec<Goal> {
    let oracle = Oracle::new(trace, Model::Sync);
    let events: Vec<EventId> = trace.events().map(|e| e.id).collect();
    let conflict =
        |a: EventId, b: EventId| trace.thread(a) != trace.thread(b) && trace.op(a).conflicts_with(trace.op(b));
    let mut goals = Vec::new();
    match kind {
        Kind::Race => {
            for (i, &first) in events.iter().enumerate() {
                for &second in &events[i + 1..] {
                    let atomic = trace.op(first).is_atomic() && trace.op(second).is_atomic();
                    if conflict(first, second) && !atomic {
                        goals.push(Goal::Race { first, second });
                    }
                }
            }
        }
        Kind::Nondeterminism => {
            for &read in events.iter().filter(|&&e| trace.op(e).reads()) {
                let writes = events.iter().filter(|&&c| {
                    c != read && trace.op(c).writes() && trace.op(c).variable() == trace.op(read).variable()
                });
                for challenger in std::iter::once(Writer::Init).chain(writes.map(|&c| Writer::Event(c))) {
                    if oracle.saw[read.index()] != challenger {
                        goals.push(Goal::Nondeterminism { read, challenger });
                    }
                }
            }
        }
        Kind::FinalValue => {
            for variable in (0..trace.variables()).map(VarId::new) {
                let writes =
                    events.iter().filter(|&&e| trace.op(e).writes() && trace.op(e).variable() == Some(variable));
                let mut writes: Vec<EventId> = writes.copied().collect();
                writes.pop();
                goals.extend(writes.into_iter().map(|challenger| Goal::FinalValue { variable, challenger }));
            }
        }
        Kind::Atomicity => {
            for &first in &events {
                for &remote in events.iter().filter(|&&f| conflict(first, f)) {
                    for &second in events.iter().filter(|&&e| e > first && conflict(remote, e)) {
                        let block = oracle.block[first.index()];
                        let one_block = block.is_some() && block == oracle.block[second.index()];
                        if trace.thread(first) == trace.thread(second) && one_block {
                            goals.push(Goal::Atomicity { first, remote, second });
                        }
                    }
                }
            }
        }
        Kind::Deadlock => {
            for &first in &events {
                oracle.cycles(&mut vec![first], &mut goals);
            }
        }
        Kind::LostUpdate => {
            let updates = updates(trace);
            for &(first, second) in updates.iter().filter(|(_, second)| matches!(trace.op(*second), Op::Write(..))) {
                for &(read, remote) in updates.iter().filter(|(_, remote)| conflict(first, *remote)) {
                    goals.push(Goal::LostUpdate { first, read, remote, second });
                }
            }
        }
        Kind::Stuck => {
            let waits = |&event: &EventId| oracle.can_wait(event);
            goals.extend(events.iter().copied().filter(waits).map(|waiting| Goal::Stuck { waiting }));
        }
        Kind::LostWakeup => {
            goals.extend((0..trace.pairings().len()).map(|k| Goal::LostWakeup { pairing: PairingId::new(k) }));
        }
    }
    goals
}

/// Reads, each with the next access of its variable by its thread if that writes; an update is one by itself, too.
fn updates(trace: &Trace) -> Vec<(EventId, EventId)> {
    let mut updates = Vec::new();
    for read in trace.events().filter(|e| e.op.reads()) {
        let same = |e: &portent_trace::Event| e.thread == read.thread && e.op.variable() == read.op.variable();
        let next = trace.events().find(|e| e.id > read.id && same(e));
        updates.extend(read.op.writes().then_some((read.id, read.id)));
        updates.extend(next.filter(|next| next.op.writes()).map(|next| (read.id, next.id)));
    }
    updates
}

impl Oracle<'_> {
    /// Every cycle that starts with `path`, whose first event is its lowest.
    pub(super) fn cycles(&self, path: &mut Vec<EventId>, goals: &mut Vec<Goal>) {
        let (first, last) = (path[0], path[path.len() - 1]);
        if path.len() > 1 && self.waits_for(last, first) {
            goals.push(Goal::Deadlock { waiting: path.clone() });
        }
        for event in self.trace.events().filter(|e| e.id > first && matches!(e.op, Op::Acquire(..))) {
            let new_thread = path.iter().all(|&e| self.trace.thread(e) != event.thread);
            if new_thread && self.waits_for(last, event.id) {
                path.push(event.id);
                self.cycles(path, goals);
                path.pop();
            }
        }
    }
}
