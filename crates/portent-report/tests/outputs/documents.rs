//! What machines read: JSON and SARIF against their schemas, JUnit as XML.

use crate::common::{replayed, report, shop, shop_report};
use crate::failures;
use jsonschema::Validator;
use portent_predict::Harm;
use portent_report::{Extras, Level, Report, Settings, json, junit, sarif};
use portent_testing::corpus::{Case, cases};
use serde_json::{Value, json};

/// Our own schema, made strict: a field that the documentation does not know is an error here, though not for readers.
fn findings_schema() -> Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/findings.schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    fn strict(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                fields.values_mut().for_each(strict);
                if fields.get("properties").is_some_and(Value::is_object) && fields.contains_key("type") {
                    fields.insert("additionalProperties".into(), json!(false));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(strict),
            _ => {}
        }
    }
    strict(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn sarif_schema() -> Validator {
    let schema: Value = serde_json::from_str(include_str!("sarif-schema-2.1.0.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn validate(schema: &Validator, text: &str, what: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path)).collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
    document
}

/// Reports of every shape: predicted, replayed, filtered, with nothing, with plain numbers as locations.
fn reports() -> Vec<(String, Report)> {
    let of_case = |case: Case| {
        let report = report(&case.name, &case.text, &Extras::default());
        (case.name, report)
    };
    let mut reports: Vec<(String, Report)> = cases().into_iter().map(of_case).collect();
    reports.push(("shop".into(), shop_report()));
    reports.push(("replayed shop".into(), report("shop.std", &shop(), &replayed(&shop_report()))));
    reports.push(("failures".into(), failures::of_harms(Settings::default(), Harm::ALL)));
    reports.push(("nothing".into(), report("quiet.std", "T1|w(x)|1\n", &Extras::default())));
    reports
}

#[test]
fn json_is_what_the_documentation_says() {
    let schema = findings_schema();
    let mut kinds = std::collections::BTreeSet::new();
    for (name, report) in reports() {
        let document = validate(&schema, &json::document(&report).unwrap(), &name);
        for finding in document["findings"].as_array().unwrap() {
            kinds.insert(format!("{} {}", finding["kind"], finding["form"]));
        }
    }
    assert_eq!(kinds.len(), 6 + Harm::ALL.len(), "{kinds:?}");
    let wrong = json!({ "schema": 2, "scope": [], "trace": {}, "findings": [{}], "incomplete": [], "partial": null, "reads_from": [] });
    assert!(!schema.is_valid(&wrong), "the schema refuses something");
}

#[test]
fn json_says_what_replays_showed() {
    let report = report("shop.std", &shop(), &replayed(&shop_report()));
    let document: Value = serde_json::from_str(&json::document(&report).unwrap()).unwrap();
    let of_kind =
        |kind: &str| document["findings"].as_array().unwrap().iter().find(|f| f["kind"] == kind).unwrap().clone();
    let race = of_kind("race");
    assert_eq!((&race["verdict"], &race["round"]), (&json!("confirmed"), &json!(2)));
    assert_eq!(race["replay"], json!({ "runs": 5, "hits": 5, "showed": "assertion `hits == 2' failed" }));
    assert_eq!(race["tsan"], "silent");
    let deadlock = document["findings"].as_array().unwrap().iter().find(|f| f["verdict"] == "unconfirmed").unwrap();
    assert_eq!(deadlock["kind"], "deadlock");
    assert_eq!(deadlock["level"], "observation");
    assert!(deadlock["replay"]["diverged"].as_str().unwrap().starts_with("B waits for l"));
    assert_eq!(deadlock["replay"]["why"], deadlock["replay"]["diverged"]);
    assert_eq!(of_kind("atomicity")["verdict"], "predicted");
}

#[test]
fn sarif_is_valid_and_has_what_code_scanning_asks_for() {
    let schema = sarif_schema();
    for (name, report) in reports() {
        let document = validate(&schema, &sarif::document(&report).unwrap(), &name);
        let run = &document["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), report.stories.len());
        for result in results {
            let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"], "{name}");
            assert!(rule["shortDescription"]["text"].is_string() && rule["help"]["text"].is_string());
            assert!(result["partialFingerprints"]["portentFindingId/v1"].is_string());
            assert!(result["message"]["text"].as_str().unwrap().len() > 20);
            let related = result["relatedLocations"].as_array().unwrap();
            assert_eq!(result["locations"].as_array().unwrap().len(), 1, "{name}");
            for location in result["locations"].as_array().unwrap().iter().chain(related) {
                let place = &location["physicalLocation"];
                assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%", "{name}");
                assert!(!place["artifactLocation"]["uri"].as_str().unwrap().starts_with('/'), "{name}");
                assert!(place["region"]["startLine"].as_u64().unwrap() >= 1, "{name}");
            }
        }
    }
}

#[test]
fn sarif_tells_the_schedule_as_thread_flows_in_execution_order() {
    let document: Value = serde_json::from_str(&sarif::document(&shop_report()).unwrap()).unwrap();
    let results = document["runs"][0]["results"].as_array().unwrap();
    let deadlock = results.iter().find(|result| result["ruleId"] == "deadlock").unwrap();
    assert_eq!(deadlock["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "shop.c");
    assert_eq!(deadlock["locations"][0]["physicalLocation"]["region"]["startLine"], 18);
    assert_eq!(deadlock["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 28);
    let flow = &deadlock["codeFlows"][0];
    assert_eq!(flow["message"]["text"], "Breaking order");
    let threads: Vec<&str> =
        flow["threadFlows"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(threads, ["main", "A", "B"]);
    let mut steps: Vec<(u64, String)> = Vec::new();
    for location in flow["threadFlows"].as_array().unwrap().iter().flat_map(|f| f["locations"].as_array().unwrap()) {
        let text = location["location"]["message"]["text"].as_str().unwrap();
        steps.push((location["executionOrder"].as_u64().unwrap(), text.to_owned()));
    }
    steps.sort();
    assert_eq!(steps.iter().map(|step| step.0).collect::<Vec<_>>(), (1..=steps.len() as u64).collect::<Vec<_>>());
    let told: Vec<&str> = steps.iter().map(|step| step.1.as_str()).collect();
    assert_eq!(told[told.len() - 2..], ["5. A: waits for m", "6. B: waits for l"]);
}

#[test]
fn json_tells_failures_with_stacks_and_what_decides() {
    let report = failures::of_harms(Settings::default(), [Harm::UseAfterFree, Harm::Output]);
    let document: Value = serde_json::from_str(&json::document(&report).unwrap()).unwrap();
    assert_eq!(document["schema"], 2);
    let explored = json!({ "runs": 23, "behaviours": 23, "complete": true, "left": 0, "assumptions": [] });
    assert_eq!(document["explored"], explored);
    let finding = &document["findings"][0];
    assert_eq!((&finding["kind"], &finding["form"]), (&json!("failure"), &json!("use_after_free")));
    assert_eq!((&finding["level"], &finding["model"]), (&json!("failure"), &json!("none")));
    assert_eq!(finding["message"], "Block from pool.cpp:20 is used after it was freed");
    assert_eq!(finding["decisive"]["operation"]["line"], 14);
    assert_eq!(finding["decisive"]["because"]["thread"], "T1");
    assert_eq!(finding["decisive"]["passes"], "sees 1, written by main");
    let roles: Vec<&Value> = finding["places"].as_array().unwrap().iter().map(|place| &place["role"]).collect();
    assert_eq!(roles, ["failure", "made", "ended"]);
    assert_eq!(finding["stacks"].as_array().unwrap().len(), 3, "one for each place");
    let user = json!({ "function": "worker(bool)", "file": "pool.cpp", "line": 41, "user": true });
    assert_eq!(finding["stacks"][0][1], user);
    assert!(finding["stderr"].as_str().unwrap().contains("worker: got nothing"));
    assert_eq!(document["findings"][1]["level"], "observation");
}

#[test]
fn sarif_has_a_rule_per_form_the_users_line_and_stacks() {
    let report = failures::of_harms(Settings::default(), [Harm::UseAfterFree, Harm::Output]);
    let document = validate(&sarif_schema(), &sarif::document(&report).unwrap(), "failures");
    let results = document["runs"][0]["results"].as_array().unwrap();
    let used = &results[0];
    assert_eq!((&used["ruleId"], &used["level"]), (&json!("use-after-free"), &json!("error")));
    let place = &used["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "pool.cpp", "not the library's line");
    assert_eq!(place["region"]["startLine"], 41);
    assert_eq!(used["stacks"].as_array().unwrap().len(), 3);
    assert_eq!(
        used["stacks"][0]["frames"][0]["location"]["physicalLocation"]["region"]["startLine"], 41,
        "libraries are left out"
    );
    let message = used["message"]["text"].as_str().unwrap();
    assert!(message.contains("Decisive: T2's read of count at pool.cpp:14: sees 0"), "{message}");
    assert_eq!(used["codeFlows"][0]["message"]["text"], "The run that failed");
    assert_eq!((&results[1]["ruleId"], &results[1]["level"]), (&json!("output"), &json!("note")));
}

#[test]
fn junit_fails_for_failures_and_passes_with_observations() {
    let xml = junit::document(&failures::of_harms(Settings::default(), [Harm::Assertion, Harm::Output]));
    assert!(xml.contains("<testsuite name=\"portent.failure\" tests=\"2\" failures=\"1\""), "{xml}");
    assert!(xml.contains("file=\"pool.cpp\" line=\"41\""), "{xml}");
    let parts: Vec<&str> = xml.split("<testcase classname=\"portent.failure\"").collect();
    assert!(parts[1].contains("<failure") && parts[1].contains("Decisive: T2's"), "{xml}");
    assert!(parts[2].contains("<system-out>different output in worker()") && !parts[2].contains("<failure"), "{xml}");
}

/// The names of open elements, step by step; panics on what is not well-formed.
fn well_formed(xml: &str) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('&') || text.contains(';'), "{text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            elements += 1;
            if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
        }
    }
    assert!(open.is_empty());
    elements
}

#[test]
fn junit_counts_its_cases_and_is_well_formed() {
    for (name, report) in reports() {
        let xml = junit::document(&report);
        well_formed(&xml);
        let failures = report.count(Level::Failure);
        assert_eq!(xml.matches("<failure").count() as u64, failures, "{name}");
        assert_eq!(xml.matches("<system-out>").count() as u64, report.count(Level::Observation), "{name}");
        assert!(xml.contains(&format!("failures=\"{failures}\"")), "{name}");
        assert!(xml.matches("<testcase").count() >= report.settings.kinds.len(), "{name}");
    }
    let xml = junit::document(&shop_report());
    assert!(
        xml.contains("<testsuite name=\"portent.race\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\">"),
        "{xml}"
    );
    assert!(xml.contains("file=\"shop.c\" line=\"16\""), "{xml}");
    let evil = report("x", "T<&\"|w(a]]>\u{1})|1\nT2|w(a]]>\u{1})|2\n", &Extras::default());
    assert!(well_formed(&junit::document(&evil)) > 3);
}
