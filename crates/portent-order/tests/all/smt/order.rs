//! The order of events as an SMT problem: the encoding of docs/src/internals/encoding.md, written down eagerly and independently of the engine.
//!
//! Every event has a position, an integer, and so has the cut `z`: the events before it are the reordering.

use portent_order::Writer;
use portent_trace::{EventId, Mode, Op, Reach, Trace, VarId};
use std::fmt::Write as _;

/// Facts of a trace that the encoding needs.
pub(super) struct Facts {
    pub(super) program: Vec<Vec<EventId>>,
    pub(super) saw: Vec<Writer>,
    pub(super) writes: Vec<Vec<EventId>>,
    /// Lock, mode, acquire, release.
    pub(super) scopes: Vec<(usize, Mode, EventId, Option<EventId>)>,
    /// Operations on semaphores and conditions.
    pub(super) counted: Vec<EventId>,
    pub(super) branches: bool,
    /// Initial values, where reads recorded them.
    pub(super) initial: Vec<Option<i64>>,
}

impl Facts {
    /// The reads of a thread before an event of it.
    pub(super) fn reads_before<'a>(&'a self, trace: &'a Trace, event: EventId) -> impl Iterator<Item = EventId> + 'a {
        let program = &self.program[trace.thread(event).index()];
        program.iter().copied().filter(move |&e| e < event && trace.op(e).reads())
    }
    /// Whether a write has the value that a read saw; there are no updates here.
    pub(super) fn equal(&self, trace: &Trace, read: EventId, writer: Writer) -> bool {
        let value = match writer {
            Writer::Init => self.initial[trace.op(read).variable().unwrap().index()],
            Writer::Event(w) => trace.value(w),
        };
        value.is_some() && value == trace.value(read)
    }
}

pub(super) fn facts(trace: &Trace) -> Facts {
    let mut f = Facts {
        program: vec![Vec::new(); trace.threads()],
        saw: Vec::new(),
        writes: vec![Vec::new(); trace.variables()],
        scopes: Vec::new(),
        counted: Vec::new(),
        branches: trace.events().any(|e| e.op == Op::Branch),
        initial: vec![None; trace.variables()],
    };
    for event in trace.events() {
        f.program[event.thread.index()].push(event.id);
        let last = event.op.variable().and_then(|x| f.writes[x.index()].last().copied());
        f.saw.push(last.map_or(Writer::Init, Writer::Event));
        if let (Op::Read(x, _), None, Some(_)) = (event.op, last, event.value) {
            f.initial[x.index()] = event.value;
        }
        match event.op {
            op if op.writes() => f.writes[op.variable().unwrap().index()].push(event.id),
            Op::Post(_) | Op::Wait(_) | Op::Empty(_) | Op::Sleep(_) | Op::Notify(..) | Op::Wake(_) => {
                f.counted.push(event.id);
            }
            Op::Acquire(lock, mode) => f.scopes.push((lock.index(), mode, event.id, None)),
            Op::Release(lock, mode) => {
                let mine = |s: &&mut (usize, Mode, EventId, Option<EventId>)| {
                    (s.0, s.1) == (lock.index(), mode) && s.3.is_none() && trace.thread(s.2) == event.thread
                };
                f.scopes.iter_mut().rev().find(mine).unwrap().3 = Some(event.id);
            }
            _ => {}
        }
    }
    f
}

pub(super) fn p(event: EventId) -> String {
    format!("p{}", event.index())
}
pub(super) fn lt(a: impl Into<String>, b: impl Into<String>) -> String {
    format!("(< {} {})", a.into(), b.into())
}
pub(super) fn any(parts: Vec<String>) -> String {
    if parts.is_empty() { "false".into() } else { format!("(or {})", parts.join(" ")) }
}
pub(super) fn all(parts: Vec<String>) -> String {
    if parts.is_empty() { "true".into() } else { format!("(and {})", parts.join(" ")) }
}

/// The read comes after the write, and no other write comes between.
pub(super) fn sees(trace: &Trace, f: &Facts, e: EventId, writer: Writer) -> String {
    let mut parts = Vec::new();
    if let Writer::Event(w) = writer {
        parts.push(lt(p(w), p(e)));
    }
    let writes = f.writes[trace.op(e).variable().unwrap().index()].iter();
    for &d in writes.filter(|&&d| d != e && Writer::Event(d) != writer) {
        let mut order = vec![lt(p(e), p(d))];
        if let Writer::Event(w) = writer {
            order.push(lt(p(d), p(w)));
        }
        parts.push(any(order));
    }
    all(parts)
}

