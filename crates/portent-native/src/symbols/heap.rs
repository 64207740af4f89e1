//! Types of allocated memory, as far as anything tells them.
//!
//! Debug information of gcc says nothing about what a call of `malloc` or `new` makes. Asked are, in this order: the library's
//! function that allocates, which has the type in its name (`std::allocator<Account>::allocate`, so all containers and
//! `std::make_shared`); the line that allocates (`new Node`, `sizeof(struct node)`); the variable that the line assigns to,
//! by its type; and where these say nothing, as in a program's own `xmalloc`, the same of the lines that call it. What lines say
//! is believed only if debug information knows a type of that name whose size fits.

use super::frames::LocalPart;
use super::lambdas::type_text;
use super::types::{Meaning, Part, TypeId};
use super::units::{Debug, Entry, EntryAt, Next, children, walk};
use std::rc::Rc;

/// Calls that allocate, by the program counters that they return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allocating {
    /// The innermost.
    pub pc: u64,
    /// In the library's function that the program's own code called; the innermost, if it called that itself.
    pub called: u64,
    /// In the program's own code.
    pub own: u64,
    /// In the program's function that called that one: functions that allocate for others are told what, not why. The same, if
    /// there is none.
    pub outer: u64,
}

/// What was allocated.
pub struct HeapType {
    /// The type, with `[]` behind it if there are several.
    pub name: String,
    ty: Option<(Rc<Debug>, TypeId)>,
    /// Where in the block the first of that type begins.
    at: u64,
    /// How far they are apart; 0 if there is one.
    stride: u64,
}

impl HeapType {
    /// So many bytes of which nothing else is known.
    pub fn of_size(size: u64) -> HeapType {
        let name = if size == 1 { "1 byte".to_owned() } else { format!("{size} bytes") };
        HeapType { name, ty: None, at: 0, stride: 0 }
    }

    /// Where in the block the type begins that an offset belongs to; which element that is.
    fn inside(&self, offset: u64) -> Option<(&Debug, TypeId, String, u64)> {
        let inside = offset.checked_sub(self.at)?;
        let (debug, ty) = self.ty.as_ref()?;
        match self.stride {
            0 => Some((debug, *ty, String::new(), inside)),
            stride => Some((debug, *ty, format!("[{}]", inside / stride), inside % stride)),
        }
    }

    /// Which part of it `len` bytes from an offset on are.
    pub fn part(&self, offset: u64, len: u64) -> LocalPart {
        // What the library keeps before the object is not named: links to other nodes, and counts.
        let meaning = if offset < self.at && len == 8 { Meaning::Pointer } else { Meaning::Bits };
        let whole = LocalPart { offset, meaning, ..LocalPart::default() };
        let Some((debug, ty, element, inside)) = self.inside(offset) else { return whole };
        if self.stride > 0 && inside + len > self.stride {
            return whole;
        }
        let Part { path, offset, meaning } = debug.types.borrow().types.part(ty, inside, len);
        LocalPart { path: element + &path, offset, meaning, lost: None }
    }

    /// Which part of it a lock or the like at an offset is.
    pub fn object(&self, offset: u64) -> LocalPart {
        let found = self.inside(offset).and_then(|(debug, ty, element, inside)| {
            let path = debug.types.borrow().types.object(ty, inside)?;
            Some(LocalPart { path: element + &path, ..LocalPart::default() })
        });
        found.unwrap_or_else(|| self.part(offset, 1))
    }
}

/// What is known of an allocation.
pub(super) struct Allocation<'a> {
    /// The functions that allocate, the innermost first, demangled.
    pub(super) functions: &'a [String],
    /// Those around them, up to the program's own.
    pub(super) around: &'a [String],
    /// Where the call is that allocates, as `file:line`.
    pub(super) place: &'a str,
    /// The text of the program's own line.
    pub(super) line: &'a str,
    /// The texts of the lines that called the function which that line is in, the innermost first, each with a program counter.
    pub(super) callers: &'a [(String, u64)],
    /// A program counter of that line, as the file counts, and one of the allocating call.
    pub(super) own: u64,
    pub(super) call: u64,
    pub(super) size: u64,
}

/// How many of a type a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    One,
    /// As the elements of a vector, even if there is only one now.
    Several,
    AsFits,
}

/// What a promise, a packaged task or an asynchronous call shares with its future.
const FUTURE: &str = "std::future's state";

