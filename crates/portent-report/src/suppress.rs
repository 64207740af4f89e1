//! Suppressions: findings that the user knows and does not want to see.
//!
//! One rule per line: conditions `key=pattern`, all of which must hold. Keys are `kind`, `form`, `function`, `file`, `object`
//! and `id`. In patterns `*` stands for any text and `?` for any character; a pattern with blanks goes in double quotes. What
//! follows a `#` at the start of a word is a comment. `function` and `file` of one rule must hold at the same place of
//! the finding; `file` may leave out leading directories, `function` everything but the name, and `object` the insides of a
//! library's class and the indices of arrays.

use crate::place::of_spot;
use crate::report::{At, Story};
use portent_predict::{BugKind, Form};
use portent_trace::{own_path, plain_function, short_function};

/// A file of rules that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}; expected {expected}")]
pub struct BadRule {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub expected: &'static str,
}

/// Rules, and how often each was used.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug)]
struct Rule {
    line: usize,
    text: String,
    conditions: Vec<(Key, String)>,
    used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Kind,
    Form,
    Function,
    File,
    Object,
    Id,
}

const KEYS: &str = "kind=, form=, function=, file=, object= or id=, each followed by a pattern";

impl Suppressions {
    /// Reads rules from text.
    pub fn parse(text: &str) -> Result<Suppressions, BadRule> {
        let mut rules = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let words = words(line).map_err(|problem| BadRule { line: number, problem, expected: "a closing \"" })?;
            if words.is_empty() {
                continue;
            }
            let conditions = words.iter().map(|word| condition(word, number)).collect::<Result<Vec<_>, _>>()?;
            rules.push(Rule { line: number, text: line.trim().to_owned(), conditions, used: 0 });
        }
        Ok(Suppressions { rules })
    }

    /// Whether some rule suppresses this finding. Every rule that does counts as used.
    pub fn apply(&mut self, story: &Story) -> bool {
        let mut suppressed = false;
        for rule in self.rules.iter_mut().filter(|rule| rule.covers(story)) {
            rule.used += 1;
            suppressed = true;
        }
        suppressed
    }

    /// Rules that suppressed nothing: their lines and texts.
    pub fn unused(&self) -> impl Iterator<Item = (usize, &str)> {
        self.rules.iter().filter(|rule| rule.used == 0).map(|rule| (rule.line, rule.text.as_str()))
    }
}

impl Rule {
    fn covers(&self, story: &Story) -> bool {
        let of = |wanted: Key| self.conditions.iter().filter(move |(key, _)| *key == wanted).map(|(_, p)| p.as_str());
        let kind = |p: &str| matches(p, story.finding.kind().name()) || p == story.finding.bug.form().words().rule;
        let objects = || story.places.iter().map(|place| place.object.as_str()).chain([story.finding.object.as_str()]);
        let place = |function: &str, file: &str| {
            of(Key::Function).all(|p| matches_function(p, function)) && of(Key::File).all(|p| matches_path(p, file))
        };
        // The place itself, and the line that readers are sent to for it.
        let is_there =
            |at: At| place(at.function.as_deref().unwrap_or_default(), at.file.as_deref().unwrap_or_default());
        let somewhere = || {
            let shown = story.places.iter().filter_map(of_spot);
            story.places.iter().filter_map(|spot| spot.at.clone()).chain(shown).any(is_there)
        };
        let local = self.conditions.iter().any(|(key, _)| matches!(key, Key::Function | Key::File));
        of(Key::Kind).all(kind)
            && of(Key::Form).all(|p| matches(p, story.finding.bug.form().name()))
            && of(Key::Id).all(|p| matches(p, &story.finding.id))
            && of(Key::Object).all(|p| objects().any(|object| matches_object(p, object)))
            && (!local || somewhere())
    }
}

fn condition(word: &str, line: usize) -> Result<(Key, String), BadRule> {
    let bad = |problem: String, expected| BadRule { line, problem, expected };
    let Some((key, pattern)) = word.split_once('=') else {
        return Err(bad(format!("{word:?} is not a condition"), KEYS));
    };
    let key = match key {
        "kind" => Key::Kind,
        "form" => Key::Form,
        "function" => Key::Function,
        "file" => Key::File,
        "object" => Key::Object,
        "id" => Key::Id,
        _ => return Err(bad(format!("unknown key {key:?}"), KEYS)),
    };
    if pattern.is_empty() {
        return Err(bad(format!("{word:?} has no pattern"), "a name, in which * stands for any text"));
    }
    let is_kind = |pattern: &str| {
        matches(pattern, BugKind::Failure.name()) || Form::all().any(|form| matches(pattern, form.words().rule))
    };
    if key == Key::Kind && !is_kind(pattern) {
        let expected = "failure, race, deadlock, lost_wakeup, stuck, atomicity, nondeterminism or property";
        return Err(bad(format!("no kind of finding is called {pattern:?}"), expected));
    }
    if key == Key::Form && !Form::all().any(|form| matches(pattern, form.name())) {
        let expected = "what --json calls it: use_after_free, assertion, crash, abort, cycle, lost_wakeup …";
        return Err(bad(format!("no form of finding is called {pattern:?}"), expected));
    }
    Ok((key, pattern.to_owned()))
}

