//! Ways of looking that are there for comparison, beside the exact one.

use portent_predict::{BugKind, Control, Finding, Options, by_happens_before, by_locksets, predict};
use portent_testing::parallel::each_seed;
use portent_testing::traces::Shapes;
use std::collections::BTreeSet;

fn ids<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> BTreeSet<&'f str> {
    findings.into_iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn without_reuse_the_same_is_found() {
    let shapes = Shapes::all();
    let tiers = each_seed(0..3_000, |seed| {
        let tiny = shapes.tiny(seed);
        let options = Options { model: tiny.model(), ..Options::default() };
        let with = predict(&tiny.trace, &options, &Control::default());
        let without = predict(&tiny.trace, &Options { reuse: false, ..options }, &Control::default());
        let told = |findings: &[Finding]| -> Vec<(String, u64, bool)> {
            findings.iter().map(|f| (f.id.clone(), f.instances, f.instances_exact)).collect()
        };
        assert_eq!(told(&with.findings), told(&without.findings), "{tiny}");
        assert_eq!(with.incomplete, without.incomplete, "{tiny}");
        assert_eq!(without.stats.tiers.implied, 0, "{tiny}");
        (with.stats.tiers, without.stats.tiers)
    });
    let sum = |of: &dyn Fn(usize) -> u64| (0..tiers.len()).map(of).sum::<u64>();
    let (with, without) = (sum(&|at| tiers[at].0.reused), sum(&|at| tiers[at].1.reused));
    assert!(with > 100 && without < with, "{with} and {without}");
}

#[test]
fn a_lockset_detector_reports_every_race_and_more() {
    let shapes = Shapes::that(|shape| !shape.name.contains("wide"));
    let more = each_seed(0..3_000, |seed| {
        let tiny = shapes.tiny(seed);
        let options = Options { kinds: vec![BugKind::Race], ..Options::default() };
        let (exact, suspected) = (predict(&tiny.trace, &options, &Control::default()), by_locksets(&tiny.trace));
        let observed = by_happens_before(&tiny.trace);
        let suspected = ids(&suspected.findings);
        for found in [ids(&exact.findings), ids(&observed.findings)] {
            assert!(found.is_subset(&suspected), "{:?}, {tiny}", found.difference(&suspected));
        }
        suspected.len() - ids(&exact.findings).len()
    });
    let more: usize = more.into_iter().sum();
    assert!(more > 100, "{more}");
}
