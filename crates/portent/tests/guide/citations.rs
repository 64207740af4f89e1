//! Citations: what code and pages cite is in the repository, and so are the numbered sections that they name.

use std::path::{Path, PathBuf};

/// Notes that were never part of the repository; what was in them is in docs/src/internals.
const ELSEWHERE: [&str; 4] =
    [concat!("SEMAN", "TICS"), concat!("SOLVER", ".md"), concat!("NATIVE", ".md"), concat!("DESIGN", ".md")];

/// Still being rewritten, by whoever has them in work.
const LATER: [&str; 1] = ["crates/portent-predict"];

/// What is wrong with the citations of all sources, tests and pages.
pub(crate) fn wrong(root: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in texts(root) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        let later = LATER.iter().any(|folder| path.starts_with(root.join(folder)));
        for note in ELSEWHERE.iter().filter(|note| !later && text.contains(**note)) {
            wrong.push(format!("{name} cites {note}, which is not in the repository"));
        }
        for cited in citations(&text) {
            let Ok(page) = std::fs::read_to_string(root.join(&cited.page)) else {
                wrong.push(format!("{name} cites {}, which does not exist", cited.page));
                continue;
            };
            let missing = cited.sections.iter().filter(|&&number| !has_section(&page, number));
            wrong.extend(missing.map(|number| format!("{name} cites {} §{number}, which does not exist", cited.page)));
        }
    }
    wrong
}

/// Everything that people read and write: sources, traces of the corpus, pages.
fn texts(root: &Path) -> Vec<PathBuf> {
    let pages = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"].map(|name| root.join(name));
    let folders = ["crates", "tests", "fuzz", "docs"].map(|name| texts_below(&root.join(name)));
    pages.into_iter().chain(folders.into_iter().flatten()).collect()
}

fn texts_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            // What tools leave behind is nobody's text.
            let built =
                path.ends_with("target") || path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            found.extend(if built { Vec::new() } else { texts_below(&path) });
        } else if path.extension().is_some_and(|ending| ["rs", "toml", "md"].iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Citation {
    page: String,
    sections: Vec<u32>,
}

/// The pages below docs/ that a text names, each with the sections behind it: `docs/src/internals/semantics.md §2 and §3`.
fn citations(text: &str) -> Vec<Citation> {
    let text = unbroken(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("docs/src/").chain(text.match_indices("docs/internals/")) {
        let path: &str = &text[at..];
        let end = path.find(|c: char| !c.is_alphanumeric() && !"/._-".contains(c)).unwrap_or(path.len());
        let Some((page, behind)) = path[..end].rfind(".md").map(|ending| path.split_at(ending + 3)) else { continue };
        found.push(Citation { page: page.to_owned(), sections: sections(behind) });
    }
    found
}

/// The numbers of ` §2`, ` §2 and §3`, ` §2, §4 and §6`.
fn sections(mut text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    loop {
        let rest = text.strip_prefix(" and").or_else(|| text.strip_prefix(',')).unwrap_or(text);
        let Some(rest) = rest.strip_prefix(" §") else { return numbers };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse() else { return numbers };
        numbers.push(number);
        text = &rest[end..];
    }
}

/// Comments that go on in the next line, as one line.
fn unbroken(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        let comment = ["//!", "///", "//"].iter().find_map(|sign| line.strip_prefix(sign));
        joined.push_str(comment.unwrap_or(line).trim());
        joined.push(' ');
    }
    joined
}

/// What the glossary says is in a crate and is not: ``portent-order, `engine::window` `` needs something called `engine` and
/// something called `window` in that crate, wherever it is.
pub(crate) fn wrong_in_glossary(root: &Path) -> Vec<String> {
    let glossary = std::fs::read_to_string(root.join("docs/src/internals/glossary.md")).expect("the glossary is there");
    let mut wrong = Vec::new();
    for (name, path) in places(&glossary) {
        let sources = texts_below(&root.join("crates").join(name));
        let is_there = |part: &str| {
            let is_file = |path: &PathBuf| path.with_extension("").iter().any(|step| step == part);
            let is_item = |path: &PathBuf| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                ["struct", "enum", "trait"].iter().any(|item| text.contains(&format!("{item} {part} ")))
            };
            sources.iter().any(is_file) || sources.iter().any(is_item)
        };
        wrong.extend(path.split("::").filter(|part| !is_there(part)).map(|part| format!("{name} has no {part}")));
    }
    wrong
}

/// Crates and what is in them, from the last column of the glossary's tables.
fn places(glossary: &str) -> Vec<(&str, &str)> {
    let columns = glossary.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| "));
    let named = columns.flat_map(|(_, column)| column.split("; "));
    named.filter_map(|place| place.strip_suffix('`')?.split_once(", `")).collect()
}

fn has_section(page: &str, number: u32) -> bool {
    page.lines().any(|line| line.starts_with(&format!("## {number}. ")))
}

#[test]
fn citations_go_on_over_lines_and_sections() {
    let text = "//! Rules: docs/src/internals/semantics.md §2\n//! and §3. More: docs/src/internals/glossary.md, at its end.\n";
    let cited = |page: &str, sections: &[u32]| Citation { page: page.to_owned(), sections: sections.to_vec() };
    let expected = [cited("docs/src/internals/semantics.md", &[2, 3]), cited("docs/src/internals/glossary.md", &[])];
    assert_eq!(citations(text), expected);
    assert_eq!(sections(", §4 and §12, as said"), [4, 12]);
    assert!(has_section("# A\n## 2. B\n", 2) && !has_section("# A\n## 2. B\n", 3));
}

#[test]
fn the_last_column_of_the_glossary_is_where_to_look() {
    let table =
        "| term | meaning | where |\n|---|---|---|\n| a | b `c` | portent-order, `goal::Writer`; portent-spec |\n";
    assert_eq!(places(table), [("portent-order", "goal::Writer")]);
}
