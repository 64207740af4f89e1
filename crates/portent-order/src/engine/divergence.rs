//! Where a run can leave the trace: a [`Divergence`] as targets, one for each way to have its outcome.

use super::counts::Need;
use super::index::{Chain, Dense, Node, Source, Variable};
use super::target::{Finds, Free, Target};
use super::window::Window;
use super::{Effort, Engine};
use crate::divergence::{At, Divergence, Outcome};
use crate::goal::{Unknown, Verdict, Writer};
use crate::read_rule::ReadRule;
use portent_trace::{LockId, Mode, Op};

impl Engine<'_, '_> {
    /// Decides whether an operation can have another outcome. The engine must see the whole trace, and kept reads must see the
    /// same: otherwise the answer is `Unknown`.
    pub fn diverges(&mut self, question: &Divergence, effort: Effort) -> Verdict {
        self.tiers.queries += 1;
        let w = self.window;
        let whole = w.first == 0 && w.chosen.is_none() && w.reaches_the_end() && !w.relaxed;
        let why = if !whole {
            Err(Unknown::Window)
        } else if !matches!(w.rule, ReadRule::SameValue | ReadRule::ObservedWrite) {
            Err(Unknown::Values)
        } else {
            targets(w, question).ok_or(Unknown::Window)
        };
        match why {
            Ok(targets) => self.decide_one_of(&targets, effort),
            Err(why) => {
                self.tiers.unknown += 1;
                Verdict::Unknown(why)
            }
        }
    }
}

/// The targets of a divergence; `None` for what is not decided: how a pending operation that waits for nothing goes on.
fn targets(w: &Window<'_>, question: &Divergence) -> Option<Vec<Target>> {
    let mut base = Target::new(w);
    for at in question.meanwhile.iter().chain([&question.at]) {
        base = match *at {
            At::Event(event) => base.at(w, w.node(event)?),
            At::End(thread, _) => match w.chain[Chain::new(thread.index())].last() {
                Some(&last) => base.with(w, last),
                None => base,
            },
        };
    }
    let (thread, op) = match question.at {
        At::Event(event) => (w.trace.thread(event), w.trace.op(event)),
        At::End(thread, op) => (thread, op),
    };
    let chain = Chain::new(thread.index());
    for events in &question.contain_one_of {
        let mut nodes = events.iter().map(|&event| w.node(event)).collect::<Option<Vec<Node>>>()?;
        nodes.retain(|&node| w.past_of(node).is_within(&base.stop));
        nodes.sort_unstable();
        nodes.dedup();
        match nodes[..] {
            [] => return Some(Vec::new()), // The thread is past it before all of them.
            [only] => base = base.with(w, only),
            _ => base.one_of.push(nodes),
        }
    }
    match (question.outcome, op) {
        (Outcome::Any, _) => Some(vec![base]),
        (Outcome::Sees(value), Op::Read(x, _) | Op::Update(x, _)) => {
            let Some(x) = w.variable_index(x) else { return Some(Vec::new()) };
            let writes = w.writes_of(x).map(Source::Write);
            let sources = std::iter::once(Source::Base).chain(writes);
            Some(sources.filter(|&s| value_of(w, x, s) == Some(value)).map(|s| seeing(w, &base, x, s)).collect())
        }
        (Outcome::SeesWrite(writer), Op::Read(x, _) | Op::Update(x, _)) => {
            let source = match writer {
                Writer::Init => Source::Base,
                Writer::Event(write) => Source::Write(w.node(write)?),
            };
            let written = source.node().is_none_or(|write| w.act[write].written() == w.variable_index(x));
            let x = w.variable_index(x).filter(|_| written);
            Some(x.map(|x| seeing(w, &base, x, source)).into_iter().collect())
        }
        (Outcome::Goes, Op::Acquire(lock, mode) | Op::Busy(lock, mode)) => {
            base.free = w.lock_of.get(&lock).map(|&lock| Free { lock, mode, chain });
            Some(vec![base])
        }
        (Outcome::Goes, Op::Receive(token)) => {
            for &send in w.trace.senders(token) {
                base = base.with(w, w.node(send)?);
            }
            Some(vec![base])
        }
        (Outcome::Fails, Op::Acquire(lock, mode) | Op::Busy(lock, mode)) => Some(held(w, &base, lock, mode, chain)),
        (Outcome::Goes | Outcome::Fails, Op::Wait(global) | Op::Empty(global)) => {
            let need = if question.outcome == Outcome::Goes { Need::AboveZero } else { Need::Zero };
            let initial = || i64::try_from(w.trace.initial_count(global)).unwrap_or(i64::MAX);
            match w.semaphore_of.get(&global) {
                Some(&semaphore) => base.finds = Some(Finds::Count(chain, base.stop[chain], semaphore, need)),
                None if !need.is_met(initial()) => return Some(Vec::new()),
                None => {}
            }
            Some(vec![base])
        }
        (Outcome::Goes | Outcome::Fails, Op::Wake(_)) => {
            let wait = match question.at {
                At::Event(wake) => w.waits.entries().find(|(_, wait)| wait.wake == w.node(wake)),
                // What the thread did last to a condition was to sleep on it.
                At::End(..) => {
                    let last = w.waits.entries().rfind(|(_, wait)| wait.chain == chain);
                    last.filter(|(_, wait)| wait.wake.is_none())
                }
            };
            let Some((wait, _)) = wait else { return Some(Vec::new()) };
            base.finds = Some(match question.outcome {
                Outcome::Goes => Finds::Woken(wait),
                _ => Finds::Asleep(wait),
            });
            Some(vec![base])
        }
        _ => None,
    }
}

/// The target, if the operation is to see this.
fn seeing(w: &Window<'_>, base: &Target, x: Variable, source: Source) -> Target {
    let mut target = base.clone();
    if let Source::Write(write) = source {
        target = target.with(w, write);
    }
    target.last = Some((x, source));
    target
}

/// The ways in which another chain can hold a lock.
fn held(w: &Window<'_>, base: &Target, lock: LockId, mode: Mode, chain: Chain) -> Vec<Target> {
    let Some(&lock) = w.lock_of.get(&lock) else { return Vec::new() };
    let holds = |scope: super::index::ScopeId| {
        let scope = w.scopes[scope];
        let mut target = base.clone();
        if let Some(acquire) = scope.acquire {
            target = target.with(w, acquire);
        }
        if let Some(release) = scope.release {
            target.stop[scope.chain] = target.stop[scope.chain].min(w.place[release]);
        }
        target
    };
    Free { lock, mode, chain }.rivals(w).map(holds).collect()
}

/// What a write left behind, or a variable held before the trace, where that is known.
fn value_of(w: &Window<'_>, x: Variable, source: Source) -> Option<i64> {
    match (source, &w.values) {
        (Source::Write(write), _) => w.trace.value(w.event(write)),
        (Source::Base, Some(values)) => values.traced(w, x, source),
        (Source::Base, None) => {
            let readers = w.variables[x].base_readers.iter().filter(|&&node| w.act[node].written().is_none());
            let mut values = readers.filter_map(|&node| w.trace.value(w.event(node)));
            let first = values.next()?;
            values.all(|value| value == first).then_some(first)
        }
    }
}
