//! What dying programs say on standard error: exceptions, panics, messages of the C library, of sanitizers and of test
//! frameworks. Read from text, as people do, since every run's is kept.

/// What a program said about how it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// An exception that nobody caught, with its type and, if it has one, its text.
    Exception { what: String },
    /// A panic of a Rust program: where, and what it said.
    Panic { place: Option<String>, what: String },
    /// The C library, a sanitizer or a test framework found something wrong.
    Report(String),
}

/// Lines of the C library and of others by which a program that gives up says why, by how they begin.
const REPORTS: [&str; 14] = [
    "free(): ",
    "malloc(): ",
    "realloc(): ",
    "malloc_consolidate(): ",
    "double free or corruption",
    "corrupted ",
    "munmap_chunk(): ",
    "*** stack smashing detected ***",
    "*** buffer overflow detected ***",
    "Fatal glibc error: ",
    "terminate called without an active exception",
    "terminate called recursively",
    "pure virtual method called",
    "[  FAILED  ]",
];

/// What a program's standard error says about how it failed: the last such thing.
pub(crate) fn said(stderr: &[u8]) -> Option<Said> {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().enumerate().rev().find_map(|(at, line)| of_line(line, &lines[at + 1..]))
}

fn of_line(line: &str, after: &[&str]) -> Option<Said> {
    const THROWN: &str = "terminate called after throwing an instance of '";
    if let Some(at) = line.find(THROWN) {
        let kind = line[at + THROWN.len()..].trim_end().trim_end_matches('\'');
        let text = after.first().and_then(|next| next.trim_start().strip_prefix("what():"));
        let what = text.map_or_else(|| kind.to_owned(), |text| format!("{kind}: {}", text.trim()));
        return Some(Said::Exception { what });
    }
    // thread 'worker' (4711) panicked at src/main.rs:9:5:
    if let Some((head, place)) = line.split_once(" panicked at ")
        && head.trim_start().starts_with("thread ")
    {
        let place = place.trim_end().trim_end_matches(':');
        // Older ones have the message first: panicked at 'index out of bounds', src/main.rs:9:5
        if let Some((what, place)) = place.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
            return Some(Said::Panic { place: Some(without_column(place)), what: what.to_owned() });
        }
        let what = after.first().map_or_else(String::new, |next| next.trim().to_owned());
        return Some(Said::Panic { place: Some(without_column(place)), what });
    }
    let trimmed = line.trim();
    let is_report = REPORTS.iter().any(|start| trimmed.starts_with(start))
        || (trimmed.contains("ERROR: ") && trimmed.contains("Sanitizer"))
        || trimmed.contains("runtime error: ");
    is_report.then(|| Said::Report(trimmed.to_owned()))
}

/// `src/main.rs:9:5` without the column.
fn without_column(place: &str) -> String {
    match place.rsplit_once(':') {
        Some((rest, column)) if column.parse::<u32>().is_ok() && rest.contains(':') => rest.to_owned(),
        _ => place.to_owned(),
    }
}

/// Where an assertion of the C library failed: `prog: queue.c:14: take: Assertion …` names `queue.c:14`.
pub(crate) fn assertion_place(text: &str) -> Option<String> {
    let head = text.split(": Assertion ").next()?;
    let words: Vec<&str> = head.split(": ").collect();
    let is_place = |word: &&&str| word.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    words.iter().find(is_place).map(|word| (*word).to_owned())
}

/// Where the last assertion failed that a program's standard error tells of.
pub(crate) fn printed_assertion(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    text.lines().rev().find(|line| line.contains(": Assertion ")).and_then(assertion_place)
}

/// What an assertion asserts, without the program's name in front.
pub(crate) fn assertion_text(text: &str) -> String {
    let rest = text.split_once(": Assertion ").map_or(text, |(_, rest)| rest);
    rest.trim().trim_end_matches('.').trim_end_matches(" failed").trim_matches(['`', '\'']).to_owned()
}

/// The end of a text, at most so many lines and characters.
pub(crate) fn tail(bytes: &[u8], lines: usize, characters: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = text.lines().collect();
    let kept = all[all.len().saturating_sub(lines)..].join("\n");
    let excess = kept.chars().count().saturating_sub(characters);
    kept.chars().skip(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_their_type_and_text() {
        let text = b"starting\nterminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 3) >= this->size() (which is 3)\n";
        let what = "std::out_of_range: vector::_M_range_check: __n (which is 3) >= this->size() (which is 3)";
        assert_eq!(said(text), Some(Said::Exception { what: what.into() }));
        assert_eq!(
            said(b"terminate called after throwing an instance of 'int'\n"),
            Some(Said::Exception { what: "int".into() })
        );
    }

    #[test]
    fn panics_have_their_place_and_text() {
        let place = Some("src/main.rs:9".to_owned());
        let new =
            b"\nthread 'worker' (12) panicked at src/main.rs:9:5:\nqueue is empty\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(said(new), Some(Said::Panic { place: place.clone(), what: "queue is empty".into() }));
        let old = b"thread 'main' panicked at 'queue is empty', src/main.rs:9:5\n";
        assert_eq!(said(old), Some(Said::Panic { place, what: "queue is empty".into() }));
    }

    #[test]
    fn the_last_report_counts_and_other_lines_are_none() {
        let text = b"hello\nfree(): double free detected in tcache 2\n";
        assert_eq!(said(text), Some(Said::Report("free(): double free detected in tcache 2".into())));
        assert_eq!(said(b"all went well\n\xff\xfe"), None);
    }

    #[test]
    fn assertions_name_their_place() {
        let text = "prog: src/queue.c:14: take: Assertion `count > 0 && \"a: b\"' failed.";
        assert_eq!(assertion_place(text).as_deref(), Some("src/queue.c:14"));
        assert_eq!(assertion_text(text), "count > 0 && \"a: b\"");
        assert_eq!(assertion_place("whatever"), None);
    }

    #[test]
    fn only_the_end_of_much_text_is_kept() {
        assert_eq!(tail(b"a\nb\nc\n", 2, 100), "b\nc");
        assert_eq!(tail("äöü".as_bytes(), 2, 2), "öü");
    }
}
