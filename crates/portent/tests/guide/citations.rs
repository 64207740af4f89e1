//! Citations: what code and pages cite is in the repository, and so are the numbered sections that they name.

use std::path::{Path, PathBuf};

/// Notes that were never part of the repository; what was in them is in docs/src/internals.
const ELSEWHERE: [&str; 4] =
    [concat!("SEMAN", "TICS"), concat!("SOLVER", ".md"), concat!("NATIVE", ".md"), concat!("DESIGN", ".md")];

/// Still being rewritten, by whoever has them in work.
const LATER: [&str; 3] = ["ARCHITECTURE.md", "crates/portent-order", "crates/portent-predict"];

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
    let mut found = Vec::new();
    let mut folders = ["crates", "tests", "fuzz", "docs"].map(|name| root.join(name)).to_vec();
    folders.push(root.to_owned());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the directory can be read") {
            let path = entry.expect("the directory can be read").path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if path.is_dir() {
                if folder != root && !hidden && !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| ["rs", "toml", "md"].iter().any(|known| ending == *known)) {
                found.push(path);
            }
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
