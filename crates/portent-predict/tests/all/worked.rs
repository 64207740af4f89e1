//! The worked examples of Sen, Roşu and Agha, and what their definitions must give, exactly.

use portent_order::{Model, brute};
use portent_predict::lattice::{Bounds, draw::Drawing, explore, whole, whole_seen};
use portent_predict::{Control, Prediction, PropertyOptions, PropertyVerdict, check_properties};
use portent_spec::{Assume, Bound, Compiled, Ruling, Scope, evaluate, parse};
use portent_trace::{Event, EventId, Trace};

const LANDING: &str = "T2|w(permit)|l.c:1|0\nT1|w(permit)|l.c:2|1\nT1|r(permit)|l.c:3|1\nT1|w(landing)|l.c:4|1\n";
const EXAMPLE_1: &str = "T1|w(x)|1|-1\nT1|r(x)|2|-1\nT1|w(z)|3|2\nT2|w(x)|4|1\nT2|r(x)|5|1\nT2|r(z)|6|2\nT2|w(y)|7|3\n";
const RACE_Z: &str =
    "T1|w(z)|1|1\nT1|acq(l)|2\nT1|w(x)|3|0\nT1|rel(l)|4\nT2|acq(l)|5\nT2|w(y)|6|10\nT2|rel(l)|7\nT2|w(z)|8|0\n";

fn bind(trace: &Trace, source: &str) -> Bound {
    let file = parse(source).unwrap_or_else(|wrong| panic!("{}", wrong.render("p", source)));
    Bound::all(&file, &Scope::of(trace)).unwrap().remove(0)
}

fn predict(trace: &Trace, source: &str, width: usize) -> Prediction {
    let options = PropertyOptions { width, ..PropertyOptions::of(Model::Reads) };
    check_properties(trace, &[bind(trace, source)], &options, &Control::default())
}

/// The complete runs that break the property, by definition.
fn breaking_runs(trace: &Trace, source: &str) -> Vec<Vec<usize>> {
    let bound = bind(trace, source);
    let runs = brute::complete_runs(trace, Model::Reads);
    let breaks = |run: &&Vec<EventId>| {
        let events: Vec<Event> = run.iter().map(|&event| trace.event(event)).collect();
        matches!(evaluate(&bound, &events, true, Assume::Zero), Ruling::Broken(_))
    };
    runs.iter().filter(breaks).map(|run| run.iter().map(|event| event.index()).collect()).collect()
}

#[test]
fn landing_has_3_runs_8_cuts_and_one_run_that_breaks_the_property() {
    let trace = Trace::from_std(LANDING).unwrap();
    let source = "property landing_needs_permit: always (landing == 1 -> prev permit == 1)";
    let counted = whole(&trace, Model::Reads, 1000).unwrap();
    assert_eq!((counted.runs, counted.cuts()), (Some(3), 8));
    assert_eq!(counted.level_sizes(), [1, 2, 2, 2, 1]);
    assert_eq!(breaking_runs(&trace, source), [[1, 2, 0, 3]], "e1 e2 e' e3");
    let found = predict(&trace, source, 100);
    assert_eq!(found.findings.len(), 1);
    let finding = &found.findings[0];
    assert_eq!(finding.places()[0].role.name(), "violation");
    assert_eq!(finding.places()[0].event, Some(3));
    let explanation = &finding.bug.violated().unwrap().explanation;
    assert!(
        explanation.starts_with("Step 4 of this order, T1's write landing = 1 at l.c:4, breaks it."),
        "{explanation}"
    );
    assert!(explanation.contains("permit = 0 (T2 at l.c:1)"), "{explanation}");
    let steps: Vec<(usize, u64)> =
        finding.witness.as_ref().unwrap().steps.then.iter().map(|step| (step.thread.index(), step.events)).collect();
    let [t2, t1] = [0, 1];
    assert_eq!(steps, [(t1, 2), (t2, 1), (t1, 1)]);
}

#[test]
fn example_1_has_4_runs_13_cuts_and_one_run_that_breaks_the_property() {
    let trace = Trace::from_std(EXAMPLE_1).unwrap();
    let source = "property becomes_negative_first: always (x > 0 -> once x < 0)";
    let counted = whole(&trace, Model::Reads, 1000).unwrap();
    assert_eq!((counted.runs, counted.cuts()), (Some(4), 13));
    assert_eq!(counted.level_sizes(), [1, 2, 2, 3, 2, 1, 1, 1]);
    assert_eq!(breaking_runs(&trace, source), [[3, 4, 0, 1, 2, 5, 6]]);
    assert_eq!(predict(&trace, source, 100).findings.len(), 1);
}

