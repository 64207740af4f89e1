//! Schedules in the events that the user knows: from kernel steps to input steps.
//!
//! An input event may become several kernel events, and a schedule may stop between them; for the user it happens as a
//! whole. It is done with the kernel event at which it takes effect *in its own thread*:
//!
//! | input event | kernel events | done with |
//! |---|---|---|
//! | one that waits, then tells others: `post`, `semw`, `semf`, `oncee` | receives, then sends and releases | the first send: from there on others may go on because of it, and it has nothing to wait for |
//! | one that waits last: `oncep`, `join`, the first of a forked thread | … receive, or the event itself | the last |
//! | a wide write | a write for each part | the first part: others may read it |
//! | a wide read or update | one for each part | the last part |
//!
//! A join also ends the joined thread: that kernel event belongs to no input event of the joined thread. Input events that
//! became nothing (inner re-entrant acquires, nested blocks, calls) go along with the next executed kernel event of their
//! thread; in the threads that a goal stops, all of them before the goal's event are included.
//!
//! What a schedule has in common with the observed order it has in common with the input: so many of its events, in their order. That
//! takes those that became nothing where they stand.
//!
//! A schedule that tears a wide access, with another thread between the parts that shows it, is no order of input events at
//! all; `whole` avoids it where it can.

use portent_order::{Goal, Schedule, Stretch};
use portent_trace::{EventId, Op, ThreadId, Trace};

/// A thread running for a number of input events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who runs.
    pub thread: ThreadId,
    /// How many input events it executes.
    pub events: u64,
}

/// A schedule in input events, in run-length form relative to the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// With how many events it begins that are in the order of the input.
    pub as_observed: u64,
    /// Who executes how many after them.
    pub then: Vec<Step>,
    /// How often one thread makes way for another in what is as observed, and behind it.
    switches: usize,
}

impl Steps {
    /// Steps that begin with nothing that was observed.
    pub fn new(then: Vec<Step>) -> Self {
        Steps { as_observed: 0, switches: then.len().saturating_sub(1), then }
    }
    /// The same behind so many events of a run, as they were observed, in place of those that lead there: who does these.
    pub(crate) fn behind(&self, lead: &[ThreadId], before: u64) -> Steps {
        let observed = (self.as_observed as usize).min(lead.len());
        let mut leading = lead[observed..].to_vec();
        let mut then: Vec<Step> = Vec::with_capacity(self.then.len());
        for &Step { thread, mut events } in &self.then {
            while events > 0
                && let Some(at) = leading.iter().position(|who| *who == thread)
            {
                leading.remove(at);
                events -= 1;
            }
            match then.last_mut() {
                Some(last) if last.thread == thread => last.events += events,
                _ if events > 0 => then.push(Step { thread, events }),
                _ => {}
            }
        }
        // Those of the run before are not known here.
        let in_lead = lead.windows(2).filter(|two| two[0] != two[1]).count();
        let switches = self.switches.saturating_sub(in_lead);
        Steps { as_observed: before + (self.as_observed - observed as u64), then, switches }
    }
    /// How many input events are executed.
    pub fn events(&self) -> u64 {
        self.as_observed + self.then.iter().map(|step| step.events).sum::<u64>()
    }
    /// How often one thread makes way for another.
    pub fn switches(&self) -> usize {
        self.switches
    }
    /// Who executes how many, also of what is as observed; neighbours may be of one thread.
    pub fn in_full(&self, trace: &Trace) -> impl Iterator<Item = Step> {
        let observed = (0..self.as_observed as u32).filter_map(|input| performer(trace, input));
        observed.map(|thread| Step { thread, events: 1 }).chain(self.then.iter().copied())
    }
}

/// What each kernel event means in input events.
pub struct InputSteps {
    /// The kernel events of each thread.
    program: Vec<Vec<EventId>>,
    /// The input events of each thread.
    inputs: Vec<Vec<u32>>,
    /// How many input events of its thread are done once a kernel event is.
    done: Vec<u32>,
    /// How often one thread makes way for another in the first [`STRIDE`] input events, in twice as many …
    switches: Vec<usize>,
    /// Whether some access became several kernel events.
    has_wide: bool,
}

/// Input events between two counts of switches.
const STRIDE: usize = 256;

impl InputSteps {
    /// Prepares to convert schedules of a trace.
    pub fn new(trace: &Trace) -> Self {
        Self::with_skipped(trace, trace.skipped_inputs().iter().copied())
    }

