//! The examples of the language's reference page, each run: what the page says must come out.

use portent_order::Model;
use portent_predict::{Control, PropertyOptions, check_properties};
use portent_spec::{Bound, Scope, parse};
use portent_trace::Trace;

const PAGE: &str = include_str!("../../../../docs/src/reference/properties.md");

/// The fenced blocks of the page: what they are, and their text.
fn blocks() -> Vec<(&'static str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in PAGE.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, text)), None) => text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn every_example_of_the_reference_page_comes_out_as_it_says() {
    let mut trace: Option<Trace> = None;
    let mut examples = 0;
    let mut wrong: Vec<String> = Vec::new();
    for (kind, text) in blocks() {
        match (kind, &trace) {
            ("trace", _) => trace = Some(Trace::from_std(&text).unwrap()),
            ("spec", Some(trace)) => {
                let file = parse(&text).unwrap_or_else(|wrong| panic!("{}", wrong.render("page", &text)));
                let bound = Bound::all(&file, &Scope::of(trace)).unwrap_or_else(|wrong| {
                    panic!("{}", wrong.iter().map(|one| one.render("page", &text)).collect::<String>())
                });
                let options = PropertyOptions::of(Model::Reads);
                let found = check_properties(trace, &bound, &options, &Control::default());
                assert!(found.errors.is_empty(), "{:?}", found.errors);
                for told in &found.properties {
                    let line = text.lines().find(|line| line.contains(&format!("property {}:", told.name))).unwrap();
                    let says = line.rsplit_once('#').map(|(_, says)| says.trim());
                    if Some(told.verdict.name()) != says {
                        wrong.push(format!("{}: {line}", told.verdict.name()));
                    }
                    examples += 1;
                }
            }
            ("spec", None) => assert!(parse(&text).is_ok()),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples >= 50, "{examples}");
}

#[test]
fn every_operator_is_on_the_page() {
    let examples: String = blocks().into_iter().filter(|(kind, _)| *kind == "spec").map(|(_, text)| text).collect();
    let words = [
        "always",
        "never",
        "final",
        "prefix",
        "initial",
        "prev",
        "once",
        "historically",
        "since",
        "start(",
        "end(",
        "[",
        "write(",
        "read(",
        "update(",
        "access(",
        "acquire(",
        "release(",
        "at(",
        "by(",
        "any",
        "race(",
        "&",
        "|",
        "!",
        "->",
        "<->",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "~",
        "?",
        ". end",
    ];
    for word in words {
        assert!(examples.contains(word), "there is no example of {word}");
    }
}
