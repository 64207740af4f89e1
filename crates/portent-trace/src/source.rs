//! Reading source files: which files are source, their lines, and a line in the form in which findings are recognised by it.
//!
//! File names come from traces and from debug information. Only files whose ending is that of a programming language are
//! read, and only so much of them: what comes from elsewhere must not pull other files of the reader's machine into a report.
//! Where files are looked for is decided by those who read them.

use std::io::Read;
use std::path::Path;

/// Larger files are not read.
const LARGEST: u64 = 8 << 20;

/// What is source.
const ENDINGS: &[&str] = &[
    "adb", "ads", "asm", "c", "c++", "cc", "cpp", "cs", "cxx", "d", "f", "f90", "go", "h", "h++", "hh", "hpp", "hxx",
    "inc", "inl", "ipp", "java", "js", "kt", "l", "m", "mm", "pas", "py", "rs", "s", "scala", "swift", "tcc", "ts",
    "txx", "y", "zig",
];

/// Whether a file may be read as source, by its name.
pub fn is_source_file(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

/// The lines of a source file; `None` if it is none, or cannot be read, or is too large.
pub fn source_lines(path: &Path) -> Option<Vec<String>> {
    // Asking first keeps pipes and devices from being opened.
    let metadata = std::fs::metadata(path).ok().filter(|_| is_source_file(path))?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// A line as findings are recognised by it: however it is indented and spaced, and whatever is remarked at its end.
pub fn line_identity(line: &str) -> String {
    /// Generated code has lines of any length; what is different behind this is the same finding.
    const LONGEST: usize = 200;
    let words = without_remark(line).split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

/// Cuts off a remark at the end of the line, unless that is all there is. `//` in a text or an address begins none.
fn without_remark(line: &str) -> &str {
    let (mut quote, mut skip) = (None, false);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if skip => skip = false,
            (Some(_), '\\') => skip = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some(c),
            (None, '/') if line[at..].starts_with("//") && !line[..at].trim().is_empty() => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_recognised_however_it_is_written() {
        for line in ["balance += amount;", "\tbalance  +=  amount; ", "  balance += amount;  // the bug"] {
            assert_eq!(line_identity(line), "balance += amount;");
        }
        assert_eq!(line_identity("get(\"http://x\"); // y"), "get(\"http://x\");");
        assert_eq!(line_identity("say(\"\\\"//\");"), "say(\"\\\"//\");");
        assert_eq!(line_identity("// nothing"), "// nothing");
        assert_eq!(line_identity(&"x".repeat(1000)).len(), 200);
        assert_eq!(line_identity(""), "");
    }
}