/// What an allocation makes.
pub(super) fn heap_type(debug: &Rc<Debug>, allocation: &Allocation<'_>) -> Option<HeapType> {
    let Allocation { functions, around, place, line, callers, own, call, size } = *allocation;
    if let Some((held, at, count)) = functions.iter().chain(around).find_map(|function| made_in_rust(function)) {
        let shown = without_any_scopes(held);
        let known =
            [own, call].into_iter().find_map(|pc| by_name(debug, pc, held, size.checked_sub(at)?, &shown, count));
        return Some(match known {
            Some(known) => HeapType { at, ..known },
            None => HeapType { name: shown, ..HeapType::of_size(size) },
        });
    }
    if let Some(argument) = functions.iter().find_map(|function| allocated_by(function)) {
        let (held, at) = wrapped(argument);
        let shown = if held.starts_with("std::__future_base::") { FUTURE.to_owned() } else { shown(held) };
        let count = if at == 0 { Count::Several } else { Count::One };
        let known =
            [call, own].into_iter().find_map(|pc| by_name(debug, pc, held, size.checked_sub(at)?, &shown, count));
        return Some(match known {
            Some(known) => HeapType { at, ..known },
            None => HeapType { name: shown, ..HeapType::of_size(size) },
        });
    }
    let is_of = |classes: &[&str]| {
        functions
            .iter()
            .map(|function| whole_path(function))
            .any(|path| classes.iter().any(|class| path.starts_with(class)))
    };
    if is_of(&["std::__cxx11::basic_string<", "std::basic_string<", "std::string::"]) {
        return Some(HeapType { name: "std::string's text".into(), ..HeapType::of_size(size) });
    }
    // Of constructors that were inlined, debug information has no name.
    let in_file = place.rsplit_once(':').map_or(place, |(file, _)| file);
    if is_of(&["std::thread::thread<"]) || in_file.ends_with("/bits/std_thread.h") {
        return Some(HeapType { name: "std::thread's function".into(), ..HeapType::of_size(size) });
    }
    if let Some(found) = by_line(debug, line, own, size) {
        return Some(found);
    }
    if target(line).is_some_and(|target| !target.is_plain()) {
        // It is for a member, not for the caller.
        return None;
    }
    // One that is allocated for somebody who calls it something: several would be a guess.
    let for_caller = |(line, pc): &(String, u64)| by_line(debug, line, *pc, size).filter(|found| found.stride == 0);
    callers.iter().find_map(for_caller)
}

/// A function with its scopes, without what it returns.
fn whole_path(function: &str) -> &str {
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in function.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 => break,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &function[start..]
}

/// What a line of the source allocates.
fn by_line(debug: &Rc<Debug>, line: &str, pc: u64, size: u64) -> Option<HeapType> {
    let named = types_in(line).into_iter().find_map(|name| by_name(debug, pc, &name, size, &name, Count::AsFits));
    named.or_else(|| by_target(debug, pc, &target(line)?, size))
}

/// What a function of Rust's library allocates: the type, where in the block it is, and how many of them.
fn made_in_rust(function: &str) -> Option<(&str, u64, Count)> {
    const MAKERS: [(&str, u64, Count); 6] = [
        ("alloc::sync::Arc<", 16, Count::One),
        ("alloc::rc::Rc<", 16, Count::One),
        ("alloc::boxed::Box<", 0, Count::One),
        ("alloc::vec::Vec<", 0, Count::Several),
        ("alloc::raw_vec::RawVec<", 0, Count::Several),
        ("alloc::vec::from_elem::<", 0, Count::Several),
    ];
    /// What those that count have around what they hold.
    const COUNTED: [&str; 3] = ["alloc::sync::ArcInner<", "alloc::rc::RcInner<", "alloc::rc::RcBox<"];
    let function = function.trim_start_matches('<');
    if let Some((element, _)) = function.split_once(" as alloc::vec::spec_from_elem::") {
        return Some((element, 0, Count::Several));
    }
    MAKERS.iter().find_map(|&(maker, at, count)| {
        let held = first_argument(function.strip_prefix(maker)?);
        let counted = COUNTED.iter().find_map(|name| held.strip_prefix(name)).map(first_argument);
        let (held, at) = counted.map_or((held, at), |inner| (inner, 16));
        // An old symbol does not say what T is.
        (held.len() > 1).then_some((held, at, count))
    })
}

