//! Failures that were seen, in every output: hand-made findings of every harm, on the trace of the run that failed.

use crate::common::reports;
use insta::assert_snapshot;
use portent_order::Model;
use portent_predict::{
    Bug, BugKind, Deciding, Evidence, Failure, Finding, Flags, Harm, Place, Prediction, Role, StackFrame, Step, Steps,
    Witness,
};
use portent_report::source::Sources;
use portent_report::text::{Look, page};
use portent_report::{Explored, Extras, Level, Replayed, Report, Settings};
use portent_trace::{EventId, Trace};
use std::sync::Arc;

/// A run of a worker pool in which a block is used after it was freed, and the element that a thread was woken for is gone.
const POOL: &str = "\
main|w(block)|pool.cpp:20|7
main|fork(T1)|pool.cpp:49
main|fork(T2)|pool.cpp:50
T2|acq(m)|pool.cpp:12
T2|r(count)|pool.cpp:13|0
T2|slp(cv)|pool.cpp:13
T2|rel(m)|pool.cpp:13
main|acq(m)|pool.cpp:24
main|w(count)|pool.cpp:25|1
main|nta(cv)|pool.cpp:26
main|rel(m)|pool.cpp:27
T1|acq(m)|pool.cpp:12
T1|r(count)|pool.cpp:13|1
T1|w(count)|pool.cpp:15|0
T1|rel(m)|pool.cpp:16
T1|w(block)|pool.cpp:33|0
T2|wak(cv)|pool.cpp:13
T2|acq(m)|pool.cpp:13
T2|r(count)|pool.cpp:14|0
T2|r(block)|pool.cpp:41|0
";

pub(crate) fn pool() -> Arc<Trace> {
    Arc::new(Trace::from_std(POOL).unwrap())
}

/// The event of the trace at a place, as a place of a finding.
fn at(trace: &Trace, role: Role, thread: &str, location: &str) -> Place {
    let is_it = |event: &EventId| {
        let told = trace.event(*event);
        trace.names().thread(told.thread) == thread && trace.names().location(told.loc).to_string() == location
    };
    let id = (0..trace.len()).map(EventId::new).rfind(is_it).unwrap_or_else(|| panic!("{thread} at {location}"));
    let event = trace.event(id);
    let object = trace.op(id).variable().map_or_else(String::new, |x| trace.variable_name(x).into_owned());
    Place {
        role,
        thread: Some(event.thread),
        event: Some(trace.input_index(id)),
        kernel: Some(id),
        op: event.op.name(),
        object,
        location: Some(event.loc),
    }
}

fn frame(function: &str, file: &str, line: u32, user: bool) -> StackFrame {
    StackFrame { function: function.into(), file: file.into(), line: Some(line), user }
}

