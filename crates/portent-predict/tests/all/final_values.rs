//! Properties on final values in `values`: broken by values that change though every branch goes the same way.

use portent_order::Model;
use portent_predict::{Control, Prediction, PropertyOptions, PropertyVerdict, check_properties};
use portent_spec::{Bound, Scope, parse};
use portent_trace::Trace;

fn check(trace: &str, spec: &str) -> Prediction {
    let trace = Trace::from_std(trace).unwrap();
    let bound = Bound::all(&parse(spec).unwrap(), &Scope::of(&trace)).unwrap();
    let found = check_properties(&trace, &bound, &PropertyOptions::of(Model::Values), &Control::default());
    assert_eq!(found.errors, Vec::<String>::new());
    found
}

/// Two increments that check first.
const INCREMENTS: &str = "\
T1|r(x)|1|0
T1|branch|2
#!= (lt r0 5)
T1|w(x)|3|1
#!= (add r0 1)
T2|r(x)|4|1
T2|branch|5
#!= (lt r0 5)
T2|w(x)|6|2
#!= (add r0 1)
";

#[test]
fn a_lost_update_breaks_what_must_hold_at_the_end() {
    let found = check(INCREMENTS, "property both: final x == 2\nproperty bounded: final x <= 2 & x > 0\n");
    let [both, bounded] = &found.properties[..] else { panic!("{:?}", found.properties) };
    assert_eq!((both.verdict, both.model), (PropertyVerdict::Broken, Model::Values));
    assert_eq!((bounded.verdict, bounded.model), (PropertyVerdict::Holds, Model::Values));
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    let told = &finding.bug.violated().unwrap().explanation;
    assert!(told.contains("At the end: x = 1 (T2 at 6)"), "{told}");
}

#[test]
fn a_branch_that_would_go_the_other_way_keeps_the_end() {
    let exact = INCREMENTS.replacen("(lt r0 5)", "(eq r0 0)", 1).replace("(lt r0 5)", "(eq r0 1)");
    let found = check(&exact, "property both: final x == 2\n");
    assert_eq!(found.properties[0].verdict, PropertyVerdict::Holds);
}

#[test]
fn what_looks_back_is_left_to_the_lattice_and_that_is_said() {
    let found = check(INCREMENTS, "property once: final once x == 1\n");
    let told = &found.properties[0];
    assert_eq!((told.verdict, told.model), (PropertyVerdict::Holds, Model::Reads));
    assert!(told.notes.iter().any(|note| note.contains("explored in the model reads")), "{:?}", told.notes);
}

#[test]
fn without_formulas_equal_values_are_enough_and_branches_are_too_much() {
    // T2 may read either 1, so that x = 7 need not be the end.
    let equal = "T1|w(f)|1|1\nT1|w(x)|2|7\nT1|w(f)|3|1\nT2|r(f)|4|1\nT2|w(x)|5|8\n";
    let found = check(equal, "property end: final x == 8\n");
    assert_eq!((found.properties[0].verdict, found.properties[0].model), (PropertyVerdict::Broken, Model::Values));
    let branches = format!("{equal}T2|branch|6\n");
    assert_eq!(check(&branches, "property end: final x == 8\n").properties[0].verdict, PropertyVerdict::Incomplete);
}
