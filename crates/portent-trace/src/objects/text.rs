//! What objects are called. Ids of findings are made from these texts: a change here changes them all.

use super::kinds::{base_name, own_parts};
use super::{Apart, ApartBy, Local, Object, ObjectName};
use crate::ids::LocId;
use crate::names::{Location, Names, ObjectClass};
use crate::places::without_address;
use std::fmt::{self, Display, Formatter};

/// An object as text, by the names of its trace.
pub(super) struct Described<'a> {
    pub(super) names: &'a Names,
    pub(super) name: &'a ObjectName<'a>,
}

impl Display for Described<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ObjectName { object, path, offset, apart } = *self.name;
        let (path, inside) = path.find("._vptr").map_or_else(|| own_parts(path), |at| path.split_at(at));
        let inside = Inside(inside);
        match object {
            Object::Named(text) => f.write_str(text)?,
            Object::Global { name } => write!(f, "{name}{path}{}{inside}", Plus(offset))?,
            Object::Heap { type_name, site, ordinal } => {
                let (site, type_name) = (site_text(self.names, site), type_name.unwrap_or("memory"));
                match (type_name.strip_suffix("[]"), path.strip_prefix('.')) {
                    (Some(element), _) if path.starts_with('[') => {
                        write!(f, "{element}{path}{}{inside}", Plus(offset))?
                    }
                    (_, Some(member)) => write!(f, "{type_name}::{member}{}{inside} of {type_name}", Plus(offset))?,
                    _ if offset > 0 => write!(f, "byte {offset} of {type_name}{inside}")?,
                    _ => write!(f, "{type_name}{path}{inside}")?,
                }
                write!(f, " from {site}{}", Which(ordinal.into()))?;
            }
            Object::Stack { local: Some(local), .. } => {
                let Local { function, name } = local;
                // A lambda has no name that one could call it by.
                let call = if function.ends_with(['}', ')']) { "" } else { "()" };
                if name.is_empty() {
                    let at = if offset > 0 { format!(" (at byte {offset})") } else { String::new() };
                    write!(f, "a local of {function}{call}{at}{apart}")?;
                    return Ok(());
                }
                write!(f, "{name}{path}{}{inside} in {function}{call}", Plus(offset))?;
            }
            Object::Stack { thread, local: None } => {
                write!(f, "byte {offset} of the stack of {}", self.names.thread(thread))?
            }
            Object::Module { name, offset } => write!(f, "byte {offset} of {name}")?,
            Object::Memory { address: 0 } => f.write_str("null pointer")?,
            Object::Memory { address: address @ 1..NULL_PAGE } => write!(f, "null pointer+{address}")?,
            Object::Memory { address } => write!(f, "memory {address:#x}")?,
            Object::Unnamed { address } => write!(f, "{address:#x}")?,
            Object::Nothing { thread } => write!(f, "nothing(T{})", thread.index())?,
            Object::Message { channel, number } => write!(f, "chan {channel:#x}:{number}")?,
            Object::Handover { lock } => write!(f, "{} handed over ", self.names.name(ObjectClass::Lock, lock.0))?,
            Object::Thread { number, name: Some(name), .. } => write!(f, "T{number}:{name}")?,
            Object::Thread { number, name: None, .. } => write!(f, "T{number}")?,
        }
        apart.fmt(f)
    }
}

/// Where memory was allocated, as people say it: the file without its directories. Of code without lines, the module.
pub fn site_text(names: &Names, site: LocId) -> String {
    let place = names.location(site);
    let text = place.to_string();
    let text = without_address(&text);
    if place.line.is_some() { base_name(text).to_owned() } else { text.to_owned() }
}

/// Nothing is ever in the first page: what is accessed there is a member of what a null pointer does not point to.
const NULL_PAGE: u64 = 4096;

/// The insides of a library's class, in words: `._M_t._M_impl._M_node_count` are its `(size)`.
pub(super) struct Inside<'a>(pub(super) &'a str);

/// What users of the containers of libstdc++ know their members as. The first that is part of a path names it; members that lie
/// beside each other have different words, so that nobody takes one for the other.
const KNOWN: [(&str, &str); 39] = [
    // std::vector, std::deque.
    ("._M_start._M_cur", "begin"),
    ("._M_start._M_first", "first block"),
    ("._M_start._M_last", "end of the first block"),
    ("._M_start._M_node", "place of the first block"),
    ("._M_finish._M_cur", "end"),
    ("._M_finish._M_first", "last block"),
    ("._M_finish._M_last", "end of the last block"),
    ("._M_finish._M_node", "place of the last block"),
    ("._M_map_size", "number of blocks"),
    ("._M_map", "blocks"),
    ("._M_start", "begin"),
    ("._M_finish", "end"),
    ("._M_end_of_storage", "capacity"),
    // std::map, std::set.
    ("._M_node_count", "size"),
    ("._M_header._M_parent", "root"),
    ("._M_header._M_left", "first"),
    ("._M_header._M_right", "last"),
    // std::list.
    ("._M_node._M_size", "size"),
    ("._M_node._M_storage", "size"),
    ("._M_node._M_next", "first"),
    ("._M_node._M_prev", "last"),
    // std::unordered_map and the like.
    ("._M_element_count", "size"),
    ("._M_before_begin", "first"),
    ("._M_bucket_count", "number of buckets"),
    ("._M_buckets", "buckets"),
    ("._M_single_bucket", "only bucket"),
    ("._M_rehash_policy", "rehash policy"),
    // std::string.
    ("._M_dataplus", "text"),
    ("._M_string_length", "length"),
    ("._M_local_buf", "short text"),
    ("._M_allocated_capacity", "capacity"),
    // std::optional, std::variant, std::any.
    ("._M_engaged", "has a value"),
    ("._M_payload", "value"),
    ("._M_index", "which of its types"),
    ("._M_u._M_", "value"),
    // std::function, std::shared_ptr, std::unique_lock.
    ("._M_functor", "function"),
    ("._M_invoker", "call"),
    ("._M_refcount", "count"),
    ("._M_owns", "owns its lock"),
];

