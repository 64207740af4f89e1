//! How a run failed: what a person calls a bug without being taught a theory, from how the run ended, what it printed, and what
//! it did to memory and objects that were no longer its own.
//!
//! Faults of memory name the cause, and come first. Of its end a run tells one thing: the most telling one.

use crate::outcome::{Crash, End, Fault, FaultKind, Moment, Outcome};
use crate::run::Run;
use crate::said::{self, Said};
use portent_predict::{Harm, Role};
use portent_trace::{is_user_file, plain_function};

/// A failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How it failed.
    pub harm: Harm,
    /// What there is to say about that, in a line: the program's own words where it said some.
    pub message: String,
    /// Where; the last thing that was recorded, if nothing better is known.
    pub at: Moment,
    /// What else belongs to it, with what it is to the failure.
    pub others: Vec<(Role, Moment)>,
    /// What it happened to, where it has a name.
    pub object: String,
    /// In which of the user's functions, where that is known.
    function: Option<String>,
    /// What of the message is the same whenever this fails: no addresses, and no numbers that change.
    stable: String,
    /// What its id is made of.
    lasting: String,
}

impl Failed {
    /// What stays the same from build to build, and is its id: what fails, the function and what stands in the line there, but no
    /// line numbers and no directories.
    pub fn lasting_identity(&self) -> &str {
        &self.lasting
    }

    /// What makes two failures of different runs the same: what fails, and where. For memory, also where it was freed.
    pub fn identity(&self) -> String {
        let freed = self.others.iter().find(|(role, _)| *role == Role::Ended);
        let freed = freed.map_or("", |(_, moment)| moment.place.as_str());
        // Lines of one function that use what was freed are one bug.
        let at = self.function.as_ref().filter(|_| self.harm == Harm::UseAfterFree).unwrap_or(&self.at.place);
        [self.harm.name(), at, freed, &self.stable].join("\u{1f}")
    }

    /// A run that printed something else: how, and what of that is always the same.
    pub(crate) fn printed(message: String, stable: String, run: &Run) -> Failed {
        let at = Moment { place: String::new(), ..run.last_own_event(Some(0)) };
        let (others, object) = (Vec::new(), String::new());
        let lasting = [Harm::Output.name(), &stable].join("\u{1f}");
        Failed { harm: Harm::Output, message, at, others, object, function: None, stable, lasting }
    }

    /// Whether it is what another finding's form and place name.
    pub fn is_at(&self, form: &str, place: &str) -> bool {
        self.harm.name() == form && (self.at.place == place || place.is_empty())
    }
}

impl Run {
    /// How it failed: nothing if it did not.
    pub fn failures(&self) -> Vec<Failed> {
        let mut failures: Vec<Failed> = self.outcome.faults.iter().map(|fault| self.fault(fault)).collect();
        if let Some(end) = self.failed_end() {
            // What the C library says of a double free that was seen, and the abort that follows, is no news.
            let freed = |failed: &Failed| matches!(failed.harm, Harm::DoubleFree | Harm::BadFree);
            let known = matches!(end.harm, Harm::Abort) && failures.iter().any(freed);
            failures.extend((!known).then_some(end));
        }
        for failed in &mut failures {
            failed.function = self.user_function(&failed.at);
            let moments = std::iter::once(&mut failed.at).chain(failed.others.iter_mut().map(|(_, moment)| moment));
            for moment in moments {
                let shown = self.user_place_of(moment);
                if shown != moment.place {
                    failed.message = with_place(&failed.message, &moment.place, &shown);
                    moment.place = shown;
                }
            }
            failed.lasting = self.lasting(failed);
        }
        failures
    }