    /// The same, where these input events have no kernel event: in the order of the input, with their threads.
    pub(crate) fn with_skipped(trace: &Trace, skipped: impl Iterator<Item = (u32, ThreadId)>) -> Self {
        let mut program = vec![Vec::new(); trace.threads()];
        let mut inputs: Vec<Vec<u32>> = vec![Vec::new(); trace.threads()];
        let mut done = Vec::with_capacity(trace.len());
        let mut has_wide = false;
        let mut skipped = skipped.peekable();
        let mut origins = trace.input_indices(EventId::new(0)).take(trace.len()).peekable();
        let (mut switches, mut count, mut last) = (vec![0], 0, None);
        let mut performs = |input: u32, thread: ThreadId| {
            while input as usize >= switches.len() * STRIDE {
                switches.push(count);
            }
            count += usize::from(last.is_some_and(|last| last != thread));
            last = Some(thread);
        };
        let mut at = 0;
        while let Some(input) = origins.next() {
            let mut end = at + 1;
            while origins.next_if_eq(&input).is_some() {
                end += 1;
            }
            // A once that is passed while its lock is held skips the lock but not the token.
            while let Some((before, thread)) = skipped.next_if(|(s, _)| *s <= input) {
                if before < input && inputs[thread.index()].last() != Some(&before) {
                    inputs[thread.index()].push(before);
                    performs(before, thread);
                }
            }
            // Only a join makes events of another thread, and its own comes last.
            let owner = trace.thread(EventId::new(end - 1));
            inputs[owner.index()].push(input);
            performs(input, owner);
            let effect = takes_effect(trace, at, end);
            let is_access = |event: usize| trace.op(EventId::new(event)).variable().is_some();
            has_wide |= end > at + 1 && is_access(end - 1) && is_access(end - 2);
            for event in (at..end).map(EventId::new) {
                let thread = trace.thread(event).index();
                program[thread].push(event);
                let so_far = inputs[thread].len() as u32;
                let unfinished = thread == owner.index() && event.index() < effect;
                done.push(so_far - u32::from(unfinished));
            }
            at = end;
        }
        for (rest, thread) in skipped {
            if inputs[thread.index()].last() != Some(&rest) {
                inputs[thread.index()].push(rest);
                performs(rest, thread);
            }
        }
        InputSteps { program, inputs, done, switches, has_wide }
    }

    /// Whether some access became several kernel events.
    pub(crate) fn has_wide(&self) -> bool {
        self.has_wide
    }

    /// The kernel events of a thread, in program order.
    pub(crate) fn program(&self, thread: ThreadId) -> &[EventId] {
        &self.program[thread.index()]
    }

    /// The steps of a witness: up to but excluding the goal's events for races and deadlocks, through the read for
    /// nondeterminism, through the second access for atomicity.
    pub fn convert(&self, trace: &Trace, goal: &Goal, schedule: &Schedule) -> Steps {
        self.convert_in(trace, trace, goal, schedule)
    }

    /// The same where the trace has only some of the events of `whole`.
    pub(crate) fn convert_in(&self, trace: &Trace, whole: &Trace, goal: &Goal, schedule: &Schedule) -> Steps {
        let threads = self.program.len();
        // Input events that a thread must have done at the end, and goal accesses that count even if they are only a
        // part of theirs.
        let mut at_end: Vec<Option<u32>> = vec![None; threads];
        let before = |e: EventId| {
            let inputs = &self.inputs[trace.thread(e).index()];
            inputs.partition_point(|&i| i < trace.input_index(e)) as u32
        };
        let mut executed: Vec<EventId> = Vec::new();
        match goal {
            Goal::Race { first, second } => {
                [first, second].iter().for_each(|&&e| at_end[trace.thread(e).index()] = Some(before(e)));
            }
            Goal::Deadlock { waiting } => {
                waiting.iter().for_each(|&e| at_end[trace.thread(e).index()] = Some(before(e)));
            }
            // Every thread has ended, or stands before what it waits for.
            Goal::LostWakeup { .. } | Goal::Stuck { .. } => {
                let total = self.positions(schedule);
                let stands =
                    |t: usize| self.program[t].get(total[t]).map_or(self.inputs[t].len() as u32, |&e| before(e));
                at_end = (0..threads).map(|t| Some(stands(t))).collect();
            }
            Goal::FinalValue { .. } => {
                at_end = self.inputs.iter().map(|inputs| Some(inputs.len() as u32)).collect();
            }
            Goal::Nondeterminism { read, .. } => executed.push(*read),
            Goal::Atomicity { first, remote, second } | Goal::LostUpdate { first, remote, second, .. } => {
                executed.extend([*first, *remote, *second])
            }
        }
        self.steps((trace, whole), schedule, &at_end, &executed)
    }

    /// The steps of a complete run.
    pub fn convert_run(&self, trace: &Trace, schedule: &Schedule) -> Steps {
        let at_end: Vec<Option<u32>> = self.inputs.iter().map(|inputs| Some(inputs.len() as u32)).collect();
        self.steps((trace, trace), schedule, &at_end, &[])
    }

