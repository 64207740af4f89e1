//! The loop on simulated programs: what it finds, what it shows, what it says when it is stopped, and in which order.

mod machine;

use machine::Simulated;
use portent_explore::{
    Error, Event, Examined, Exploration, Observer, Options, Properties, Replayed, Run, RunId, Stop, explore,
};
use portent_order::Model;
use portent_predict::{BugKind, Evidence, Finding, Harm};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOST_UPDATE: &str = "thread
  $seen = hits
  hits = $seen + 1
thread
  $seen = hits
  hits = $seen + 1
";

const LOCK_ORDER: &str = "thread
  lock a
  lock b
  unlock b
  unlock a
thread
  lock b
  lock a
  unlock a
  unlock b
";

/// The first thread runs first, so that it sees that nothing is ready.
const BEHIND_A_BRANCH: &str = "thread
  lock m
  $ready = ready
  unlock m
  if $ready == 1 {
    secret = 1
  }
thread
  lock m
  ready = 1
  unlock m
  secret = 2
";

/// Races only if the second thread reads the data without having seen the flag, which it never does.
const HANDED_OVER: &str = "thread
  data = 1
  lock m
  flag = 1
  unlock m
thread
  lock m
  $flag = flag
  unlock m
  if $flag == 1 {
    $data = data
  }
";

/// The first run goes one way, all others go another.
const MOODY: &str = "thread
  $run = run()
  if $run == 1 {
    x = 1
  }
  y = 1
thread
  x = 2
  y = 2
";

/// Nobody interrupts.
static QUIET: AtomicBool = AtomicBool::new(false);

fn options(kinds: &[BugKind]) -> Options {
    let mut options = Options::default();
    options.search.kinds = kinds.to_vec();
    options.search.jobs = 1;
    options
}

fn explored(program: &str, options: &Options) -> Exploration {
    explore(&Simulated::new(program), options, &QUIET, &mut |_: Event<'_>| ()).unwrap()
}

/// Every finding that was told, with its run, model and what replays showed.
fn told(exploration: &Exploration) -> Vec<(RunId, Model, &Finding, Option<&Replayed>)> {
    let mut all = Vec::new();
    for examined in &exploration.examined {
        for answer in &examined.answers {
            for finding in &answer.prediction.findings {
                all.push((examined.run, answer.model, finding, answer.replays.get(&finding.id)));
            }
        }
    }
    all
}

#[test]
fn a_race_is_found_and_seen_in_every_replay() {
    let exploration = explored(LOST_UPDATE, &options(&[BugKind::Race]));
    let told = told(&exploration);
    assert!(!told.is_empty());
    assert!(told.iter().any(|(_, model, ..)| *model == Model::Reads));
    for (run, _, finding, replayed) in told {
        assert_eq!((run, finding.object.as_str()), (RunId { round: 1, number: 0 }, "hits"));
        let replayed = replayed.unwrap();
        assert_eq!((replayed.hits, replayed.runs, &replayed.diverged), (3, 3, &None));
        let showed = replayed.showed.as_ref().unwrap();
        assert!(showed.contains("T1 is about to") && showed.contains("hits at sim.c:"), "{showed}");
    }
    assert_eq!((exploration.stopped, exploration.not_replayed, exploration.failures.len()), (None, 0, 0));
}

#[test]
fn a_deadlock_is_found_and_seen() {
    let exploration = explored(LOCK_ORDER, &options(&[BugKind::Deadlock]));
    let told = told(&exploration);
    let [(_, _, finding, Some(replayed))] = told[..] else { panic!("{told:?}") };
    assert_eq!((finding.kind(), replayed.hits), (BugKind::Deadlock, 3));
    let showed = replayed.showed.as_ref().unwrap();
    assert!(showed.contains("T1 waits at sim.c:3; T2 waits at sim.c:8"), "{showed}");
    assert!(showed.contains("deadlock reached: "), "{showed}");
    assert!(exploration.failures.is_empty(), "what was predicted and reached is told once");
}

#[test]
fn all_behaviours_are_run_or_it_is_said_why_that_is_not_known() {
    let behaviours = |program: &str| explored(program, &options(&[BugKind::Race])).behaviours.unwrap();
    // Either is first, or none sees the other.
    let lost = behaviours(LOST_UPDATE);
    assert_eq!((lost.seen, lost.left, lost.are_all()), (3, 0, true), "{lost:?}");
    // Nobody reads anything, and main waits for both.
    let order = behaviours(LOCK_ORDER);
    assert_eq!((order.seen, order.are_all()), (1, true), "{order:?}");
    // What a flag holds at first, a run in which it is written before anybody reads it does not tell.
    let branch = behaviours(BEHIND_A_BRANCH);
    assert_eq!((branch.seen, branch.are_all()), (2, false), "{branch:?}");
    let handed = behaviours(HANDED_OVER);
    assert!(!handed.are_all() && handed.unproven[0].contains("holds at first"), "{handed:?}");
    let moody = behaviours(MOODY);
    assert!(!moody.are_all() && moody.unproven[0].contains("does not always do the same"), "{moody:?}");
}

#[test]
fn a_bug_behind_a_branch_is_reached_in_round_2() {
    let exploration = explored(BEHIND_A_BRANCH, &options(&[BugKind::Race, BugKind::Nondeterminism]));
    let told = told(&exploration);
    let races: Vec<_> = told.iter().filter(|(_, _, finding, _)| finding.kind() == BugKind::Race).collect();
    let [(run, _, race, Some(replayed))] = races[..] else { panic!("{told:?}") };
    assert_eq!((run.round, race.object.as_str(), replayed.hits), (2, "secret", 3));
    let one_round = explored(BEHIND_A_BRANCH, &Options { rounds: 1, neighbours: 0, ..options(&[BugKind::Race]) });
    assert!(one_round.examined.iter().all(|examined| examined.run.round == 1));
    let is_empty = |examined: &Examined| examined.answers.iter().all(|answer| answer.prediction.findings.is_empty());
    assert!(one_round.examined.iter().all(is_empty));
}

#[test]
fn what_only_the_optimistic_model_says_is_told_only_if_it_is_seen() {
    let mut guesses = Vec::new();
    let mut misses = 0;
    let mut observer = |event: Event<'_>| match event {
        Event::Predicted { model: Model::Sync, prediction, .. } => {
            guesses.extend(prediction.findings.iter().map(|finding| finding.object.clone()));
        }
        Event::ReplaySeen { replay, .. } => misses += usize::from(!replay.hit),
        _ => {}
    };
    let program = Simulated::new(HANDED_OVER);
    let exploration = explore(&program, &options(&[BugKind::Race]), &QUIET, &mut observer).unwrap();
    // The schedule can be followed, so that it is tried as often as any.
    assert_eq!((guesses, misses), (vec!["data".to_owned()], 3));
    assert!(told(&exploration).is_empty(), "{:?}", told(&exploration));
    // The miss is still on record.
    assert_eq!(exploration.examined[0].answers[1].replays.len(), 1);
}