    /// What stays the same of a failure from build to build.
    fn lasting(&self, failed: &Failed) -> String {
        let line = |moment: &Moment| self.line_identity(moment);
        let function = || failed.function.as_deref().map(plain_function);
        let at = match failed.harm {
            // Lines of one function that use what was freed are one bug, and of the end of a program only the last thing
            // that was recorded is known, which optimisation decides.
            Harm::UseAfterFree | Harm::Exit => function().unwrap_or_else(|| line(&failed.at)),
            _ => line(&failed.at),
        };
        let freed = failed.others.iter().find(|(role, _)| *role == Role::Ended);
        let freed = freed.map_or_else(String::new, |(_, moment)| line(moment));
        let stable = match failed.harm {
            // Who waits where, in any order.
            Harm::DeadlockReached => {
                let waiting = failed.others.iter().filter(|(role, _)| *role == Role::Waiting);
                let mut lines: Vec<String> = waiting.map(|(_, moment)| line(moment)).chain([at.clone()]).collect();
                lines.sort_unstable();
                return [failed.harm.name().to_owned(), lines.join("\u{1e}")].join("\u{1f}");
            }
            _ => &failed.stable,
        };
        [failed.harm.name(), &at, &freed, stable].join("\u{1f}")
    }

    /// A place by what stands there, where that is known; else by its file's name and function.
    fn line_identity(&self, moment: &Moment) -> String {
        let frames = self.stack(moment.event as usize);
        let here = frames.iter().map(|frame| self.names.location(frame.location));
        let known = here.into_iter().find(|at| at.text == Some(&moment.place) && at.source.is_some());
        let known = known.or_else(|| self.names.location_of_text(&moment.place));
        let of_text = || match moment.place.rsplit_once(':') {
            // Where it is known which function it is in, lines may move.
            Some((file, line)) => {
                let function = self.user_function(moment).map(|name| plain_function(&name));
                let file = file.rsplit('/').next().unwrap_or(file);
                format!("{file}\u{1f}{}", function.as_deref().unwrap_or(line))
            }
            None => moment.place.clone(),
        };
        known.and_then(|at| at.identity()).unwrap_or_else(of_text)
    }

    /// The innermost of the user's functions at a moment.
    fn user_function(&self, moment: &Moment) -> Option<String> {
        let at = Some(moment.event as usize).filter(|at| *at < self.events.len())?;
        let frames = self.stack(at);
        frames.into_iter().find(|frame| frame.user).map(|frame| frame.function).filter(|name| !name.is_empty())
    }

    /// Where a moment is in the user's own code: a line of a library's header tells nobody anything.
    fn user_place_of(&self, moment: &Moment) -> String {
        let file = moment.place.rsplit_once(':').map_or(moment.place.as_str(), |(file, _)| file);
        let is_own = moment.place.contains(':') && is_user_file(file);
        if is_own || moment.place.is_empty() || moment.event as usize >= self.events.len() {
            return moment.place.clone();
        }
        let frames = self.stack(moment.event as usize);
        let own = frames.iter().find(|frame| frame.user);
        own.map_or_else(|| moment.place.clone(), |frame| self.names.location(frame.location).to_string())
    }

    fn fault(&self, fault: &Fault) -> Failed {
        let Fault { kind, at, object, detail, made, ended } = fault;
        let (harm, what) = match kind {
            FaultKind::UseAfterFree => (Harm::UseAfterFree, "is used after it was freed"),
            FaultKind::DoubleFree => (Harm::DoubleFree, "is freed a second time"),
            FaultKind::BadFree => (Harm::BadFree, "is freed in a way that does not fit how it was allocated"),
            FaultKind::DestroyedInUse => (Harm::DestroyedInUse, "is destroyed while it is in use"),
            FaultKind::UsedAfterDestroy => (Harm::DestroyedInUse, "is used after it was destroyed"),
            FaultKind::ClosedInUse => (Harm::ClosedInUse, "is closed while it is in use"),
        };
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        let moments = [(Role::Made, made), (Role::Ended, ended)];
        let others = moments.into_iter().filter_map(|(role, moment)| Some((role, moment.clone()?))).collect();
        Failed {
            harm,
            message: format!("{object} {what}{detail}"),
            at: at.clone(),
            others,
            object: object.clone(),
            function: None,
            stable: String::new(),
            lasting: String::new(),
        }
    }