/// Positions, and what holds of them in every model; what reads see is not part of it.
pub(super) fn order(trace: &Trace, f: &Facts, logic: &str) -> String {
    let mut s = format!("(set-logic {logic})\n(set-option :timeout 10000)\n(declare-const z Int)\n");
    for event in trace.events() {
        let _ = writeln!(s, "(declare-const {} Int)", p(event.id));
    }
    for (wait, notify) in meetings(trace) {
        let _ = writeln!(s, "(declare-const {} Bool)", ends(notify, wait.sleep));
    }
    let mut say = |fact: String| {
        let _ = writeln!(s, "(assert {fact})");
    };
    for event in trace.events() {
        // Positions are distinct from the cut, so that every event is before or after it.
        say(any(vec![lt(p(event.id), "z"), lt("z", p(event.id))]));
    }
    for program in &f.program {
        for pair in program.windows(2) {
            say(lt(p(pair[0]), p(pair[1])));
        }
    }
    for event in trace.events() {
        let e = event.id;
        match event.op {
            Op::Receive(token) => trace.senders(token).iter().for_each(|&send| say(lt(p(send), p(e)))),
            Op::Wait(semaphore) | Op::Empty(semaphore) => {
                let wait = matches!(event.op, Op::Wait(_));
                let before = |op: Op| {
                    let others = trace.events().filter(move |other| other.op == op && other.id != e);
                    others.map(|other| format!("(ite {} 1 0)", lt(p(other.id), p(e)))).collect::<Vec<_>>().join(" ")
                };
                let (posts, waits) = (before(Op::Post(semaphore)), before(Op::Wait(semaphore)));
                let initial = trace.initial_count(semaphore);
                let count = format!("(- (+ {initial} 0 {posts}) (+ 0 0 {waits}))");
                let enough = if wait { format!("(> {count} 0)") } else { format!("(= {count} 0)") };
                say(any(vec![lt("z", p(e)), enough]));
            }
            Op::Busy(lock, mode) => {
                let mut holders = vec![lt("z", p(e))];
                for &(l, m, acquire, release) in &f.scopes {
                    if l == lock.index() && m.conflicts_with(mode) && trace.thread(acquire) != event.thread {
                        let mut held = vec![lt(p(acquire), p(e))];
                        held.extend(release.map(|release| lt(p(e), p(release))));
                        holders.push(all(held));
                    }
                }
                say(any(holders));
            }
            _ => {}
        }
    }
    for fact in conditions(trace) {
        say(fact);
    }
    for (i, &one) in f.counted.iter().enumerate() {
        // Positions of others need not differ; where they are counted they must.
        for &two in f.counted[i + 1..].iter().filter(|&&two| trace.thread(two) != trace.thread(one)) {
            say(any(vec![lt(p(one), p(two)), lt(p(two), p(one))]));
        }
    }
    for (i, &(l1, m1, a1, r1)) in f.scopes.iter().enumerate() {
        for &(l2, m2, a2, r2) in &f.scopes[i + 1..] {
            if l1 == l2 && m1.conflicts_with(m2) && trace.thread(a1) != trace.thread(a2) {
                let mut order = vec![lt("z", p(a1)), lt("z", p(a2))];
                order.extend(r1.map(|r| lt(p(r), p(a2))));
                order.extend(r2.map(|r| lt(p(r), p(a1))));
                say(any(order));
            }
        }
    }
    s
}

/// The event is the next of its thread.
pub(super) fn at(trace: &Trace, f: &Facts, e: EventId) -> String {
    let program = &f.program[trace.thread(e).index()];
    let place = program.partition_point(|&x| x < e);
    let mut parts = vec![lt("z", p(e))];
    if place > 0 {
        parts.push(lt(p(program[place - 1]), "z"));
    }
    all(parts)
}

/// The last write of a variable before the cut is this one.
pub(super) fn last(f: &Facts, x: VarId, c: Writer) -> String {
    let mut parts = Vec::new();
    if let Writer::Event(c) = c {
        parts.push(lt(p(c), "z"));
    }
    for &d in f.writes[x.index()].iter().filter(|&&d| Writer::Event(d) != c) {
        let mut order = vec![lt("z", p(d))];
        if let Writer::Event(c) = c {
            order.push(lt(p(d), p(c)));
        }
        parts.push(any(order));
    }
    all(parts)
}

/// Every event is before the cut.
pub(super) fn complete(f: &Facts) -> String {
    all(f.program.iter().filter_map(|t| t.last()).map(|&e| lt(p(e), "z")).collect())
}

