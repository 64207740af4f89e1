//! Which objects are the same to the person who wrote the program: all elements of an array, all nodes that one line makes,
//! everything inside one container.
//!
//! Findings about objects of one kind are one finding, and their ids are made of these texts. So they hold nothing that
//! changes from run to run, from build to build or with the lines around: no addresses, indices, instance or line numbers.

use super::{Local, Object, ObjectName};
use crate::names::Names;
use crate::places::plain_function;

impl Names {
    /// The kind of object that a name stands for; `None` for names that are nothing but text, and for what is no memory.
    pub fn kind_of_object(&self, name: &ObjectName<'_>) -> Option<String> {
        let path = || own_path(name.path);
        Some(match name.object {
            Object::Global { name } => own_path(name) + &path(),
            Object::Heap { site, .. } => {
                // The type is left out: it is not known in every run.
                let place = self.location(site);
                let function = place.function.map(plain_function).unwrap_or_default();
                let made = match (place.source, place.file) {
                    (Some(line), _) if !line.is_empty() => line,
                    (_, Some(file)) => base_name(file),
                    _ => place.text.and_then(|text| text.split('+').next()).unwrap_or_default(),
                };
                format!("made in {function}: {made}{}", path())
            }
            Object::Stack { local: Some(Local { function, name }), .. } => {
                let name = if name.is_empty() { "temporary" } else { name };
                format!("{}{} in {}", own_path(name), path(), plain_function(function))
            }
            Object::Stack { local: None, .. } => "on a stack".to_owned(),
            Object::Module { .. } | Object::Memory { .. } | Object::Unnamed { .. } => "memory".to_owned(),
            Object::Named(_)
            | Object::Nothing { .. }
            | Object::Message { .. }
            | Object::Handover { .. }
            | Object::Thread { .. } => return None,
        })
    }
}

/// The file's name without its directories.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Members as far as the program's author named them, without indices: `[2].items._M_impl._M_start` is `[].items`.
pub fn own_path(path: &str) -> String {
    let (path, _) = own_parts(path);
    let mut own = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(open) = rest.find('[') {
        own.push_str(&rest[..open]);
        own.push_str("[]");
        rest = rest[open..].find(']').map_or("", |end| &rest[open + end + 1..]);
    }
    own + rest
}

/// Members as far as the program's author named them, and the rest. Members whose names are reserved are the insides of a
/// library's class, and one container is one object.
pub fn own_parts(path: &str) -> (&str, &str) {
    let mut at = 0;
    while at < path.len() {
        let rest = &path[at..];
        if rest.starts_with('[') {
            at += rest.find(']').map_or(rest.len(), |end| end + 1);
            continue;
        }
        let mark = rest.len() - rest.trim_start_matches(['.', '-', '>']).len();
        let end = rest[mark..].find(['.', '[']).map_or(rest.len(), |end| mark + end);
        let member = &rest[mark..end];
        let reserved =
            member.strip_prefix('_').is_some_and(|tail| tail.starts_with(|c: char| c == '_' || c.is_ascii_uppercase()));
        // The pointers of Rust's containers.
        let of_rust = rest.starts_with(".buf.inner.") || rest.starts_with(".ptr.pointer");
        // A global may well have such a name.
        if (reserved && mark > 0) || of_rust {
            break;
        }
        // Two dots in a row, of which no program has any, are passed all the same.
        at += end.max(1);
    }
    path.split_at(at.min(path.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadId;

    #[test]
    fn a_kind_is_what_the_source_says() {
        let mut names = Names::default();
        let site = names.intern_source_location("src/list.cpp:31", "List::add(int)", "auto* n = new Node;").unwrap();
        let unread = names.intern_source_location("/far/list.cpp:31", "List::add(int)", "").unwrap();
        let heap = |site, ordinal, type_name| Object::Heap { type_name, site, ordinal };
        let stack = |local| Object::Stack { thread: ThreadId::new(0), local };
        let local = Local { function: "main(int, char**)", name: "total" };
        let accounts = Object::Global { name: "bank::accounts" };
        for (object, path, offset, expected) in [
            (accounts, "", 0, Some("bank::accounts")),
            (accounts, "[2].balance", 4, Some("bank::accounts[].balance")),
            (accounts, "[2][17]", 0, Some("bank::accounts[][]")),
            (accounts, "._M_impl._M_finish", 0, Some("bank::accounts")),
            (accounts, "[0].log._M_impl.x[3]", 0, Some("bank::accounts[].log")),
            (accounts, "._mine", 0, Some("bank::accounts._mine")),
            (Object::Global { name: "__counter" }, "", 0, Some("__counter")),
            (heap(site, 3, None), ".next", 0, Some("made in add: auto* n = new Node;.next")),
            (heap(site, 4, Some("Node")), ".next", 8, Some("made in add: auto* n = new Node;.next")),
            (heap(unread, 4, None), "", 8, Some("made in add: list.cpp")),
            (stack(None), "", 2912, Some("on a stack")),
            (stack(Some(local)), "[1]", 2, Some("total[] in main")),
            (Object::Memory { address: 0x10 }, "", 0, Some("memory")),
            (Object::Named("x"), "", 0, None),
            (Object::Thread { number: 1, name: None, start: None }, "", 0, None),
        ] {
            let name = ObjectName { path, offset, ..ObjectName::of(object) };
            assert_eq!(names.kind_of_object(&name).as_deref(), expected, "{object:?}");
        }
    }
}
