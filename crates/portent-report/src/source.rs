//! Source text beside findings: files looked up below a list of directories, read once, missing ones forgiven.
//!
//! File names come from the trace. What counts as source is for portent-trace to say; whether a file has changed since the
//! trace was made is not known here.

use portent_trace::{is_source_file, source_lines};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The lines of one file.
pub type Lines = Rc<Vec<String>>;

/// Where source is looked for, and what was found so far.
#[derive(Debug, Default)]
pub struct Sources {
    roots: Vec<PathBuf>,
    files: RefCell<HashMap<String, Option<Lines>>>,
}

impl Sources {
    /// Source below these directories; the first that has a file wins.
    pub fn below(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        Sources { roots: roots.into_iter().collect(), files: RefCell::default() }
    }

    /// The lines of a file that a trace names; `None` if it is not found, too large or no source.
    pub fn lines(&self, file: &str) -> Option<Lines> {
        if let Some(known) = self.files.borrow().get(file) {
            return known.clone();
        }
        let found = self.candidates(file).into_iter().find_map(|path| read(&path)).map(Rc::new);
        self.files.borrow_mut().insert(file.to_owned(), found.clone());
        found
    }

    /// One line of a file, the first being 1.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        let lines = self.lines(file)?;
        lines.get((line as usize).checked_sub(1)?).cloned()
    }

    /// A file's path for other tools: relative to the first root below which it lies, with forward slashes.
    pub fn relative(&self, file: &str) -> String {
        let path = Path::new(file);
        let stripped = self.roots.iter().find_map(|root| {
            let absolute = std::path::absolute(root).ok()?;
            path.strip_prefix(root).or_else(|_| path.strip_prefix(absolute)).ok()
        });
        let path = stripped.filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
        let mut text = path.to_string_lossy().replace('\\', "/");
        while let Some(rest) = text.strip_prefix("./") {
            text = rest.to_owned();
        }
        text
    }

    /// A file's path for people: as [`Sources::relative`], or by the way from the first root, if it lies beside that: a program is
    /// built and run in `project/build`, and its source is `../src/pool.cpp`.
    pub fn told(&self, file: &str) -> String {
        /// Further up, the whole path is plainer.
        const UP: usize = 3;
        let relative = self.relative(file);
        let path = Path::new(&relative);
        if !path.is_absolute() {
            return relative;
        }
        let root = self.roots.first().and_then(|root| std::path::absolute(root).ok());
        let above = root.iter().flat_map(|root| root.ancestors().enumerate().skip(1).take(UP));
        // The root of all files is no project's.
        let mut above = above.filter(|(_, directory)| directory.parent().is_some());
        let way = above.find_map(|(steps, directory)| {
            let rest = path.strip_prefix(directory).ok()?;
            Some("../".repeat(steps) + &rest.to_string_lossy())
        });
        way.filter(|way| way.len() < relative.len()).unwrap_or(relative)
    }

    /// Where a file may lie: as named below each root; then, for one recorded elsewhere, by ever shorter ends of its
    /// path, but never by its bare name: another file's text is worse than none.
    fn candidates(&self, file: &str) -> Vec<PathBuf> {
        let path = Path::new(file);
        if !is_source_file(path) {
            return Vec::new();
        }
        let mut candidates: Vec<PathBuf> = match path.is_absolute() {
            true => vec![path.to_owned()],
            false => self.roots.iter().map(|root| root.join(path)).collect(),
        };
        let parts: Vec<Component<'_>> = path.components().filter(|c| matches!(c, Component::Normal(_))).collect();
        for skip in usize::from(!path.is_absolute())..parts.len().saturating_sub(1) {
            let end: PathBuf = parts[skip..].iter().collect();
            candidates.extend(self.roots.iter().map(|root| root.join(&end)));
        }
        candidates
    }
}

fn read(path: &Path) -> Option<Vec<String>> {
    Some(source_lines(path)?.iter().map(|line| line.replace('\t', "    ")).collect())
}

/// Where in a line of source to point: the object if its name is there, else everything but the indentation. The start
/// and the length, in characters.
pub(crate) fn caret(text: &str, object: &str) -> (usize, usize) {
    let chars: Vec<char> = text.chars().collect();
    let name: Vec<char> = object.chars().take_while(|c| is_word(*c)).collect();
    if !name.is_empty() {
        let fits = |at: &usize| {
            let end = at + name.len();
            let free = |c: Option<&char>| c.is_none_or(|c| !is_word(*c));
            chars[*at..end] == name[..] && free(at.checked_sub(1).and_then(|b| chars.get(b))) && free(chars.get(end))
        };
        if let Some(at) = (0..(chars.len() + 1).saturating_sub(name.len())).find(fits) {
            return (at, name.len());
        }
    }
    let start = chars.iter().take_while(|c| c.is_whitespace()).count();
    let end = chars.len() - chars.iter().rev().take_while(|c| c.is_whitespace()).count();
    (start, end.saturating_sub(start))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_testing::scratch::Scratch;

    #[test]
    fn the_caret_points_at_the_object_or_at_the_whole_line() {
        assert_eq!(caret("    a_hits = hits + 1;  ", "hits"), (13, 4));
        assert_eq!(caret("    p->next = q;  ", "heap block"), (4, 12));
        assert_eq!(caret("x[i]", "x[0..4]"), (0, 1));
        assert_eq!(caret("", "x"), (0, 0));
        assert_eq!(caret("ab", "abc"), (0, 2));
    }

    #[test]
    fn files_are_found_below_the_roots_and_only_sources_are_read() {
        let scratch = Scratch::with("proj/src/a.c", "one\n\ttwo\n").and("secret", "no\n");
        let sources = Sources::below([scratch.path("proj"), scratch.directory().to_owned()]);
        assert_eq!(sources.line("src/a.c", 2).as_deref(), Some("    two"));
        assert_eq!(sources.line("/elsewhere/proj/src/a.c", 1).as_deref(), Some("one"), "recorded on another machine");
        assert_eq!(sources.line("src/a.c", 3), None);
        assert_eq!(sources.line("src/a.c", 0), None);
        assert_eq!(sources.line("a.c", 1), None, "a bare name is not looked for in other directories");
        assert_eq!(sources.line("/elsewhere/a.c", 1), None);
        assert_eq!(sources.line("secret", 1), None, "no source");
        assert_eq!(sources.line("", 1), None);
    }

    #[test]
    fn paths_for_other_tools_are_relative_to_the_root() {
        let sources = Sources::below([PathBuf::from("/work/proj")]);
        assert_eq!(sources.relative("/work/proj/src/a.c"), "src/a.c");
        assert_eq!(sources.relative("./b.c"), "b.c");
        assert_eq!(sources.relative("/usr/include/x.h"), "/usr/include/x.h");
    }
}
