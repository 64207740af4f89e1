//! Which modules of a crate name which, from their text; cycles among them.
//!
//! Told from the `crate::` and `super::` paths of each file. Top-level modules are told apart, a folder being one of them; and
//! so are the files of each folder, but for its `mod.rs`, which may name its files and be named by them. Unit tests do not
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Every module of a crate of this repository.
pub fn of_crate(name: &str) -> Vec<Module> {
    let src = crate::repository().join("crates").join(name).join("src");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let relative = path.strip_prefix(&src).expect("it is below").with_extension("");
                let parts = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.push(Module::new(parts, &text));
            }
        }
    }
    found
}

/// The first cycle of a crate: at the top, or among the files of a folder.
pub fn first_cycle(modules: &[Module]) -> Option<Vec<String>> {
    let folders: BTreeSet<&[String]> = modules.iter().map(|module| module.folder()).collect();
    folders.into_iter().find_map(|folder| cycle(&edges(modules, folder)))
}

/// A file of a crate.
#[derive(Debug)]
pub struct Module {
    /// Where it is: `["kinds", "race"]`; `["kinds"]` for `kinds/mod.rs`, nothing for `lib.rs`.
    path: Vec<String>,
    /// Whether it stands for its folder.
    is_face: bool,
    /// The paths it names that begin with `crate` or `super`, from the root of the crate.
    names: Vec<Vec<String>>,
    /// For the face of a folder: names that it takes from its files.
    shows: BTreeMap<String, String>,
}

impl Module {
    /// A file by its place, without its ending, and its text.
    pub fn new(mut path: Vec<String>, text: &str) -> Module {
        let is_face = path.last().is_some_and(|name| name == "mod" || name == "lib");
        if is_face {
            path.pop();
        }
        // Unit tests stand at the end of a file, or in one of their own.
        let is_tests = path.last().is_some_and(|name| name == "tests");
        let text = if is_tests { "" } else { text.split("#[cfg(test)]").next().unwrap_or_default() };
        let text = without_comments(text);
        let parent = if is_face { &path[..] } else { &path[..path.len() - 1] };
        let mut names = Vec::new();
        let mut shows = BTreeMap::new();
        for (at, root) in roots(&text) {
            let mut found = Vec::new();
            tree(&text[at..], &mut Vec::new(), &mut found);
            for mut named in found {
                match root {
                    "crate" => names.push(named),
                    // The folder around the file, or the one around the folder.
                    "super" => {
                        let from = if is_face { &parent[..parent.len().saturating_sub(1)] } else { parent };
                        let ups = named.iter().take_while(|part| *part == "super").count();
                        let from = &from[..from.len().saturating_sub(ups)];
                        named.drain(..ups);
                        names.push(from.iter().cloned().chain(named).collect());
                    }
                    _ => {
                        if let (Some(file), Some(name)) = (named.first(), named.last()) {
                            shows.insert(name.clone(), file.clone());
                        }
                    }
                }
            }
        }
        Module { path, is_face, names, shows }
    }

    /// The folder it is in; its own, if it stands for one.
    fn folder(&self) -> &[String] {
        if self.is_face { &self.path } else { &self.path[..self.path.len() - 1] }
    }
}

/// Which modules of a folder name which others of it. What is inside a deeper folder counts as that folder.
pub fn edges(modules: &[Module], folder: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let inside = |path: &[String]| path.len() > folder.len() && path.starts_with(folder);
    let known: BTreeSet<&String> =
        modules.iter().filter(|module| inside(&module.path)).map(|module| &module.path[folder.len()]).collect();
    let face = modules.iter().find(|module| module.is_face && module.path == folder);
    let full = |name: &String| folder.iter().chain([name]).cloned().collect::<Vec<_>>().join("::");
    let mut edges: BTreeMap<String, BTreeSet<String>> =
        known.iter().map(|name| (full(name), BTreeSet::new())).collect();
    for module in modules.iter().filter(|module| inside(&module.path)) {
        let own = &module.path[folder.len()];
        for name in module.names.iter().filter(|name| inside(name)) {
            let named = &name[folder.len()];
            let shown = face.and_then(|face| face.shows.get(named));
            let target = if known.contains(named) { Some(named) } else { shown };
            if let Some(target) = target.filter(|target| *target != own && known.contains(target)) {
                edges.entry(full(own)).or_default().insert(full(target));
            }
        }
    }
    edges
}

/// A cycle, from a module back to itself.
pub fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        edges: &BTreeMap<String, BTreeSet<String>>,
        at: &String,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|on_the_way| on_the_way == at) {
            return Some(way[start..].iter().chain([at]).cloned().collect());
        }
        if !done.insert(at.clone()) {
            return None;
        }
        way.push(at.clone());
        let found = edges[at].iter().find_map(|next| visit(edges, next, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|start| visit(edges, start, &mut Vec::new(), &mut done))
}

/// Where paths begin: behind `crate::` and `super::`, and behind `use` where it takes something from a file of the folder.
fn roots(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (word, root) in [("crate::", "crate"), ("super::", "super"), ("use ", "use")] {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            let behind = at + word.len();
            let is_own = !["crate::", "super::", "self::"].iter().any(|path| text[behind..].starts_with(path));
            if !inside && (root != "use" || is_own) {
                found.push((behind, root));
            }
        }
    }
    found
}

/// The paths of a `use` tree, or of a single path; the rest of the text behind it.
fn tree<'t>(text: &'t str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            match rest.strip_prefix('}') {
                Some(behind) => return behind,
                None if rest.is_empty() => return rest,
                None => {}
            }
            let before = rest.len();
            rest = tree(rest, prefix, found);
            // Not a path after all.
            if rest.len() == before {
                return "";
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return text;
    }
    prefix.push(name.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(deeper) if !deeper.starts_with('<') => tree(deeper, prefix, found),
        _ => {
            let renamed = rest.trim_start().strip_prefix("as ").map(str::trim_start);
            let end = renamed.and_then(|new| new.find(|c: char| !c.is_alphanumeric() && c != '_'));
            let mut path = prefix.clone();
            path.extend(renamed.map(|new| new[..end.unwrap_or(new.len())].to_owned()));
            found.push(path);
            renamed.map_or(rest, |new| &new[end.unwrap_or(new.len())..])
        }
    };
    prefix.pop();
    rest
}

/// The text without comments and without what is in quotes.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        let mut quoted = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if quoted => drop(chars.next()),
                // A quote as a character does not begin anything.
                '\'' if !quoted && chars.peek() == Some(&'"') => drop(chars.next()),
                '"' => quoted = !quoted,
                '/' if !quoted && chars.peek() == Some(&'/') => break,
                c if !quoted => code.push(c),
                _ => {}
            }
        }
        code.push('\n');
    }
    code
}