/// A type of Rust without the modules that it is from, and those of its arguments.
fn without_any_scopes(name: &str) -> String {
    let mut bare = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("::") {
        let start = rest[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        bare.push_str(&rest[..start]);
        rest = &rest[at + 2..];
    }
    bare + rest
}

/// The template argument of an allocator's function.
fn allocated_by(function: &str) -> Option<&str> {
    let (before, _) = function.split_once("::allocate(")?;
    let start = ["new_allocator<", "std::allocator<"].iter().find_map(|name| Some(before.rfind(name)? + name.len()))?;
    let inside = before[start..].strip_suffix('>')?.trim();
    (!inside.is_empty()).then_some(inside)
}

/// What the nodes of the standard containers hold, and where in them.
fn wrapped(argument: &str) -> (&str, u64) {
    const NODES: [(&str, u64); 5] = [
        ("std::_Sp_counted_ptr_inplace<", 16),
        ("std::_Rb_tree_node<", 32),
        ("std::_List_node<", 16),
        ("std::_Fwd_list_node<", 8),
        ("std::__detail::_Hash_node<", 8),
    ];
    for (name, at) in NODES {
        if let Some(inside) = argument.strip_prefix(name) {
            return (first_argument(inside), at);
        }
    }
    (argument, 0)
}

/// The first of several template arguments.
fn first_argument(inside: &str) -> &str {
    let mut depth = 0;
    for (at, c) in inside.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            ',' | '>' if depth == 0 => return inside[..at].trim(),
            '>' | ')' => depth -= 1,
            _ => {}
        }
    }
    inside
}

/// A type as people write it.
fn shown(name: &str) -> String {
    // Nobody calls it; the name of a function is shortened with the types in it.
    let short = portent_trace::short_function(&format!("{name}::x"));
    short.strip_suffix("::x").map_or_else(|| name.to_owned(), str::to_owned)
}

/// Names of types that a line which allocates mentions.
fn types_in(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (before, _) in line.match_indices("new") {
        let rest = &line[before + 3..];
        let alone = !line[..before].ends_with(is_name) && rest.starts_with([' ', '(']);
        let rest = rest.trim_start();
        // `new (place) T`, `new (std::nothrow) T`
        let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        found.extend(type_at_start(rest).filter(|_| alone));
    }
    for start in ["make_shared<", "make_unique<", "make_shared_for_overwrite<", "make_unique_for_overwrite<"] {
        found.extend(line.match_indices(start).filter_map(|(at, _)| type_at_start(&line[at + start.len()..])));
    }
    for (at, name) in line.match_indices("sizeof") {
        let rest = line[at + name.len()..].trim_start();
        found.extend(rest.strip_prefix('(').and_then(type_at_start));
    }
    for (at, _) in line.match_indices("alloc(") {
        // `(T *)malloc(…)`, `static_cast<T*>(std::malloc(…))`
        let start = line[..at].rfind(|c| !is_name(c) && c != ':').map_or(0, |before| before + 1);
        let before = line[..start].trim_end();
        let old = || Some(before.strip_suffix(')')?.rsplit_once('(')?.1);
        let new = || Some(before.strip_suffix('(')?.trim_end().strip_suffix('>')?.rsplit_once("_cast<")?.1);
        let cast = old().or_else(new).and_then(|cast| cast.trim_end().strip_suffix('*'));
        found.extend(cast.and_then(type_at_start).filter(|name| name != "void"));
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The type that a text begins with, without its template arguments; with its stars, if it is a pointer.
fn type_at_start(text: &str) -> Option<String> {
    let mut text = text.trim_start();
    for word in ["struct ", "union ", "const ", "class ", "volatile "] {
        text = text.strip_prefix(word).unwrap_or(text).trim_start();
    }
    const TWO: [&str; 3] = ["unsigned ", "signed ", "long "];
    let mut end = text.find(|c| !is_name(c) && c != ':').unwrap_or(text.len());
    if TWO.iter().any(|word| text.starts_with(word)) {
        end = text.find(|c| !is_name(c) && c != ' ').unwrap_or(text.len());
    }
    let name = text[..end].trim().trim_start_matches("::");
    // A pointer is not what it points to.
    let stars = text[end..].chars().filter(|c| !c.is_whitespace()).take_while(|c| *c == '*').count();
    name.starts_with(|c: char| c.is_alphabetic() || c == '_').then(|| name.to_owned() + &"*".repeat(stars))
}

/// What a line assigns to: `t->buckets`, `*out`, `names[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target<'a> {
    variable: &'a str,
    steps: Vec<Step<'a>>,
}

/// A step from a variable to what is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Member(&'a str),
    /// An element, or what a pointer points to.
    Element,
}

