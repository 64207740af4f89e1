//! Every schedule that is printed can be run as printed: the steps of witnesses, executed input event by input event.

mod every_operation;
mod executor;

use every_operation::every_operation;
use executor::{Input, execute};
use portent_order::Model;
use portent_predict::{Control, Finding, Options, PropertyOptions, check_properties, predict};
use portent_spec::generate::random_property;
use portent_spec::{Bound, Scope, parse};
use portent_testing::corpus::cases;
use portent_testing::traces::{Shapes, from_std};
use portent_trace::generate::{TinyShape, tiny_std};
use portent_trace::{ByteRange, EventList, Trace};
use std::collections::BTreeMap;

/// Witnesses by kind, and how many of them could not be executed, with the first of those.
#[derive(Default)]
struct Tally {
    witnesses: BTreeMap<&'static str, u64>,
    refused: u64,
    first: Option<String>,
}

impl Tally {
    fn add(&mut self, name: &str, text: &str, model: Model, window: usize) {
        let trace = Trace::from_std(text).unwrap();
        let options = Options { model, window, ..Options::default() };
        let findings = predict(&trace, &options, &Control::default()).findings;
        self.add_findings(name, text, model, &trace, &Input::from_std(text), &findings);
    }

    fn add_findings(
        &mut self,
        name: &str,
        text: &str,
        model: Model,
        trace: &Trace,
        input: &Input,
        findings: &[Finding],
    ) {
        // On the other side of a branch are events that the input does not have.
        for finding in findings.iter().filter(|f| f.witness.is_some() && !f.flags.needs_other_branch) {
            *self.witnesses.entry(finding.bug.form().name()).or_default() += 1;
            if let Err(why) = execute(trace, input, model, finding) {
                self.refused += 1;
                let steps = &finding.witness.as_ref().unwrap().steps;
                let steps: Vec<_> = steps.in_full(trace).map(|s| (trace.names().thread(s.thread), s.events)).collect();
                self.first.get_or_insert_with(|| {
                    let places: Vec<_> = finding.places().iter().map(|p| (p.role, p.event)).collect();
                    format!("{name} in {model}: {}\n{places:?}\n{steps:?}\n{why}\n{text}", finding.id)
                });
            }
        }
    }

    fn holds(self, least: u64) {
        let all: u64 = self.witnesses.values().sum();
        println!("{} of {all} witnesses cannot be executed: {:?}", self.refused, self.witnesses);
        assert!(self.refused == 0, "{} of {all}, the first: {}", self.refused, self.first.unwrap_or_default());
        assert!(all >= least, "only {all} witnesses");
    }
}

#[test]
fn the_steps_of_random_traces_with_every_operation_can_be_executed() {
    let mut tally = Tally::default();
    for seed in 0..4_000 {
        let text = every_operation(seed);
        for model in Model::ALL {
            tally.add(&format!("seed {seed}"), &text, model, Options::WINDOW);
        }
    }
    tally.holds(20_000);
}

#[test]
fn the_steps_of_random_tiny_traces_can_be_executed() {
    let mut tally = Tally::default();
    for tiny in Shapes::all().traces(0..6_300) {
        let window = if tiny.seed.is_multiple_of(7) { 6 } else { Options::WINDOW };
        tally.add(&format!("{} {}", tiny.shape.name, tiny.seed), &tiny.text(), tiny.model(), window);
    }
    tally.holds(20_000);
}

#[test]
fn the_steps_of_the_corpus_can_be_executed() {
    let mut tally = Tally::default();
    for case in cases() {
        for model in Model::ALL {
            tally.add(&case.name, &case.text, model, Options::WINDOW);
        }
    }
    tally.holds(800);
}