impl Display for Inside<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// What holds all the rest, and says nothing.
        const WRAPPERS: [&str; 10] =
            ["_M_t", "_M_impl", "_M_h", "_M_base", "_M_head_impl", "_M_ptr", "buf", "inner", "ptr", "pointer"];
        if self.0.starts_with("._vptr") {
            return f.write_str(" (virtual table)");
        }
        if let Some((_, words)) = KNOWN.iter().find(|(members, _)| self.0.contains(members)) {
            return write!(f, " ({words})");
        }
        let members = self.0.split(['.', '[', ']']).filter(|member| !member.is_empty() && !WRAPPERS.contains(member));
        let words = members.map(|member| {
            let name = member.trim_start_matches('_');
            name.strip_prefix("M_").unwrap_or(name).trim_matches('_').replace('_', " ")
        });
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() { Ok(()) } else { write!(f, " ({})", words.join(" ")) }
    }
}

/// An offset, unless it is 0.
pub(super) struct Plus(pub(super) u64);

impl Display for Plus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, "+{}", self.0) } else { Ok(()) }
    }
}

/// Which of several, to stand behind the name of all of them: ` (third)`. The first needs no number.
pub fn which_of(n: u64) -> String {
    Which(n).to_string()
}

/// Which of several, behind the name of all of them; the first needs no number.
struct Which(u64);

impl Display for Which {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const WORDS: [&str; 9] = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
        let n = self.0;
        if n < 2 {
            return Ok(());
        }
        if let Some(word) = usize::try_from(n - 2).ok().and_then(|at| WORDS.get(at)) {
            return write!(f, " ({word})");
        }
        let ending = match (n % 10, n % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        write!(f, " ({n}{ending})")
    }
}

impl Display for Apart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.by {
            ApartBy::Nothing => {}
            ApartBy::Address(address) => write!(f, " (at byte {address})")?,
            ApartBy::Nth(n) => Which(n).fmt(f)?,
        }
        if self.len > 0 {
            write!(f, ":{}", self.len)?;
        }
        if self.again > 0 {
            write!(f, "#{}", self.again)?;
        }
        Ok(())
    }
}

/// Some bytes of a variable that others cut.
pub(crate) fn byte_range_text(name: &str, start: u64, len: u32) -> String {
    format!("{name}[{start}..{}]", start + u64::from(len))
}

impl<'a> ObjectName<'a> {
    /// Where the object was allocated, if it was.
    ///
    /// Of a plain name, that is the first `file:line` in it: recorders that know nothing but text put it there.
    pub fn allocated_at(&self, names: &'a Names) -> Option<Location<'a>> {
        match self.object {
            Object::Heap { site, .. } => Some(names.location(site)),
            Object::Named(text) => place_in(text).map(Location::of_text),
            _ => None,
        }
    }
}

/// The first `file:line` in a name.
fn place_in(name: &str) -> Option<&str> {
    let is_place = |word: &&str| {
        let parts = word.rsplit_once(':');
        parts.is_some_and(|(file, line)| {
            let named = file.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && !ending.is_empty());
            named && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
        })
    };
    name.split([' ', '@', '(', ')', '[', ']', '+', ',']).find(is_place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LockId, ThreadId};

