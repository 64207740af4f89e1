//! Lost updates: what is one and what is not, as programs show it; and the same as brute force, by definition, on random traces.

use portent_order::{Goal, Kind, Model, brute};
use portent_predict::{Bug, BugKind, Control, Options, Prediction, predict};
use portent_testing::traces::Shapes;
use portent_trace::{EventId, Op, Trace};
use std::collections::BTreeSet;

fn only() -> Options {
    Options { kinds: vec![BugKind::LostUpdate], ..Options::default() }
}

/// The lines of the lost updates of a program's run: what was read, what was lost, what overwrote it. In every model, with
/// windows or without, or the test fails.
fn lost(text: &str) -> Vec<[u32; 3]> {
    let trace = Trace::from_std(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let lines = |prediction: &Prediction| {
        assert_eq!((prediction.errors.as_slice(), prediction.incomplete.as_slice()), (&[][..], &[][..]), "{text}");
        let lines = |bug: &Bug| {
            let at =
                bug.places().into_iter().map(|place| trace.names().location(place.location.unwrap()).number.unwrap());
            <[u32; 3]>::try_from(at.collect::<Vec<_>>()).unwrap()
        };
        prediction.findings.iter().map(|finding| lines(&finding.bug)).collect::<Vec<_>>()
    };
    let found = lines(&predict(&trace, &only(), &Control::default()));
    for window in [2, 5, Options::WINDOW] {
        let prediction = predict(&trace, &Options { window, ..only() }, &Control::default());
        assert_eq!(lines(&prediction), found, "window {window}\n{text}");
    }
    found
}

fn program(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| line.split_whitespace()).map(|event| format!("{event}\n")).collect()
}

#[test]
fn accessors_with_a_lock_each_lose_updates() {
    // get() at line 10, set() at line 20, called in a loop by both.
    let once = |t: &str, v: i64| {
        format!("{t}|acq(m)|9 {t}|r(x)|10|{v} {t}|rel(m)|11 {t}|acq(m)|19 {t}|w(x)|20|{} {t}|rel(m)|21", v + 1)
    };
    let text = program(&[&once("T1", 0), &once("T1", 1), &once("T2", 2), &once("T2", 3)]);
    assert_eq!(lost(&text), [[10, 20, 20]]);
    let interleaved = program(&[&once("T1", 0), &once("T2", 1), &once("T1", 2), &once("T2", 3)]);
    assert_eq!(lost(&interleaved), [[10, 20, 20]]);
}

#[test]
fn a_withdrawal_split_over_two_sections_is_lost() {
    let take = |t: &str, v: i64| {
        format!("{t}|acq(m)|9 {t}|r(b)|10|{v} {t}|rel(m)|11 {t}|acq(m)|14 {t}|w(b)|15|{} {t}|rel(m)|16", v - 30)
    };
    assert_eq!(lost(&program(&[&take("T1", 100), &take("T2", 70)])), [[10, 15, 15]]);
}

#[test]
fn deposit_and_withdrawal_at_different_places_are_found_by_counting_alike() {
    let by = |t: &str, line: u32, v: i64, by: i64| {
        format!(
            "{t}|acq(m)|1 {t}|r(b)|{line}|{v} {t}|rel(m)|2 {t}|acq(m)|3 {t}|w(b)|{}|{} {t}|rel(m)|4",
            line + 1,
            v + by
        )
    };
    let found = lost(&program(&[&by("T1", 10, 100, 30), &by("T2", 20, 130, -30)]));
    assert_eq!(found, [[10, 21, 11]]);
    assert_eq!(lost(&program(&[&by("T1", 10, 100, 30), &by("T2", 20, 130, -17)])), [] as [[u32; 3]; 0], "no evidence");
}

#[test]
fn an_update_under_one_lock_is_not_lost() {
    let once = |t: &str, v: i64| format!("{t}|acq(m)|9 {t}|r(x)|10|{v} {t}|w(x)|20|{} {t}|rel(m)|21", v + 1);
    assert_eq!(lost(&program(&[&once("T1", 0), &once("T2", 1), &once("T1", 2), &once("T2", 3)])), [] as [[u32; 3]; 0]);
}

#[test]
fn one_that_looks_again_under_the_lock_is_not_lost() {
    let once = |t: &str, v: i64| {
        format!(
            "{t}|acq(m)|9 {t}|r(x)|10|{v} {t}|rel(m)|11 {t}|acq(m)|19 {t}|r(x)|20|{v} {t}|w(x)|21|{} {t}|rel(m)|22",
            v + 1
        )
    };
    assert_eq!(lost(&program(&[&once("T1", 0), &once("T2", 1), &once("T1", 2)])), [] as [[u32; 3]; 0]);
}