#[test]
fn a_property_that_another_order_breaks_is_found_and_seen() {
    let source = "initial ready = 0, secret = 0\nproperty told_later: always (secret == 2 -> prev ready == 1)\n";
    let program = "thread
  ready = 1
thread
  secret = 2
";
    let properties = Properties::parse("told.spec".into(), source.into()).unwrap();
    let options = Options { properties: Some(properties), ..options(&[BugKind::Property]) };
    let exploration = explored(program, &options);
    let told = told(&exploration);
    let [(_, _, finding, Some(replayed))] = told[..] else { panic!("{told:?}") };
    assert_eq!((finding.kind(), replayed.hits), (BugKind::Property, 3));
    assert!(replayed.showed.as_ref().unwrap().starts_with("told_later is broken by T2"), "{replayed:?}");
}

#[test]
fn a_property_about_nothing_in_the_program_is_refused() {
    let properties = Properties::parse("typo.spec".into(), "property p: always secrte != 2\n".into()).unwrap();
    let options = Options { properties: Some(properties), ..options(&[BugKind::Property]) };
    let program = Simulated::new(BEHIND_A_BRANCH);
    let refused = explore(&program, &options, &QUIET, &mut |_: Event<'_>| ()).unwrap_err();
    assert!(refused.to_string().contains("secrte"), "{refused}");
}

#[test]
fn a_loop_that_is_interrupted_returns_what_is_known_and_says_so() {
    let program = Simulated::new(LOST_UPDATE);
    static INTERRUPT: AtomicBool = AtomicBool::new(false);
    let mut observer = |event: Event<'_>| {
        if let Event::Predicted { .. } = event {
            INTERRUPT.store(true, Ordering::Relaxed);
        }
    };
    let exploration = explore(&program, &options(&[BugKind::Race]), &INTERRUPT, &mut observer).unwrap();
    let told = told(&exploration);
    assert!(!told.is_empty() && told.iter().all(|(_, _, _, replayed)| replayed.is_none()));
    assert_eq!((exploration.stopped, exploration.not_replayed), (Some(Stop::Interrupted), told.len()));
    assert_eq!(program.runs(), 1, "nothing is replayed after the interrupt");
}

