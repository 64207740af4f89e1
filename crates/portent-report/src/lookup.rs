//! Finding one's way in a trace: which events a finding means, and what each thread did in which order.

use portent_predict::{Bug, Deadlock, Finding, Place, Role};
use portent_trace::{Ending, EventId, LockId, Meaning, Mode, ObjectClass, Op, Reach, ThreadId, Trace, is_system_call};
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// The event of a place, if it is one of the recorded run.
pub(crate) fn recorded(place: &Place) -> Option<EventId> {
    place.event.and(place.kernel)
}

/// The events that a finding is about. A lost wake-up is also about the sleep, which is no place of its own.
pub(crate) fn goal_events(trace: &Trace, finding: &Finding) -> Vec<(Role, EventId)> {
    let with_role = |place: &Place| Some((place.role, place.kernel?));
    let mut events: Vec<(Role, EventId)> = finding.places().into_iter().filter_map(with_role).collect();
    if let Bug::Deadlock(Deadlock::LostWakeup { pairing, .. }) = finding.bug {
        events.push((Role::Waiting, trace.pairings()[pairing.index()].sleep));
    }
    if let Some(deciding) = finding.bug.failure().and_then(|failure| failure.decisive.as_ref()) {
        let decisive = [(Role::Decisive, Some(&deciding.operation)), (Role::Because, deciding.because.as_ref())];
        events.extend(decisive.into_iter().filter_map(|(role, place)| Some((role, place?.kernel?))));
    }
    events
}

/// A value that was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// As a number.
    pub number: i64,
    /// What is at that address, if the variable is a pointer.
    pub points_to: Option<String>,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.points_to {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.number),
        }
    }
}

impl Value {
    /// A value of the variable of an event.
    pub(crate) fn of(trace: &Trace, event: EventId, number: i64) -> Value {
        let points_to = trace.op(event).variable().and_then(|variable| trace.pointee(variable, number));
        Value { number, points_to: points_to.map(str::to_owned) }
    }

    /// Whether it says something to people: addresses do not.
    pub(crate) fn is_telling(&self) -> bool {
        self.points_to.is_some() || self.number.unsigned_abs() < 1 << 40
    }
}

/// What an event is done to, for readers; forks and joins name the thread.
fn object(trace: &Trace, lookup: &Lookup, event: EventId) -> String {
    match trace.op(event) {
        // All of a block ends, whatever its parts are called.
        op if trace.ends(event) == Some(Ending::Memory) => match op.variable() {
            Some(x) => trace.whole_name(x).into_owned(),
            None => String::new(),
        },
        Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => trace.variable_name(x).into_owned(),
        Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => trace.names().lock(l).into_owned(),
        Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => trace.names().condition(c).into_owned(),
        Op::Post(s) | Op::Wait(s) | Op::Empty(s) => trace.names().semaphore(s).into_owned(),
        Op::Begin(b) | Op::End(b) => trace.names().block(b).into_owned(),
        Op::Branch | Op::Fence(_) => String::new(),
        Op::Send(_) | Op::Receive(_) => lookup.passage(trace, event).object.into_owned(),
    }
}

/// What an event does, for readers: forks and joins by their names.
pub(crate) fn action(trace: &Trace, lookup: &Lookup, event: EventId) -> String {
    let name = match trace.op(event) {
        _ if trace.ends(event) == Some(Ending::Memory) => "free",
        _ if trace.ends(event) == Some(Ending::Object) => "destroy",
        Op::Send(_) | Op::Receive(_) => lookup.passage(trace, event).verb,
        Op::Wait(_) => PASS,
        Op::Empty(_) => FAIL_TO_PASS,
        Op::Sleep(_) => "sleep on",
        Op::Busy(..) => "fail to lock",
        Op::Begin(_) => "begin block",
        Op::End(_) => "end block",
        op => op.name(),
    };
    format!("{name} {}", object(trace, lookup, event)).trim_end().to_owned()
}