#[test]
fn a_flag_that_is_overwritten_is_no_update() {
    let set = |t: &str, v: i64, to: i64| {
        format!("{t}|acq(m)|9 {t}|r(f)|10|{v} {t}|rel(m)|11 {t}|acq(m)|19 {t}|w(f)|20|{to} {t}|rel(m)|21")
    };
    let reset = |t: &str| format!("{t}|acq(m)|29 {t}|r(f)|30|1 {t}|w(f)|31|0 {t}|rel(m)|32");
    assert_eq!(lost(&program(&[&set("T1", 0, 1), &reset("T1"), &set("T2", 0, 1)])), [] as [[u32; 3]; 0]);
    // On one line: if (!f) f = 1;
    let line = |t: &str| format!("{t}|acq(m)|9 {t}|r(f)|10|0 {t}|rel(m)|10 {t}|acq(m)|10 {t}|w(f)|10|1 {t}|rel(m)|11");
    assert_eq!(lost(&program(&[&line("T1"), &reset("T1"), &line("T2")])), [] as [[u32; 3]; 0]);
    // A state that is always the same one.
    assert_eq!(
        lost(&program(&[&set("T1", 3, 7), &set("T2", 7, 7), &reset("T1").replace("|1 ", "|7 "), &set("T2", 0, 7)])),
        [] as [[u32; 3]; 0]
    );
}

#[test]
fn a_compare_and_swap_loses_nothing_but_can_be_lost() {
    let swap = |t: &str, v: i64| format!("{t}|r.sc(x)|10|{v} {t}|u.sc(x)|11|{}", v + 1);
    assert_eq!(lost(&program(&[&swap("T1", 0), &swap("T2", 1)])), [] as [[u32; 3]; 0]);
    let store = |t: &str, v: i64| format!("{t}|r.sc(x)|20|{v} {t}|w.sc(x)|20|{}", v + 5);
    assert_eq!(lost(&program(&["T1|u.sc(x)|11|1", &store("T2", 1), "T1|u.sc(x)|11|7"])), [[20, 11, 20]]);
}

#[test]
fn one_that_waits_in_between_gave_way_on_purpose() {
    let waits = |wait: &str| {
        program(&[
            "T1|acq(m)|1 T1|r(x)|2|0",
            wait,
            "T1|w(x)|6|1 T1|rel(m)|7 T2|acq(m)|1 T2|r(x)|2|1 T2|rel(m)|4 T2|acq(m)|5 T2|w(x)|6|2 T2|rel(m)|7",
        ])
    };
    assert_eq!(lost(&waits("T1|rel(m)|3 T1|acq(m)|5")), [[2, 6, 6]]);
    assert_eq!(lost(&waits("T1|slp(c)|3 T1|rel(m)|3 T1|tmo(c)|3 T1|acq(m)|3")), [] as [[u32; 3]; 0]);
    assert_eq!(lost(&waits("T1|rel(m)|3 T3|w(z)|30 T3|snd(k)|31 T1|rcv(k)|4 T1|acq(m)|5")), [] as [[u32; 3]; 0]);
}

#[test]
fn where_there_is_a_race_the_race_is_told() {
    let text = program(&["T1|r(x)|10|0 T1|w(x)|10|1 T2|r(x)|10|1 T2|w(x)|10|2"]);
    let trace = Trace::from_std(&text).unwrap();
    let all = predict(&trace, &Options::default(), &Control::default());
    assert!(all.findings.iter().any(|f| f.kind() == BugKind::Race));
    assert!(all.findings.iter().all(|f| f.kind() != BugKind::LostUpdate));
    assert_eq!(lost(&text), [[10, 10, 10]], "alone, it is told");
}

/// Without values a block that the trace declares says what belongs together.
#[test]
fn without_values_only_declared_blocks_count() {
    let once = |t: &str| format!("{t}|acq(m)|9 {t}|r(x)|10 {t}|rel(m)|11 {t}|acq(m)|19 {t}|w(x)|20 {t}|rel(m)|21");
    assert_eq!(lost(&program(&[&once("T1"), &once("T2")])), [] as [[u32; 3]; 0]);
    let block = |t: &str| format!("{t}|begin(b)|8 {} {t}|end(b)|22", once(t));
    assert_eq!(lost(&program(&[&block("T1"), &block("T2")])), [[10, 20, 20]]);
}

#[test]
fn a_finding_knows_its_events_and_is_a_failure_in_documents() {
    let take = |t: &str, v: i64| {
        format!("{t}|acq(m)|9 {t}|r(b)|10|{v} {t}|rel(m)|11 {t}|acq(m)|14 {t}|w(b)|15|{} {t}|rel(m)|16", v - 30)
    };
    let trace = Trace::from_std(&program(&[&take("T1", 100), &take("T2", 70)])).unwrap();
    let prediction = predict(&trace, &only(), &Control::default());
    let finding = &prediction.findings[0];
    let Bug::LostUpdate { first, remote, second, read } = &finding.bug else { panic!("{finding:?}") };
    assert_eq!([first, remote, second, read].map(|place| place.event.unwrap()), [1, 10, 4, 7]);
    assert_eq!((finding.kind().name(), finding.kind().document_name()), ("lost_update", "failure"));
    assert!(finding.id.starts_with("failure-"), "{}", finding.id);
    assert_eq!((finding.instances, finding.instances_exact), (1, true));
    let goal = finding.goal().unwrap();
    let schedule = &finding.witness.as_ref().unwrap().schedule;
    assert_eq!(portent_order::check(&trace, Model::Reads, &goal, schedule), Ok(()));
}

