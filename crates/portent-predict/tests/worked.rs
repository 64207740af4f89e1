//! The worked examples of Sen, Roşu and Agha, and what their definitions must give, exactly.

use portent_order::{Model, brute};
use portent_predict::lattice::{Bounds, draw::Drawing, explore, whole};
use portent_predict::{Control, Prediction, PropertyOptions, PropertyVerdict, check_properties};
use portent_spec::{Assume, Bound, Compiled, Outcome, Scope, evaluate, parse};
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
        matches!(evaluate(&bound, &events, true, Assume::Zero), Outcome::Broken(_))
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
    assert_eq!(finding.places[0].role.name(), "violation");
    assert_eq!(finding.places[0].event, Some(3));
    let explanation = &finding.property.as_ref().unwrap().explanation;
    assert!(
        explanation.starts_with("Step 4 of this order, T1's write landing = 1 at l.c:4, breaks it."),
        "{explanation}"
    );
    assert!(explanation.contains("permit = 0 (T2 at l.c:1)"), "{explanation}");
    let steps: Vec<(usize, u64)> =
        finding.witness.as_ref().unwrap().steps.iter().map(|step| (step.thread.index(), step.events)).collect();
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
    assert!(told.sentence.starts_with("holds in all 3 reorderings of this run (8 cuts, "), "{}", told.sentence);
    assert!(told.notes.is_empty());
    assert!(found.incomplete.is_empty());
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
        if let Outcome::Broken(at) = evaluate(bound, &observed, true, Assume::Zero) {
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
    assert_eq!((found.findings[0].places[0].op, found.findings[0].places[0].event), ("final", None));
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
