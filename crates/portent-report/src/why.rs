//! Why a finding is a bug, in sentences.

use crate::circumstances::{Circumstances, Held};
use crate::lookup::Value;
use crate::report::{At, Spot};
use crate::words::list;
use portent_order::Model;
use portent_predict::{Bug, Deadlock, Finding, Form, OtherBranch, Pattern, Role, Violated};
use portent_trace::{EventId, Meaning, Op, TokenId, Trace};

/// What a telling needs.
struct Teller<'a> {
    trace: &'a Trace,
    circumstances: &'a Circumstances,
    finding: &'a Finding,
    places: &'a [Spot],
    goals: &'a [(Role, EventId)],
}

/// Why it is a bug.
pub(crate) fn sentences(
    trace: &Trace,
    circumstances: &Circumstances,
    finding: &Finding,
    places: &[Spot],
    goals: &[(Role, EventId)],
) -> String {
    let teller = Teller { trace, circumstances, finding, places, goals };
    let text = match &finding.bug {
        Bug::Race { .. } => teller.race(),
        Bug::Deadlock(Deadlock::LostWakeup { .. }) => teller.lost_wakeup(),
        Bug::Deadlock(Deadlock::Cycle { .. }) => teller.cycle(),
        Bug::Deadlock(Deadlock::Stuck { .. }) => teller.stuck(),
        Bug::Atomicity { pattern, .. } => teller.atomicity(*pattern),
        Bug::LostUpdate { .. } => teller.lost_update(),
        Bug::Nondeterminism(_) => teller.nondeterminism(),
        Bug::Property { violated, .. } => property(violated),
        Bug::Failure(failed) => failed.message.clone(),
    };
    let text = match &finding.other_branch {
        Some(other) => format!("{text} {}", teller.other_branch(other)),
        None => text,
    };
    crate::words::line(&text)
}

fn property(violated: &Violated) -> String {
    format!("{} says: {}. {}", violated.name, violated.text, violated.explanation)
}

