//! Links: every page is in SUMMARY.md, and every relative link leads to a file, and to a heading if it names one.

use std::path::{Path, PathBuf};

/// All pages below a directory.
pub(crate) fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            found.extend(markdown_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What is wrong with the links of the guide and of the pages at the root.
pub(crate) fn wrong(root: &Path) -> Vec<String> {
    let guide = root.join("docs/src");
    let pages = markdown_below(&guide);
    let summary = guide.join("SUMMARY.md");
    let mut wrong = Vec::new();
    let listed: Vec<PathBuf> = links(&read(&summary)).iter().map(|link| guide.join(link)).collect();
    for page in pages.iter().filter(|page| **page != summary) {
        if !listed.contains(page) {
            wrong.push(format!("{} is not in SUMMARY.md", page.display()));
        }
    }
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/programs/README.md"];
    for page in pages.into_iter().chain(others.iter().map(|name| root.join(name))) {
        let folder = page.parent().expect("a page is in a directory");
        for link in links(&read(&page)) {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            // mdBook copies what is below docs/src, and nothing else.
            let leaves =
                page.starts_with(&guide) && target.canonicalize().is_ok_and(|target| !target.starts_with(&guide));
            if !target.exists() {
                wrong.push(format!("{}: {link} leads nowhere", page.display()));
            } else if leaves {
                wrong.push(format!("{}: {link} leads out of the guide", page.display()));
            } else if !heading.is_empty() && !headings(&read(&target)).iter().any(|known| known == heading) {
                wrong.push(format!("{}: {link}: no such heading", page.display()));
            }
        }
    }
    wrong
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text without its code.
fn prose(text: &str) -> String {
    let mut code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            for (at, part) in line.split('`').enumerate() {
                prose.push_str(if at % 2 == 0 { part } else { "`" });
            }
            prose.push('\n');
        }
    }
    prose
}

/// Relative links, where `](` begins one.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|link| !link.contains("://") && !link.starts_with("mailto:")).map(str::to_owned).collect()
}

/// Headings as links name them.
fn headings(text: &str) -> Vec<String> {
    let mut code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if !code && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            found.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

#[test]
fn links_in_code_are_none() {
    let text = "A [page](a.md#b-c) and `[no](x.md)`.\n```\n[no](y.md)\n```\n[web](https://example.org)\n## B, `c`!\n";
    assert_eq!(links(text), ["a.md#b-c"]);
    assert_eq!(headings(text), ["b-c"]);
}
