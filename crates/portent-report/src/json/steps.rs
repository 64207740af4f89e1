//! The steps of a witness, told relative to the observed order: most witnesses begin with it, and what they add does not grow with
//! the trace.

use portent_predict::{Step, Steps};
use portent_trace::{EventId, ThreadId, Trace};
use serde::Serialize;

/// A part of a schedule.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum StepJson<'a> {
    /// The first so many input events, in the order of the input.
    AsObserved { as_observed: u64 },
    /// A thread runs for so many input events.
    Runs(&'a str, u64),
}

/// Who did each input event of a trace, in their order.
pub(super) struct ObservedOrder(Vec<Option<ThreadId>>);

impl ObservedOrder {
    pub(super) fn of(trace: &Trace) -> ObservedOrder {
        let mut threads = vec![None; trace.input_len() as usize];
        let skipped = trace.skipped_inputs().iter().copied();
        // Only a join makes events of another thread, and its own comes last.
        let events = (0..trace.len()).map(EventId::new).map(|id| (trace.input_index(id), trace.thread(id)));
        for (input, thread) in skipped.chain(events) {
            if let Some(slot) = threads.get_mut(input as usize) {
                *slot = Some(thread);
            }
        }
        ObservedOrder(threads)
    }

    /// Where the order that steps would be told by is not at hand.
    pub(super) fn unknown() -> ObservedOrder {
        ObservedOrder(Vec::new())
    }

    /// Steps, as far as they are the observed order by their number only, if that is shorter.
    pub(super) fn steps<'a>(&self, trace: &'a Trace, told: &Steps) -> Vec<StepJson<'a>> {
        let name = |step: &Step| StepJson::Runs(trace.names().thread(step.thread), step.events);
        let steps = &told.then;
        let mut observed = told.as_observed as usize;
        for (at, step) in steps.iter().enumerate() {
            let rest = &self.0[observed.min(self.0.len())..];
            let events = usize::try_from(step.events).unwrap_or(usize::MAX);
            let same = rest.iter().take(events).take_while(|thread| **thread == Some(step.thread)).count();
            observed += same;
            if same < events {
                let left = Step { thread: step.thread, events: step.events - same as u64 };
                // One part for all before this step: not worth it for one or none.
                return match at {
                    0 | 1 if told.as_observed == 0 => steps.iter().map(name).collect(),
                    _ => std::iter::once(StepJson::AsObserved { as_observed: observed as u64 })
                        .chain(std::iter::once(name(&left)))
                        .chain(steps[at + 1..].iter().map(name))
                        .collect(),
                };
            }
        }
        match steps.len() {
            0 | 1 if told.as_observed == 0 => steps.iter().map(name).collect(),
            _ => vec![StepJson::AsObserved { as_observed: observed as u64 }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "A|acq(l)|1\nA|acq(l)|2\nB|w(x)|3\nA|rel(l)|4\nC|w(x)|5\nB|w(x)|6\nA|rel(l)|7\n";

    fn told(steps: &[(u32, u64)]) -> String {
        let trace = Trace::from_std(RUN).unwrap();
        let steps: Vec<Step> =
            steps.iter().map(|&(thread, events)| Step { thread: ThreadId::new(thread as usize), events }).collect();
        serde_json::to_string(&ObservedOrder::of(&trace).steps(&trace, &Steps::new(steps))).unwrap()
    }

    #[test]
    fn what_is_as_observed_is_one_part_and_the_rest_is_told() {
        assert_eq!(told(&[(0, 2), (1, 1), (0, 1), (1, 1)]), r#"[{"as_observed":4},["B",1]]"#);
        assert_eq!(told(&[(0, 2), (1, 2), (2, 1)]), r#"[["A",2],["B",2],["C",1]]"#);
        assert_eq!(told(&[(0, 2), (1, 1), (0, 2), (2, 1)]), r#"[{"as_observed":4},["A",1],["C",1]]"#);
        assert_eq!(told(&[(0, 2), (1, 1), (0, 1), (2, 1), (1, 1), (0, 1)]), r#"[{"as_observed":7}]"#);
        assert_eq!(told(&[(1, 1), (0, 1)]), r#"[["B",1],["A",1]]"#);
    }

    #[test]
    fn a_longer_run_before_the_bug_makes_the_document_no_longer() {
        let mut lengths = Vec::new();
        for rounds in [10u64, 1000] {
            let run: String = (0..rounds).map(|_| "A|w(x)|1\nB|w(y)|2\n").collect();
            let trace = Trace::from_std(&format!("{run}A|w(z)|3\nB|w(z)|4\n")).unwrap();
            let mut steps: Vec<Step> =
                (0..2 * rounds).map(|at| Step { thread: ThreadId::new(at as usize % 2), events: 1 }).collect();
            steps.push(Step { thread: ThreadId::new(1), events: 1 });
            lengths.push(ObservedOrder::of(&trace).steps(&trace, &Steps::new(steps)).len());
        }
        assert_eq!(lengths, [2, 2]);
    }
}