/// The same as what its thread does, in words that programmers use of it.
pub(crate) fn deed(trace: &Trace, lookup: &Lookup, event: EventId) -> String {
    let verb = match trace.op(event) {
        // What it does with its own stack, or what a library does for it, tells nobody anything.
        op if op.variable().is_some() && trace.ends(event).is_none() && trace.is_nameless(op) => return GOES_ON.into(),
        _ if trace.ends(event) == Some(Ending::Memory) => "frees",
        _ if trace.ends(event) == Some(Ending::Object) => "destroys",
        Op::Read(..) => "reads",
        Op::Write(..) => "writes",
        Op::Update(..) => "updates",
        Op::Acquire(_, Mode::Shared) => "locks (shared)",
        Op::Acquire(lock, _) if lookup.is_once(lock) => "is the first at the once of",
        Op::Release(lock, _) if lookup.is_once(lock) => "leaves the once of",
        Op::Acquire(..) => "locks",
        Op::Release(..) => "unlocks",
        Op::Busy(..) => "fails to lock",
        Op::Sleep(_) => "sleeps on",
        Op::Notify(_, Reach::One) => "notifies",
        Op::Notify(_, Reach::All) => "notifies all of",
        Op::Wake(_) => "wakes from",
        Op::Post(_) => "posts",
        Op::Wait(_) => "passes",
        Op::Empty(_) => "fails to pass",
        Op::Begin(_) => "enters",
        Op::End(_) => "leaves",
        Op::Branch => "branches",
        Op::Fence(_) => "orders its memory accesses (fence)",
        Op::Send(_) | Op::Receive(_) => match lookup.passage(trace, event).verb {
            "fork" => "starts",
            "join" => "joins",
            START => "starts to run",
            END => "ends",
            "signal" => "signals",
            CAME_BACK => "comes back from a system call",
            PASS => "passes",
            "count down" => "counts down",
            "arrive at" => "arrives at",
            "leave" => "leaves",
            "end once" => "ends the once of",
            "pass once" => "passes the once of",
            other => other,
        },
    };
    format!("{verb} {}", object(trace, lookup, event)).trim_end().to_owned()
}

/// What a thread does of which there is nothing to tell.
pub(crate) const GOES_ON: &str = "goes on";

/// What sending or receiving an ordering token is to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage<'t> {
    /// What is done.
    pub(crate) verb: &'static str,
    /// What it is done to, where that has a name.
    pub(crate) object: Cow<'t, str>,
}

const START: &str = "start";
const END: &str = "end";
pub(crate) const PASS: &str = "pass";
pub(crate) const FAIL_TO_PASS: &str = "fail to pass";
/// A call of the system, in which the thread may have waited, is over.
const CAME_BACK: &str = "end a system call";

/// The events of each thread, in program order.
#[derive(Debug)]
pub(crate) struct Lookup {
    program: Vec<Vec<EventId>>,
    onces: FxHashSet<LockId>,
}

impl Lookup {
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut lookup = Lookup { program: vec![Vec::new(); trace.threads()], onces: FxHashSet::default() };
        for event in trace.events() {
            lookup.program[event.thread.index()].push(event.id);
            lookup.onces.extend(once_of(trace, event.op));
        }
        lookup
    }
    /// Whether a lock is what is held while something is done once.
    fn is_once(&self, lock: LockId) -> bool {
        self.onces.contains(&lock)
    }
    /// The events of a thread.
    pub(crate) fn program(&self, thread: ThreadId) -> &[EventId] {
        &self.program[thread.index()]
    }
    /// Which event of its thread this is.
    pub(crate) fn place(&self, trace: &Trace, event: EventId) -> usize {
        self.program(trace.thread(event)).partition_point(|&e| e < event)
    }
    /// What a send or receive is to the user: what the input event does that it is part of.
    pub(crate) fn passage<'t>(&self, trace: &'t Trace, event: EventId) -> Passage<'t> {
        let names = trace.names();
        let named = |class: ObjectClass, object: u32| names.called(class, object);
        let (sends, token) = match trace.op(event) {
            Op::Send(token) => (true, token),
            Op::Receive(token) => (false, token),
            _ => return Passage { verb: PASS, object: "".into() },
        };
        let (verb, object) = match (trace.meaning(token), sends) {
            (Meaning::Fork(child), true) => ("fork", names.thread(child).into()),
            (Meaning::Fork(_), false) => (START, "".into()),
            (Meaning::Join(_), true) => (END, "".into()),
            (Meaning::Join(child), false) => ("join", names.thread(child).into()),
            (Meaning::Named(token), true) if is_system_call(&named(ObjectClass::Token, token)) => {
                (CAME_BACK, "".into())
            }
            // Recorders give tokens names that say nothing to the user.
            (Meaning::Named(_), true) => ("signal", "".into()),
            (Meaning::Named(_), false) => (PASS, "".into()),
            (Meaning::Notify(condition), true) => ("signal", names.condition(condition)),
            (Meaning::Notify(condition), false) => (PASS, names.condition(condition)),
            (Meaning::Latch(latch), true) => ("count down", named(ObjectClass::Latch, latch)),
            (Meaning::Latch(latch), false) => (PASS, named(ObjectClass::Latch, latch)),
            (Meaning::Barrier(barrier), true) => ("arrive at", named(ObjectClass::Barrier, barrier)),
            (Meaning::Barrier(barrier), false) => ("leave", named(ObjectClass::Barrier, barrier)),
            (Meaning::Once(once), true) => ("end once", names.lock(once)),
            (Meaning::Once(once), false) => ("pass once", names.lock(once)),
        };
        Passage { verb, object }
    }
    /// Whether an event is one that the user's program performs, not the beginning or the end of a thread.
    pub(crate) fn is_performed(&self, trace: &Trace, event: EventId) -> bool {
        !matches!(trace.op(event), Op::Send(_) | Op::Receive(_))
            || ![START, END].contains(&self.passage(trace, event).verb)
    }
    /// The fork of a thread, if it has one.
    pub(crate) fn fork_of(&self, trace: &Trace, thread: ThreadId) -> Option<EventId> {
        match trace.op(*self.program(thread).first()?) {
            Op::Receive(k) if trace.meaning(k) == Meaning::Fork(thread) => trace.senders(k).first().copied(),
            _ => None,
        }
    }
}