/// A failure of each harm, with all that can be said of it.
pub(crate) fn failure(trace: &Trace, harm: Harm) -> Failure {
    let worker = vec![
        frame("std::__atomic_base<int>::load(std::memory_order) const", "/usr/include/c++/13/atomic", 480, false),
        frame("worker(bool)", "pool.cpp", 41, true),
        frame("run", "pool.cpp", 44, true),
        frame(
            "std::thread::_Invoker<std::tuple<void (*)(Pool*), Pool*>>::operator()()",
            "/usr/include/thread",
            9,
            false,
        ),
    ];
    let stop = vec![frame("drop(int**)", "pool.cpp", 33, true), frame("worker(bool)", "pool.cpp", 42, true)];
    let make = vec![frame("make", "pool.cpp", 20, true), frame("main", "pool.cpp", 48, true)];
    let memory = matches!(
        harm,
        Harm::UseAfterFree | Harm::DoubleFree | Harm::BadFree | Harm::DestroyedInUse | Harm::ClosedInUse
    );
    let message = match harm {
        Harm::UseAfterFree => "Block from pool.cpp:20 is used after it was freed",
        Harm::DoubleFree => "Block from pool.cpp:20 is freed a second time",
        Harm::BadFree => "Block from pool.cpp:20 is freed in a way that does not fit how it was allocated",
        Harm::DestroyedInUse => "m is used after it was destroyed",
        Harm::ClosedInUse => "descriptor 5 is closed while it is in use",
        Harm::Assertion => "`count > 0` does not hold",
        Harm::Exception => "std::out_of_range: vector::_M_range_check",
        Harm::Crash => "SIGSEGV (segmentation fault): a null pointer is used, 8 bytes behind it",
        Harm::Abort => "abort() was called",
        Harm::DeadlockReached => "T2 waits for m, held by main since pool.cpp:24; main waits for T2 to end",
        Harm::Hang => "the program did not end in time and was stopped",
        Harm::Exit => "the program exits with status 3",
        Harm::Output => "prints `sum 3` instead of `sum 4`",
    };
    let others = match harm {
        _ if memory => vec![at(trace, Role::Made, "main", "pool.cpp:20"), at(trace, Role::Ended, "T1", "pool.cpp:33")],
        Harm::DeadlockReached => vec![at(trace, Role::Waiting, "main", "pool.cpp:27")],
        _ => Vec::new(),
    };
    let stacks = match others.len() {
        2 => vec![worker, make, stop],
        1 => vec![worker, make],
        _ => vec![worker],
    };
    Failure {
        harm,
        message: message.into(),
        at: at(trace, Role::Failure, "T2", "pool.cpp:41"),
        others,
        stacks,
        decisive: Some(Deciding {
            operation: at(trace, Role::Decisive, "T2", "pool.cpp:14"),
            because: Some(at(trace, Role::Because, "T1", "pool.cpp:15")),
            fails: "sees 0, written by T1".into(),
            passes: "sees 1, written by main".into(),
        }),
        stderr: format!("starting\nworker: got nothing\n{message}\n"),
    }
}

pub(crate) fn finding(trace: &Trace, failure: Failure) -> Finding {
    let steps = [(0, 3), (2, 4), (0, 4), (1, 5), (2, 4)];
    let threads: Vec<_> = trace.thread_ids().collect();
    Finding {
        id: format!("failure-{:06x}", failure.harm as u32 + 0x3f2a90),
        object: if failure.others.len() == 2 { "Block from pool.cpp:20".into() } else { String::new() },
        bug: Bug::Failure(Box::new(failure)),
        evidence: Evidence::Predicted,
        model: None,
        instances: 1,
        instances_exact: true,
        flags: Flags::default(),
        witness: Some(Witness {
            schedule: Default::default(),
            steps: Steps::new(steps.map(|(thread, events)| Step { thread: threads[thread], events }).into()),
        }),
        other_branch: None,
    }
}

/// A report on findings, each replayed three times with success.
pub(crate) fn report_on(settings: Settings, findings: Vec<Finding>) -> Report {
    let trace = pool();
    let mut report = Report::new(Settings {
        input: "./pool".into(),
        kinds: BugKind::ALL.into(),
        replay: Some("portent replay pool.portent --finding".into()),
        ..settings
    });
    let seen = Replayed { runs: 3, hits: 3, ..Default::default() };
    let replays = findings.iter().map(|finding| (finding.id.clone(), seen.clone())).collect();
    for finding in findings {
        let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
        let extras = Extras { round: Some(2), replays: Clone::clone(&replays), ..Extras::default() };
        report.add(trace.clone(), Model::Reads, prediction, &extras);
    }
    report.explored = Some(Explored { runs: 23, behaviours: 23, complete: true, ..Explored::default() });
    report.seconds = Some(0.94);
    report
}

/// A failure of each of these harms.
pub(crate) fn of_harms(settings: Settings, harms: impl IntoIterator<Item = Harm>) -> Report {
    let trace = pool();
    report_on(settings, harms.into_iter().map(|harm| finding(&trace, failure(&trace, harm))).collect())
}