/// A wait: its sleep, its wake if there is one, and whether a notify ended it.
#[derive(Clone, Copy)]
struct Nap {
    sleep: EventId,
    wake: Option<EventId>,
    by_notify: bool,
}

fn naps(trace: &Trace) -> Vec<Nap> {
    let mut naps: Vec<Nap> = Vec::new();
    for event in trace.events() {
        match event.op {
            Op::Sleep(_) => naps.push(Nap { sleep: event.id, wake: None, by_notify: false }),
            Op::Wake(_) => {
                let own = naps.iter_mut().rev().find(|nap| trace.thread(nap.sleep) == event.thread).unwrap();
                own.wake = Some(event.id);
                own.by_notify = trace.pairing_of_wake(event.id).is_some();
            }
            _ => {}
        }
    }
    naps
}

/// Every wait with every notify on its condition, and of another thread.
fn meetings(trace: &Trace) -> Vec<(Nap, EventId)> {
    let of = |nap: Nap| {
        let Op::Sleep(condition) = trace.op(nap.sleep) else { unreachable!() };
        let notifies = trace.events().filter(move |e| matches!(e.op, Op::Notify(on, _) if on == condition));
        notifies.filter(move |e| e.thread != trace.thread(nap.sleep)).map(move |e| (nap, e.id))
    };
    naps(trace).into_iter().flat_map(of).collect()
}

/// "This notify ends the wait that begins with this sleep."
fn ends(notify: EventId, sleep: EventId) -> String {
    format!("m{}_{}", notify.index(), sleep.index())
}

/// Whom notifies wake, as choices: each wakes one who sleeps, if anybody does, or all.
fn conditions(trace: &Trace) -> Vec<String> {
    let mut facts = Vec::new();
    let meetings = meetings(trace);
    let not = |fact: String| format!("(not {fact})");
    let before_z = |e: EventId| lt(p(e), "z");
    for &(nap, n) in &meetings {
        let mut meets = vec![lt(p(nap.sleep), p(n)), before_z(n)];
        meets.extend(nap.wake.map(|wake| lt(p(n), p(wake))));
        if let (Some(wake), false) = (nap.wake, nap.by_notify) {
            // Who is woken does not wake by itself.
            meets = vec![lt(p(nap.sleep), p(n)), before_z(n), lt("z", p(wake))];
        }
        facts.push(any(vec![not(ends(n, nap.sleep)), all(meets)]));
    }
    for nap in naps(trace) {
        let of: Vec<EventId> = meetings.iter().filter(|(other, _)| other.sleep == nap.sleep).map(|(_, n)| *n).collect();
        for (i, &one) in of.iter().enumerate() {
            for &two in &of[i + 1..] {
                facts.push(any(vec![not(ends(one, nap.sleep)), not(ends(two, nap.sleep))]));
            }
        }
        if let (Some(wake), true) = (nap.wake, nap.by_notify) {
            let mut woken: Vec<String> = of.iter().map(|&n| ends(n, nap.sleep)).collect();
            woken.push(lt("z", p(wake)));
            facts.push(any(woken));
        }
    }
    for event in trace.events() {
        let Op::Notify(condition, reach) = event.op else { continue };
        let n = event.id;
        let of = |nap: &Nap| trace.op(nap.sleep) == Op::Sleep(condition);
        let sleepers: Vec<Nap> = naps(trace).into_iter().filter(of).collect();
        let met: Vec<EventId> = meetings.iter().filter(|(_, other)| *other == n).map(|(nap, _)| nap.sleep).collect();
        if reach == Reach::One {
            for (i, &one) in met.iter().enumerate() {
                for &two in &met[i + 1..] {
                    facts.push(any(vec![not(ends(n, one)), not(ends(n, two))]));
                }
            }
        }
        // Nobody sleeps when it comes, or it wakes one of them; a notify-all wakes each who does.
        let over = |nap: &Nap| {
            let mut ways = vec![lt(p(n), p(nap.sleep))];
            ways.extend(nap.wake.filter(|_| !nap.by_notify).map(|wake| lt(p(wake), p(n))));
            for &(other, earlier) in meetings.iter().filter(|(other, _)| other.sleep == nap.sleep) {
                let woken = ends(earlier, other.sleep);
                ways.push(if earlier == n { woken } else { all(vec![woken, lt(p(earlier), p(n))]) });
            }
            any(ways)
        };
        let nobody = all(sleepers.iter().map(over).collect());
        let mut ways = vec![lt("z", p(n)), nobody];
        if reach == Reach::One {
            ways.extend(met.iter().map(|&sleep| ends(n, sleep)));
        }
        facts.push(any(ways));
    }
    facts
}
