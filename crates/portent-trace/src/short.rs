//! Names of functions as people say them: `std::deque<int>::emplace_back` for
//! `int& std::deque<int, std::allocator<int> >::emplace_back<int>(int&&)`.
//!
//! Works on demangled names of C++ and Rust; a name of C, or one that is not understood, stays as it is. What is left out:
//! return types, parameters, a function's own template arguments, default arguments of standard containers, namespaces that
//! only carry a version, and the hashes of Rust. Two functions may get the same short name, so nothing is found by it.

use crate::places::{plain_function, without_address};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The function's name without what its reader can do without.
pub fn short_function(name: &str) -> String {
    thread_local! {
        /// The names that were asked for: every run of a program has the same.
        static KNOWN: RefCell<FxHashMap<String, String>> = RefCell::default();
    }
    /// More than programs have, of those that are asked for.
    const MOST: usize = 1 << 14;
    KNOWN.with_borrow_mut(|known| {
        if let Some(short) = known.get(name) {
            return short.clone();
        }
        if known.len() >= MOST {
            known.clear();
        }
        let short = shorten(name);
        known.insert(name.to_owned(), short.clone());
        short
    })
}

/// A function as people are told of it. Those that a library keeps to itself have no name for them.
pub fn told_function(name: &str) -> String {
    let short = short_function(name);
    if is_librarys_own(&short) { "a library's function".to_owned() } else { without_address(&short).to_owned() }
}

/// Whether a function has a name that is reserved for libraries.
pub(crate) fn is_librarys_own(short: &str) -> bool {
    let last = plain_function(short);
    last.starts_with("_M_") || last.starts_with("_S_") || last.starts_with("__") || short.starts_with("std::_")
}

fn shorten(name: &str) -> String {
    let name = without_hash(name.trim());
    let parts = path(without_return_type(without_parameters(name)));
    let last = parts.len() - 1;
    let mut short = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let (base, arguments) = part.split();
        if VERSIONS.contains(&base) || (base.is_empty() && at < last && !part.0.starts_with('<')) {
            continue;
        }
        // What a lambda does is in the operator that calls it, which has no name of its own.
        let is_lambda = |part: &&String| part.starts_with("{lambda") || part.starts_with('$');
        if base == "operator()" && short.last().as_ref().is_some_and(is_lambda) {
            continue;
        }
        short.push(match arguments {
            _ if part.0.starts_with('<') => implementer(part.0),
            _ if base.starts_with('{') => closure(base),
            Some(arguments) if at < last => format!("{base}{}", shortened(arguments)),
            _ => base.to_owned(),
        });
    }
    let short = short.join("::");
    let short = known_class(&short);
    if short.is_empty() { name.to_owned() } else { short }
}

/// Inline namespaces of the standard libraries.
const VERSIONS: [&str; 5] = ["__cxx11", "__1", "__cxx1998", "_V2", "__debug"];

/// `name::h0123456789abcdef`, as older Rust mangles.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()) => rest,
        _ => name,
    }
}

/// A walk over a name that knows what is inside brackets.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan { text, at: 0, depth: 0 }
    }
}

impl Iterator for Scan<'_> {
    /// Where a character is, the character, and how many brackets are open around it. An opening bracket is outside of
    /// itself, and a closing one too. Of the name of an operator only the beginning is told.
    type Item = (usize, char, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = &self.text[at..];
        let first = rest.chars().next()?;
        let begins = !self.text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if let Some(symbol) = rest.strip_prefix("operator").filter(|_| begins) {
            self.at += "operator".len() + operator(symbol);
            return Some((at, first, self.depth));
        }
        self.at += first.len_utf8();
        match first {
            '<' | '(' | '[' | '{' => {
                self.depth += 1;
                Some((at, first, self.depth - 1))
            }
            // An arrow opens nothing that its end could close.
            '>' if self.text[..at].ends_with('-') => Some((at, first, self.depth)),
            '>' | ')' | ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                Some((at, first, self.depth))
            }
            _ => Some((at, first, self.depth)),
        }
    }
}

/// How much of what follows the word `operator` is the operator's name.
fn operator(rest: &str) -> usize {
    const SYMBOLS: [&str; 40] = [
        "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "==", "!=", "&&", "||", "++", "--", "+=",
        "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "=", ",",
        "\"\"",
    ];
    if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        // `operator<< <int>`: a blank keeps the two apart.
        return symbol.len() + usize::from(rest[symbol.len()..].starts_with(" <"));
    }
    // `operator new[]`, or a conversion to a type, up to the parameters.
    match rest.strip_prefix(' ') {
        Some(_) => rest.find('(').unwrap_or(rest.len()),
        None => 0,
    }
}

/// Cuts off `(int&&) const [clone .cold]`.
fn without_parameters(name: &str) -> &str {
    let opens = |&(_, c, depth): &(usize, char, usize)| c == '(' && depth == 0;
    for (at, ..) in Scan::new(name).filter(opens) {
        let is_first = name[..at].ends_with([' ', ':']) || at == 0;
        let end = Scan::new(&name[at..]).find(|&(_, c, depth)| c == ')' && depth == 0);
        // `run(int)::{lambda()#1}`: the parameters of a function around.
        let is_scope = end.is_some_and(|(end, ..)| name[at + end + 1..].trim_start_matches(" const").starts_with("::"));
        if !is_first && !is_scope {
            return without_clone(&name[..at]);
        }
    }
    without_clone(name)
}