    /// How its end is a failure, if it is.
    fn failed_end(&self) -> Option<Failed> {
        let outcome = &self.outcome;
        let last = self.last_event(None);
        let of_end = |harm, message: String, at: Moment, stable: String| Failed {
            harm,
            message,
            at,
            others: Vec::new(),
            object: String::new(),
            function: None,
            stable,
            lasting: String::new(),
        };
        if let Some(stuck) = &outcome.deadlock {
            // Whoever spins says more than those who wait for it.
            let (spinning, others): (Vec<_>, Vec<_>) = stuck.iter().partition(|stuck| stuck.spins);
            let stuck: Vec<&crate::Stuck> = spinning.into_iter().chain(others).collect();
            let moment =
                |stuck: &&crate::Stuck| Moment { place: stuck.place.clone(), ..self.last_event(Some(stuck.thread)) };
            let mut waiting = stuck.iter().map(|stuck| (Role::Waiting, moment(stuck)));
            let at = waiting.next().map_or(last, |(_, at)| at);
            let message = stuck.iter().map(|stuck| stuck.sentence.as_str()).collect::<Vec<_>>().join("; ");
            let mut places: Vec<&str> = stuck.iter().map(|stuck| stuck.place.as_str()).collect();
            places.sort_unstable();
            let stable = places.join(" ");
            let others = waiting.collect();
            let harm = if stuck.iter().any(|stuck| stuck.spins) { Harm::Hang } else { Harm::DeadlockReached };
            return Some(Failed { others, ..of_end(harm, message, at, stable) });
        }
        if outcome.timed_out {
            let message = "the program did not end in time and was stopped".to_owned();
            let at = Moment { place: String::new(), ..last };
            return Some(of_end(Harm::Hang, message, at, String::new()));
        }
        if let Some(text) = &outcome.assertion {
            let asserted = said::assertion_text(text);
            let crashed = outcome.crash.as_ref().and_then(|crash| crash.thread);
            let at = self.last_own_event(crashed);
            let printed = said::assertion_place(text).or_else(|| said::printed_assertion(&outcome.output.stderr));
            let died = || outcome.crash.as_ref().map(|crash| crash.place.clone()).filter(|place| !place.is_empty());
            let place = printed.map(|place| self.own_place(place)).or_else(died);
            // Where nobody knows who failed, the last event says nothing of where.
            let last = || crashed.map(|_| at.place.clone()).unwrap_or_default();
            let at = Moment { place: place.unwrap_or_else(last), ..at.clone() };
            return Some(of_end(Harm::Assertion, format!("`{asserted}` does not hold"), at, asserted));
        }
        let said = said::said(&outcome.output.stderr);
        match outcome.end {
            End::Signal(_) if outcome.interrupted_by().is_some() => None,
            End::Signal(signal) => {
                let crash = outcome.crash.as_ref();
                let at = self.last_event(crash.and_then(|crash| crash.thread));
                let at = match crash {
                    Some(crash) if !crash.place.is_empty() => Moment { place: crash.place.clone(), ..at },
                    _ => at,
                };
                Some(match said {
                    Some(Said::Exception { what }) if signal == 6 => {
                        let kind = what.split(':').next().unwrap_or_default().to_owned();
                        let kind = if what.contains("::") {
                            what.split(": ").next().unwrap_or(&kind).to_owned()
                        } else {
                            kind
                        };
                        of_end(Harm::Exception, what, at, kind)
                    }
                    Some(Said::Panic { place, what }) => panicked(place, what, at, of_end),
                    Some(Said::Report(text)) if signal == 6 => of_end(Harm::Abort, text, at, String::new()),
                    _ if signal == 6 => of_end(Harm::Abort, "abort() was called".into(), at, String::new()),
                    _ => {
                        let message = signal_words(signal, crash);
                        of_end(Harm::Crash, message, at, signal.to_string())
                    }
                })
            }
            End::Status(0) => None,
            End::Status(status) => Some(match said {
                Some(Said::Panic { place, what }) => panicked(place, what, last, of_end),
                said => {
                    let message = match said {
                        Some(Said::Report(text) | Said::Exception { what: text }) => {
                            format!("the program exits with status {status}: {text}")
                        }
                        _ => format!("the program exits with status {status}"),
                    };
                    of_end(Harm::Exit, message, self.last_own_event(Some(0)), status.to_string())
                }
            }),
        }
    }

