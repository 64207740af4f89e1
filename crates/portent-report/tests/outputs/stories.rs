//! The story of a finding in the terminal.

use crate::common::{replayed, report, shop, shop_report};
use insta::assert_snapshot;
use portent_order::Model;
use portent_predict::{BugKind, Control, Options, predict};
use portent_report::text::{Look, page};
use portent_report::{Extras, Level, Report, Settings, Story, Verdict};
use portent_testing::corpus;
use portent_trace::format::StdReader;
use portent_trace::{FunctionBlocks, Trace};

/// The shop, told at length.
fn detailed_shop() -> Report {
    let mut report = shop_report();
    report.settings.detailed = true;
    report
}

#[test]
fn the_shop_in_a_hundred_columns() {
    assert_snapshot!("shop", page(&shop_report(), &Look::default()));
    assert_snapshot!("shop_detailed", page(&detailed_shop(), &Look::default()));
}

#[test]
fn the_shop_replayed_in_eighty_columns() {
    let mut report = report("shop.std", &shop(), &replayed(&shop_report()));
    assert_eq!(report.count(Level::Observation), 4, "what no replay showed is no alarm");
    report.stories.retain(|story| story.replayed.is_some());
    report.settings.observations = true;
    report.reads_from.clear();
    let look = Look { width: 80, ..Look::default() };
    assert_snapshot!("shop_80", page(&report, &look));
    report.settings.detailed = true;
    assert_snapshot!("shop_80_detailed", page(&report, &look));
}

#[test]
fn kinds_asked_for_by_name_are_failures() {
    let levels = |asked: Vec<BugKind>, atomic: bool, std: &str| {
        let options = Options::default();
        let mut source = StdReader::new(std.as_bytes());
        let functions = match atomic {
            true => FunctionBlocks::Chosen(Box::new(|name| name == "add")),
            false => FunctionBlocks::BelowRoots,
        };
        let trace = Trace::from_input_watched(&mut source, functions, |_| {}).unwrap();
        let found = predict(&trace, &options, &Control::default());
        let mut report = Report::new(Settings { asked, ..Settings::default() });
        report.add(trace.into(), Model::Reads, found, &Extras::default());
        let level = |story: &Story| format!("{} {}", story.finding.kind().name(), story.level.name());
        let mut levels: Vec<String> = report.stories.iter().map(level).collect();
        levels.dedup();
        levels
    };
    let marked = ["race failure", "deadlock failure", "atomicity failure", "nondeterminism observation"];
    assert_eq!(levels(Vec::new(), false, &shop()), marked, "the block is marked in the source");
    let asked = levels(vec![BugKind::Nondeterminism], false, &shop());
    assert_eq!(asked, ["race failure", "deadlock failure", "atomicity failure", "nondeterminism failure"]);
    // A function that is taken for a block is declared by nobody, unless it is named.
    let function = "A|call(run)|1\nA|call(add)|2\nA|acq(m)|3\nA|r(n)|4|0\nA|rel(m)|5\nA|acq(m)|6\nA|w(n)|7|1\nA|rel(m)|8\n\
                    A|ret(add)|9\nA|ret(run)|10\nB|acq(m)|11\nB|w(n)|12|5\nB|rel(m)|13\n";
    let atomicity = |asked, atomic| levels(asked, atomic, function).into_iter().find(|told| told.starts_with("atom"));
    assert_eq!(atomicity(Vec::new(), false).as_deref(), Some("atomicity observation"));
    assert_eq!(atomicity(Vec::new(), true).as_deref(), Some("atomicity failure"));
    assert_eq!(atomicity(vec![BugKind::Atomicity], false).as_deref(), Some("atomicity failure"));
}

#[test]
fn words_of_ours_stay_out_of_the_default_text() {
    let text = page(&shop_report(), &Look::default());
    for word in ["instance", "witness", "round", "beyond_hb", "where reads may take", "breaking order", "tsan"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(text.ends_with("4 failures.  3 observations (--observations).\n"), "{text}");
}

#[test]
fn a_narrow_terminal_gets_one_order_below_the_other() {
    let mut report = detailed_shop();
    report.stories.truncate(1);
    let text = page(&report, &Look { width: 60, ..Look::default() });
    let at = |what: &str| text.lines().position(|line| line.trim() == what).unwrap_or_else(|| panic!("{text}"));
    assert!(at("observed order") < at("breaking order"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for case in corpus::cases() {
        for (width, detailed) in [60, 80, 100, 120, 200].into_iter().flat_map(|w| [(w, false), (w, true)]) {
            let mut report = report(&case.name, &case.text, &Extras::default());
            report.settings.detailed = detailed;
            let text = page(&report, &Look { width, ..Look::default() });
            // Headings, places and the list of reads are never wrapped: they are looked for.
            let wide = text.lines().filter(|line| line.contains(['│', '┼', '⋮']) || line.starts_with("           "));
            for line in wide {
                assert!(line.chars().count() <= width, "{} at {width}: {line}", case.name);
            }
            assert!(detailed || text.lines().count() <= Look::LINES, "{}: {text}", case.name);
        }
    }
}

#[test]
fn colours_only_when_asked_for() {
    for report in [shop_report(), detailed_shop()] {
        assert!(!page(&report, &Look::default()).contains('\u{1b}'));
        let coloured = page(&report, &Look { colours: true, ..Look::default() });
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, code)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = code.split_once('m').unwrap().1;
        }
        plain.push_str(rest);
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&plain), trimmed(&page(&report, &Look::default())), "colours change nothing else");
        assert_ne!(plain, coloured);
    }
}