#[test]
fn without_time_the_recorded_run_is_all_there_is() {
    let program = Simulated::new(LOST_UPDATE);
    let options = Options { budget: Duration::ZERO, ..options(&[BugKind::Race]) };
    let exploration = explore(&program, &options, &QUIET, &mut |_: Event<'_>| ()).unwrap();
    assert_eq!(exploration.stopped, Some(Stop::OutOfTime));
    assert_eq!((exploration.examined.len(), program.runs()), (1, 1));
}

#[test]
fn a_replay_that_goes_another_way_says_where() {
    let exploration = explored(MOODY, &options(&[BugKind::Race]));
    let told = told(&exploration);
    let diverged: Vec<&str> = told.iter().filter_map(|(.., replayed)| replayed.as_ref()?.diverged.as_deref()).collect();
    assert!(!diverged.is_empty(), "{told:?}");
    for text in diverged {
        assert!(text.contains("expected T1: w(x) at sim.c:4"), "{text}");
    }
}

#[test]
fn a_run_that_fails_by_itself_is_told() {
    let program = "thread
  $seen = x
  assert $seen == 1
";
    let mut failures = Vec::new();
    let mut observer = |event: Event<'_>| {
        if let Event::RunRecorded { recorded, .. } = event {
            failures.extend(recorded.failures().into_iter().map(|failed| failed.message));
        }
    };
    let program = Simulated::new(program);
    let exploration = explore(&program, &options(&BugKind::ALL), &QUIET, &mut observer).unwrap();
    assert!(!exploration.failures.is_empty());
    assert_eq!(failures, ["`$seen == 1 (line 3)` does not hold"]);
}

#[test]
fn an_assertion_that_only_another_order_breaks_is_seen_to_fail() {
    let program = "thread
  $seen = hits
  hits = $seen + 1
thread
  $seen = hits
  hits = $seen + 1
  $now = hits
  if $seen == 0 {
    assert $now == 2
  }
";
    let mut failed = Vec::new();
    let mut observer = |event: Event<'_>| {
        if let Event::ReplaySeen { replay, .. } = event {
            failed.extend(replay.failed.clone());
        }
    };
    explore(&Simulated::new(program), &options(&[BugKind::Nondeterminism]), &QUIET, &mut observer).unwrap();
    assert!(failed.iter().any(|text| text == "failed assertion: `$now == 2 (line 9)` does not hold"), "{failed:?}");
}

#[test]
fn a_failure_that_nothing_predicts_is_found_by_one_switch_more_and_told_with_what_decides() {
    let program = "thread
  ready = 1
  stock = 5
thread
  $ready = ready
  $stock = stock
  if $ready == 1 {
    assert $stock == 5
  }
";
    let exploration = explored(program, &options(&[]));
    let [examined] = &exploration.failures[..] else { panic!("{:?} {:?}", exploration.runs, exploration.failures) };
    let answer = &examined.answers[0];
    let [finding] = &answer.prediction.findings[..] else { panic!("{answer:?}") };
    let failure = finding.bug.failure().unwrap();
    assert_eq!((failure.harm, finding.evidence), (Harm::Assertion, Evidence::Predicted));
    assert_eq!((answer.replays[&finding.id].hits, answer.replays[&finding.id].runs), (3, 3));
    // Both are started, the first executes its first write, then the second goes on: nothing else is needed.
    let steps: Vec<u64> = finding.witness.as_ref().unwrap().steps.then.iter().map(|step| step.events).collect();
    assert_eq!(steps, [2, 1, 1]);
    let decisive = failure.decisive.as_ref().unwrap();
    assert!(decisive.fails.contains("as it was at first"), "{decisive:?}");
    assert!(decisive.passes.contains("sees stock = 5"), "{decisive:?}");
    // Without tries there is nothing that leads there.
    assert!(explored(program, &Options { neighbours: 0, ..options(&[]) }).failures.is_empty());
}