#[test]
fn a_use_after_free_and_an_abort_as_people_see_them() {
    let sources = || Settings { sources: Sources::below([reports()]), ..Settings::default() };
    assert_snapshot!("use_after_free", page(&of_harms(sources(), [Harm::UseAfterFree]), &Look::default()));
    assert_snapshot!("abort", page(&of_harms(sources(), [Harm::Abort]), &Look { width: 80, ..Look::default() }));
    assert_snapshot!("deadlock_reached", page(&of_harms(sources(), [Harm::DeadlockReached]), &Look::default()));
}

#[test]
fn every_harm_is_told_in_order_and_only_other_output_is_no_alarm() {
    let report = of_harms(Settings::default(), Harm::ALL.into_iter().rev());
    let told: Vec<Harm> = report.stories.iter().map(|s| s.finding.bug.failure().unwrap().harm).collect();
    assert_eq!(told, Harm::ALL, "whatever the order in which they are found");
    assert_eq!((report.count(Level::Failure), report.count(Level::Observation)), (12, 1));
    assert_eq!(report.stories[12].level, Level::Observation);
    let strict = of_harms(Settings { same_output: true, ..Settings::default() }, [Harm::Output]);
    assert!(strict.has_failures());
    assert!(!of_harms(Settings::default(), [Harm::Output]).has_failures());
}

#[test]
fn two_hundred_findings_stay_within_two_screens_and_end_with_the_summary() {
    let trace = pool();
    let of_number = |n: usize| Finding {
        id: format!("failure-{n:06x}"),
        ..finding(&trace, failure(&trace, Harm::ALL[n % (Harm::ALL.len() - 1)]))
    };
    let mut report = report_on(Settings::default(), (0..200).map(of_number).collect());
    report.scope = (0..40).map(|n| format!("object {n} was linked without instrumentation")).collect();
    let text = page(&report, &Look::default());
    assert!(text.lines().count() <= Look::LINES, "{} lines", text.lines().count());
    assert!(text.lines().count() > Look::LINES - 10, "the room is used");
    assert!(text.starts_with("✗ use after free in worker()  pool.cpp:41"), "{text}");
    assert_eq!(text.lines().last().unwrap(), "200 failures.  23 runs; complete: all 23 behaviours were run.  0.9 s");
    assert!(text.contains("more failures: --json or --html has all of them"), "{text}");
    assert!(text.matches("  replay     ").count() >= 2, "the first ones are told in full: {text}");
    assert!(text.contains("not covered: 34 more"), "{text}");
}