    /// The last event of a thread, or of all.
    fn last_event(&self, thread: Option<u32>) -> Moment {
        let is_its = |at: &usize| thread.is_none_or(|thread| self.events[*at].thread.index() as u32 == thread);
        let at = (0..self.events.len()).rev().find(is_its);
        let place = at.map_or_else(String::new, |at| self.names.location(self.events[at].loc).to_string());
        let owner = at.map_or(0, |at| self.events[at].thread.index() as u32);
        Moment { thread: thread.unwrap_or(owner), event: at.unwrap_or(0) as u32, place }
    }

    /// The last event of a thread, or of the one that was last, in the user's own code: what happens after it belongs to libraries,
    /// or to the end of the process.
    fn last_own_event(&self, thread: Option<u32>) -> Moment {
        let last = self.last_event(thread);
        let is_its = |at: &usize| self.events[*at].thread.index() as u32 == last.thread;
        let is_own = |at: &usize| self.user_place(*at).is_some();
        let Some(at) = (0..self.events.len()).rev().filter(is_its).find(is_own) else { return last };
        let frames = self.stack(at);
        let place = frames.iter().find(|frame| frame.user).map(|frame| self.names.location(frame.location).to_string());
        Moment { thread: last.thread, event: at as u32, place: place.unwrap_or_default() }
    }

    /// A place that the program itself printed, as the run's own places name the same file.
    fn own_place(&self, printed: String) -> String {
        let names = self.names.location_table();
        let text = |entry: &'_ str| entry.split('\u{1f}').next().unwrap_or_default().to_owned();
        let end = format!("/{printed}");
        names.iter().map(text).find(|known| *known == printed || known.ends_with(&end)).unwrap_or(printed)
    }
}

/// A text in which a place is called something else; a longer place that starts or ends like it stays.
fn with_place(text: &str, place: &str, shown: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(place).filter(|_| !place.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + place.len()..]);
        told.push_str(before);
        let inside = |next: char| next.is_alphanumeric() || matches!(next, '_' | '/' | '.' | ':' | '+');
        // A sentence may end, or go on, behind a place.
        let goes_on = after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        let whole = !told.ends_with(inside) && !goes_on;
        told.push_str(if whole { shown } else { place });
        rest = after;
    }
    told + rest
}

fn panicked(
    place: Option<String>,
    what: String,
    at: Moment,
    of_end: impl Fn(Harm, String, Moment, String) -> Failed,
) -> Failed {
    let place = place.unwrap_or_else(|| at.place.clone());
    of_end(Harm::Exception, format!("panicked: {what}"), Moment { place, ..at }, String::new())
}

/// A fatal signal in words.
fn signal_words(signal: i32, crash: Option<&Crash>) -> String {
    let name = match signal {
        4 => "SIGILL (illegal instruction)",
        5 => "SIGTRAP (trap)",
        7 => "SIGBUS (bus error)",
        8 => "SIGFPE (arithmetic error)",
        9 => "SIGKILL (killed from outside, perhaps for lack of memory)",
        11 => "SIGSEGV (segmentation fault)",
        14 => "SIGALRM (alarm)",
        24 => "SIGXCPU (out of CPU time)",
        25 => "SIGXFSZ (file too large)",
        31 => "SIGSYS (bad system call)",
        _ => "",
    };
    let name = if name.is_empty() { format!("signal {signal}") } else { name.to_owned() };
    match crash.and_then(|crash| crash.address) {
        Some(0) if matches!(signal, 7 | 11) => format!("{name}: a null pointer is used"),
        Some(address @ 1..4096) if matches!(signal, 7 | 11) => {
            format!("{name}: a null pointer is used, {address} bytes behind it")
        }
        Some(_) if matches!(signal, 7 | 11) => format!("{name}: a pointer that leads nowhere is used"),
        _ => name,
    }
}