#[test]
fn the_z_race_has_18_runs_21_cuts_and_is_found() {
    let trace = Trace::from_std(RACE_Z).unwrap();
    let counted = whole(&trace, Model::Reads, 1000).unwrap();
    assert_eq!((counted.runs, counted.cuts()), (Some(18), 21));
    let found = predict(&trace, "property no_race_on_z: never race(z)", 1000);
    assert_eq!(found.findings.len(), 2, "either access may come second");
    assert!(predict(&trace, "property no_race_on_x: never race(x)", 1000).findings.is_empty());
}

#[test]
fn counts_are_those_of_enumeration() {
    use portent_trace::generate::{TinyShape, tiny};
    for (seed, mut shape) in (1..).zip(TinyShape::all().collect::<Vec<_>>().into_iter().cycle().take(2000)) {
        shape.events = shape.events.min(8);
        let trace = tiny(seed, &shape);
        for model in [Model::Sync, Model::Reads] {
            let counted = whole(&trace, model, 100_000).unwrap();
            let runs = brute::complete_runs(&trace, model).len() as u128;
            assert_eq!(
                (counted.runs, counted.cuts()),
                (Some(runs), brute::count_cuts(&trace, model)),
                "seed {seed} {model}"
            );
        }
    }
}

#[test]
fn what_holds_is_said_with_the_number_of_reorderings() {
    let trace = Trace::from_std(LANDING).unwrap();
    let found = predict(&trace, "initial permit = 0, landing = 0\nproperty small: always permit < 2", 100);
    let told = &found.properties[0];
    assert_eq!(told.verdict, PropertyVerdict::Holds);
    let says = "holds in all 3 reorderings in which every read but a thread's last one keeps its writer (8 cuts, ";
    assert!(told.sentence.starts_with(says), "{}", told.sentence);
    assert!(told.notes.is_empty());
    assert!(found.incomplete.is_empty());
}

/// T2 can read x before T1 writes it, as the finding about nondeterminism says.
const FIRST_READ: &str = "T1|w(x)|a.c:1|1\nT2|r(x)|a.c:2|1\n";

#[test]
fn a_property_about_what_a_read_sees_held_though_the_read_could_see_the_initial_value() {
    let trace = Trace::from_std(FIRST_READ).unwrap();
    let found = predict(&trace, "initial x = 0\nproperty a: always (read(x) -> x != 0)", 100);
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Broken, "{}", found.properties[0].sentence);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let finding = &found.findings[0];
    assert_eq!((finding.places()[0].event, finding.evidence.name()), (Some(1), "predicted"));
    let steps: Vec<(&str, u64)> = finding
        .witness
        .as_ref()
        .unwrap()
        .steps
        .then
        .iter()
        .map(|s| (trace.names().thread(s.thread), s.events))
        .collect();
    assert_eq!(steps, [("T2", 1)]);
    let explanation = &finding.bug.violated().unwrap().explanation;
    assert_eq!(
        explanation,
        "Step 1 of this order, T2's read x = 0 at a.c:2, breaks it. Before it: x = 0 (as it started). After it: x = 0 (as \
         it started). What it saw: T2 read x = 0. T2's read x at a.c:2 sees the initial value, not what it saw in the \
         recorded run: T2 stops there, as what it does next is not known."
    );
    // Both orders are reorderings; in neither is x negative.
    let found = predict(&trace, "initial x = 0\nproperty a: always (read(x) -> x >= 0)", 100);
    let told = &found.properties[0];
    let says = "holds in all 2 reorderings in which every read but a thread's last one keeps its writer (4 cuts, ";
    assert!(told.sentence.starts_with(says), "{}", told.sentence);
    assert_eq!((told.runs, told.cuts), (Some(2), Some(4)));
}

#[test]
fn nothing_comes_after_a_read_that_sees_another_write() {
    // T2 would say y = 1 only because it read x = 1.
    let trace = Trace::from_std("T1|w(x)|1|1\nT2|r(x)|2|1\nT2|w(y)|3|1\n").unwrap();
    let verdict = |source: &str| predict(&trace, source, 100).properties[0].verdict;
    assert_eq!(verdict("property p: always (y == 1 -> x == 1)"), PropertyVerdict::Holds);
    assert_eq!(verdict("property p: never ((read(x) & (x == 0)) . write(y))"), PropertyVerdict::Holds);
    assert_eq!(verdict("property p: never ((read(x) & (x == 0)) . write(x))"), PropertyVerdict::Broken);
    // A run with such a read is no complete run.
    assert_eq!(verdict("property p: never (read(x) . write(x) . end)"), PropertyVerdict::Holds);
}