#[test]
fn no_line_of_a_failure_is_wider_than_the_terminal_but_for_commands() {
    for width in [60, 80, 100, 120, 200] {
        let text = page(&of_harms(Settings::default(), Harm::ALL), &Look { width, ..Look::default() });
        let blocks = text.lines().filter(|line| line.starts_with("  ") && !line.contains("portent replay"));
        for line in blocks {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn quiet_is_a_line_per_finding() {
    let text =
        page(&of_harms(Settings { quiet: true, ..Settings::default() }, [Harm::Crash, Harm::Output]), &Look::default());
    assert_eq!(text, "failure-3f2a96  crash in worker()  pool.cpp:41  3 of 3 replays\n");
    assert_eq!(page(&of_harms(Settings { quiet: true, ..Settings::default() }, []), &Look::default()), "");
}

#[test]
fn nothing_found_is_one_line_that_says_what_it_is_worth_with_what_was_not_covered() {
    let mut report = of_harms(Settings::default(), []);
    assert_eq!(
        page(&report, &Look::default()),
        "✓ no failure: ./pool was run; complete: all 23 behaviours were run.  0.9 s\n"
    );
    report.explored = Some(Explored { runs: 801, behaviours: 800, left: 37, ..Explored::default() });
    report.scope = vec!["threads of a forked child".into()];
    assert_eq!(
        page(&report, &Look::default()),
        "not covered: threads of a forked child\n\
         ✓ no failure: ./pool was run; not complete: 800 behaviours, 37 alternatives are left.  0.9 s\n"
    );
}

#[test]
fn other_output_is_the_first_observation_in_a_line_with_what_decides_it() {
    let text = page(&of_harms(Settings::default(), [Harm::Output]), &Look::default());
    assert_snapshot!("other_output", text);
    let text =
        page(&of_harms(Settings { observations: true, ..Settings::default() }, [Harm::Output]), &Look::default());
    assert!(text.starts_with("○ different output in worker()"), "{text}");
    assert!(text.contains("\n  decisive   T2's read of count") && text.contains("\n  replay     "), "{text}");
}

#[test]
fn a_program_that_fails_by_itself_has_failed_whatever_replays_show() {
    let trace = pool();
    let recorded = Finding { evidence: Evidence::Observed, ..finding(&trace, failure(&trace, Harm::Exit)) };
    let explored = Finding { evidence: Evidence::Predicted, ..recorded.clone() };
    // Also where an explored run shows it, before or after.
    let later = report_on(Settings::default(), vec![explored.clone(), recorded.clone()]);
    let report = report_on(Settings::default(), vec![recorded, explored]);
    assert_eq!((later.stories.len(), later.stories[0].verdict.name()), (1, "observed"));
    assert_eq!((report.stories[0].verdict.name(), report.has_failures()), ("observed", true));
    assert!(page(&report, &Look::default()).contains("in the recorded run, 3 of 3 replays"));
}

#[test]
fn a_run_that_took_too_long_once_is_no_alarm_where_it_ends_when_run_again() {
    let trace = pool();
    let alarms = |replayed: Replayed| {
        let finding = finding(&trace, failure(&trace, Harm::Hang));
        let replays = [(finding.id.clone(), replayed)].into_iter().collect();
        let mut report = Report::new(Settings::default());
        let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
        report.add(trace.clone(), Model::Reads, prediction, &Extras { replays, ..Extras::default() });
        report.has_failures()
    };
    assert!(!alarms(Replayed { runs: 1, ..Default::default() }));
    assert!(alarms(Replayed { runs: 1, hits: 1, ..Default::default() }));
}

#[test]
fn what_was_seen_once_is_a_failure_whether_or_not_it_shows_again() {
    let trace = pool();
    let told = |replayed: Option<Replayed>| {
        let finding = finding(&trace, failure(&trace, Harm::Crash));
        let replays = replayed.map(|replayed| (finding.id.clone(), replayed)).into_iter().collect();
        let mut report = Report::new(Settings::default());
        let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
        report.add(trace.clone(), Model::Reads, prediction, &Extras { replays, ..Extras::default() });
        assert!(report.has_failures());
        page(&report, &Look::default())
    };
    assert!(told(None).contains("   seen once\n"));
    let diverged = Some("T2 waits for m".to_owned());
    let text = told(Some(Replayed { runs: 3, diverged, ..Default::default() }));
    assert!(
        text.contains("   seen once, not in 3 replays\n") && text.contains("  not seen   T2 waits for m\n"),
        "{text}"
    );
}

#[test]
fn names_and_words_of_a_program_cannot_drive_the_terminal() {
    let trace = pool();
    let mut evil = failure(&trace, Harm::UseAfterFree);
    let bad = "\u{1b}[2J\u{9b}\n✗ gotcha";
    evil.message = bad.into();
    evil.stderr = format!("{bad}\nmore {bad}");
    evil.stacks[0][1] = frame(bad, bad, 41, true);
    evil.stacks[2].insert(0, frame(bad, "x", 1, true));
    if let Some(deciding) = &mut evil.decisive {
        deciding.fails = bad.into();
        deciding.passes = bad.into();
        deciding.operation.object = bad.into();
    }
    evil.others[0].object = bad.into();
    let mut finding = finding(&trace, evil);
    finding.object = bad.into();
    for settings in [Settings::default(), Settings { quiet: true, ..Settings::default() }] {
        let mut report = report_on(settings, vec![finding.clone()]);
        report.scope = vec![bad.into()];
        report.settings.input = bad.into();
        let text = page(&report, &Look::default());
        assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("✗ gotcha")), "{text}");
    }
}