impl Outcome {
    /// Whether the program failed.
    pub fn has_failed(&self) -> bool {
        self.timed_out
            || self.deadlock.is_some()
            || self.assertion.is_some()
            || !self.faults.is_empty()
            || (self.end != End::Status(0) && self.interrupted_by().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_trace::{Names, StackColumn};

    fn run(outcome: Outcome) -> Run {
        Run {
            events: Vec::new(),
            stacks: StackColumn::default(),
            names: Names::default(),
            outcome,
            recording: Vec::new(),
        }
    }

    fn harms(outcome: Outcome) -> Vec<Harm> {
        run(outcome).failures().iter().map(|failed| failed.harm).collect()
    }

    fn printing(stderr: &str, end: End) -> Outcome {
        let mut outcome = Outcome::ended(end);
        outcome.output.stderr = stderr.as_bytes().to_vec();
        outcome
    }

    #[test]
    fn a_run_that_ends_well_has_not_failed_nor_one_that_was_asked_to_end() {
        assert_eq!(harms(Outcome::ended(End::Status(0))), []);
        // Who asked portent to end ended the program; anybody else's signal is a failure.
        let asked = Outcome { asked_to_end: true, ..Outcome::ended(End::Signal(15)) };
        assert_eq!(harms(asked), []);
        assert_eq!(harms(Outcome::ended(End::Signal(15))), [Harm::Crash]);
        assert_eq!(harms(printing("terminate called without an active exception\n", End::Status(0))), []);
    }

    #[test]
    fn every_other_end_is_a_failure_of_its_own_form() {
        assert_eq!(harms(Outcome::ended(End::Status(3))), [Harm::Exit]);
        assert_eq!(harms(Outcome::ended(End::Signal(11))), [Harm::Crash]);
        assert_eq!(harms(Outcome::ended(End::Signal(9))), [Harm::Crash]);
        assert_eq!(harms(Outcome::ended(End::Signal(6))), [Harm::Abort]);
        let thrown = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no\n";
        assert_eq!(harms(printing(thrown, End::Signal(6))), [Harm::Exception]);
        assert_eq!(harms(printing("thread 'main' panicked at a.rs:1:2:\nno\n", End::Status(101))), [Harm::Exception]);
        let asserted =
            Outcome { assertion: Some("p: a.c:1: f: Assertion `x' failed.".into()), ..Outcome::ended(End::Signal(6)) };
        assert_eq!(harms(asserted), [Harm::Assertion]);
        assert_eq!(harms(Outcome { timed_out: true, ..Outcome::ended(End::Signal(9)) }), [Harm::Hang]);
        assert_eq!(
            harms(Outcome { deadlock: Some(Vec::new()), ..Outcome::ended(End::Status(1)) }),
            [Harm::DeadlockReached]
        );
    }

    #[test]
    fn places_are_renamed_whole() {
        let text = "T1 at a.h:1; T2 at a.h:12, freed at b/a.h:1 (a.h:1).";
        assert_eq!(with_place(text, "a.h:1", "u.c:5"), "T1 at u.c:5; T2 at a.h:12, freed at b/a.h:1 (u.c:5).");
        assert_eq!(with_place("x", "", "y"), "x");
    }

    #[test]
    fn an_abort_after_a_double_free_is_told_once() {
        let at = Moment { thread: 1, event: 0, place: "a.c:3".into() };
        let fault = Fault {
            kind: FaultKind::DoubleFree,
            at,
            object: "block".into(),
            detail: String::new(),
            made: None,
            ended: None,
        };
        let outcome = Outcome { faults: vec![fault], ..printing("free(): double free detected\n", End::Signal(6)) };
        assert_eq!(harms(outcome), [Harm::DoubleFree]);
    }

    #[test]
    fn failures_are_the_same_whatever_numbers_they_print() {
        let thrown = |n: u32| {
            let text =
                format!("terminate called after throwing an instance of 'std::out_of_range'\n  what():  at {n}\n");
            run(printing(&text, End::Signal(6))).failures()[0].identity()
        };
        assert_eq!(thrown(1), thrown(2));
    }
}