#[test]
fn who_stopped_at_a_read_went_on_with_what_others_waited_for() {
    // T1 reads y only after T0 wrote it, which T0 does not if its update comes after T1's write.
    let trace = "T0|u(x)|1|0\nT0|w(y)|2|2\nT1|w(x)|3|1\nT1|r(y)|4|2\nT1|r(x)|5|1\n";
    let trace = Trace::from_std(trace).unwrap();
    let found = predict(&trace, "property p: never (read(x) . (!write(x))+)", 100);
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Holds);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
}

#[test]
fn final_is_about_runs_in_which_every_read_keeps_its_writer() {
    // Could T2 read x last of all, y would be 2 in the end.
    let trace = "T1|w(x)|1|1\nT2|w(y)|2|2\nT2|r(x)|3|1\nT1|w(x)|4|3\nT1|w(y)|5|1\n";
    let trace = Trace::from_std(trace).unwrap();
    for source in ["property p: final y == 1", "property p: final (once read(x) -> y == 1)"] {
        assert_eq!(predict(&trace, source, 100).properties[0].verdict, PropertyVerdict::Holds, "{source}");
    }
}

#[test]
fn who_stops_at_a_read_that_sees_another_write_keeps_its_locks() {
    let trace = "T1|w(x)|1|1\nT2|acq(l)|2\nT2|r(x)|3|1\nT2|rel(l)|4\nT3|acq(l)|5\nT3|rel(l)|6\n";
    let trace = Trace::from_std(trace).unwrap();
    let verdict = |source: &str| predict(&trace, source, 100).properties[0].verdict;
    assert_eq!(verdict("property p: never (read(x) & (x == 0))"), PropertyVerdict::Broken);
    let by_t3 = "(acquire(l) & by(T3))";
    assert_eq!(
        verdict(&format!("property p: never ((read(x) & (x == 0)) . write(x)? . {by_t3})")),
        PropertyVerdict::Holds
    );
    assert_eq!(verdict(&format!("property p: never ({by_t3} . _* . (read(x) & (x == 0)))")), PropertyVerdict::Broken);
}

#[test]
fn what_an_update_writes_that_sees_another_write_is_not_known() {
    let trace = Trace::from_std("T1|w(n)|1|1\nT2|u(n)|2|2\nT3|r(n)|3|2\n").unwrap();
    let of = |source: &str| predict(&trace, source, 100);
    // Whatever it writes, it came first.
    let found = of("initial n = 0\nproperty p: never (update(n) . write(n))");
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Broken);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    // It may write 1, as the program counts, or anything.
    let found = of("initial n = 0\nproperty p: always (update(n) -> n == 2)");
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Unknown, "{}", found.properties[0].sentence);
    assert!(
        found.properties[0].notes.iter().any(|note| note.contains("what an update writes")),
        "{:?}",
        found.properties[0].notes
    );
    // T3 keeps its read only of what T2 wrote after it saw T1's write.
    let found = of("initial n = 0\nproperty p: never (update(n) . read(n) . write(n))");
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Broken, "T3's read sees anything, too");
    let trace = Trace::from_std("T1|w(n)|1|1\nT2|u(n)|2|2\nT3|r(n)|3|2\nT3|w(z)|4|1\n").unwrap();
    let found = predict(&trace, "property p: never (update(n) . write(z) . (write(n) & by(T1)))", 100);
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Holds);
}

#[test]
fn sync_lets_every_read_see_anything_and_says_nothing_of_writers() {
    let trace = Trace::from_std(FIRST_READ).unwrap();
    let bound = bind(&trace, "initial x = 0\nproperty a: always (read(x) -> x >= 0)");
    let found = check_properties(&trace, &[bound], &PropertyOptions::of(Model::Sync), &Control::default());
    assert!(found.properties[0].sentence.starts_with("holds in all 2 reorderings of this run (4 cuts, "));
}

#[test]
fn the_picture_has_the_read_that_sees_another_write() {
    let trace = Trace::from_std(FIRST_READ).unwrap();
    let bound = bind(&trace, "property a: always (read(x) -> x != 0)");
    let counted = whole_seen(&trace, Model::Reads, &|event| bound.sees(event), 1000).unwrap();
    let dot = Drawing::new(&trace, &counted, "a", Some(&[EventId::new(1)])).dot();
    assert!(dot.contains("label=\"T2: read x (another write)\", color=red"), "{dot}");
    assert!(dot.contains("label=\"T2: read x=1\", color=black"), "{dot}");
}