    /// The steps of a run through these events: through accesses whether or not other parts of their input events are in it. What is
    /// the beginning of an input event that still waits for something (the lock of a once that has not been run) is not among them.
    pub fn convert_run_through(&self, trace: &Trace, schedule: &Schedule, executed: &[EventId]) -> Steps {
        let is_access = |event: &EventId| trace.op(*event).variable().is_some();
        let accesses: Vec<EventId> = executed.iter().copied().filter(is_access).collect();
        self.steps((trace, trace), schedule, &vec![None; self.program.len()], &accesses)
    }

    /// How many kernel events of each thread a schedule executes.
    pub(crate) fn positions(&self, schedule: &Schedule) -> Vec<usize> {
        let (observed, rest) = schedule.split();
        let mut positions = self.positions_at(observed);
        for run in rest {
            if let Some(position) = positions.get_mut(run.thread.index()) {
                *position += run.steps as usize;
            }
        }
        positions
    }
    /// The same of the first kernel events of the observed order.
    fn positions_at(&self, events: usize) -> Vec<usize> {
        self.program.iter().map(|program| program.partition_point(|event| event.index() < events)).collect()
    }

    /// How often one thread makes way for another in the first input events.
    fn switches(&self, trace: &Trace, inputs: u32) -> usize {
        let kept = (inputs as usize / STRIDE).min(self.switches.len() - 1);
        self.switches[kept] + switches_in(trace, kept * STRIDE, inputs as usize)
    }

    fn steps(
        &self,
        (trace, whole): (&Trace, &Trace),
        schedule: &Schedule,
        at_end: &[Option<u32>],
        executed: &[EventId],
    ) -> Steps {
        let threads = self.program.len();
        let before = |e: EventId| {
            let inputs = &self.inputs[trace.thread(e).index()];
            inputs.partition_point(|&i| i < trace.input_index(e)) as u32
        };
        let total = self.positions(schedule);
        let (observed, rest) = schedule.split();
        let observed = observed.min(trace.len());
        // Whole input events only: of one that is torn, the parts come as steps.
        let inputs = match observed < trace.len() {
            true => trace.input_index(EventId::new(observed)),
            false => trace.input_len() as u32,
        };
        let untorn = trace.lowered(inputs).start.min(observed);
        let mut position = self.positions_at(untorn);
        let mut counted: Vec<u32> =
            self.inputs.iter().map(|own| own.partition_point(|&input| input < inputs) as u32).collect();
        let torn = (untorn..observed).map(|event| Stretch { thread: trace.thread(EventId::new(event)), steps: 1 });
        let rest: Vec<Stretch> = torn.chain(rest.iter().copied()).collect();
        debug_assert_eq!(counted.len(), threads);
        let mut steps: Vec<Step> = Vec::new();
        let mut go = |thread: ThreadId, to: u32, counted: &mut Vec<u32>| {
            let events = u64::from(to.saturating_sub(counted[thread.index()]));
            if events == 0 {
                return;
            }
            counted[thread.index()] = to;
            match steps.last_mut() {
                Some(step) if step.thread == thread => step.events += events,
                _ => steps.push(Step { thread, events }),
            }
        };
        for run in rest {
            let t = run.thread.index();
            let from = position[t];
            position[t] += run.steps as usize;
            let Some(events) = self.program[t].get(from..position[t]) else { continue };
            let mut to = events.last().map_or(0, |e| self.done[e.index()]);
            for e in executed.iter().filter(|e| trace.thread(**e) == run.thread && events.contains(e)) {
                to = to.max(before(*e) + 1);
            }
            if let (Some(end), true) = (at_end[t], position[t] == total[t]) {
                to = end;
            }
            go(run.thread, to, &mut counted);
        }
        for (t, end) in at_end.iter().enumerate() {
            if let Some(end) = *end {
                go(ThreadId::new(t), end, &mut counted);
            }
        }
        let last = inputs.checked_sub(1).and_then(|last| performer(whole, last));
        let leads_over = usize::from(last.is_some() && steps.first().is_some_and(|first| last != Some(first.thread)));
        Steps {
            as_observed: u64::from(inputs),
            switches: self.switches(whole, inputs) + leads_over + steps.len().saturating_sub(1),
            then: steps,
        }
    }
}

/// Who performs an input event.
fn performer(trace: &Trace, input: u32) -> Option<ThreadId> {
    // Only a join makes events of another thread, and its own comes last.
    if let Some(last) = trace.lowered(input).next_back() {
        return Some(trace.thread(EventId::new(last)));
    }
    let skipped = trace.skipped_inputs();
    skipped.binary_search_by_key(&input, |(skipped, _)| *skipped).ok().map(|at| skipped[at].1)
}

