//! What is wrong with a property file: where, what was expected, and which names are close.

use std::fmt;
use std::ops::Range;

/// A problem at a place of a property file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The bytes of the file that it is about; empty at its end.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right, or what to do.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Diagnostic { span, message: message.into(), help: None }
    }
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Line and column, both from 1, of where it begins; columns are characters.
    pub fn position(&self, source: &str) -> (usize, usize) {
        let at = floor(source, self.span.start);
        let line_start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        (source[..at].matches('\n').count() + 1, source[line_start..at].chars().count() + 1)
    }
    /// The problem with the line it is in and a caret below the place.
    pub fn render(&self, file: &str, source: &str) -> String {
        let (line, column) = self.position(source);
        let text = source.lines().nth(line - 1).unwrap_or("");
        let end = floor(source, self.span.end.max(self.span.start));
        let width = source[floor(source, self.span.start)..end].lines().next().unwrap_or("").chars().count();
        let room = text.chars().count().saturating_sub(column - 1);
        let carets = "^".repeat(width.min(room).max(1));
        let margin = " ".repeat(line.to_string().len());
        // A tab stays a tab, so that the caret stands where the character does.
        let lead: String = text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let help = self.help.as_ref().map(|help| format!("{margin} = {help}\n")).unwrap_or_default();
        format!(
            "{file}:{line}:{column}: {}\n{margin} |\n{line} | {text}\n{margin} | {lead}{carets}\n{help}",
            self.message
        )
    }
}

/// The start of the character that a byte belongs to.
fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for Diagnostic {}

/// The known names closest to one that is not known: at most three, the closest first.
pub(crate) fn close_names<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 50_000;
    let limit = (wanted.chars().count() / 3).max(1) + 1;
    let mut close: Vec<(usize, &str)> = known
        .take(MOST)
        .filter_map(|name| {
            let distance = if name.eq_ignore_ascii_case(wanted) { 0 } else { distance(wanted, name, limit)? };
            Some((distance, name))
        })
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many characters must be changed, added, taken away or swapped with their neighbour, if at most `limit`.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    Some(rows[a.len()][b.len()]).filter(|&distance| distance <= limit)
}

/// Names as a suggestion: `did you mean permit?`
pub(crate) fn suggestion(close: &[&str]) -> Option<String> {
    match close {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(|name| format!("`{name}`")).collect();
            Some(format!("did you mean {} or `{last}`?", most.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_found_and_far_ones_are_not() {
        let known = ["permit", "permits", "landing", "x"];
        assert_eq!(close_names("premit", known.into_iter()), ["permit", "permits"]);
        assert_eq!(close_names("Landing", known.into_iter()), ["landing"]);
        assert!(close_names("altitude", known.into_iter()).is_empty());
    }

    #[test]
    fn the_caret_stands_below_the_character() {
        let source = "# é\nproperty p: always x = 1\n";
        let at = source.find('=').unwrap();
        let shown = Diagnostic::new(at..at + 1, "expected `==`").render("p.spec", source);
        assert_eq!(
            shown,
            "p.spec:2:22: expected `==`\n  |\n2 | property p: always x = 1\n  |                      ^\n"
        );
    }
}
