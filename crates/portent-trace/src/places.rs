//! The places on the way to an event, and which of them its user knows: what is in the user's own source, and what is in a
//! system's headers and libraries.
//!
//! Whose a place is, is decided here and nowhere else, by its text alone. A file of a library that was built under a path
//! like the user's own is taken for the user's; code without debug information is not.

use crate::ids::{LocId, StackId};
use crate::names::{Location, Names, ObjectClass};
use crate::objects::base_name;
use crate::short::short_function;
use crate::stacks::Frame;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A place on the way to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// The function it is in, with its whole name; empty if that is not known. [`crate::short_function`] makes it readable.
    pub function: String,
    /// Where it is.
    pub location: LocId,
    /// Whether it is in the user's own code.
    pub user: bool,
}

/// A place of which only the module is known, without where in it: that is a number which says nothing to anybody.
pub fn without_address(text: &str) -> &str {
    let is_address = |tail: &str| !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_hexdigit());
    text.rsplit_once("+0x").filter(|(_, tail)| is_address(tail)).map_or(text, |(module, _)| module)
}

impl Names {
    /// The location that has a text, one with its line if there is one: a place that somebody else named.
    pub fn location_of_text(&self, text: &str) -> Option<Location<'_>> {
        let all = (0..self.location_table().len()).filter_map(LocId::from_index).map(|loc| self.location(loc));
        let rank = |at: &Location<'_>| (at.source.is_some_and(|line| !line.is_empty()), at.function.is_some());
        // Of several that are as good, the first.
        all.filter(|at| at.text == Some(text)).reduce(|best, at| if rank(&at) > rank(&best) { at } else { best })
    }

    /// The places on the way to an event at `at` in the calls of `stack`, the innermost first.
    ///
    /// The first is the event's own; each further one is where the function of the one before was called, or inlined.
    pub fn stack_frames(&self, at: LocId, stack: Option<StackId>) -> Vec<StackFrame> {
        let mut frames: Vec<_> = stack.map(|stack| self.stacks().frames(stack).collect()).unwrap_or_default();
        let at = self.innermost(at, stack);
        if frames.first().is_some_and(|frame| self.is_event(frame)) {
            frames.remove(0);
        }
        let places = std::iter::once(at).chain(frames.iter().map(|frame| frame.call));
        // The function that a place is in is the one that the next frame called; the last place has no such frame.
        let called = frames.iter().map(Some).chain([None]);
        let frame = |(location, called): (LocId, Option<&Frame>)| {
            let place = self.location(location);
            let known = || called.map(|frame| self.name(ObjectClass::Function, frame.function));
            let function = place.function.or_else(known).unwrap_or_default().to_owned();
            StackFrame { function, location, user: is_user_place(&place) }
        };
        places.zip(called).map(frame).collect()
    }

    /// The place of an event itself.
    ///
    /// An event in a library belongs to the line of the user's that led there: that is the location it is found, grouped and
    /// told by. Where it is itself is then the innermost frame of its stack, which is a call of no function.
    pub fn innermost(&self, at: LocId, stack: Option<StackId>) -> LocId {
        let own = stack.map(|stack| self.stacks().frame(stack)).filter(|frame| self.is_event(frame));
        own.map_or(at, |frame| frame.call)
    }
    fn is_event(&self, frame: &Frame) -> bool {
        self.name(ObjectClass::Function, frame.function).is_empty()
    }

    /// An event at `at`, in the calls of `stack`, by the innermost line of the user's on the way to it: that line, and the stack
    /// that says where the event itself is. Both stay as they are where the event is in the user's own code, where no call
    /// is, and where no stack fits in any more.
    pub fn told_by_user_line(
        &mut self,
        at: LocId,
        stack: Option<StackId>,
        users: &mut UserPlaces,
    ) -> (LocId, Option<StackId>) {
        if users.has(at, self) {
            return (at, stack);
        }
        let calls = stack.into_iter().flat_map(|stack| self.stacks().frames(stack)).map(|frame| frame.call);
        let line = calls.into_iter().find(|&call| users.has(call, self));
        let Some(line) = line else { return (at, stack) };
        let Ok(function) = self.intern(ObjectClass::Function, b"") else { return (at, stack) };
        match self.stacks_mut().intern(stack, Frame { function, call: at }) {
            Ok(inside) => (line, Some(inside)),
            Err(_) => (at, stack),
        }
    }
}

