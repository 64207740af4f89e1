//! Finding one's way in a trace: which events a finding means, and what each thread did in which order.

use portent_order::Goal;
use portent_predict::{Finding, Place, Role};
use portent_trace::{EventId, Op, ThreadId, Trace};

/// The event that a place names.
pub(crate) fn event_of(trace: &Trace, place: &Place) -> Option<EventId> {
    let thread = place.thread?;
    let events = trace.lowered(place.event?).map(EventId::new);
    let same = |event: &EventId| trace.thread(*event) == thread && trace.op(*event).name() == place.op;
    // A wide access has several events of one kind, each with a variable of its own.
    let mut events = events.filter(same).peekable();
    let first = events.peek().copied();
    let named = |event: &EventId| trace.op(*event).variable().is_none_or(|x| trace.variable_name(x) == place.object);
    events.find(named).or(first)
}

/// The events that a finding is about. A lost wake-up is also about the sleep, which is no place of its own.
pub(crate) fn goal_events(trace: &Trace, finding: &Finding) -> Vec<(Role, EventId)> {
    let mut events: Vec<(Role, EventId)> = match &finding.goal {
        Some(Goal::Race { first, second }) => vec![(Role::First, *first), (Role::Second, *second)],
        Some(Goal::Atomicity { first, remote, second }) => {
            vec![(Role::First, *first), (Role::Remote, *remote), (Role::Second, *second)]
        }
        Some(Goal::Deadlock { waiting }) => waiting.iter().map(|&event| (Role::Waiting, event)).collect(),
        _ => finding.places.iter().filter_map(|place| Some((place.role, event_of(trace, place)?))).collect(),
    };
    if let Some(Goal::LostWakeup { pairing }) = finding.goal {
        events.push((Role::Waiting, trace.pairings()[pairing.index()].sleep));
    }
    events
}

/// What an event does, for readers: forks and joins by their names.
pub(crate) fn deed(trace: &Trace, lookup: &Lookup, event: EventId) -> String {
    let op = trace.op(event);
    let object = match op {
        Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => trace.variable_name(x).into_owned(),
        Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => trace.names().lock(l).to_owned(),
        Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => trace.names().condition(c).to_owned(),
        Op::Begin(b) | Op::End(b) => trace.names().block(b).to_owned(),
        Op::Branch => String::new(),
        Op::Send(_) | Op::Receive(_) => {
            return match lookup.passage(trace, event) {
                Passage::Fork(child) => format!("fork {}", trace.names().thread(child)),
                Passage::Start => "start".into(),
                Passage::Join(child) => format!("join {}", trace.names().thread(child)),
                Passage::End => "end".into(),
                Passage::Send => "signal".into(),
                Passage::Receive => "pass".into(),
            };
        }
    };
    let name = match op {
        Op::Sleep(_) => "sleep on",
        Op::Busy(..) => "fail to lock",
        Op::Begin(_) => "begin block",
        Op::End(_) => "end block",
        op => op.name(),
    };
    format!("{name} {object}").trim_end().to_owned()
}

/// What an ordering token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Fork(ThreadId),
    Start,
    Join(ThreadId),
    End,
    Send,
    Receive,
}

/// The events of each thread, in program order, and who receives each token.
#[derive(Debug)]
pub(crate) struct Lookup {
    program: Vec<Vec<EventId>>,
    /// First receiver of each token, plus one.
    receiver: Vec<u32>,
}

impl Lookup {
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut lookup = Lookup { program: vec![Vec::new(); trace.threads()], receiver: vec![0; trace.tokens()] };
        for event in trace.events() {
            lookup.program[event.thread.index()].push(event.id);
            if let Op::Receive(k) = event.op {
                let receiver = &mut lookup.receiver[k.index()];
                *receiver = if *receiver == 0 { event.id.index() as u32 + 1 } else { *receiver };
            }
        }
        lookup
    }
    /// The events of a thread.
    pub(crate) fn program(&self, thread: ThreadId) -> &[EventId] {
        &self.program[thread.index()]
    }
    /// Which event of its thread this is.
    pub(crate) fn place(&self, trace: &Trace, event: EventId) -> usize {
        self.program(trace.thread(event)).partition_point(|&e| e < event)
    }
    /// What a send or receive stands for.
    pub(crate) fn passage(&self, trace: &Trace, event: EventId) -> Passage {
        match trace.op(event) {
            Op::Send(k) => match (self.receiver[k.index()] as usize).checked_sub(1).map(EventId::new) {
                Some(receive) if self.starts(trace, receive) => Passage::Fork(trace.thread(receive)),
                Some(receive) if self.is_join(trace, event, receive) => Passage::End,
                _ => Passage::Send,
            },
            Op::Receive(k) if !self.starts(trace, event) => match trace.senders(k) {
                [send] if self.is_join(trace, *send, event) => Passage::Join(trace.thread(*send)),
                _ => Passage::Receive,
            },
            Op::Receive(_) => Passage::Start,
            _ => Passage::Receive,
        }
    }
    /// Whether an event is one that the user's program performs, not the beginning or the end of a thread.
    pub(crate) fn is_performed(&self, trace: &Trace, event: EventId) -> bool {
        !matches!(trace.op(event), Op::Send(_) | Op::Receive(_))
            || !matches!(self.passage(trace, event), Passage::Start | Passage::End)
    }
    /// A fork's receive comes before the first event of the child, as part of it; that event may be one that engines do
    /// not see, such as a call.
    fn starts(&self, trace: &Trace, receive: EventId) -> bool {
        let next = EventId::new(receive.index() + 1);
        let input = trace.input_index(receive);
        let unseen = || trace.skipped_inputs().binary_search_by_key(&input, |skipped| skipped.0).is_ok();
        self.place(trace, receive) == 0
            && ((next.index() < trace.len() && trace.input_index(next) == input) || unseen())
    }
    /// A join is one input event: the end of the child and the receive.
    fn is_join(&self, trace: &Trace, send: EventId, receive: EventId) -> bool {
        trace.thread(send) != trace.thread(receive) && trace.input_index(send) == trace.input_index(receive)
    }
    /// The fork of a thread, if it has one.
    pub(crate) fn fork_of(&self, trace: &Trace, thread: ThreadId) -> Option<EventId> {
        let &first = self.program(thread).first()?;
        match trace.op(first) {
            Op::Receive(k) if self.starts(trace, first) => trace.senders(k).first().copied(),
            _ => None,
        }
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
        let said: Vec<String> = (0..trace.len()).map(|i| deed(&trace, &lookup, EventId::new(i))).collect();
        assert_eq!(said, ["fork A", "start", "write x", "signal", "pass", "end", "join A"]);
        let text = "m|fork(A)|1\nA|call(f)|2\nA|w(x)|3\n";
        let trace = Trace::from_std(text).unwrap();
        let lookup = Lookup::new(&trace);
        let said: Vec<String> = (0..trace.len()).map(|i| deed(&trace, &lookup, EventId::new(i))).collect();
        assert_eq!(said, ["fork A", "start", "write x"]);
        let a = trace.thread(EventId::new(1));
        assert_eq!(lookup.fork_of(&trace, a), Some(EventId::new(0)));
        assert_eq!(lookup.fork_of(&trace, trace.thread(EventId::new(0))), None);
    }
}
