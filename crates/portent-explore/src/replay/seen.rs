//! Whether a replay showed what was wanted.

use super::{Replay, Script, Wanted};
use crate::outcome::{AtGoal, Stuck};
use crate::run::Run;
use portent_predict::Harm;
use portent_trace::{FunctionBlocks, InputEvent, InputOp, ObjectClass, ReadOrder, WriteOrder};

impl Script<'_> {
    /// Whether what was wanted was seen.
    pub(super) fn seen(&self, replay: &Replay) -> (bool, Vec<String>) {
        let followed = replay.diverged.is_none();
        match &self.wanted {
            Wanted::Same => (followed, Vec::new()),
            Wanted::Anything => (replay.failed.is_some(), Vec::new()),
            Wanted::Race => self.race_seen(replay),
            Wanted::Deadlock => self.deadlock_seen(replay),
            Wanted::Stuck { threads } => {
                let waits = |thread: &u32| {
                    replay.run.outcome.deadlock.iter().flatten().find(|stuck| stuck.thread == *thread && !stuck.spins)
                };
                let found: Vec<&Stuck> = threads.iter().filter_map(waits).collect();
                let all = !threads.is_empty() && found.len() == threads.len();
                (all, found.iter().map(|stuck| stuck.sentence.clone()).collect())
            }
            Wanted::LostWakeUp { sleeper } => {
                let sleeps = |stuck: &&Stuck| stuck.thread == *sleeper && stuck.asleep;
                let found = replay.run.outcome.deadlock.iter().flatten().find(sleeps);
                (found.is_some(), found.iter().map(|stuck| stuck.sentence.clone()).collect())
            }
            Wanted::Property { source } => self.property_seen(replay, source),
            Wanted::Failure { form, place } => {
                let failures = replay.run.failures();
                let found = failures.iter().find(|failed| failed.is_at(form, place));
                // What was printed before is not kept with a trace: the schedule leads to what it led to.
                let printed = form == Harm::Output.name() && followed;
                (found.is_some() || printed, found.map(|failed| failed.message.clone()).into_iter().collect())
            }
            Wanted::Order { events } if followed => self.order_seen(replay, events),
            Wanted::Values { events } if followed => self.values_seen(replay, events),
            Wanted::FinalValue { object } if followed => self.final_value_seen(replay, object),
            Wanted::Order { .. } | Wanted::Values { .. } | Wanted::FinalValue { .. } => (false, Vec::new()),
        }
    }

    fn race_seen(&self, replay: &Replay) -> (bool, Vec<String>) {
        let Some([a, b]) = replay.run.outcome.at_goal.as_deref().and_then(|all| <&[_; 2]>::try_from(all).ok()) else {
            return (false, Vec::new());
        };
        let overlap = a.memory.start < b.memory.end && b.memory.start < a.memory.end;
        let seen = is_access(a) && is_access(b) && overlap && (writes(a) || writes(b)) && (is_plain(a) || is_plain(b));
        let about = |one: &AtGoal| {
            let what = one.op.map_or("?", verb);
            // Memory without a symbol is named in the finding; its address would tell nothing.
            let object = one.object.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("T{} is about to {what}{object} at {}", one.thread, one.place)
        };
        (seen, vec![about(a), about(b)])
    }

    fn deadlock_seen(&self, replay: &Replay) -> (bool, Vec<String>) {
        let Some(goal) = &replay.run.outcome.at_goal else { return (false, Vec::new()) };
        let waits = |one: &AtGoal| {
            let at_lock = matches!(one.op, Some(InputOp::Acquire | InputOp::AcquireShared | InputOp::AcquireAll));
            at_lock && !one.enabled
        };
        let evidence = replay.run.outcome.deadlock.iter().flatten().map(|stuck| stuck.sentence.clone()).collect();
        (!goal.is_empty() && goal.iter().all(waits), evidence)
    }

    /// That the schedule was followed is all: the events happened in its order. What they saw and left is the evidence.
    fn order_seen(&self, replay: &Replay, wanted: &[u32]) -> (bool, Vec<String>) {
        let expected = self.expected();
        let mut positions: Vec<usize> =
            wanted.iter().filter_map(|number| expected.iter().position(|found| found == number)).collect();
        let all = positions.len() == wanted.len();
        positions.sort_unstable();
        let told = positions.into_iter().filter_map(|at| replay.run.events.get(at));
        let mut evidence: Vec<String> = told.map(|event| access_told(&replay.run, event)).collect();
        evidence.extend(replay.failed.clone());
        (all, evidence)
    }

    /// Compares what reads saw: each event stands at the same place of both sequences, as the schedule was followed.
    fn values_seen(&self, replay: &Replay, wanted: &[u32]) -> (bool, Vec<String>) {
        let expected = self.expected();
        let mut evidence = Vec::new();
        let mut comparable = false;
        let mut differs = false;
        for number in wanted {
            let Some(at) = expected.iter().position(|found| found == number) else { return (false, evidence) };
            let (before, now) = (&self.original.events[*number as usize], &replay.run.events[at]);
            if matches!(before.op, InputOp::Write(_)) {
                continue;
            }
            let (Some(was), Some(is)) = (before.value, now.value) else { continue };
            comparable = true;
            if was != is {
                differs = true;
                let (names, what) = (&replay.run.names, verb(now.op));
                let (thread, place) = (names.thread(now.thread), names.location(now.loc));
                let object = names.called(now.op.class(), now.object);
                let told = |run: &Run, event: &InputEvent, value: i64| value_told(run, event, value);
                let (is, was) = (told(&replay.run, now, is), told(self.original, before, was));
                let saw = match is.zip(was).filter(|(is, was)| is != was) {
                    Some((is, was)) => format!("{is} instead of {was}"),
                    None => "something else".to_owned(),
                };
                evidence.push(format!("{thread}'s {what} of {object} at {place} saw {saw}"));
            }
        }
        if let Some(failed) = &replay.failed {
            evidence.push(failed.clone());
        }
        (differs || replay.failed.is_some() || !comparable, evidence)
    }

    /// Whether the replayed run, whatever way it took, breaks the property.
    fn property_seen(&self, replay: &Replay, source: &str) -> (bool, Vec<String>) {
        let complete = replay.run.outcome.deadlock.is_none() && replay.failed.is_none();
        let broken = replay
            .run
            .trace(FunctionBlocks::None)
            .map_err(|error| error.to_string())
            .and_then(|trace| portent_spec::broken_by(&trace, source, complete));
        match broken {
            Ok(Some(how)) => (true, vec![how]),
            Ok(None) => (false, Vec::new()),
            Err(why) => (false, vec![why]),
        }
    }

    fn final_value_seen(&self, replay: &Replay, object: &str) -> (bool, Vec<String>) {
        // Who owns memory need not be known in both runs.
        let (names, variable) = (&self.original.names, ObjectClass::Variable);
        let called = (0..names.count(variable) as u32).find(|&id| names.called(variable, id) == object);
        let name = called.map_or(object, |id| names.name(variable, id));
        let last = |run: &Run| {
            let is_it = |event: &&InputEvent| {
                matches!(event.op, InputOp::Write(_) | InputOp::Update(_))
                    && run.names.name(variable, event.object) == name
            };
            run.events.iter().rev().find(is_it).and_then(|event| event.value)
        };
        match (last(self.original), last(&replay.run)) {
            (Some(was), Some(is)) if was != is => {
                let ends = match is_number(is) && is_number(was) {
                    true => format!("as {is} instead of {was}"),
                    false => "as something else".to_owned(),
                };
                (true, vec![format!("{object} ends {ends}")])
            }
            _ => (replay.failed.is_some(), replay.failed.iter().cloned().collect()),
        }
    }
}

