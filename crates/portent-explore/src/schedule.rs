//! Schedules as text: which thread executes how many events, in order (docs/src/reference/schedule-format.md).
//!
//! ```text
//! # the lost update
//! T0 3
//! T1 2
//! T2 1
//! goal race T1 T2
//! ```

use crate::error::Error;
use std::fmt::Write;

/// A schedule, and what to look for when it has been executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Threads by number, each with the events it executes.
    pub steps: Vec<(u32, u64)>,
    /// What to look for.
    pub goal: ScheduleGoal,
}

/// What a schedule leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScheduleGoal {
    /// Nothing in particular: whatever the program does.
    #[default]
    None,
    /// Both threads are about to execute conflicting accesses.
    Race([u32; 2]),
    /// Each thread waits for a lock, and nobody can move.
    Deadlock(Vec<u32>),
}

impl Schedule {
    /// Appends events of a thread, joining them with the last step if that is the thread's too.
    pub fn push(&mut self, thread: u32, events: u64) {
        match self.steps.last_mut() {
            Some((last, count)) if *last == thread => *count += events,
            _ if events > 0 => self.steps.push((thread, events)),
            _ => {}
        }
    }

    /// Reads the text form; `name` is what messages call it.
    pub fn parse(text: &str, name: &str) -> Result<Schedule, Error> {
        let mut schedule = Schedule::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = |expected: &str| {
                Error::refused(
                    format!("{name}: line {}: {line:?} is not a step of a schedule: expected {expected}", number + 1),
                    "a schedule has one `THREAD EVENTS` on each line, as in `T1 12`, and at its end perhaps `goal race T1 T2` or `goal deadlock T1 T2`",
                )
            };
            let threads = |names: &[&str]| names.iter().map(|name| thread_number(name)).collect::<Option<Vec<_>>>();
            match words[..] {
                [] => {}
                ["goal", "race", ref names @ ..] => match threads(names).as_deref() {
                    Some(&[a, b]) if a != b => schedule.goal = ScheduleGoal::Race([a, b]),
                    _ => return Err(wrong("two threads after `goal race`")),
                },
                ["goal", "deadlock", ref names @ ..] => match threads(names) {
                    Some(threads) if !threads.is_empty() => schedule.goal = ScheduleGoal::Deadlock(threads),
                    _ => return Err(wrong("the threads of the cycle after `goal deadlock`")),
                },
                ["goal", ..] => return Err(wrong("`race` or `deadlock` after `goal`")),
                _ if schedule.goal != ScheduleGoal::None => return Err(wrong("nothing after the goal")),
                [thread, events] => match (thread_number(thread), events.parse()) {
                    (Some(thread), Ok(events)) => schedule.push(thread, events),
                    (None, _) => return Err(wrong("a thread such as T1")),
                    (_, Err(_)) => return Err(wrong("a number of events after the thread")),
                },
                _ => return Err(wrong("a thread and a number of events")),
            }
        }
        Ok(schedule)
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (thread, events) in &self.steps {
            writeln!(text, "T{thread} {events}")?;
        }
        let names = |threads: &[u32]| threads.iter().map(|t| format!(" T{t}")).collect::<String>();
        match &self.goal {
            ScheduleGoal::None => {}
            ScheduleGoal::Race(threads) => writeln!(text, "goal race{}", names(threads))?,
            ScheduleGoal::Deadlock(threads) => writeln!(text, "goal deadlock{}", names(threads))?,
        }
        f.write_str(&text)
    }
}

/// Threads that recordings have room for.
const MOST_THREADS: u32 = 1 << 14;

/// The number of a thread of a recording: `T3`, or `T3:name` if the program named it.
pub(crate) fn thread_number(name: &str) -> Option<u32> {
    let digits = name.split(':').next()?.strip_prefix('T')?;
    let number: u32 = digits.parse().ok()?;
    (number < MOST_THREADS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_is_written() {
        let text = "T0 3\nT1:worker 2 # up to the write\n\n# then\nT1 4\nT2 1\ngoal race T1 T2\n";
        let schedule = Schedule::parse(text, "x").unwrap();
        assert_eq!(schedule.steps, [(0, 3), (1, 6), (2, 1)]);
        assert_eq!(schedule.goal, ScheduleGoal::Race([1, 2]));
        assert_eq!(Schedule::parse(&schedule.to_string(), "x").unwrap(), schedule);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, expected) in [
            ("T0 3\nT1", "line 2: \"T1\" is not a step of a schedule: expected a thread and a number of events"),
            ("main 3", "expected a thread such as T1"),
            ("T1 many", "expected a number of events"),
            ("goal race T1", "expected two threads"),
            ("goal race T1 T2\nT1 3", "expected nothing after the goal"),
            ("goal peace T1", "expected `race` or `deadlock`"),
            ("T99999 1", "expected a thread"),
        ] {
            let error = Schedule::parse(text, "a.schedule").unwrap_err().to_string();
            assert!(error.starts_with("a.schedule: line ") && error.contains(expected), "{error}");
        }
    }
}