/// A long run: found near, by slices, and a correct one says nothing at all.
#[test]
fn long_traces_are_decided_too() {
    let once = |t: &str, v: i64, split: bool| {
        let split = if split { format!("{t}|rel(m)|11 {t}|acq(m)|19") } else { String::new() };
        format!("{t}|acq(m)|9 {t}|r(x)|10|{v} {split} {t}|w(x)|20|{} {t}|rel(m)|21", v + 1)
    };
    for split in [true, false] {
        let rounds: Vec<String> = (0..4_000).map(|v| once(["T1", "T2", "T3"][v as usize % 3], v, split)).collect();
        let rounds: Vec<&str> = rounds.iter().map(String::as_str).collect();
        let trace = Trace::from_std(&program(&rounds)).unwrap();
        assert!(trace.len() > Options::WINDOW);
        let prediction = predict(&trace, &only(), &Control::default());
        assert_eq!(prediction.findings.len(), usize::from(split));
        assert_eq!(prediction.incomplete, [], "{split}");
    }
}

/// The definition, without classes, samples and groups. Every event of these traces has its own place, so what speaks for an
/// update is a block, or another one that counts alike.
fn by_definition(trace: &Trace, model: Model) -> BTreeSet<Goal> {
    let waits = |e: EventId| match trace.op(e) {
        Op::Receive(_) | Op::Wait(_) | Op::Sleep(_) | Op::Wake(_) => true,
        Op::Send(token) => matches!(trace.meaning(token), portent_trace::Meaning::Fork(_)),
        _ => false,
    };
    let between = |a: EventId, b: EventId| {
        let inside = trace.events().filter(move |e| e.id > a && e.id < b && e.thread == trace.thread(a));
        inside.map(|e| e.id).collect::<Vec<_>>()
    };
    let block = |e: EventId| {
        let before = trace.events().take_while(|other| other.id < e).filter(|other| other.thread == trace.thread(e));
        let mark = before.filter(|other| matches!(other.op, Op::Begin(_) | Op::End(_))).last();
        mark.filter(|mark| matches!(mark.op, Op::Begin(_))).map(|mark| mark.id)
    };
    let goals = brute::candidates(trace, Kind::LostUpdate);
    let update = |a: EventId, b: EventId| a != b && !between(a, b).into_iter().any(waits) && !trace.op(b).reads();
    // Every update of the trace, also those that no goal has.
    let accesses = |e: EventId| trace.op(e).variable();
    let mut all = Vec::new();
    for read in trace.events().filter(|e| e.op.reads()) {
        let next =
            trace.events().find(|e| e.id > read.id && e.thread == read.thread && accesses(e.id) == accesses(read.id));
        all.extend(next.filter(|next| update(read.id, next.id)).map(|next| (read.id, next.id)));
    }
    let values = |(a, b): (EventId, EventId)| trace.value(a).zip(trace.value(b));
    let speaks = |own: (EventId, EventId)| match values(own) {
        None => block(own.0).is_some() && block(own.0) == block(own.1),
        Some((r, w)) if r == w => false,
        Some((r, w)) => all.iter().any(|&other| {
            let Some((s, v)) = values(other).filter(|(s, v)| s != v) else { return false };
            let flag = [r, w, s, v].iter().all(|n| (0..=1).contains(n));
            other != own
                && accesses(other.0) == accesses(own.0)
                && r != s
                && w != v
                && !flag
                && (w - r).abs() == (v - s).abs()
        }),
    };
    let is_one = |goal: &Goal| {
        let Goal::LostUpdate { first, read, remote, second } = *goal else { return false };
        let own = update(first, second) && speaks((first, second));
        let other = read == remote || (update(read, remote) && speaks((read, remote)));
        own && other && brute::decide(trace, model, goal).is_some()
    };
    goals.iter().filter(|goal| is_one(goal)).cloned().collect()
}

#[test]
fn random_traces_get_exactly_the_lost_updates_of_the_definition() {
    let mut found = 0;
    for (which, shapes) in [Shapes::all(), Shapes::that(|shape| shape.blocks)].into_iter().enumerate() {
        for tiny in shapes.traces(0..6_000) {
            let (trace, model) = (&tiny.trace, tiny.model());
            if trace.symbols().is_some() {
                continue;
            }
            let truth = by_definition(trace, model);
            for window in [2, Options::WINDOW] {
                let prediction = predict(trace, &Options { model, window, ..only() }, &Control::default());
                let goals: BTreeSet<Goal> = prediction.findings.iter().filter_map(|finding| finding.goal()).collect();
                assert_eq!(goals, truth, "window {window}, {tiny} in {model}");
                assert_eq!((prediction.errors.len(), prediction.incomplete.len()), (0, 0), "{tiny} in {model}");
            }
            found += truth.len();
        }
        println!("shapes {which}: {found} lost updates");
    }
    assert!(found > 100, "{found}");
}