/// The once that an event ends or passes. Who is at it first holds a lock meanwhile, which nobody calls one.
pub(crate) fn once_of(trace: &Trace, op: Op) -> Option<LockId> {
    let (Op::Send(token) | Op::Receive(token)) = op else { return None };
    match trace.meaning(token) {
        Meaning::Once(once) => Some(once),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_and_joins_are_told_from_other_tokens() {
        let text = "m|fork(A)|1\nA|w(x)|2\nA|snd(k)|3\nm|rcv(k)|4\nm|join(A)|5\n";
        let trace = Trace::from_std(text).unwrap();
        let lookup = Lookup::new(&trace);
        let said: Vec<String> = (0..trace.len()).map(|i| action(&trace, &lookup, EventId::new(i))).collect();
        assert_eq!(said, ["fork A", "start", "write x", "signal", "pass", "end", "join A"]);
        let deeds: Vec<String> = (0..trace.len()).map(|i| deed(&trace, &lookup, EventId::new(i))).collect();
        assert_eq!(deeds, ["starts A", "starts to run", "writes x", "signals", "passes", "ends", "joins A"]);
        let text = "m|fork(A)|1\nA|call(f)|2\nA|w(x)|3\n";
        let trace = Trace::from_std(text).unwrap();
        let lookup = Lookup::new(&trace);
        let said: Vec<String> = (0..trace.len()).map(|i| action(&trace, &lookup, EventId::new(i))).collect();
        assert_eq!(said, ["fork A", "start", "write x"]);
        let a = trace.thread(EventId::new(1));
        assert_eq!(lookup.fork_of(&trace, a), Some(EventId::new(0)));
        assert_eq!(lookup.fork_of(&trace, trace.thread(EventId::new(0))), None);
    }

    #[test]
    fn a_post_is_a_post_and_no_fork() {
        let said = |text: &str| -> Vec<String> {
            let trace = Trace::from_std(text).unwrap();
            let lookup = Lookup::new(&trace);
            (0..trace.len()).map(|i| action(&trace, &lookup, EventId::new(i))).collect()
        };
        // The wait is the first event of its thread, which nobody forked.
        let text = "T1|w(z)|1\nT1|post(s)|2\nT0|semw(s)|3\nT0|semf(s)|4\nT0|w(x)|5\n";
        assert_eq!(said(text), ["write z", "post s", "pass s", "fail to pass s", "write x"]);
        assert_eq!(said("T1|cdn(f)|1\nT0|lwt(f)|2\n"), ["count down f", "pass f"]);
        assert_eq!(said("T1|arr(b)|1\nT0|arr(b)|2\nT1|dep(b)|3\n"), ["arrive at b", "arrive at b", "leave b"]);
        let once = ["acquire o", "end once o", "release o", "acquire o", "release o", "pass once o"];
        assert_eq!(said("T1|onceb(o)|1\nT1|oncee(o)|2\nT0|oncep(o)|3\n"), once);
        assert_eq!(said("T1|ntf(d)|1\nT0|wai(d)|2\n"), ["signal d", "pass d"]);
        assert_eq!(said("T1|snd(system calls)|1\n"), ["end a system call"]);
    }
}