impl Target<'_> {
    fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }
}

fn target(line: &str) -> Option<Target<'_>> {
    let at = line.find('=')?;
    if line[at + 1..].starts_with('=') || line[..at].ends_with(['!', '<', '>']) {
        return None;
    }
    let left = line[..at].trim();
    let start = start_of_expression(left)?;
    // `*out = …`, but not `char *out = …`.
    let before = left[..start].trim_end_matches(|c: char| c == '*' || c.is_whitespace());
    let declares = before.ends_with(|c: char| is_name(c) || matches!(c, '>' | ')' | ']'));
    let stars = if declares { 0 } else { left[before.len()..start].matches('*').count() };
    let mut rest = &left[start..];
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let mut target = Target { variable: &rest[..end], steps: Vec::new() };
    rest = &rest[end..];
    while !rest.is_empty() {
        if rest.starts_with('[') {
            target.steps.push(Step::Element);
            rest = &rest[closing(rest)? + 1..];
            continue;
        }
        rest = rest.strip_prefix("->").or_else(|| rest.strip_prefix('.'))?;
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        target.steps.push(Step::Member(&rest[..end]));
        rest = &rest[end..];
    }
    target.steps.extend(std::iter::repeat_n(Step::Element, stars));
    target.variable.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(target)
}

/// Where the expression begins that a text ends with: a variable, with members and indices behind it.
fn start_of_expression(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut start = text.len();
    let mut chars = text.char_indices().rev().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ']' => depth += 1,
            '[' => depth -= 1,
            '>' if depth == 0 && text[..at].ends_with('-') => drop(chars.next()),
            _ if depth > 0 || is_name(c) || c == '.' => {}
            _ => break,
        }
        start = chars.peek().map_or(0, |(before, c)| before + c.len_utf8());
        if depth < 0 {
            return None;
        }
    }
    (start < text.len()).then_some(start)
}

/// Where the bracket closes that a text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })
}

fn fits(size: u64, of_type: u64) -> bool {
    of_type > 0 && size >= of_type
}

/// The last part of a name; its template arguments keep their scopes.
fn without_scopes(name: &str) -> &str {
    let plain = name.find('<').map_or(name, |open| &name[..open]);
    plain.rfind("::").map_or(name, |at| &name[at + 2..])
}

/// A type, spelled in one way of those that symbols and debug information have for it.
fn spelled(name: &str) -> String {
    const SAME: [(&str, &str); 12] = [
        ("long long unsigned int", "unsigned long long"),
        ("long unsigned int", "unsigned long"),
        ("short unsigned int", "unsigned short"),
        ("long long int", "long long"),
        ("long int", "long"),
        ("short int", "short"),
        ("std::", ""),
        ("__cxx11::", ""),
        ("const", ""),
        (", char_traits<char>", ""),
        (", allocator<char>", ""),
        (" ", ""),
    ];
    SAME.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// What a block of so many bytes is, by the name of a type that the unit of `pc` knows.
fn by_name(debug: &Rc<Debug>, pc: u64, name: &str, size: u64, shown: &str, count: Count) -> Option<HeapType> {
    if name.ends_with('*') {
        let pointer = debug.types.borrow_mut().pointer(shown);
        return made_of_type(debug, pointer, size, shown.to_owned(), count);
    }
    let last = without_scopes(name);
    let unit = debug.unit_of(pc)?;
    let index = debug.named_types(unit)?;
    let written_otherwise = || {
        let (wanted, start) = (spelled(last), last.split('<').next()?.split(' ').next_back()?);
        // Compilers put the words of a type in another order, and leave out arguments that are the default.
        let is_it = |other: &[u8]| {
            let other = std::str::from_utf8(other).unwrap_or_default();
            other.contains(start) && spelled(other) == wanted
        };
        index.iter().find(|(other, _)| is_it(other)).map(|(_, found)| found)
    };
    let exact = index.get(last.as_bytes()).or_else(|| index.get(name.as_bytes()));
    let of_name = exact.or_else(written_otherwise)?;
    let is_it = |at: &EntryAt| {
        let entry = debug.entry(*at)?;
        let own_size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value());
        // A typedef has the size of what it names, which is found out when it is asked for.
        let own_size = if entry.tag() == gimli::DW_TAG_typedef { Some(1) } else { own_size };
        own_size.filter(|&own_size| fits(size, own_size))
    };
    let whole = |at: &EntryAt| {
        debug.qualified_name(*at).is_some_and(|whole| whole == name || whole.ends_with(&format!("::{name}")))
    };
    let at = of_name.iter().map(|&offset| EntryAt { unit, offset });
    let candidates: Vec<EntryAt> = at.filter(|at| is_it(at).is_some()).collect();
    let &at = match &candidates[..] {
        [only] => only,
        several => several.iter().find(|at| whole(at)).or(several.first())?,
    };
    made_of(debug, at, size, Some(shown), count)
}

