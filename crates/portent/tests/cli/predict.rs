//! `predict`: findings as text and as JSON, exit statuses, and what it says when it could not look at everything.

use crate::Session;
use insta::{Settings, assert_snapshot};
use portent_testing::scratch::Scratch;
use serde_json::Value;

/// One bug of every kind: a race on `hits`, a split update of `balance`, a lock cycle, a lost wake-up.
const SHOP: &str = "\
main|fork(A)|shop.c:1
main|fork(B)|shop.c:2
A|begin(deposit)|shop.c:10
A|acq(m)|shop.c:11
A|r(balance)|shop.c:12|0
A|rel(m)|shop.c:13
A|acq(m)|shop.c:14
A|w(balance)|shop.c:15|5
A|rel(m)|shop.c:16
A|end(deposit)|shop.c:17
A|w(hits)|shop.c:18|1
A|acq(l)|shop.c:20
A|acq(m)|shop.c:21
A|rel(m)|shop.c:22
A|rel(l)|shop.c:23
B|acq(m)|shop.c:30
B|w(balance)|shop.c:31|7
B|acq(l)|shop.c:32
B|rel(l)|shop.c:33
B|rel(m)|shop.c:34
B|w(hits)|shop.c:35|2
A|slp(c)|shop.c:40
B|ntf(c)|shop.c:41
A|wak(c)|shop.c:42
";

/// The same answer every time: no times.
fn redacted() -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"time +\d+\.\d+ s", "time [time]");
    settings
}

#[test]
fn findings_as_text() {
    let scratch = Scratch::with("shop.std", SHOP);
    assert_snapshot!("predict_text", scratch.session("predict shop.std"));
    assert_snapshot!("predict_sync_atomicity", scratch.session("predict shop.std --model sync --kind atomicity"));
}

/// Nothing but observations: B may read either value, whatever it says, and nobody declared that `f` is atomic.
const OBSERVED: &str = "\
A|acq(m)|a.c:1
A|w(x)|a.c:2|1
A|rel(m)|a.c:3
B|acq(m)|b.c:1
B|r(x)|b.c:2|1
B|rel(m)|b.c:3
";

#[test]
fn observations_are_counted_listed_on_request_and_decide_only_if_asked_for_by_name() {
    let scratch = Scratch::with("only.std", OBSERVED);
    assert_snapshot!("predict_observed", scratch.session("predict only.std"));
    assert_snapshot!("predict_observations", scratch.session("predict only.std --observations"));
    assert_snapshot!("predict_asked", scratch.session("predict only.std --kind nondeterminism"));
    assert_eq!(scratch.status("predict only.std --kind race,deadlock,lost_update"), Some(0));
}

#[test]
fn findings_at_length_or_a_line_each() {
    let scratch = Scratch::with("shop.std", SHOP);
    assert_snapshot!("predict_verbose", scratch.session("predict shop.std --verbose"));
    assert_snapshot!("predict_quiet", scratch.session("predict shop.std --quiet"));
    assert_eq!(scratch.status("predict shop.std --quiet --verbose"), Some(2));
}

#[test]
fn updates_that_are_lost_though_every_access_is_under_the_lock() {
    const UPDATE: &str = "\
T|acq(m)|bank.c:1
T|r(x)|bank.c:2|OLD
T|rel(m)|bank.c:3
T|acq(m)|bank.c:4
T|w(x)|bank.c:5|NEW
T|rel(m)|bank.c:6
";
    let update = |thread: &str, old: u32| {
        let text = UPDATE.replace("OLD", &old.to_string()).replace("NEW", &(old + 1).to_string());
        text.replace("T|", &format!("{thread}|"))
    };
    let text: String = [("A", 0), ("A", 1), ("B", 2), ("B", 3)].map(|(thread, old)| update(thread, old)).concat();
    let scratch = Scratch::with("bank.std", text);
    assert_snapshot!("predict_lost_update", scratch.session("predict bank.std --kind lost_update"));
}

#[test]
fn findings_as_json() {
    let scratch = Scratch::with("shop.std", SHOP);
    assert_snapshot!("predict_json", scratch.session("predict shop.std --kind race,deadlock --json -"));
    let text = scratch.session("predict shop.std --json out.json");
    assert!(
        text.ends_with("--- exit 1\n") && text.contains("4 failures.  3 observations (--observations).\n"),
        "{text}"
    );
    let document: Value = serde_json::from_str(&scratch.read("out.json")).unwrap();
    assert_eq!(document["schema"], 2);
    assert_eq!(document["trace"]["events"], 24);
    let levels: Vec<&Value> = document["findings"].as_array().unwrap().iter().map(|f| &f["level"]).collect();
    assert!(levels[..4].iter().all(|level| *level == "failure"), "{levels:?}");
    assert!(levels.len() == 7 && levels[4..].iter().all(|level| *level == "observation"), "{levels:?}");
    for finding in document["findings"].as_array().unwrap() {
        assert_eq!(finding["verdict"], "predicted");
        let steps = finding["witness"]["steps"].as_array().unwrap();
        let events: u64 =
            steps.iter().map(|step| step[1].as_u64().or_else(|| step["as_observed"].as_u64()).unwrap()).sum();
        assert_eq!(finding["witness"]["events"], events);
    }
    let init = document["findings"].as_array().unwrap().iter().flat_map(|f| f["places"].as_array().unwrap());
    assert!(init.filter(|p| p["op"] == "initial").all(|p| p["event"].is_null() && p["object"].is_string()));
}