/// How often one thread makes way for another on the way to these input events, each from the one before it.
fn switches_in(trace: &Trace, from: usize, to: usize) -> usize {
    let mut last = from.checked_sub(1).and_then(|before| performer(trace, before as u32));
    let mut switches = 0;
    for input in from..to {
        let next = performer(trace, input as u32);
        switches += usize::from(last.is_some() && next.is_some() && last != next);
        last = next.or(last);
    }
    switches
}

/// The kernel event, of those `from..to` that an input event became, with which it is done.
fn takes_effect(trace: &Trace, from: usize, to: usize) -> usize {
    let op = |at: usize| trace.op(EventId::new(at));
    let owner = trace.thread(EventId::new(to - 1));
    let tells = |at: usize| {
        matches!(op(at), Op::Send(_) | Op::Post(_) | Op::Release(..)) && trace.thread(EventId::new(at)) == owner
    };
    let writes = |at: usize| matches!(op(at), Op::Write(..));
    let last = to - 1;
    let same: &dyn Fn(usize) -> bool = if writes(last) { &writes } else { &tells };
    (from..to).rev().take_while(|&at| same(at)).last().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads and counts of the steps, from the threads of a schedule, in words.
    fn convert(std: &str, goal: Goal, threads: &str) -> String {
        let trace = Trace::from_std(std).unwrap();
        let named = |name: &str| trace.thread_ids().find(|&t| trace.names().thread(t) == name).unwrap();
        let schedule: Schedule = threads.split(' ').map(named).collect();
        portent_order::check(&trace, portent_order::Model::Reads, &goal, &schedule).unwrap();
        let steps = InputSteps::new(&trace).convert(&trace, &goal, &schedule);
        assert_eq!(steps.as_observed, 0);
        let text = steps.then.iter().map(|step| format!("{}:{}", trace.names().thread(step.thread), step.events));
        text.collect::<Vec<_>>().join(" ")
    }

    fn e(index: usize) -> EventId {
        EventId::new(index)
    }

    #[test]
    fn a_fork_costs_the_child_no_step_and_a_race_ends_before_its_events() {
        // Kernel: snd, rcv w(x), w(x).
        let text = "T1|fork(T2)\nT2|w(x)\nT1|w(x)\n";
        assert_eq!(convert(text, Goal::Race { first: e(2), second: e(3) }, "T1 T2"), "T1:1");
    }

    #[test]
    fn a_join_counts_for_the_joiner_only() {
        // Kernel: snd | rcv w(y) | snd(T2) rcv | w(x) | w(x) of T3.
        let text = "T1|fork(T2)\nT2|w(y)\nT1|join(T2)\nT1|w(x)\nT3|w(x)\n";
        assert_eq!(convert(text, Goal::Race { first: e(5), second: e(6) }, "T1 T2 T2 T2 T1"), "T1:1 T2:1 T1:1");
    }

    #[test]
    fn inner_acquires_and_nested_blocks_before_the_goal_are_included() {
        let text = "T1|begin(a)\nT1|begin(b)\nT1|acq(l)\nT1|acq(l)\nT1|w(x)\nT2|begin(c)\nT2|begin(d)\nT2|w(x)\n";
        // Kernel: begin, acq, w(x), begin, w(x).
        assert_eq!(convert(text, Goal::Race { first: e(2), second: e(4) }, "T1 T1 T2"), "T1:4 T2:2");
        let blockless = "T1|w(y)\nT1|w(x)\nT2|acq(l)\nT2|acq(l)\nT2|w(x)\n";
        assert_eq!(convert(blockless, Goal::Race { first: e(1), second: e(3) }, "T2 T1"), "T2:2 T1:1");
    }

    #[test]
    fn nondeterminism_goes_through_the_read_and_atomicity_through_the_second_access() {
        let text = "T1|w(x)\nT2|r(x)\n";
        let goal = Goal::Nondeterminism { read: e(1), challenger: portent_order::Writer::Init };
        assert_eq!(convert(text, goal, "T2"), "T2:1");
        let text = "T1|begin(b)\nT1|r(x)\nT1|w(x)\nT1|end(b)\nT2|w(x)\n";
        let goal = Goal::Atomicity { first: e(1), remote: e(4), second: e(2) };
        assert_eq!(convert(text, goal, "T1 T1 T2 T1"), "T1:2 T2:1 T1:1");
    }

    #[test]
    fn a_complete_run_has_every_input_event() {
        let text =
            "T1|acq(l)\nT1|acq(l)\nT1|w(x)\nT1|rel(l)\nT1|rel(l)\nT2|w(x)\nT2|begin(a)\nT2|begin(b)\nT2|end(b)\n";
        let goal = Goal::FinalValue { variable: portent_trace::VarId::new(0), challenger: e(1) };
        assert_eq!(convert(text, goal, "T2 T2 T1 T1 T1"), "T2:4 T1:5");
    }
}