/// What a block of so many bytes is, by what the function at `pc` assigns it to.
fn by_target(debug: &Rc<Debug>, pc: u64, target: &Target<'_>, size: u64) -> Option<HeapType> {
    let mut ty = match variable(debug, pc, target.variable) {
        Some(variable) => type_of(debug, variable)?,
        // In C++, it may be a member of the object that the function is called on.
        None => member(debug, type_of(debug, variable(debug, pc, "this")?)?, target.variable)?,
    };
    for step in &target.steps {
        ty = match step {
            Step::Member(name) => member(debug, ty, name)?,
            Step::Element => behind(debug, ty)?,
        };
    }
    made_of(debug, behind(debug, ty)?, size, None, Count::AsFits)
}

/// A variable of the function at `pc`, or else of its file.
fn variable(debug: &Debug, pc: u64, name: &str) -> Option<EntryAt> {
    let function = debug.function(pc)?;
    let unit = debug.unit(function.unit)?;
    let mut found = None;
    walk(unit, Some(function.offset), |met| {
        if met.depth <= 0 && met.offset != function.offset {
            return Next::Stop;
        }
        let at = EntryAt { offset: met.offset, ..function };
        if matches!(met.tag(), gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter)
            && debug.own_or_origin_name(at).as_deref() == Some(name)
        {
            found = Some(at);
            return Next::Stop;
        }
        Next::Inside
    });
    let global = || {
        let offset = *debug.named_globals(function.unit)?.get(name.as_bytes())?.first()?;
        Some(EntryAt { offset, ..function })
    };
    found.or_else(global)
}

/// The type of a variable or member, without names and qualifiers.
fn type_of(debug: &Debug, at: EntryAt) -> Option<EntryAt> {
    let (unit, ty) = debug.inherited(at, gimli::DW_AT_type)?;
    plain(debug, debug.referred(unit, ty)?)
}

/// The type behind names and qualifiers.
fn plain(debug: &Debug, mut at: EntryAt) -> Option<EntryAt> {
    for _ in 0..16 {
        let entry = debug.entry(at)?;
        let is_name =
            [gimli::DW_TAG_typedef, gimli::DW_TAG_const_type, gimli::DW_TAG_volatile_type, gimli::DW_TAG_atomic_type];
        if !is_name.contains(&entry.tag()) {
            return Some(at);
        }
        at = debug.referred(at.unit, entry.attr_value(gimli::DW_AT_type)?)?;
    }
    None
}

/// What a pointer points to, or the elements of an array.
fn behind(debug: &Debug, ty: EntryAt) -> Option<EntryAt> {
    let at = plain(debug, ty)?;
    let entry = debug.entry(at)?;
    let leads = [gimli::DW_TAG_pointer_type, gimli::DW_TAG_array_type, gimli::DW_TAG_reference_type];
    if !leads.contains(&entry.tag()) {
        return None;
    }
    debug.referred(at.unit, entry.attr_value(gimli::DW_AT_type)?)
}

/// The type of a member of a class, or of what a pointer to it points to; also of those around it.
fn member(debug: &Debug, ty: EntryAt, name: &str) -> Option<EntryAt> {
    let at = behind(debug, ty).map_or(Some(ty), |pointed| plain(debug, pointed))?;
    member_of(debug, at, name, 8)
}