#[test]
fn the_same_bytes_whatever_the_number_of_jobs() {
    let scratch = Scratch::new();
    scratch.ok("gen --seed 3 --events 4000 --threads 6 --variables 80 --locks 5 -o run.portent");
    let one = scratch.session("predict run.portent --window 300 --json - --jobs 1");
    let two = scratch.session("predict run.portent --window 300 --json - --jobs 3");
    assert_eq!(one.replace("--jobs 1", ""), two.replace("--jobs 3", ""));
    assert!(one.contains("\"kind\": \"race\""));
}

#[test]
fn nothing_found_is_status_0_and_bad_input_status_2() {
    let scratch = Scratch::with("quiet.std", "T1|acq(l)|1\nT1|w(x)|2\nT1|rel(l)|3\n").and("bad.std", "T1|rel(l)|1\n");
    assert_snapshot!("predict_nothing", scratch.session("predict quiet.std"));
    assert_snapshot!("predict_malformed", scratch.session("predict bad.std"));
    assert_eq!(scratch.status("predict nowhere.std"), Some(2));
    assert_eq!(scratch.status("predict quiet.std --window 1"), Some(2));
    assert_eq!(scratch.status("predict quiet.std --kind race,typo"), Some(2));
    assert_eq!(scratch.status("predict quiet.std --budget -1"), Some(2));
}

#[test]
fn an_incomplete_search_is_said_and_strict_makes_it_a_failure() {
    // T2 must give L1 back before T0 can come to its read, and then be stopped before its write: more than four events.
    let far = "T1|r(v2)|1\nT2|acq(L1)|2\nT2|r(v2)|3\nT2|acq(L2)|4\nT2|w(v0)|5\nT2|rel(L1)|6\nT0|acq(L1)|7\nT0|rel(L1)|8\nT0|r(v0)|9\n";
    let scratch = Scratch::with("far.std", far).and("shop.std", SHOP);
    let predict = "predict far.std --kind race --window 4 --reach 4";
    assert_snapshot!("predict_window", scratch.session(predict));
    assert_snapshot!("predict_strict", scratch.session(&format!("{predict} --strict")));
    assert_snapshot!("predict_budget", scratch.session("predict shop.std --budget 0"));
}

#[test]
fn a_race_is_found_however_far_apart_its_accesses_are() {
    let far = format!("T1|w(x)|1\n{}T2|w(x)|2\n", "T3|branch|3\n".repeat(10));
    let scratch = Scratch::with("far.std", far);
    assert_snapshot!("predict_far", scratch.session("predict far.std --kind race --window 4"));
}

#[test]
fn what_it_cost() {
    let scratch = Scratch::with("shop.std", SHOP);
    redacted().bind(|| assert_snapshot!("predict_stats", scratch.session("predict shop.std --kind deadlock --stats")));
}

#[test]
fn a_happens_before_detector_for_comparison() {
    let hidden = "T1|w(x)|1\nT1|acq(l)|2\nT1|rel(l)|3\nT2|acq(l)|4\nT2|rel(l)|5\nT2|w(x)|6\nT3|w(x)|7\n";
    let scratch = Scratch::with("hidden.std", hidden);
    assert_snapshot!("predict_hb", scratch.session("predict hidden.std --engine hb"));
    assert_snapshot!("predict_beyond_hb", scratch.session("predict hidden.std --kind race"));
    assert_eq!(scratch.status("predict hidden.std --engine hb --kind deadlock"), Some(2));
}

/// A flag that is set twice: the reader may well have seen the first, which leaves its access unordered with the second.
#[test]
fn equal_values_let_a_read_see_another_write() {
    let twice = "T1|w(flag)|1|1\nT1|w(x)|2|7\nT1|w(flag)|3|1\nT2|r(flag)|4|1\nT2|r(x)|5|7\n";
    let scratch = Scratch::with("twice.std", twice);
    let races = |model: &str| {
        let session = scratch.session(&format!("predict twice.std --kind race --model {model} --json -"));
        let json: Value =
            serde_json::from_str(&session[session.find('{').unwrap()..=session.rfind('}').unwrap()]).unwrap();
        let findings = json["findings"].as_array().unwrap().iter();
        let mut objects: Vec<String> = findings.map(|f| f["object"].as_str().unwrap().to_owned()).collect();
        objects.sort();
        objects
    };
    assert_eq!(races("reads"), ["flag", "flag"]);
    assert_eq!(races("values"), ["flag", "flag", "x"]);
}