fn without_clone(name: &str) -> &str {
    name.split_once(" [clone").map_or(name, |(name, _)| name)
}

/// Cuts off everything up to the last blank that is neither in brackets nor in the name of an operator.
fn without_return_type(name: &str) -> &str {
    if name.starts_with('<') {
        return name;
    }
    let blanks = Scan::new(name).filter(|&(_, c, depth)| c == ' ' && depth == 0);
    blanks.last().map_or(name, |(at, ..)| name[at + 1..].trim_start_matches(['&', '*']))
}

/// Part of a path: a name with its template arguments.
struct Part<'a>(&'a str);

impl<'a> Part<'a> {
    fn split(&self) -> (&'a str, Option<&'a str>) {
        let opens = |&(_, c, depth): &(usize, char, usize)| c == '<' && depth == 0;
        let (base, arguments) = match Scan::new(self.0).find(opens) {
            Some((at, ..)) => (&self.0[..at], Some(&self.0[at..])),
            None => (self.0, None),
        };
        let parameters = Scan::new(base).find(|&(at, c, depth)| c == '(' && depth == 0 && at > 0);
        let base = parameters.map_or(base, |(at, ..)| &base[..at]);
        (base.trim_end_matches("::").trim(), arguments)
    }
}

/// The parts between `::`; always at least one. Rust's `::<T>` belongs to the part before it.
fn path(name: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c, depth) in Scan::new(name) {
        if c == ':' && depth == 0 && at >= start && name[at..].starts_with("::") && !name[at..].starts_with("::<") {
            parts.push(Part(&name[start..at]));
            start = at + 2;
        }
    }
    parts.push(Part(&name[start..]));
    // `foo::<T>` was kept whole.
    parts.iter_mut().for_each(|part| part.0 = part.0.trim());
    parts
}

/// Template arguments, each shortened, without those that standard containers have by default.
fn shortened(arguments: &str) -> String {
    /// Longer ones tell a reader nothing that the name before them does not.
    const LONG: usize = 40;
    // Always shorter than what it was called for, or a damaged name would have no end.
    let inside = arguments.strip_prefix('<').unwrap_or_default();
    let inside = inside.strip_suffix('>').unwrap_or(inside).trim();
    let shown: Vec<String> = list(inside).into_iter().filter(|argument| !is_default(argument)).map(type_text).collect();
    let shown = shown.join(", ");
    if shown.chars().count() > LONG { "<…>".to_owned() } else { format!("<{shown}>") }
}

/// What is between the commas.
fn list(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    for (at, ..) in Scan::new(text).filter(|&(_, c, depth)| c == ',' && depth == 0) {
        all.push(text[start..at].trim());
        start = at + 1;
    }
    all.push(text[start..].trim());
    all
}

fn is_default(argument: &str) -> bool {
    const DEFAULTS: [&str; 6] = ["allocator<", "char_traits<", "default_delete<", "less<", "hash<", "equal_to<"];
    let bare = argument.trim_start_matches("std::").trim_start_matches("__1::");
    DEFAULTS.iter().any(|start| bare.starts_with(start))
}

/// A type, such as a template argument.
fn type_text(text: &str) -> String {
    let core = text.trim_end_matches(['&', '*', ' ']);
    let (core, qualifier) = match core.strip_suffix(" const") {
        Some(core) => (core, &text[core.len()..]),
        None => (core, &text[core.len()..]),
    };
    // Function types and the like are not paths.
    if core.ends_with(')') || core.is_empty() {
        return text.to_owned();
    }
    let mut short = Vec::new();
    for part in path(core) {
        let (base, arguments) = part.split();
        if VERSIONS.contains(&base) {
            continue;
        }
        short.push(match arguments {
            _ if base.starts_with('{') => closure(base),
            Some(arguments) => format!("{base}{}", shortened(arguments)),
            None => base.to_owned(),
        });
    }
    known_class(&short.join("::")) + qualifier.trim_end()
}

/// Classes that everybody knows by another name.
fn known_class(name: &str) -> String {
    name.replace("std::basic_string<char>", "std::string").replace("std::basic_string_view<char>", "std::string_view")
}

/// `<Vec<T> as Drop>::drop`: what implements a trait.
fn implementer(part: &str) -> String {
    let inside = part.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(part);
    let separator =
        Scan::new(inside).find(|&(at, c, depth)| c == ' ' && depth == 0 && inside[at..].starts_with(" as "));
    type_text(separator.map_or(inside, |(at, ..)| &inside[..at]))
}