/// The words of a line, without its comment; quotes hold blanks together.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '#' if !quoted && word.is_none() => break,
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return Err("a quoted pattern does not end".into());
    }
    words.extend(word);
    Ok(words)
}

/// Whether a path, or an end of it that starts at a directory, matches.
fn matches_path(pattern: &str, path: &str) -> bool {
    let ends = path.match_indices(['/', '\\']).map(|(at, _)| &path[at + 1..]);
    std::iter::once(path).chain(ends).any(|end| matches(pattern, end))
}

/// Whether a function's whole name matches, or the short one that reports show: `add` is `void Bank::add<int>(int&)` as well.
fn matches_function(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || matches(pattern, &short_function(name)) || matches(pattern, &plain_function(name))
}

/// Whether an object's name matches, or what its author calls it: `queue` is `queue (start)` and `queue._M_impl._M_start` as well,
/// and `accounts[]` is every one of them.
fn matches_object(pattern: &str, name: &str) -> bool {
    let own = name.find(" (").map_or(name, |inside| &name[..inside]);
    matches(pattern, name) || matches(pattern, own) || matches(pattern, &own_path(own))
}

/// Whether a whole text matches a pattern with `*` and `?`.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on if the text does not fit: after the last star, one character further.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t + 1));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after, at)) => {
                    (p, t) = (after, at);
                    retry = Some((after, at + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text) in
            [("*", ""), ("a*c", "abbc"), ("a*c", "ac"), ("?b*", "ab"), ("*x*y", "axbxcy"), ("a", "a")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*c", "abcd"), ("?", ""), ("*x*y", "axbxc"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(matches_path("bank.c", "/home/me/src/bank.c") && matches_path("src/*.c", "/home/me/src/bank.c"));
        assert!(!matches_path("ank.c", "src/bank.c"));
    }

    #[test]
    fn functions_and_objects_match_as_their_author_calls_them() {
        let name = "void bank::Account::add<int>(int&)";
        for pattern in ["add", "bank::Account::add", "*::add", name] {
            assert!(matches_function(pattern, name), "{pattern}");
        }
        assert!(!matches_function("Account", name) && !matches_function("ad", name));
        assert!(!matches_function("f", ""), "a place without a function");
        for pattern in ["log", "log (start)"] {
            assert!(matches_object(pattern, "log (start)"), "{pattern}");
        }
        for pattern in ["log", "log.*", "log._M_impl._M_start"] {
            assert!(matches_object(pattern, "log._M_impl._M_start"), "{pattern}");
        }
        assert!(matches_object("accounts[].balance", "accounts[3].balance"));
        assert!(!matches_object("log", "log.mine") && !matches_object("accounts[]", "accounts[3].balance"));
    }

    #[test]
    fn comments_blank_lines_and_quotes() {
        assert_eq!(words("  # only a comment").unwrap(), [] as [&str; 0]);
        assert_eq!(words("kind=race object=\"a b\" # why").unwrap(), ["kind=race", "object=a b"]);
        assert_eq!(words("object=a#b").unwrap(), ["object=a#b"]);
        assert!(Suppressions::parse("\n\n# nothing\n").unwrap().rules.is_empty());
    }

    #[test]
    fn a_bad_rule_says_where_and_what_was_expected() {
        let said = |text: &str| Suppressions::parse(text).unwrap_err().to_string();
        assert_eq!(
            said("# hello\nrace:deposit"),
            "line 2: \"race:deposit\" is not a condition; expected kind=, form=, function=, file=, object= or id=, each followed by a pattern"
        );
        assert!(said("fun=a").starts_with("line 1: unknown key \"fun\"; expected kind="));
        assert!(said("kind=rage").contains("no kind of finding is called \"rage\"; expected failure, race, deadlock"));
        assert!(
            said("form=sadness").contains("no form of finding is called \"sadness\"; expected what --json calls it")
        );
        assert!(said("id=").contains("has no pattern"));
        assert!(said("object=\"a").ends_with("expected a closing \""));
    }
}