/// Which locations are in the user's own code, as far as somebody asked: their texts are looked at once. For one table of
/// names, in which a location stays what it is.
#[derive(Clone, Debug, Default)]
pub struct UserPlaces {
    /// By their numbers in the table: not asked, no, yes.
    known: Vec<Option<bool>>,
}

impl UserPlaces {
    fn has(&mut self, at: LocId, names: &Names) -> bool {
        let look = || is_user_place(&names.location(at));
        let Some(index) = at.table_index() else { return look() };
        if index >= self.known.len() {
            self.known.resize(names.location_table().len(), None);
        }
        self.known.get_mut(index).map_or_else(look, |known| *known.get_or_insert_with(look))
    }
}

impl Location<'_> {
    /// What a place is recognised by in other builds: its function and the text of its line, or, where nobody could read that,
    /// its file; the line number only where not even the function is known. `None` from recorders that do not look into
    /// the source: their places are recognised by their text.
    pub fn identity(&self) -> Option<String> {
        let source = self.source?;
        let function = self.function.map(plain_function).unwrap_or_default();
        if !source.is_empty() {
            return Some(format!("{function}\u{1f}{source}"));
        }
        let file = match (self.file, self.text) {
            (Some(file), _) => base_name(file),
            (None, Some(text)) if !function.is_empty() => text.split('+').next().unwrap_or_default(),
            (None, text) => text.unwrap_or_default(),
        };
        let line = self.line.filter(|_| function.is_empty()).map(|line| line.to_string());
        Some(format!("{function}\u{1f}{file}\u{1f}{}", line.unwrap_or_default()))
    }
}

/// The name of a function as it is recognised in other builds: its last part, whichever copy of it the compiler made.
///
/// Debug information leaves out the scopes of some functions that were inlined: `add` for `bank::add(int)`, and `operator()` for
/// `main::{lambda()#1}::operator()() const`.
pub fn plain_function(name: &str) -> String {
    thread_local! {
        /// The names that were asked for: every run of a program has the same.
        static KNOWN: RefCell<FxHashMap<String, String>> = RefCell::default();
    }
    /// More than programs have, of those that are asked for.
    const MOST: usize = 1 << 14;
    KNOWN.with_borrow_mut(|known| {
        if let Some(plain) = known.get(name) {
            return plain.clone();
        }
        if known.len() >= MOST {
            known.clear();
        }
        let plain = last_part(name);
        known.insert(name.to_owned(), plain.clone());
        plain
    })
}

fn last_part(name: &str) -> String {
    let short = short_function(name);
    let last = short.rsplit("::").next().unwrap_or_default();
    let is_copy = |part: &str| matches!(part, "constprop" | "isra" | "part" | "cold" | "lto_priv" | "llvm");
    match last.split_once('.') {
        Some((first, copy)) if !first.is_empty() && copy.split('.').next().is_some_and(is_copy) => first.to_owned(),
        _ if last.starts_with("{lambda") || last.starts_with('$') => "operator()".to_owned(),
        _ => last.to_owned(),
    }
}

/// Where among the places on the way to an event the innermost in the user's own code is.
pub fn user_frame(frames: &[StackFrame]) -> Option<usize> {
    frames.iter().position(|frame| frame.user)
}

/// Whether a place is in the user's own code rather than in a system's headers or libraries, or nowhere in a source.
pub fn is_user_place(place: &Location<'_>) -> bool {
    match (place.file, place.text) {
        (Some(file), _) => is_user_file(file),
        // Texts of other recorders are as they are; ours say where in a module, or at which address, there is no line.
        (None, Some(text)) => text != "?" && !is_address(text.rsplit('+').next().unwrap_or_default()),
        (None, None) => place.number.is_some(),
    }
}