fn member_of(debug: &Debug, class: EntryAt, name: &str, depth: u32) -> Option<EntryAt> {
    let below = children(debug.unit(class.unit)?, class.offset);
    let text = |child: &Entry| debug.text(class.unit, child.attr_value(gimli::DW_AT_name)?);
    let ty = |child: &Entry| plain(debug, debug.referred(class.unit, child.attr_value(gimli::DW_AT_type)?)?);
    let own = below.iter().filter(|child| child.tag() == gimli::DW_TAG_member);
    if let Some(found) = own.clone().find(|child| text(child).as_deref() == Some(name)) {
        return ty(found);
    }
    // Base classes, and unions without a name.
    let depth = depth.checked_sub(1)?;
    let bases = below.iter().filter(|child| child.tag() == gimli::DW_TAG_inheritance);
    let inside = bases.chain(own.filter(|child| text(child).is_none()));
    inside.filter_map(ty).find_map(|base| member_of(debug, base, name, depth))
}

/// A block of so many bytes that holds one of a type, or several.
fn made_of(debug: &Rc<Debug>, at: EntryAt, size: u64, shown: Option<&str>, count: Count) -> Option<HeapType> {
    let mut reader = debug.types.borrow_mut();
    let ty = reader.of_entry(debug, at)?;
    let is_pointer = debug.entry(at)?.tag() == gimli::DW_TAG_pointer_type;
    let own_name = reader.types.get(ty).name.clone().or_else(|| is_pointer.then(|| type_text(debug, at, 8)));
    drop(reader);
    made_of_type(debug, ty, size, shown.map(str::to_owned).or(own_name)?, count)
}

