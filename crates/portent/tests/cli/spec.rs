//! Properties: what `--spec` finds, says and refuses.

use crate::Session;
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;
use serde_json::Value;

const LANDING: &str = "\
T2|w(permit)|plane.c:4|0
T1|w(permit)|plane.c:9|1
T1|r(permit)|plane.c:10|1
T1|w(landing)|plane.c:11|1
";
const PERMIT: &str = "property landing_needs_permit: always (landing == 1 -> prev permit == 1)\n";

fn landing(spec: &str) -> Scratch {
    Scratch::with("landing.std", LANDING).and("landing.spec", spec)
}

#[test]
fn a_violation_is_told_in_words() {
    let scratch = landing(PERMIT);
    let line = "predict landing.std --spec landing.spec --kind property --json a.json --sarif a.sarif --junit a.xml --html a.html";
    assert_snapshot!("spec_violation", scratch.session(line));
    let json: Value = serde_json::from_str(&scratch.read("a.json")).unwrap();
    let finding = &json["findings"][0];
    assert_eq!((&finding["kind"], &finding["object"]), (&"property".into(), &"landing_needs_permit".into()));
    assert_eq!(finding["places"][0]["role"], "violation");
    assert_eq!(finding["witness"]["steps"], serde_json::json!([["T1", 2], ["T2", 1], ["T1", 1]]));
    assert_eq!(json["properties"][0]["verdict"], "violated");
    assert_eq!((&json["properties"][0]["runs"], &json["properties"][0]["cuts"]), (&"3".into(), &8.into()));
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/src/reference/findings.schema.json")).unwrap();
    let kinds = &schema["definitions"]["place"]["properties"]["role"]["enum"];
    assert!(kinds.as_array().unwrap().contains(&finding["places"][0]["role"]));
    let sarif: Value = serde_json::from_str(&scratch.read("a.sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "property");
    assert!(scratch.read("a.xml").contains("portent.property"));
    assert!(scratch.read("a.html").contains("landing_needs_permit"));
}

#[test]
fn what_holds_what_is_incomplete_and_what_is_not_known_is_said() {
    let scratch = landing("initial permit = 0\nproperty small: always permit <= 1\n");
    assert_snapshot!("spec_holds", scratch.session("predict landing.std --spec landing.spec --kind property"));
    let scratch = landing(PERMIT);
    assert_snapshot!(
        "spec_narrow",
        scratch.session("predict landing.std --spec landing.spec --kind property --width 1 --strict")
    );
    let scratch =
        Scratch::with("a.std", "T1|w(x)|a.c:1\nT2|w(y)|a.c:2|1\n").and("a.spec", "property p: always x == 0\n");
    assert_snapshot!("spec_unknown", scratch.session("predict a.std --spec a.spec --kind property"));
}

#[test]
fn mistakes_are_pointed_at() {
    let wrong = [
        "property p: always (landign == 1)\n",
        "property p: alway landing == 1\n",
        "property p: always (landing = 1)\n",
        "property p: never (write(permit) . !(write(landing) . read(permit)))\n",
        "property p: never (acquire(l) . end)\n",
        "property p: always (landing == 1 -> prev permit == )\n",
        "# no property\n",
    ];
    let told: Vec<String> =
        wrong.iter().map(|spec| landing(spec).session("predict landing.std --spec landing.spec")).collect();
    assert_snapshot!("spec_mistakes", told.join("\n"));
}

#[test]
fn a_property_held_of_a_read_that_another_finding_said_could_see_the_initial_value() {
    let spec = "initial x = 0\nproperty a: always (read(x) -> x != 0)\nproperty b: always (read(x) -> x >= 0)\n";
    let scratch = Scratch::with("prop.std", "T1|w(x)|1|1\nT2|r(x)|2|1\n").and("prop.spec", spec);
    let said = scratch.session("predict prop.std --spec prop.spec --observations --dot a.dot --json a.json");
    assert!(said.contains("T2 can read the initial value"), "{said}");
    assert!(said.contains("property a: can be broken"), "{said}");
    let holds =
        "property b: holds in all 2 reorderings in which every read but a thread's last one keeps its writer (4 cuts";
    assert!(said.contains(holds), "{said}");
    assert!(scratch.read("a.dot").contains("T2: read x (another write)\", color=red"));
    let json: Value = serde_json::from_str(&scratch.read("a.json")).unwrap();
    let of_a = json["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == "property").unwrap();
    assert_eq!(of_a["witness"]["steps"], serde_json::json!([["T2", 1]]));
}

#[test]
fn the_lattice_is_drawn_if_it_is_small() {
    let scratch = landing(PERMIT);
    scratch.session("predict landing.std --spec landing.spec --kind property --dot a.dot --svg a.svg");
    assert_snapshot!("spec_dot", scratch.read("a.dot"));
    assert!(scratch.read("a.svg").starts_with("<svg "));
    let long: String = (0..40).flat_map(|i| [format!("T1|w(x)|1|{i}\n"), format!("T2|w(y)|2|{i}\n")]).collect();
    let scratch = Scratch::with("long.std", long).and("p.spec", "property p: always x < 100\n");
    let said = scratch.session("predict long.std --spec p.spec --kind property --svg a.svg");
    assert!(said.contains("too many to draw") && said.ends_with("--- exit 2\n"), "{said}");
}

#[test]
fn properties_need_a_file() {
    let said = landing(PERMIT).session("predict landing.std --kind property");
    assert!(said.contains("--kind property needs properties") && said.ends_with("--- exit 2\n"), "{said}");
}

/// What is as deep as it is long ends in an answer or in an error, never in the end of the stack or of the memory.
#[test]
fn properties_of_any_depth_and_length_are_answered_or_refused() {
    let chain = |term: &str, sign: &str, times: usize| vec![term; times].join(sign);
    let deep = |open: &str, close: &str| format!("always {}x >= 0{}", open.repeat(100_000), close.repeat(100_000));
    let cases = [
        (format!("always {}", chain("x >= 0", " & ", 4000)), ""),
        (format!("always {}", chain("x >= 0", " & ", 1_000_000)), "terms in one property"),
        (format!("always {}", chain("x >= 0", " since ", 30_000)), "terms in one property"),
        (format!("always {}", chain("x >= 0", " -> ", 30_000)), "levels inside each other"),
        (format!("always {} >= 0", chain("x", " - ", 30_000)), "terms in one property"),
        (format!("never {}", chain("write(x)", " . ", 4000)), ""),
        (format!("never {}", chain("write(x)", " . ", 30_000)), "terms in one property"),
        (format!("never write(x){}", "*".repeat(30_000)), "terms in one property"),
        (deep("(", ")"), "levels inside each other"),
        (deep("!", ""), "levels inside each other"),
    ];
    let scratch = Scratch::with("x.std", "T1|w(x)|1\nT1|w(x)|2\n");
    for (text, said) in cases {
        scratch.write("a.spec", format!("property a: {text}\n"));
        let finished = scratch.run("predict x.std --spec a.spec --budget 5", b"");
        assert!(finished.code().is_some(), "{}", finished.describe());
        assert!(finished.stderr.contains(said), "{said}: {}", finished.describe());
        assert!(!finished.stderr.contains("panicked"), "{}", finished.describe());
    }
    let many: String = (0..20_000).map(|number| format!("property p{number}: always x >= -{number}\n")).collect();
    scratch.write("many.spec", many);
    let finished = scratch.run("predict x.std --spec many.spec --budget 5", b"");
    assert!(finished.code().is_some_and(|code| code < 2), "{}", finished.describe());
}

#[test]
fn json_of_any_depth_is_refused() {
    let scratch = Scratch::with("x.std", "T1|w(x)|1\n").and("deep.json", "[".repeat(100_000) + &"]".repeat(100_000));
    let finished = scratch.run("predict x.std --baseline deep.json", b"");
    assert!(finished.code() == Some(2) && finished.stderr.contains("deep.json"), "{}", finished.describe());
}

#[test]
fn monitors_are_drawn() {
    let scratch = Scratch::with("small.spec", "property small: always x < 2\n");
    let portent = |line: &str| {
        let mut command = crate::PORTENT.command();
        command.args(line.split(' '));
        portent_testing::command::run(
            &mut command,
            scratch.directory(),
            portent_testing::command::NOTHING,
            portent_testing::command::LIMIT,
        )
    };
    let told = portent("spec small.spec --dot small.dot --svg small.svg");
    assert!(told.exited_with(0), "{}", told.describe());
    assert!(scratch.read("small.dot").contains("0 -> 1 [label=\"x = 2\"]"), "{}", scratch.read("small.dot"));
    assert!(scratch.read("small.svg").starts_with("<svg"));
    assert_eq!(portent("spec small.spec").out(), "small: 2 states\n");
    assert!(portent("spec missing.spec").exited_with(2));
}
