//! Schedules in the events that the user knows: from kernel steps to input steps.
//!
//! An input event is done when the last kernel event that it became *in its own thread* is done. A join also ends the
//! joined thread: that kernel event belongs to no input event of the joined thread. Input events that became nothing
//! (inner re-entrant acquires, nested blocks, calls) go along with the next executed kernel event of their thread; in the
//! threads that a goal stops, all of them before the goal's event are included.

use portent_order::{Goal, Schedule};
use portent_trace::{EventId, ThreadId, Trace};

/// A thread running for a number of input events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who runs.
    pub thread: ThreadId,
    /// How many input events it executes.
    pub events: u64,
}

/// What each kernel event means in input events.
pub struct InputSteps {
    /// The kernel events of each thread.
    program: Vec<Vec<EventId>>,
    /// The input events of each thread.
    inputs: Vec<Vec<u32>>,
    /// How many input events of its thread are done once a kernel event is.
    done: Vec<u32>,
}

impl InputSteps {
    /// Prepares to convert schedules of a trace.
    pub fn new(trace: &Trace) -> Self {
        let mut program = vec![Vec::new(); trace.threads()];
        let mut inputs: Vec<Vec<u32>> = vec![Vec::new(); trace.threads()];
        let mut done = Vec::with_capacity(trace.len());
        let mut skipped = trace.skipped_inputs().iter().copied().peekable();
        let mut at = 0;
        while at < trace.len() {
            let input = trace.input_index(EventId::new(at));
            let mut end = at + 1;
            while end < trace.len() && trace.input_index(EventId::new(end)) == input {
                end += 1;
            }
            // A once that is passed while its lock is held skips the lock but not the token.
            while let Some((before, thread)) = skipped.next_if(|(s, _)| *s <= input) {
                if before < input && inputs[thread.index()].last() != Some(&before) {
                    inputs[thread.index()].push(before);
                }
            }
            // Only a join makes events of another thread, and its own comes last.
            let owner = trace.thread(EventId::new(end - 1));
            inputs[owner.index()].push(input);
            for event in (at..end).map(EventId::new) {
                let thread = trace.thread(event).index();
                program[thread].push(event);
                let so_far = inputs[thread].len() as u32;
                let unfinished = thread == owner.index() && event.index() != end - 1;
                done.push(so_far - u32::from(unfinished));
            }
            at = end;
        }
        for (rest, thread) in skipped {
            if inputs[thread.index()].last() != Some(&rest) {
                inputs[thread.index()].push(rest);
            }
        }
        InputSteps { program, inputs, done }
    }

    /// The kernel events of a thread, in program order.
    pub(crate) fn program(&self, thread: ThreadId) -> &[EventId] {
        &self.program[thread.index()]
    }

    /// The steps of a witness: up to but excluding the goal's events for races and deadlocks, through the read for
    /// nondeterminism, through the second access for atomicity.
    pub fn convert(&self, trace: &Trace, goal: &Goal, schedule: &Schedule) -> Vec<Step> {
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
            Goal::LostWakeup { pairing } => {
                let wake = trace.pairings()[pairing.index()].wake;
                at_end[trace.thread(wake).index()] = Some(before(wake));
            }
            Goal::FinalValue { .. } => {
                at_end = self.inputs.iter().map(|inputs| Some(inputs.len() as u32)).collect();
            }
            Goal::Nondeterminism { read, .. } => executed.push(*read),
            Goal::Atomicity { first, remote, second } => executed.extend([*first, *remote, *second]),
        }
        self.steps(trace, schedule, &at_end, &executed)
    }

    /// The steps of a run through `last`, or of a complete run.
    pub fn convert_run(&self, trace: &Trace, schedule: &Schedule, last: Option<EventId>) -> Vec<Step> {
        let at_end = match last {
            Some(_) => vec![None; self.program.len()],
            None => self.inputs.iter().map(|inputs| Some(inputs.len() as u32)).collect(),
        };
        self.steps(trace, schedule, &at_end, last.as_slice())
    }

    /// The steps of a run through these events, whether or not other parts of their input events are in it.
    pub fn convert_run_through(&self, trace: &Trace, schedule: &Schedule, executed: &[EventId]) -> Vec<Step> {
        self.steps(trace, schedule, &vec![None; self.program.len()], executed)
    }

    fn steps(&self, trace: &Trace, schedule: &Schedule, at_end: &[Option<u32>], executed: &[EventId]) -> Vec<Step> {
        let threads = self.program.len();
        let before = |e: EventId| {
            let inputs = &self.inputs[trace.thread(e).index()];
            inputs.partition_point(|&i| i < trace.input_index(e)) as u32
        };
        let mut total = vec![0usize; threads];
        schedule.runs().iter().for_each(|run| total[run.thread.index()] += run.steps as usize);
        let mut position = vec![0usize; threads];
        let mut counted = vec![0u32; threads];
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
        for run in schedule.runs() {
            let t = run.thread.index();
            let from = position[t];
            position[t] += run.steps as usize;
            let Some(events) = self.program[t].get(from..position[t]) else { continue };
            let mut to = events.last().map_or(0, |e| self.done[e.index()]);
            for e in executed.iter().filter(|e| trace.thread(**e) == run.thread && events.contains(e)) {
                to = to.max(before(*e) + 1);
            }
            if let (Some(end), true) = (at_end[t], position[t] == total[t]) {
                to = to.max(end);
            }
            go(run.thread, to, &mut counted);
        }
        for (t, end) in at_end.iter().enumerate() {
            if let Some(end) = *end {
                go(ThreadId::new(t), end, &mut counted);
            }
        }
        steps
    }
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
        let text = steps.iter().map(|step| format!("{}:{}", trace.names().thread(step.thread), step.events));
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