fn made_of_type(debug: &Rc<Debug>, ty: TypeId, size: u64, name: String, count: Count) -> Option<HeapType> {
    let of_type = debug.types.borrow().types.get(ty).size;
    let mut name = name;
    if !fits(size, of_type) {
        return None;
    }
    let several = match count {
        Count::One => false,
        Count::Several => true,
        Count::AsFits => size / of_type > 1 && size.is_multiple_of(of_type),
    };
    if several {
        name.push_str("[]");
    }
    let ty = Some((Rc::clone(debug), ty));
    Some(HeapType { name, ty, at: 0, stride: if several { of_type } else { 0 } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_stands_in_the_name_of_what_allocates() {
        let held = |function: &'static str| allocated_by(function).map(wrapped);
        let of_vector = "std::__new_allocator<Account>::allocate(unsigned long, void const*)";
        assert_eq!(held(of_vector), Some(("Account", 0)));
        let shared = "__gnu_cxx::new_allocator<std::_Sp_counted_ptr_inplace<bank::Account, std::allocator<bank::Account>, \
            (__gnu_cxx::_Lock_policy)2> >::allocate(unsigned long, void const*)";
        assert_eq!(held(shared), Some(("bank::Account", 16)));
        let tree = "__gnu_cxx::new_allocator<std::_Rb_tree_node<std::pair<int const, Session> > >::allocate(unsigned long, void const*)";
        assert_eq!(held(tree), Some(("std::pair<int const, Session>", 32)));
        assert_eq!(held("std::vector<int>::push_back(int&&)"), None);
        assert_eq!(held("Pool::allocate(int)"), None);
    }

    #[test]
    fn scopes_are_those_outside_of_the_arguments() {
        assert_eq!(without_scopes("bank::Account"), "Account");
        assert_eq!(without_scopes("std::pair<std::string const, a::B>"), "pair<std::string const, a::B>");
        assert_eq!(without_scopes("int"), "int");
    }

    #[test]
    fn symbols_and_debug_information_spell_types_in_their_own_ways() {
        let text = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        let (symbol, debug) = (format!("pair<{text} const, Session>"), format!("pair<const {text}, Session>"));
        assert_eq!(spelled(&symbol), spelled(&debug));
        assert_eq!(spelled(&symbol), spelled("pair<const std::basic_string<char>, Session>"));
        assert_eq!(spelled("unsigned long"), spelled("long unsigned int"));
        assert_ne!(spelled("unsigned long"), spelled("long int"));
    }

    #[test]
    fn functions_of_rust_say_what_they_allocate() {
        let mutex = "<alloc::sync::Arc<std::sync::poison::mutex::Mutex<main::State>>>::new";
        let (held, at, count) = made_in_rust(mutex).unwrap();
        assert_eq!((held, at, count), ("std::sync::poison::mutex::Mutex<main::State>", 16, Count::One));
        assert_eq!(without_any_scopes(held), "Mutex<State>");
        let counted = "<alloc::boxed::Box<alloc::sync::ArcInner<main::Shared>>>::new";
        assert_eq!(made_in_rust(counted), Some(("main::Shared", 16, Count::One)));
        let zeros = "<u64 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem::<alloc::alloc::Global>";
        assert_eq!(made_in_rust(zeros), Some(("u64", 0, Count::Several)));
        assert_eq!(made_in_rust("alloc::vec::from_elem::<u64>"), Some(("u64", 0, Count::Several)));
        assert_eq!(made_in_rust("std::vector<int>::push_back(int&&)"), None);
        assert_eq!(made_in_rust("<alloc::vec::Vec<T>>::push"), None, "an old symbol does not say what T is");
    }

    #[test]
    fn lines_that_allocate_name_types() {
        let named = |line: &str| types_in(line);
        assert_eq!(named("Node *n = new Node{1, nullptr};"), ["Node"]);
        assert_eq!(named("renew(x); auto p = new (std::nothrow) ns::Item(3);"), ["ns::Item"]);
        assert_eq!(named("struct node *n = malloc(sizeof(struct node));"), ["node"]);
        assert_eq!(named("struct node *n = malloc(sizeof *n);"), [] as [&str; 0]);
        assert_eq!(named("auto a = std::make_shared<Account>(5);"), ["Account"]);
        assert_eq!(named("n = (node_t *) calloc(4, size);"), ["node_t"]);
        assert_eq!(named("p = malloc(n * sizeof(char *));"), ["char*"], "a pointer is not what it points to");
        assert_eq!(named("t->buckets = calloc(size, sizeof(struct entry *));"), ["entry*"]);
        assert_eq!(named("lines = (char **)calloc(n, 8);"), ["char*"]);
        assert_eq!(named("data_ = static_cast<Item*>(std::malloc(n));"), ["Item"]);
        assert_eq!(named("p = (void *)malloc(n);"), [] as [&str; 0]);
        assert_eq!(named("a = new unsigned long[8];"), ["unsigned long"]);
        assert_eq!(named("it = newest(3);"), [] as [&str; 0]);
    }

    #[test]
    fn functions_are_known_by_their_own_name_not_by_what_is_in_their_arguments() {
        let make = "std::_MakeUniq<bank::Account>::__single_object std::make_unique<bank::Account, \
                    std::__cxx11::basic_string<char> const&, long&>(std::__cxx11::basic_string<char> const&, long&)";
        assert!(whole_path(make).starts_with("std::make_unique<"));
        let construct = "void std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> \
                         >::_M_construct<char*>(char*, char*, std::forward_iterator_tag)";
        assert!(whole_path(construct).starts_with("std::__cxx11::basic_string<"));
    }

    #[test]
    fn lines_assign_to_variables_and_to_members() {
        use Step::{Element, Member};
        let assigned = |line: &'static str| target(line).map(|target| (target.variable, target.steps));
        let plain = |variable: &'static str| Some((variable, Vec::new()));
        assert_eq!(assigned("struct node *n = malloc(sizeof *n);"), plain("n"));
        assert_eq!(assigned("  table = calloc(4, 8);"), plain("table"));
        assert_eq!(assigned("q->head = malloc(8);"), Some(("q", vec![Member("head")])));
        assert_eq!(
            assigned("self.lists[i + 1]->items = f(8);"),
            Some(("self", vec![Member("lists"), Element, Member("items")]))
        );
        assert_eq!(assigned("*out = malloc(8);"), Some(("out", vec![Element])));
        assert_eq!(assigned("if ((*out = malloc(8)) == NULL)"), Some(("out", vec![Element])));
        assert_eq!(assigned("std::vector<int> *out = malloc(8);"), plain("out"));
        assert_eq!(assigned("if (malloc(8) == 0)"), None);
        assert_eq!(assigned("x] = malloc(8)"), None);
        assert_eq!(assigned("f(x) = malloc(8)"), None);
    }

    #[test]
    fn bytes_without_a_type_are_counted() {
        let block = HeapType::of_size(24);
        assert_eq!(block.name, "24 bytes");
        assert_eq!(block.part(8, 4), LocalPart { offset: 8, ..LocalPart::default() });
    }
}
