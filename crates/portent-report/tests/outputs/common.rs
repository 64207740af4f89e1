//! Reports to try outputs on.

use portent_order::Model;
use portent_predict::{Control, Options, predict};
use portent_report::source::Sources;
use portent_report::{Extras, Replayed, Report, Settings};
use portent_trace::Trace;
use std::path::PathBuf;

/// The directory of small programs with traces beside them.
pub(crate) fn reports() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/reports")
}

/// The trace of the shop: one bug of every kind.
pub(crate) fn shop() -> String {
    std::fs::read_to_string(reports().join("shop.std")).unwrap()
}

/// A report on STD text, with source from tests/reports.
pub(crate) fn report(input: &str, std: &str, extras: &Extras) -> Report {
    let trace = Trace::from_std(std).unwrap();
    let options = Options { window: 20_000, ..Options::default() };
    let prediction = predict(&trace, &options, &Control::default());
    assert!(prediction.errors.is_empty());
    let mut report = Report::new(Settings {
        input: input.into(),
        kinds: options.kinds,
        sources: Sources::below([reports()]),
        replay: Some("portent replay run.portent --finding".into()),
        ..Settings::default()
    });
    report.add(trace.into(), Model::Reads, prediction, extras);
    report
}

/// The report on the shop.
pub(crate) fn shop_report() -> Report {
    report("shop.std", &shop(), &Extras::default())
}

/// What replays of the shop's findings may have shown: one seen, one not.
pub(crate) fn replayed(report: &Report) -> Extras {
    let id = |kind: &str| {
        let of_kind = report.stories.iter().find(|story| story.finding.kind().name() == kind);
        of_kind.unwrap().finding.id.clone()
    };
    let seen = Replayed { runs: 5, hits: 5, showed: Some("assertion `hits == 2' failed".into()), ..Default::default() };
    let diverged = Some("B waits for l at shop.c:28, which the schedule has it pass".to_owned());
    let unseen = Replayed { runs: 3, hits: 0, diverged, ..Default::default() };
    Extras { round: Some(2), replays: [(id("race"), seen), (id("deadlock"), unseen)].into(), ..Extras::default() }
}