fn is_address(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Whether a source file belongs to the program rather than to a compiler, a system library or a package that was fetched.
pub fn is_user_file(path: &str) -> bool {
    /// Directories of systems. `/usr/src` is not among them: containers keep programs there.
    const SYSTEM: [&str; 12] = [
        "/usr/include/",
        "/usr/lib/",
        "/usr/lib32/",
        "/usr/lib64/",
        "/usr/libexec/",
        "/usr/share/",
        "/usr/local/include/",
        "/usr/local/lib/",
        "/nix/store/",
        "/rustc/",
        // Where Debian builds its packages, in the debug information of its libraries.
        "/build/glibc-",
        "/build/gcc-",
    ];
    /// Directories of compilers and of fetched packages, wherever they are installed.
    const INSTALLED: [&str; 9] = [
        "/include/c++/",
        "/lib/gcc/",
        "/lib64/gcc/",
        "/lib/clang/",
        "/libstdc++-v3/",
        "/rustlib/src/",
        "/.rustup/",
        "/.cargo/registry/",
        "/.cargo/git/checkouts/",
    ];
    // Paths are told relative to the directory that the program ran in, which may be the root.
    let rooted = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    !path.is_empty()
        && !path.starts_with('<')
        && !SYSTEM.iter().any(|start| rooted.starts_with(start))
        && !INSTALLED.iter().any(|part| rooted.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_users(text: &str) -> bool {
        let mut names = Names::default();
        let place = names.intern_location(text.as_bytes()).unwrap();
        is_user_place(&names.location(place))
    }

    #[test]
    fn what_systems_compilers_and_packages_bring_is_not_the_users() {
        let others = [
            "/usr/include/c++/12/bits/stl_deque.h:273",
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h:749",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h:10",
            "/usr/lib/llvm-14/lib/clang/14.0.0/include/stdatomic.h:5",
            "/opt/gcc-13/include/c++/13/thread:1",
            "/opt/gcc-13/lib/gcc/x86_64-linux-gnu/13/include/xmmintrin.h:9",
            "usr/include/c++/12/thread:143",
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/thread/mod.rs:5",
            "/home/ada/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/ops/function.rs:250",
            "/home/ada/.cargo/registry/src/index-6f17d22bba15001f/crossbeam-0.8.4/src/lib.rs:3",
            "/build/glibc-SzIz7B/glibc-2.31/nptl/pthread_create.c:477",
            "/build/gcc-12-ABC/gcc-12/src/libstdc++-v3/src/c++11/thread.cc:82",
            "libstdc++.so.6+0xd4578",
            "0x7ffff7a3c080",
            "<artificial>:3",
            "?",
        ];
        assert_eq!(others.into_iter().filter(|text| is_users(text)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn what_the_user_wrote_is_wherever_it_was_built() {
        let own = [
            "queue.cpp:14",
            "src/lib/gcd.c:2",
            "/home/ada/bank/include/account.h:31",
            "/usr/src/app/main.c:1",
            "/build/server/main.cpp:9",
            "C++/includes.cc:1",
            "../include/shared.h:7",
            "12",
            "Account.java",
        ];
        assert_eq!(own.into_iter().filter(|text| !is_users(text)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_stack_is_told_from_the_event_outwards() {
        let mut names = Names::default();
        let [main, push] = ["main", "std::vector<int>::push_back(int&&)"]
            .map(|name| names.intern(ObjectClass::Function, name.as_bytes()).unwrap());
        let event = names.intern_location(b"/usr/include/c++/12/bits/vector.tcc:110").unwrap();
        let call = names.intern_location_in("bank.cpp:7", "main").unwrap();
        let start = names.intern_location(b"libc.so.6+0x271c9").unwrap();
        let outer = names.stacks_mut().intern(None, Frame { function: main, call: start }).unwrap();
        let inner = names.stacks_mut().intern(Some(outer), Frame { function: push, call }).unwrap();
        let frames = names.stack_frames(event, Some(inner));
        let told: Vec<_> = frames.iter().map(|frame| (&frame.function[..], frame.location, frame.user)).collect();
        let expected = [("std::vector<int>::push_back(int&&)", event, false), ("main", call, true), ("", start, false)];
        assert_eq!(told, expected);
        assert_eq!(user_frame(&frames), Some(1));
        let alone = names.stack_frames(event, None);
        assert_eq!((alone.len(), user_frame(&alone)), (1, None));
    }
    #[test]
    fn an_event_in_a_library_belongs_to_the_users_line_and_its_stack_still_tells_where_it_is() {
        let mut names = Names::default();
        let push = names.intern(ObjectClass::Function, b"std::vector<int>::push_back").unwrap();
        let inside = names.intern_location(b"/usr/include/c++/12/bits/vector.tcc:110").unwrap();
        let call = names.intern_location_in("bank.cpp:7", "main").unwrap();
        let stack = names.stacks_mut().intern(None, Frame { function: push, call }).unwrap();
        let before = names.stack_frames(inside, Some(stack));
        let (line, told) = names.told_by_user_line(inside, Some(stack), &mut UserPlaces::default());
        assert_eq!(line, call);
        assert_eq!(names.stack_frames(line, told), before);
        assert_eq!(names.innermost(line, told), inside);
        let mut without_calls = |at| names.told_by_user_line(at, None, &mut UserPlaces::default());
        assert_eq!(without_calls(call), (call, None), "it is the user's own");
        assert_eq!(without_calls(inside), (inside, None), "nobody's line led there");
        assert_eq!(names.innermost(call, Some(stack)), call);
    }
    #[test]
    fn a_place_is_recognised_by_its_function_and_the_text_of_its_line() {
        let mut names = Names::default();
        let mut identity = |text: &str, function: &str, source: &str| {
            let place = names.intern_source_location(text, function, source).unwrap();
            let about = names.intern_location_about(place, "accounts[]").unwrap();
            assert_eq!(names.location(about).identity(), names.location(place).identity());
            assert_eq!(names.location(about).object, Some("accounts[]"));
            names.location(place).identity().unwrap()
        };
        let here = identity("bank.cpp:9", "deposit(int)", "balance += n;");
        assert_eq!(here, identity("/home/ada/bank/bank.cpp:12", "deposit", "balance += n;"), "moved");
        assert_eq!(here, identity("bank.cpp:9", "deposit.isra.0", "balance += n;"), "another copy");
        assert_eq!(
            here,
            identity("bank.cpp:9", "bank::deposit(int)", "balance += n;"),
            "its scope is not always known"
        );
        let lambda = identity("bank.cpp:9", "main::{lambda()#1}::operator()() const", "++n;");
        assert_eq!(lambda, identity("bank.cpp:9", "operator()", "++n;"));
        assert_eq!(lambda, identity("bank.cpp:9", "main::$_0::operator()() const", "++n;"));
        assert_ne!(here, identity("bank.cpp:9", "deposit(int)", "balance -= n;"));
        assert_ne!(here, identity("bank.cpp:9", "withdraw(int)", "balance += n;"));
        let unread = identity("a/bank.cpp:9", "deposit(int)", "");
        assert_eq!(unread, identity("/b/bank.cpp:10", "deposit(int)", ""));
        assert_ne!(identity("bank.cpp:9", "", ""), identity("bank.cpp:10", "", ""), "nothing but the line is left");
        assert_eq!(identity("bank+0x10", "deposit", ""), identity("bank+0x20", "deposit", ""));
        assert_ne!(identity("bank+0x10", "", ""), identity("bank+0x20", "", ""));
        let other = names.intern_location_in("bank.cpp:9", "deposit").unwrap();
        assert_eq!(names.location(other).identity(), None, "a recorder that does not look");
    }
}