/// `{lambda(int)#1}`, `{{closure}}`.
fn closure(part: &str) -> String {
    if let Some(inner) = part.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")) {
        return format!("{{{inner}}}");
    }
    let Some((before, rest)) = part.split_once('(') else { return part.to_owned() };
    let Some((parameters, after)) = rest.rsplit_once(')') else { return part.to_owned() };
    let parameters: Vec<String> = list(parameters).into_iter().map(type_text).collect();
    format!("{before}({}){after}", parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_short(pairs: &[(&str, &str)]) {
        for (name, short) in pairs {
            assert_eq!(short_function(name), *short, "{name}");
        }
    }

    #[test]
    fn parameters_return_types_and_default_arguments_are_left_out() {
        all_short(&[
            ("std::deque<int, std::allocator<int> >::emplace_back<int>(int&&)", "std::deque<int>::emplace_back"),
            ("int& std::deque<int, std::allocator<int> >::emplace_back<int>(int&&)", "std::deque<int>::emplace_back"),
            (
                "std::map<int, std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, \
                 std::less<int>, std::allocator<std::pair<int const, int> > >::operator[](int const&)",
                "std::map<int, std::string>::operator[]",
            ),
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)",
                "std::string::append",
            ),
            ("std::__1::mutex::lock()", "std::mutex::lock"),
            ("Account::deposit(long) const", "Account::deposit"),
            ("Account::deposit(long) [clone .cold]", "Account::deposit"),
            (
                "std::_V2::condition_variable_any::~condition_variable_any()",
                "std::condition_variable_any::~condition_variable_any",
            ),
            (
                "std::unique_ptr<Node const*, std::default_delete<Node const*> >::get() const",
                "std::unique_ptr<Node const*>::get",
            ),
            ("void std::sort<int*, bool (*)(int, int)>(int*, int*, bool (*)(int, int))", "std::sort"),
            ("std::array<int, 3ul>::at(unsigned long)", "std::array<int, 3ul>::at"),
        ]);
    }

    #[test]
    fn names_of_c_stay_as_they_are() {
        all_short(&[
            ("main", "main"),
            ("pthread_mutex_lock", "pthread_mutex_lock"),
            ("", ""),
            ("f.part.0", "f.part.0"),
        ]);
    }

    #[test]
    fn lambdas_are_named_after_where_they_are() {
        all_short(&[
            ("main::{lambda()#1}::operator()() const", "main::{lambda()#1}"),
            ("run(int)::{lambda(int)#2}::operator()(int) const", "run::{lambda(int)#2}"),
            ("auto main::{lambda(auto:1)#1}::operator()<int>(int) const", "main::{lambda(auto:1)#1}"),
            (
                "main::{lambda(std::vector<int, std::allocator<int> >&)#1}::operator()(std::vector<int, std::allocator<int> >&) const",
                "main::{lambda(std::vector<int>&)#1}",
            ),
            ("main::$_0::operator()() const", "main::$_0"),
        ]);
    }

    #[test]
    fn operators_keep_their_names() {
        all_short(&[
            ("operator new(unsigned long)", "operator new"),
            ("operator delete[](void*, unsigned long)", "operator delete[]"),
            ("Money::operator<(Money const&) const", "Money::operator<"),
            ("std::ostream& operator<< <int>(std::ostream&, Box<int> const&)", "operator<<"),
            ("Box<int>::operator->() const", "Box<int>::operator->"),
            ("Functor::operator()(int)", "Functor::operator()"),
            ("std::__atomic_base<int>::operator++(int)", "std::__atomic_base<int>::operator++"),
            ("std::atomic<bool>::operator bool() const", "std::atomic<bool>::operator bool"),
            ("Number::operator unsigned long() const", "Number::operator unsigned long"),
            ("Number::operator<=>(Number const&) const", "Number::operator<=>"),
        ]);
    }

    #[test]
    fn namespaces_without_a_name_stay() {
        all_short(&[
            ("(anonymous namespace)::worker(void*)", "(anonymous namespace)::worker"),
            ("bank::(anonymous namespace)::Audit::run()", "bank::(anonymous namespace)::Audit::run"),
            ("void (anonymous namespace)::each<int>(int)", "(anonymous namespace)::each"),
        ]);
    }

    #[test]
    fn rust_is_told_without_hashes_and_traits() {
        all_short(&[
            ("bank::deposit::h0123456789abcdef", "bank::deposit"),
            ("bank::main::{{closure}}::hfedcba9876543210", "bank::main::{closure}"),
            ("bank::main::{closure#0}", "bank::main::{closure#0}"),
            ("<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop::h0123456789abcdef", "alloc::vec::Vec<T, A>::drop"),
            ("core::ptr::drop_in_place<alloc::sync::Arc<bank::Account>>", "core::ptr::drop_in_place"),
            ("std::thread::spawn::<bank::main::{closure#0}, ()>", "std::thread::spawn"),
        ]);
    }

    #[test]
    fn long_template_arguments_are_cut_and_anything_is_survived() {
        let name = "a::Table<first::Very::Long::Name, second::Very::Long::Name, third::Very::Long>::find(int)";
        assert_eq!(short_function(name), "a::Table<…>::find");
        for text in
            ["<", ">", "((", "a<b", "::", "operator", "x::operator", "{", "{{}", "<a as", ") (", "é<ü>::ö(ä)", "->"]
        {
            short_function(text);
        }
    }
}