#[test]
fn many_findings_are_told_in_short_after_the_first_ones() {
    let text = page(&detailed_shop(), &Look { stories: 2, ..Look::default() });
    assert_eq!(text.matches("breaking order").count(), 2);
    assert_eq!(text.matches("  why ").count(), 4);
    assert!(text.contains("the last 2 are shown in brief"));
    let text = page(&shop_report(), &Look { stories: 2, ..Look::default() });
    assert_eq!(text.matches("  replay     ").count(), 2, "{text}");
    assert!(text.contains("\n✗ atomicity-1b3d61  atomicity violation on balance  shop.c:11"), "{text}");
}

#[test]
fn values_that_differ_because_of_a_bug_on_the_same_object_are_told_below_it() {
    let text = page(&detailed_shop(), &Look::default());
    let line = |what: &str| text.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("data race on hits") < line("values of hits that can differ, too"));
    assert!(line("values of hits that can differ, too") < line("hits can end with 1"));
    assert!(!text.contains("nondeterminism on hits"));
}

/// Two threads, a race that ThreadSanitizer sees.
const RACE: &str = "T1|w(x)|a.c:1|1\nT2|r(x)|a.c:9|1\n";

#[test]
fn later_rounds_add_what_is_new_and_keep_the_surer_verdict() {
    let analysed = |std: &str| {
        let trace = Trace::from_std(std).unwrap();
        let found = predict(&trace, &Options::default(), &Control::default());
        (trace, found)
    };
    let mut report = portent_report::Report::new(Settings::default());
    let (trace, found) = analysed(RACE);
    let id = found.findings[0].id.clone();
    report.add(trace.into(), Model::Reads, found, &Extras { round: Some(1), ..Extras::default() });
    let before = report.stories.len();
    let (trace, found) = analysed(&format!("{RACE}T1|w(y)|a.c:2\nT2|w(y)|a.c:10\n"));
    let seen = portent_report::Replayed { runs: 3, hits: 2, ..Default::default() };
    let extras = Extras { round: Some(2), replays: [(id.clone(), seen)].into(), ..Extras::default() };
    report.add(trace.into(), Model::Reads, found, &extras);
    assert!(report.stories.len() > before);
    let of = |id: &str| report.stories.iter().find(|story| story.finding.id == id).unwrap();
    assert_eq!((&of(&id).verdict, of(&id).round), (&Verdict::Confirmed, Some(1)));
    let new = report.stories.iter().find(|story| story.finding.object == "y").unwrap();
    assert_eq!((&new.verdict, new.round), (&Verdict::Predicted, Some(2)));
    assert_eq!(report.size.events, 2, "sizes are those of the first trace");
    page(&report, &Look::default());
}

#[test]
fn the_value_read_in_the_breaking_order_is_the_one_it_would_see_there() {
    let report = report("x", "T1|w(x)|1|5\nT2|w(x)|2|7\nT2|r(x)|3|7\n", &Extras::default());
    let story =
        report.stories.iter().find(|s| s.finding.kind().name() == "nondeterminism" && s.places[0].event.is_some());
    let orders = report.orders(story.unwrap());
    let told = |moments: &[portent_report::Moment]| {
        let lines =
            moments.iter().map(|m| format!("{} {} {:?}", m.thread, m.what, m.value.as_ref().map(|value| value.number)));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(told(&orders.observed), ["T1 write x Some(5)", "T2 write x Some(7)", "T2 read x Some(7)"]);
    assert_eq!(told(&orders.breaking), ["T2 write x Some(7)", "T1 write x Some(5)", "T2 read x Some(5)"]);
}

#[test]
fn a_post_that_lets_a_thread_go_is_told_as_a_post() {
    let trace = "T1|w(z)|1\nT1|post(s)|2\nT0|semw(s)|3\nT0|w(x)|4\nT2|w(x)|5\n";
    let mut report = report("post.std", trace, &Extras::default());
    report.settings.detailed = true;
    let text = page(&report, &Look::default());
    assert!(!text.contains("fork"), "{text}");
    // In both orders, and once in each, though engines know it as several events.
    for action in ["T1 post s", "T0 pass s"] {
        assert_eq!(text.matches(action).count(), 2, "{action}: {text}");
    }
    assert!(text.contains("witness  3 events, 1 switch: T1 2, T0 1"), "{text}");
}
