//! Suppressions and baselines on a real report.

use crate::common::shop_report;
use crate::failures;
use portent_predict::Harm;
use portent_report::baseline::Baseline;
use portent_report::suppress::Suppressions;
use portent_report::{Settings, json};

/// The ids that are left after rules, and the lines of rules that were of no use.
fn after(rules: &str) -> (Vec<String>, Vec<usize>) {
    let mut rules = Suppressions::parse(rules).unwrap();
    let mut report = shop_report();
    report.withhold(Some(&mut rules), None);
    assert_eq!(report.stories.len() + report.withheld.suppressed.len(), 7);
    let kinds = report.stories.iter().map(|story| format!("{} {}", story.title(), story.finding.object)).collect();
    (kinds, rules.unused().map(|(line, _)| line).collect())
}

#[test]
fn rules_combine_and_useless_ones_are_known() {
    let (left, unused) = after("kind=race\n# a comment\nkind=deadlock object=zzz\nkind=nondeterminism object=hits\n");
    assert_eq!(
        left,
        [
            "deadlock m, l",
            "lost wake-up c",
            "atomicity violation balance",
            "nondeterminism balance",
            "nondeterminism balance"
        ]
    );
    assert_eq!(unused, [3]);
}

#[test]
fn rules_name_forms_objects_files_and_ids() {
    assert_eq!(after("kind=lost_wakeup").0.len(), 6);
    assert_eq!(after("kind=deadlock").0.len(), 5, "both forms");
    assert_eq!(after("object=l").0.len(), 6, "one of the locks of the cycle");
    assert_eq!(after("file=shop.c").0.len(), 0);
    assert_eq!(after("file=s*.h").0.len(), 7);
    assert_eq!(after("function=*").0.len(), 0, "no function is recorded, and * is any text");
    assert_eq!(after("function=deposit").0.len(), 7);
    let id = shop_report().stories[0].finding.id.clone();
    assert_eq!(after(&format!("id={id} kind=race")).0.len(), 6);
    assert_eq!(after(&format!("id={id} kind=deadlock")).0.len(), 7);
}

#[test]
fn rules_and_baselines_know_failures() {
    let report = || failures::of_harms(Settings::default(), Harm::ALL);
    let left = |rules: &str| {
        let mut rules = Suppressions::parse(rules).unwrap();
        let mut report = report();
        report.withhold(Some(&mut rules), None);
        report.stories.len()
    };
    let all = Harm::ALL.len();
    assert_eq!(left("kind=failure"), 0);
    assert_eq!(left("kind=race"), all);
    assert_eq!(left("form=crash"), all - 1);
    assert_eq!(left("kind=use-after-free"), all - 1);
    assert_eq!(left("kind=failure form=*free"), all - 3);
    assert_eq!(left("function=worker* file=pool.cpp"), 0, "the user's line is a place of it");
    assert_eq!(left("function=run"), all, "who calls it is not");
    assert_eq!(left("object=Block*"), all - 5);
    let mut old = report();
    old.stories.truncate(3);
    let mut new = report();
    new.withhold(None, Some(&Baseline::parse(&json::document(&old).unwrap()).unwrap()));
    assert_eq!((new.stories.len(), new.withheld.known.len()), (all - 3, 3));
}

#[test]
fn a_baseline_leaves_only_what_is_new_also_when_it_had_one_itself() {
    let mut old = shop_report();
    old.stories.truncate(5);
    let mut report = shop_report();
    report.withhold(None, Some(&Baseline::parse(&json::document(&old).unwrap()).unwrap()));
    assert_eq!((report.stories.len(), report.withheld.known.len()), (2, 5));
    let mut next = shop_report();
    next.withhold(None, Some(&Baseline::parse(&json::document(&report).unwrap()).unwrap()));
    assert_eq!(next.stories.len(), 0, "what was known stays known");
}