impl Teller<'_> {
    fn who(&self, i: usize) -> &str {
        self.places.get(i).and_then(|place| place.thread.as_deref()).unwrap_or("another thread")
    }
    fn at(&self, i: usize) -> String {
        self.places.get(i).and_then(|place| place.at.as_ref()).map_or_else(String::new, |at| format!(" at {}", at.text))
    }
    fn since(&self, held: &Held) -> String {
        At::of(self.trace, self.trace.event(held.since).loc).text
    }
    fn held(&self, i: usize) -> Vec<Held> {
        self.goals.get(i).map_or_else(Vec::new, |(_, event)| self.circumstances.of(*event).held)
    }
    fn lock(&self, held: &Held) -> String {
        self.trace.names().lock(held.lock).into_owned()
    }
    fn value(&self, i: usize) -> Option<&Value> {
        self.places.get(i).and_then(|place| place.value.as_ref())
    }

    fn race(&self) -> String {
        let (a, b, x) = (self.who(0), self.who(1), &self.finding.object);
        let mut text = if self.finding.flags.relaxed_only {
            format!("Only a relaxed atomic comes between {a} and {b}: the language leaves their accesses unordered.")
        } else if self.finding.witness.is_none() {
            format!("Nothing in the recorded run orders {a}'s access before {b}'s.")
        } else {
            match self.finding.bug.form() {
                Form::PossiblyDestroyedInUse => {
                    format!("{a} and {b} can be about to use and to destroy {x} at the same time.")
                }
                Form::PossibleUseAfterFree => {
                    format!("{a} and {b} can be about to use and to free {x} at the same time.")
                }
                Form::PossibleDoubleFree => format!("{a} and {b} can both be about to free {x} at the same time."),
                _ => format!("{a} and {b} can both be about to access {x} at the same time."),
            }
        };
        let held = |i: usize| self.held(i).iter().filter(|held| !held.is_once).map(|held| self.lock(held)).collect();
        let held: [Vec<String>; 2] = [held(0), held(1)];
        let holds = |i: usize| match &held[i] {
            locks if locks.is_empty() => format!("{} holds no lock", self.who(i)),
            locks => format!("{} holds {}", self.who(i), list(locks)),
        };
        text.push_str(&match held.iter().all(Vec::is_empty) {
            true => format!(" No lock protects {x}."),
            false => format!(" No common lock protects {x}: {}, {}.", holds(0), holds(1)),
        });
        let atomic = |i: usize| self.goals.get(i).is_some_and(|(_, event)| self.trace.op(*event).is_atomic());
        if atomic(0) != atomic(1) {
            let (plain, other) = if atomic(0) { (b, a) } else { (a, b) };
            text.push_str(&format!(" {other}'s access is atomic, {plain}'s is not."));
        }
        // Where formulas tell, what is written depends on what was read on the way.
        let as_recorded = self.finding.model != Some(Model::Values) || self.trace.symbols().is_none();
        let written = |i: usize| self.value(i).filter(|_| as_recorded && self.places[i].op == "write");
        if let (Some(one), Some(other)) = (written(0), written(1))
            && one.to_string() != other.to_string()
        {
            text.push_str(&format!(" Whoever is later decides whether {one} or {other} is left."));
        }
        text
    }

    /// What must go another way than it did, and how that comes.
    fn other_branch(&self, other: &OtherBranch) -> String {
        let trace = self.trace;
        let at = |event: EventId| At::of(trace, trace.event(event).loc).text;
        let who = trace.names().thread(trace.thread(other.branch));
        let outcome = if other.outcome { "hold" } else { "not hold" };
        let reads = other.reads.iter().map(|decisive| {
            let variable =
                trace.op(decisive.read).variable().map_or_else(String::new, |x| trace.variable_name(x).into_owned());
            let value = |value: Option<i64>| value.map_or_else(|| "?".into(), |value| value.to_string());
            match decisive.was == decisive.is {
                true => format!("{variable} = {}", value(decisive.is)),
                false => format!("{variable} = {} instead of {}", value(decisive.is), value(decisive.was)),
            }
        });
        let reads: Vec<String> = reads.collect();
        let mut text = format!("For that, the condition of {who}'s branch at {} must {outcome}", at(other.branch));
        if !reads.is_empty() {
            text.push_str(&format!(", as when {who} reads {}", list(&reads)));
        }
        text.push_str(&match other.seen {
            Some(seen) => format!("; what it does then was seen after the same branch at event {seen}."),
            None => ".".into(),
        });
        text
    }

    fn cycle(&self) -> String {
        let n = self.places.len();
        let mut text = String::new();
        for i in 0..n {
            let wanted = &self.places[i].object;
            let holder = (i + 1) % n;
            let next = self.held(holder).into_iter().find(|held| self.lock(held) == *wanted);
            let since = next.map_or_else(String::new, |held| format!(" since {}", self.since(&held)));
            let by = self.who(holder);
            text.push_str(&format!("{} waits for {wanted}{}, which {by} has held{since}. ", self.who(i), self.at(i)));
        }
        text + if n == 2 { "Neither can go on." } else { "None of them can go on." }
    }

    fn stuck(&self) -> String {
        let mut text = String::new();
        for (i, place) in self.places.iter().enumerate() {
            let op = self.goals.get(i).map(|(_, event)| self.trace.op(*event));
            let what = match op {
                Some(Op::Acquire(..)) => format!("waits for {}", place.object),
                Some(Op::Wait(_)) => format!("waits at the semaphore {}", place.object),
                Some(Op::Wake(_)) => format!("sleeps on {} until it is notified", place.object),
                Some(Op::Receive(token)) => self.waits_for_what_others_do(i, token),
                _ => "waits".to_owned(),
            };
            let held: Vec<String> = self.held(i).iter().map(|held| self.lock(held)).collect();
            let with = if held.is_empty() { String::new() } else { format!(", and holds {}", list(&held)) };
            text.push_str(&format!("{} {what}{}{with}. ", self.who(i), self.at(i)));
        }
        text + match self.places.len() {
            1 => "Nobody is left who could let it go on.",
            2 => "Neither can go on, and nobody else can let them.",
            _ => "None of them can go on, and nobody else can let them.",
        }
    }

    /// To end, if a thread is joined; otherwise to come to a barrier, to count a latch down, or the like.
    fn waits_for_what_others_do(&self, i: usize, token: TokenId) -> String {
        let thread = |event: EventId| self.trace.thread(event);
        let object = &self.places[i].object;
        let own = self.goals.get(i).map(|(_, event)| thread(*event));
        let stuck = |event: EventId| self.goals.iter().any(|(_, waits)| thread(*waits) == thread(event));
        let others = self.trace.senders(token).iter().copied().filter(|&send| Some(thread(send)) != own && stuck(send));
        let mut others: Vec<String> = others.map(|event| self.trace.names().thread(thread(event)).to_owned()).collect();
        others.dedup();
        let others = if others.is_empty() { "others".to_owned() } else { list(&others) };
        match self.trace.meaning(token) {
            Meaning::Join(thread) => format!("waits for {} to end", self.trace.names().thread(thread)),
            Meaning::Barrier(_) => format!("waits at the barrier {object} for {others}"),
            Meaning::Latch(_) => format!("waits for {others} to count down {object}"),
            _ => format!("waits for {others}"),
        }
    }

    fn lost_wakeup(&self) -> String {
        let (a, b, c) = (self.who(0), self.who(1), &self.finding.object);
        let sleep = self.goal(|op| matches!(op, Op::Sleep(_)));
        let at =
            sleep.map_or_else(String::new, |e| format!(" at {}", At::of(self.trace, self.trace.event(e).loc).text));
        if self.is_taken_by_another() {
            return format!(
                "{a} sleeps on {c}{at}, but the notify by {b}{} can wake another thread. Nobody else sends one that wakes {a}, and {a} sleeps \
                 for ever.",
                self.at(1)
            );
        }
        format!(
            "{b} can notify {c}{} before {a} goes to sleep on it{at}. The notify is lost, nobody else sends one, and {a} \
             sleeps for ever.",
            self.at(1)
        )
    }

    fn goal(&self, is: impl Fn(Op) -> bool) -> Option<EventId> {
        self.goals.iter().map(|(_, event)| *event).find(|&event| is(self.trace.op(event)))
    }

    /// Whether the notify of a lost wake-up comes after the sleep in the witness, so that another thread must have been woken.
    fn is_taken_by_another(&self) -> bool {
        let sleep = self.goal(|op| matches!(op, Op::Sleep(_)));
        let notify = self.goal(|op| matches!(op, Op::Notify(..)));
        let (Some(sleep), Some(notify), Some(witness)) = (sleep, notify, &self.finding.witness) else { return false };
        let (observed, _) = witness.schedule.split();
        let when = |event: EventId| {
            if event.index() < observed {
                return Some(event.index());
            }
            let thread = self.trace.thread(event);
            let earlier = (observed..event.index()).filter(|&e| self.trace.thread(EventId::new(e)) == thread).count();
            let steps = (observed..).zip(witness.schedule.steps_from(self.trace, observed));
            steps.filter(|(_, who)| *who == thread).map(|(at, _)| at).nth(earlier)
        };
        when(sleep) < when(notify)
    }

    fn atomicity(&self, pattern: Pattern) -> String {
        let (a, b, x) = (self.who(0), self.who(1), &self.finding.object);
        let block = self.goals.first().and_then(|(_, event)| self.circumstances.of(*event).block);
        let name = block.map_or_else(Default::default, |begin| match self.trace.op(begin) {
            Op::Begin(block) => self.trace.names().block(block),
            _ => Default::default(),
        });
        let block = if name.is_empty() { "block".to_owned() } else { format!("block {name}") };
        let consequence = pattern.consequence(a, b, x);
        format!(
            "{b}'s {} of {x} can come between the two accesses of {a}'s atomic {block}. {consequence}",
            self.places.get(1).map_or("access", |place| place.op),
        )
    }

    /// Nobody has to have declared a block for an update to be lost.
    fn lost_update(&self) -> String {
        let (a, b, x) = (self.who(0), self.who(1), &self.finding.object);
        let consequence = Pattern::ReadWriteWrite.consequence(a, b, x);
        let what = self.places.get(1).map_or("access", |place| place.op);
        format!(
            "{b}'s {what} of {x} can come between {a}'s read of it and the write that follows from that. {consequence}"
        )
    }

    fn nondeterminism(&self) -> String {
        let source = |i: usize| match (self.places.get(i), self.value(i)) {
            (Some(Spot { at: Some(at), thread: Some(thread), .. }), Some(value)) => {
                format!("{value} (written by {thread} at {})", at.text)
            }
            (Some(Spot { at: Some(at), thread: Some(thread), .. }), None) => {
                format!("what {thread} wrote at {}", at.text)
            }
            _ => "the initial value".to_owned(),
        };
        let mut text = match self.places.first() {
            Some(read) if read.event.is_none() => {
                format!("{} can end with {} instead of {}.", read.object, source(2), source(1))
            }
            _ => format!("{} can read {} instead of {}.", self.who(0), source(2), source(1)),
        };
        if self.finding.flags.under_lock {
            text.push_str(" Both hold a common lock: it is no race, but nothing decides who comes first.");
        }
        if self.finding.flags.same_value {
            text.push_str(" Both writes leave the same value behind, so it may do no harm.");
        }
        text
    }
}
