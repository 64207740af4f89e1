//! A race with `free` is a possible use after free, and told as that, first.

use portent_predict::{Bug, BugKind, Control, Finding, Form, Frees, Options, by_happens_before, predict};
use portent_trace::Trace;

fn races(text: &str) -> Vec<Finding> {
    let trace = Trace::from_std(text).unwrap();
    let options = Options { kinds: vec![BugKind::Race], ..Options::default() };
    predict(&trace, &options, &Control::default()).findings
}

fn sides(findings: &[Finding]) -> Vec<(Form, Option<Frees>)> {
    let frees = |finding: &Finding| match finding.bug {
        Bug::Race { frees, .. } => frees,
        _ => panic!("not a race: {finding:?}"),
    };
    findings.iter().map(|finding| (finding.bug.form(), frees(finding))).collect()
}

#[test]
fn a_use_that_races_with_a_free_is_a_possible_use_after_free() {
    let found = races("T1|r(p)|a.c:9\nT2|free(p)|b.c:12\n");
    assert_eq!(sides(&found), [(Form::PossibleUseAfterFree, Some(Frees::Second))]);
    assert_eq!((found[0].bug.form().name(), found[0].kind().name()), ("use_after_free", "race"));
    let found = races("T2|free(p)|b.c:12\nT1|r(p)|a.c:9\n");
    assert_eq!(sides(&found), [(Form::PossibleUseAfterFree, Some(Frees::First))]);
}

#[test]
fn two_frees_are_a_possible_double_free() {
    assert_eq!(sides(&races("T1|free(p)|1\nT2|free(p)|2\n")), [(Form::PossibleDoubleFree, Some(Frees::Both))]);
}

#[test]
fn a_use_that_races_with_a_destruction_is_told_as_that() {
    let found = races("T1|r(m)|a.c:9\nT2|destroy(m)|b.c:12\n");
    assert_eq!(sides(&found), [(Form::PossiblyDestroyedInUse, Some(Frees::Destroys))]);
    assert_eq!((found[0].bug.form().name(), found[0].kind().name()), ("destroyed_in_use", "race"));
    // Given back before the other takes it, and destroys it: that is how it should be.
    let ordered = "T1|acq(l)|1\nT1|r(m)|2\nT1|rel(l)|3\nT2|acq(l)|4\nT2|r(m)|5\nT2|rel(l)|6\nT2|destroy(m)|7\n";
    assert_eq!(sides(&races(ordered)), [(Form::PossiblyDestroyedInUse, Some(Frees::Destroys))]);
    let waited = ordered.replace("T2|acq(l)|4", "T1|snd(k)|8\nT2|rcv(k)|9\nT2|acq(l)|4");
    assert!(races(&waited).is_empty());
}

#[test]
fn one_that_a_lock_or_a_join_orders_is_none() {
    assert!(races("T1|acq(m)|1\nT1|r(p)|2\nT1|rel(m)|3\nT2|acq(m)|4\nT2|free(p)|5\nT2|rel(m)|6\n").is_empty());
    assert!(races("T0|fork(T1)|1\nT1|r(p)|2\nT0|join(T1)|3\nT0|free(p)|4\n").is_empty());
}

#[test]
fn it_comes_before_other_races_and_a_detector_of_the_run_names_it_too() {
    let text = "T1|w(y)|1\nT2|w(y)|2\nT1|r(p)|3\nT2|free(p)|4\n";
    assert_eq!(sides(&races(text)), [(Form::PossibleUseAfterFree, Some(Frees::Second)), (Form::Race, None)]);
    let observed = by_happens_before(&Trace::from_std(text).unwrap()).findings;
    assert_eq!(sides(&observed), [(Form::PossibleUseAfterFree, Some(Frees::Second)), (Form::Race, None)]);
}

/// What is worst is told first: failures, then what is certain to be a bug, then what may be meant so.
#[test]
fn findings_come_in_the_order_of_harm() {
    let forms: Vec<&str> =
        Form::all().skip_while(|form| matches!(form, Form::Failure(_))).map(|form| form.name()).collect();
    let expected = [
        "use_after_free",
        "double_free",
        "destroyed_in_use",
        "race",
        "cycle",
        "lost_wakeup",
        "stuck",
        "lost_update",
        "property",
        "atomicity",
        "nondeterminism",
    ];
    assert_eq!(forms, expected);
    let all: Vec<Form> = Form::all().collect();
    assert!(all.is_sorted(), "{all:?}");
}

#[test]
fn a_violation_tells_whether_somebody_declared_its_block() {
    let text = "T1|begin(b)|1\nT1|r(x)|2\nT1|w(x)|3\nT1|end(b)|4\nT2|w(x)|5\n";
    let options = Options { kinds: vec![BugKind::Atomicity], ..Options::default() };
    let found = predict(&Trace::from_std(text).unwrap(), &options, &Control::default()).findings;
    assert!(matches!(found[0].bug, Bug::Atomicity { declared: true, .. }), "{found:?}");
    let calls = text.replace("begin(b)", "call(f)").replace("end(b)", "ret(f)");
    let calls = format!("T1|call(root)|9\n{calls}");
    let source = &mut portent_trace::format::StdReader::new(calls.as_bytes());
    let trace = Trace::from_input_watched(source, portent_trace::FunctionBlocks::BelowRoots, |_| {}).unwrap();
    let found = predict(&trace, &options, &Control::default()).findings;
    assert!(matches!(found[0].bug, Bug::Atomicity { declared: false, .. }), "{found:?}");
}