/// The steps of the first finding, in words.
fn steps(text: &str) -> String {
    let trace = Trace::from_std(text).unwrap();
    let prediction = predict(&trace, &Options::default(), &Control::default());
    let witness = prediction.findings[0].witness.as_ref().unwrap();
    let mut runs: Vec<(usize, u64)> = Vec::new();
    for step in witness.steps.in_full(&trace) {
        match runs.last_mut() {
            Some((thread, events)) if *thread == step.thread.index() => *events += step.events,
            _ => runs.push((step.thread.index(), step.events)),
        }
    }
    let name = |thread: usize| trace.names().thread(portent_trace::ThreadId::new(thread)).to_owned();
    runs.into_iter().map(|(thread, events)| format!("{} {events}", name(thread))).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_post_that_a_wait_needs_is_among_the_steps() {
    assert_eq!(steps("T1|w(z)|1\nT1|post(s)|2\nT0|semw(s)|3\nT0|w(x)|4\nT2|w(x)|5\n"), "T1 2, T0 1");
    assert_eq!(steps("T1|post(s)|1\nT0|semw(s)|2\nT0|w(x)|4|2\nT2|w(x)|3|1\n"), "T1 1, T0 1");
}

#[test]
fn a_once_that_somebody_passes_was_ended() {
    // T0 goes through the lock of the once before anybody begins it, and waits for its end only then.
    let text = "T1|onceb(o)|1\nT1|w(y)|2\nT1|oncee(o)|3\nT0|oncep(o)|4\nT0|w(x)|5\nT2|w(x)|6\n";
    assert_eq!(steps(text), "T1 3, T0 1");
}

#[test]
fn the_steps_of_runs_that_break_properties_can_be_executed() {
    let shapes: Vec<TinyShape> = TinyShape::all().filter(|shape| shape.values).collect();
    let mut tally = Tally::default();
    for seed in 0..1_000u64 {
        let (text, name) = match seed % 2 {
            0 => (every_operation(seed), "every operation"),
            _ => (tiny_std(seed, &shapes[seed as usize / 2 % shapes.len()]), "tiny"),
        };
        let trace = Trace::from_std(&text).unwrap();
        let file = parse(&random_property(seed, trace.names())).unwrap();
        let bound = Bound::all(&file, &Scope::of(&trace)).unwrap();
        for model in [Model::Sync, Model::Reads] {
            let findings = check_properties(&trace, &bound, &PropertyOptions::of(model), &Control::default()).findings;
            tally.add_findings(name, &text, model, &trace, &Input::from_std(&text), &findings);
        }
    }
    tally.holds(300);
}

/// Engines may tear an access that others overlap; some goals can be reached only so, and some torn accesses could be
/// avoided only by another witness altogether. Nearly all others are put together.
#[test]
fn nearly_all_steps_of_traces_with_overlapping_accesses_can_be_executed() {
    let ranges = [("word", 0, 4), ("low", 0, 2), ("high", 2, 2), ("middle", 1, 2)];
    let mut tally = Tally::default();
    for seed in 0..6_000u64 {
        let mut text = String::new();
        for (at, line) in every_operation(seed).lines().enumerate() {
            let which = (seed as usize + 7 * at * at + at) / 3 % ranges.len();
            let line = line.replace("(x)", &format!("({})", ranges[which].0));
            let fields = if line.contains("semi") { 4 } else { 3 };
            text.push_str(&format!("{}\n", line.splitn(4, '|').take(fields).collect::<Vec<_>>().join("|")));
        }
        let (mut names, events) = from_std(&text);
        for (name, start, len) in ranges {
            names.intern_range(name.as_bytes(), ByteRange { region: 0, start, len }).unwrap();
        }
        let input = Input::new(names.clone(), events.clone(), false);
        let trace = Trace::from_input(&mut EventList::new(names, events)).unwrap();
        for model in Model::ALL {
            let findings = predict(&trace, &Options { model, ..Options::default() }, &Control::default()).findings;
            tally.add_findings(&format!("seed {seed}"), &text, model, &trace, &input, &findings);
        }
    }
    let (all, refused) = (tally.witnesses.values().sum::<u64>(), tally.refused);
    println!("{refused} of {all} witnesses cannot be executed: {:?}", tally.witnesses);
    assert!(all >= 10_000 && refused * 30 < all, "{refused} of {all}, the first: {}", tally.first.unwrap_or_default());
}