#[test]
fn several_runs_are_recorded_each_by_another_schedule() {
    let mut orders = Vec::new();
    let mut observer = |event: Event<'_>| {
        if let Event::RunRecorded { recorded, .. } = event {
            orders.push(recorded.events.iter().map(|event| event.thread).collect::<Vec<_>>());
        }
    };
    let options = Options { recordings: 4, times: 0, neighbours: 0, ..options(&[BugKind::Race]) };
    let program = Simulated::new(LOST_UPDATE);
    let exploration = explore(&program, &options, &QUIET, &mut observer).unwrap();
    let numbers: Vec<usize> = exploration.examined.iter().map(|examined| examined.run.number).collect();
    assert_eq!((numbers, program.runs()), (vec![0, 1, 2, 3], 4));
    assert!(orders[1..].iter().any(|order| *order != orders[0]), "{orders:?}");
}

/// An event, by the name of its variant.
fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::RunStarted { .. } => "run started",
        Event::RunRecorded { .. } => "run recorded",
        Event::Predicting { .. } => "predicting",
        Event::Predicted { .. } => "predicted",
        Event::Replaying { .. } => "replaying",
        Event::ReplaySeen { .. } => "replay seen",
        Event::Confirmed { .. } => "confirmed",
        Event::Replayed { .. } => "replayed",
        Event::RunExamined { .. } => "run examined",
        Event::Trying { .. } => "trying",
        Event::Tried { .. } => "tried",
        Event::Settling { .. } => "settling",
        Event::RoundDone { .. } => "round done",
        Event::Done { .. } => "done",
        _ => "?",
    }
}

#[test]
fn events_tell_the_story_in_order() {
    let mut story: Vec<&str> = Vec::new();
    let mut observer = |event: Event<'_>| {
        let name = name(&event);
        // Progress comes as often as it likes.
        if story.last() != Some(&name) || !["predicting", "trying", "settling"].contains(&name) {
            story.push(name);
        }
    };
    let options = Options { times: 2, models: vec![Model::Reads], neighbours: 0, ..options(&[BugKind::Deadlock]) };
    explore(&Simulated::new(LOCK_ORDER), &options, &QUIET, &mut observer).unwrap();
    let expected = [
        "run started",
        "run recorded",
        "predicting",
        "predicted",
        "replaying",
        "replay seen",
        "confirmed",
        // Once before the search, and made sure of after it.
        "replaying",
        "replay seen",
        "replayed",
        "run examined",
        "tried",
        "tried",
        "round done",
        "settling",
        "done",
    ];
    assert_eq!(story, expected);
}

/// Keeps runs, or refuses to.
#[derive(Default)]
struct Keeper {
    kept: Vec<RunId>,
    full: bool,
}

impl Observer for Keeper {
    fn see(&mut self, _: Event<'_>) {}

    fn keep(&mut self, run: &Run, examined: &Examined) -> Result<(), Error> {
        assert_eq!(run.events.len() as u64, examined.trace.input_len());
        self.kept.push(examined.run);
        if self.full { Err(Error::refused("the disk is full", "make room")) } else { Ok(()) }
    }
}

#[test]
fn runs_with_findings_are_kept_and_a_full_disk_ends_the_loop() {
    let options = options(&[BugKind::Race, BugKind::Nondeterminism]);
    let program = Simulated::new(BEHIND_A_BRANCH);
    let mut keeper = Keeper::default();
    explore(&program, &options, &QUIET, &mut keeper).unwrap();
    assert_eq!(keeper.kept, [RunId { round: 1, number: 0 }, RunId { round: 2, number: 1 }]);
    let mut full = Keeper { full: true, ..Keeper::default() };
    let refused = explore(&program, &options, &QUIET, &mut full).unwrap_err();
    assert_eq!((refused.to_string().as_str(), full.kept.len()), ("the disk is full", 1));
}

/// Each thread waits, so to speak, for what the other writes, and looks only once.
const HANDSHAKE: &str = "thread
  a = 1
  $b = b
  if $b == 1 {
    a = 2
    $b = b
    if $b == 2 {
      a = 3
      $b = b
      assert $b == 2
    }
  }
thread
  $a = a
  if $a == 1 {
    b = 1
    $a = a
    if $a == 2 {
      b = 2
      $a = a
      if $a == 3 {
        b = 3
      }
    }
  }
";

#[test]
fn what_needs_six_switches_is_reached_by_what_reads_could_see() {
    let exploration = explored(HANDSHAKE, &Options { rounds: 1, ..options(&[BugKind::Race]) });
    let failed: Vec<_> = exploration.failures.iter().flat_map(|found| &found.answers).collect();
    assert!(!failed.is_empty(), "the assertion fails");
    assert!(exploration.runs < 120, "{} runs", exploration.runs);
}