#[test]
fn what_was_left_out_is_said_and_nothing_then_holds() {
    let trace = Trace::from_std(LANDING).unwrap();
    // The observed run alone does not break it.
    let found = predict(&trace, "property p: always (landing == 1 -> prev permit == 1)", 1);
    let told = &found.properties[0];
    assert_eq!(told.verdict, PropertyVerdict::Incomplete);
    assert!(told.sentence.starts_with("no violation found, incomplete from level "), "{}", told.sentence);
    assert!(told.sentence.contains(" cuts dropped") || told.sentence.contains(" cut dropped"), "{}", told.sentence);
    assert_eq!(found.incomplete[0].why.name(), "width");
}

#[test]
fn the_observed_run_is_kept_however_narrow_the_lattice() {
    use portent_spec::generate::random_property;
    use portent_trace::generate::{TinyShape, tiny};
    let mut broken = 0;
    for (seed, shape) in (1..).zip(TinyShape::all().collect::<Vec<_>>().into_iter().cycle().take(1500)) {
        let trace = tiny(seed, &TinyShape { values: true, ..shape });
        let file = parse(&random_property(seed, trace.names())).unwrap();
        let bound = &Bound::all(&file, &Scope::of(&trace)).unwrap()[0];
        let Ok(mut monitor) = Compiled::new(bound) else { continue };
        let observed: Vec<Event> = trace.events().collect();
        let bounds = Bounds { width: 1, ..Bounds::of(Model::Reads) };
        let explored = explore(&trace, &mut monitor, &bounds, &|_| None);
        if let Ruling::Broken(at) = evaluate(bound, &observed, true, Assume::Zero) {
            broken += 1;
            let event = observed.get(at).map(|event| event.id);
            assert!(explored.broken.iter().any(|way| way.event == event), "seed {seed}: {}", bound.property.text);
        }
    }
    assert!(broken > 200, "{broken}");
}

#[test]
fn a_value_that_is_not_there_makes_the_answer_unknown() {
    let trace = Trace::from_std("T1|w(x)|a.c:1\nT2|w(y)|a.c:2|1\n").unwrap();
    let found = predict(&trace, "property p: always (x == 0)", 100);
    let told = &found.properties[0];
    assert_eq!(told.verdict, PropertyVerdict::Unknown);
    assert!(
        told.notes.iter().any(|note| note.contains("the write by T1 at a.c:1 (event 0) carries no value")),
        "{:?}",
        told.notes
    );
    assert_eq!(found.incomplete[0].why.name(), "values");
    // A read that saw it tells.
    let trace = Trace::from_std("T1|w(x)|a.c:1\nT1|r(x)|a.c:2|7\n").unwrap();
    let found = predict(&trace, "property p: always (x == 0)", 100);
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Broken);
}

#[test]
fn a_lock_that_is_held_at_the_end_is_a_sequence() {
    let source = "property given_back: never (acquire(l) . !release(l)* . end)";
    let kept = Trace::from_std("T1|acq(l)|1\nT1|rel(l)|2\nT2|acq(l)|3\n").unwrap();
    assert_eq!(predict(&kept, source, 100).properties[0].verdict, PropertyVerdict::Broken);
    let given = Trace::from_std("T1|acq(l)|1\nT1|rel(l)|2\nT2|acq(l)|3\nT2|rel(l)|4\n").unwrap();
    assert_eq!(predict(&given, source, 100).properties[0].verdict, PropertyVerdict::Holds);
}

#[test]
fn final_values_are_those_of_complete_runs() {
    let trace = Trace::from_std("T1|w(x)|1|3\nT2|w(x)|2|4\nT2|w(x)|3|3\n").unwrap();
    let found = predict(&trace, "property p: final x == 3", 100);
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Holds, "{:?}", found.findings);
    let trace = Trace::from_std("T1|w(x)|1|4\nT2|w(x)|2|3\n").unwrap();
    let found = predict(&trace, "property p: final x == 3", 100);
    assert_eq!((found.findings[0].places()[0].op, found.findings[0].places()[0].event), ("final", None));
}

#[test]
fn pictures_mark_the_observed_and_the_violating_run() {
    let trace = Trace::from_std(LANDING).unwrap();
    let counted = whole(&trace, Model::Reads, 1000).unwrap();
    let violating = [1, 2, 0, 3].map(EventId::new);
    let drawing = Drawing::new(&trace, &counted, "landing", Some(&violating));
    let dot = drawing.dot();
    assert_eq!(dot.matches("fontcolor=red").count(), 4, "{dot}");
    assert_eq!(dot.matches("penwidth=2.5, fontsize").count(), 4, "{dot}");
    let svg = drawing.svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("T1: write landing=1"));
}