    #[test]
    fn every_object_has_its_text() {
        let mut names = Names::default();
        names.intern(ObjectClass::Thread, b"T0:main").unwrap();
        names.intern(ObjectClass::Lock, b"m").unwrap();
        let site = names.intern_location(b"list.c:31").unwrap();
        let (thread, lock) = (ThreadId::new(0), LockId::new(0));
        let text = |name: &ObjectName<'_>| Described { names: &names, name }.to_string();
        let heap = Object::Heap { type_name: None, site, ordinal: 3 };
        let node = Object::Heap { type_name: Some("Node"), site, ordinal: 3 };
        let nodes = |ordinal| Object::Heap { type_name: Some("Node[]"), site, ordinal };
        let stack = Object::Stack { thread, local: None };
        let local = Object::Stack { thread, local: Some(Local { function: "main", name: "total" }) };
        let nameless = Object::Stack { thread, local: Some(Local { function: "main", name: "" }) };
        let lambda = Object::Stack { thread, local: Some(Local { function: "main::{lambda()#1}", name: "n" }) };
        let accounts = Object::Global { name: "accounts" };
        let thread_7 = |name| Object::Thread { number: 7, name, start: LocId::from_number(1) };
        for (object, path, offset, expected) in [
            (Object::Named("x[0..4]"), "", 0, "x[0..4]"),
            (accounts, "[2].balance", 0, "accounts[2].balance"),
            (accounts, "[2]", 3, "accounts[2]+3"),
            (accounts, "._M_t._M_impl._M_node_count", 0, "accounts (size)"),
            (accounts, "[2].log._M_impl._M_start", 0, "accounts[2].log (begin)"),
            (accounts, "._M_impl._M_finish._M_cur", 0, "accounts (end)"),
            (accounts, "._M_h._M_something._M_else", 0, "accounts (something else)"),
            (node, "._vptr.Node", 0, "Node (virtual table) from list.c:31 (third)"),
            (local, "._M_h._M_before_begin._M_nxt", 0, "total (first) in main()"),
            (heap, "", 0, "memory from list.c:31 (third)"),
            (heap, "", 8, "byte 8 of memory from list.c:31 (third)"),
            (node, "", 0, "Node from list.c:31 (third)"),
            (node, ".next", 0, "Node::next of Node from list.c:31 (third)"),
            (node, ".next", 4, "Node::next+4 of Node from list.c:31 (third)"),
            (nodes(1), "", 0, "Node[] from list.c:31"),
            (nodes(11), "[2].next", 0, "Node[2].next from list.c:31 (11th)"),
            (nodes(22), "[2]", 4, "Node[2]+4 from list.c:31 (22nd)"),
            (stack, "", 2912, "byte 2912 of the stack of T0:main"),
            (stack, "", 0, "byte 0 of the stack of T0:main"),
            (local, "[1]", 2, "total[1]+2 in main()"),
            (nameless, "", 0, "a local of main()"),
            (nameless, "", 4, "a local of main() (at byte 4)"),
            (lambda, "", 0, "n in main::{lambda()#1}"),
            (Object::Module { name: "libm.so.6", offset: 0x10 }, "", 0, "byte 16 of libm.so.6"),
            (Object::Memory { address: 0 }, "", 0, "null pointer"),
            (Object::Memory { address: 0x10 }, "", 0, "null pointer+16"),
            (Object::Memory { address: 0x1000 }, "", 0, "memory 0x1000"),
            (Object::Unnamed { address: 0x10 }, "", 0, "0x10"),
            (Object::Nothing { thread }, "", 0, "nothing(T0)"),
            (Object::Message { channel: 0x10, number: 4 }, "", 0, "chan 0x10:4"),
            (thread_7(None), "", 0, "T7"),
            (thread_7(Some("worker")), "", 0, "T7:worker"),
        ] {
            assert_eq!(text(&ObjectName { path, offset, ..ObjectName::of(object) }), expected);
        }
        let apart = |by, len, again| Apart { by, len, again };
        for (object, apart, expected) in [
            (accounts, apart(ApartBy::Nothing, 4, 0), "accounts:4"),
            (accounts, apart(ApartBy::Address(0x20), 0, 0), "accounts (at byte 32)"),
            (accounts, apart(ApartBy::Address(0x20), 4, 9), "accounts (at byte 32):4#9"),
            (accounts, apart(ApartBy::Nth(2), 0, 3), "accounts (second)#3"),
            (Object::Message { channel: 1, number: 2 }, apart(ApartBy::Nothing, 0, 2), "chan 0x1:2#2"),
            (Object::Handover { lock }, apart(ApartBy::Nothing, 0, 1), "m handed over #1"),
        ] {
            assert_eq!(text(&ObjectName { apart, ..ObjectName::of(object) }), expected);
        }
        assert_eq!(byte_range_text("wide", 4, 2), "wide[4..6]");
    }

    #[test]
    fn where_an_object_was_allocated_is_known_or_found_in_its_text() {
        let mut names = Names::default();
        let site = names.intern_location(b"src/list.c:31").unwrap();
        let allocated = |object| {
            let place = ObjectName::of(object).allocated_at(&names)?;
            Some((place.text?, place.file?, place.line?))
        };
        let heap = Object::Heap { type_name: None, site, ordinal: 1 };
        assert_eq!(allocated(heap), Some(("src/list.c:31", "src/list.c", 31)));
        assert_eq!(allocated(Object::Named("malloc@bank.c:12[0..8]")), Some(("bank.c:12", "bank.c", 12)));
        let told = allocated(Object::Named("24 bytes from src/list.c:7 in push"));
        assert_eq!(told, Some(("src/list.c:7", "src/list.c", 7)));
        assert_eq!(allocated(Object::Named("std::string")), None);
        assert_eq!(allocated(Object::Named("balance")), None);
        assert_eq!(allocated(Object::Global { name: "of a.c:1" }), None);
    }
}