/// Whether a value says something as a number: addresses do not.
pub(crate) fn is_number(value: i64) -> bool {
    value.unsigned_abs() < 1 << 40
}

/// A value that an access saw or left: what is there, if it is an address.
fn value_told(run: &Run, event: &InputEvent, value: i64) -> Option<String> {
    let pointee = (event.op.class() == ObjectClass::Variable).then(|| run.names.pointee(event.object, value)).flatten();
    pointee.map(str::to_owned).or_else(|| is_number(value).then(|| value.to_string()))
}

/// An access of a run in words: `T1 reads balance = 100 at bank.c:16`.
fn access_told(run: &Run, event: &InputEvent) -> String {
    let object = run.names.called(event.op.class(), event.object);
    let value = event.value.and_then(|value| value_told(run, event, value));
    let value = value.map(|value| format!(" = {value}")).unwrap_or_default();
    let place = run.names.location(event.loc);
    format!("{} {}s {object}{value} at {place}", run.names.thread(event.thread), verb(event.op))
}

fn is_access(one: &AtGoal) -> bool {
    one.op.is_some_and(InputOp::is_access)
}

fn writes(one: &AtGoal) -> bool {
    matches!(one.op, Some(InputOp::Write(_) | InputOp::Update(_)))
}

/// Read-modify-writes are always atomic.
fn is_plain(one: &AtGoal) -> bool {
    matches!(one.op, Some(InputOp::Read(ReadOrder::Plain) | InputOp::Write(WriteOrder::Plain)))
}

fn verb(op: InputOp) -> &'static str {
    match op {
        InputOp::Read(_) => "read",
        InputOp::Write(_) => "write",
        InputOp::Update(_) => "update",
        _ => op.text(),
    }
}