#[test]
fn every_report_is_written_where_it_was_asked_for() {
    let scratch = Scratch::with("shop.std", SHOP);
    let text = scratch.session("predict shop.std --json a.json --sarif a.sarif --junit a.xml --html a.html");
    assert!(text.contains("data race on hits") && text.ends_with("--- exit 1\n"), "{text}");
    let read = |name: &str| scratch.read(name);
    let sarif: Value = serde_json::from_str(&read("a.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 7);
    assert!(read("a.xml").starts_with("<?xml version=\"1.0\"") && read("a.xml").contains("failures=\"4\""));
    assert!(read("a.html").starts_with("<!doctype html>") && read("a.html").contains("Portent: shop.std"));
    for (option, start) in [("--sarif -", "{"), ("--junit -", "<?xml"), ("--html -", "<!doctype")] {
        let printed = scratch.run(&format!("predict shop.std {option}"), b"").out();
        assert!(printed.starts_with(start), "{option}");
    }
    assert_snapshot!("predict_two_on_stdout", scratch.session("predict shop.std --json - --sarif -"));
    assert_snapshot!("predict_unwritable", scratch.session("predict shop.std --kind race --html nowhere/a.html"));
}

#[test]
fn source_is_found_in_the_working_directory_and_below_the_named_ones() {
    let source: String = (1..=50).map(|n| format!("    hits = {n}; /* line {n} */\n")).collect();
    let scratch = Scratch::with("shop.std", SHOP).and("shop.c", &source);
    let text = scratch.session("predict shop.std --kind race");
    assert!(text.contains("is about to write hits = 1  ← at once  │ hits = 18; /* line 18 */\n"), "{text}");
    let detailed = scratch.session("predict shop.std --kind race --verbose");
    assert!(detailed.contains("      18 │     hits = 18; /* line 18 */\n         │     ^^^^\n"), "{detailed}");
    let elsewhere = Scratch::with("shop.std", SHOP);
    assert!(!elsewhere.session("predict shop.std --kind race").contains("line 18"));
    let named = format!("predict shop.std --kind race --source {}", scratch.directory().display());
    assert!(elsewhere.session(&named).contains("line 18"));
}

#[test]
fn suppressed_findings_do_not_count_and_useless_rules_are_pointed_out() {
    let rules = "# known\nkind=race object=hits\nkind=race file=other.c\n";
    let scratch = Scratch::with("shop.std", SHOP).and("rules", rules).and("bad", "kind=race\n\nrace hits\n");
    assert_snapshot!("predict_suppressed", scratch.session("predict shop.std --kind race --suppress rules"));
    assert_snapshot!("predict_bad_rule", scratch.session("predict shop.std --suppress bad"));
    assert_snapshot!("predict_no_rules", scratch.session("predict shop.std --suppress nowhere"));
}

#[test]
fn a_baseline_leaves_what_is_new() {
    let scratch = Scratch::with("shop.std", SHOP).and("bad.json", "{\"schema\": 9}");
    scratch.session("predict shop.std --kind race,deadlock --json old.json");
    let text = scratch.session("predict shop.std --kind race,deadlock,atomicity --baseline old.json");
    assert!(text.contains("known from the baseline: 3 findings\n1 failure.\n--- exit 1"), "{text}");
    assert!(text.contains("atomicity violation on balance") && !text.contains("data race on hits"), "{text}");
    assert_snapshot!(
        "predict_nothing_new",
        scratch.session("predict shop.std --kind race,deadlock --baseline old.json")
    );
    assert_snapshot!("predict_bad_baseline", scratch.session("predict shop.std --baseline bad.json"));
}

#[test]
fn names_in_findings_cannot_drive_the_terminal() {
    let scratch = Scratch::with("evil.std", "T\x1b[2J|w(x\x07)|a\u{9b}\nT2|w(x\x07)|2\n");
    for line in ["predict evil.std", "predict evil.std --json -"] {
        assert!(!scratch.session(line).contains(['\x1b', '\x07', '\u{9b}']), "{line}");
    }
}

#[test]
fn what_validate_takes_predict_takes() {
    let scratch = Scratch::with("crossing.std", "T0|begin(b)|1\nT0|call(f)|2\nT0|call(g)|3\nT0|end(b)|4\n")
        .and("update.std", "T3|r(z)|1|0\nT1|u(z)|2|1\n#!= (add r0 1)\n")
        .and("end.std", "T0|call(f)|1\nT0|end(b)|2\n");
    scratch.ok("gen --preset daisy -o daisy.portent");
    let traces = [("crossing.std", false), ("update.std", false), ("daisy.portent", false), ("end.std", true)];
    for (name, refused) in traces {
        let lines = [
            format!("validate {name}"),
            format!("predict {name} --kind deadlock"),
            format!("predict {name} --kind deadlock --model values"),
        ];
        for line in lines {
            let said = scratch.session(&line);
            assert_eq!(said.ends_with("--- exit 2\n"), refused, "{line}: {said}");
        }
    }
}
