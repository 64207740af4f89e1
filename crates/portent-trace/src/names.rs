//! Names, interned once per trace: engines and columns carry dense ids only.

use crate::error::Problem;
use crate::ids::{BlockId, CondId, LocId, LockId, SemId, ThreadId};
use crate::objects::Objects;
use crate::short::{is_librarys_own, told_function};
use crate::stacks::Stacks;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::hash::Hasher;

/// The kinds of object an input event can name; each has a name space of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ObjectClass {
    /// The event names nothing (`branch`).
    None = 0,
    /// Memory.
    Variable = 1,
    /// Locks, and the guards of once objects.
    Lock = 2,
    /// Threads.
    Thread = 3,
    /// Explicit ordering tokens.
    Token = 4,
    /// Condition variables (and the names of `ntf`/`wai` tokens).
    Condition = 5,
    /// Semaphores.
    Semaphore = 6,
    /// Latches and futures.
    Latch = 7,
    /// Barriers.
    Barrier = 8,
    /// Atomic blocks.
    Block = 9,
    /// Functions.
    Function = 10,
}

impl ObjectClass {
    /// Every class that has a name table.
    pub const ALL: [ObjectClass; 10] = [
        ObjectClass::Variable,
        ObjectClass::Lock,
        ObjectClass::Thread,
        ObjectClass::Token,
        ObjectClass::Condition,
        ObjectClass::Semaphore,
        ObjectClass::Latch,
        ObjectClass::Barrier,
        ObjectClass::Block,
        ObjectClass::Function,
    ];

    /// The class with this number in the trace format.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| *class as u8 == code)
    }

    /// The class in words.
    pub fn what(self) -> &'static str {
        match self {
            ObjectClass::None => "nothing",
            ObjectClass::Variable => "variable",
            ObjectClass::Lock => "lock",
            ObjectClass::Thread => "thread",
            ObjectClass::Token => "token",
            ObjectClass::Condition => "condition",
            ObjectClass::Semaphore => "semaphore",
            ObjectClass::Latch => "latch",
            ObjectClass::Barrier => "barrier",
            ObjectClass::Block => "atomic block",
            ObjectClass::Function => "function",
        }
    }

    /// How many objects of the class a trace can have.
    fn limit(self) -> usize {
        match self {
            ObjectClass::Thread => <ThreadId as crate::Id>::MAX_INDEX + 1,
            _ => u32::MAX as usize - 1,
        }
    }
}

/// Strings to dense numbers and back: one arena, one hash table, no allocation per name.
#[derive(Clone, Default)]
pub struct NameTable {
    text: String,
    /// End of each name in `text`; it starts where the one before it ends.
    ends: Vec<u32>,
    index: HashTable<u32>,
}

#[inline]
fn hash(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

/// Whether two names are the same. Most are short: two overlapping words, and no call.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        8..=16 => a.first_chunk::<8>() == b.first_chunk::<8>() && a.last_chunk::<8>() == b.last_chunk::<8>(),
        4..8 => a.first_chunk::<4>() == b.first_chunk::<4>() && a.last_chunk::<4>() == b.last_chunk::<4>(),
        2..4 => a.first_chunk::<2>() == b.first_chunk::<2>() && a.last_chunk::<2>() == b.last_chunk::<2>(),
        _ => a == b,
    }
}

impl NameTable {
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The name with this number.
    ///
    /// # Panics
    /// If there is no such name.
    pub fn get(&self, id: usize) -> &str {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.text[start..self.ends[id] as usize]
    }
    /// Like [`NameTable::get`], without looking where characters begin.
    #[inline]
    fn bytes(&self, id: usize) -> &[u8] {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.text.as_bytes()[start..self.ends[id] as usize]
    }
    /// Every name, in the order of its number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|id| self.get(id))
    }
    /// The number of a name that is already known.
    #[inline]
    pub fn lookup(&self, name: &[u8]) -> Option<u32> {
        self.index.find(hash(name), |&id| same(self.bytes(id as usize), name)).copied()
    }

    /// The number of `name`, new or known; `Err` says why it cannot be taken.
    #[inline]
    pub(crate) fn intern(&mut self, name: &[u8], class: &'static str, limit: usize) -> Result<u32, Problem> {
        match self.lookup(name) {
            Some(id) => Ok(id),
            None => self.insert(name, class, limit),
        }
    }

    #[cold]
    fn insert(&mut self, name: &[u8], class: &'static str, limit: usize) -> Result<u32, Problem> {
        let text = std::str::from_utf8(name).map_err(|_| Problem::BadUtf8)?;
        let end = u32::try_from(self.text.len() + text.len());
        let (Ok(end), true) = (end, self.len() < limit) else {
            return Err(Problem::TooMany { what: class, limit: limit as u64 });
        };
        let id = self.len() as u32;
        self.text.push_str(text);
        self.ends.push(end);
        let Self { text, ends, index } = self;
        let name_of = |id: usize| {
            let start = if id == 0 { 0 } else { ends[id - 1] as usize };
            &text.as_bytes()[start..ends[id] as usize]
        };
        index.insert_unique(hash(name), id, |&id| hash(name_of(id as usize)));
        Ok(id)
    }
}

/// A byte range of a region of memory, for variables that can overlap.
///
/// A region is one object that keeps its identity: a global, or one allocation. Reusing a freed address is a new region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// Ranges overlap only within one region.
    pub region: u32,
    /// First byte.
    pub start: u64,
    /// Number of bytes, at least one.
    pub len: u32,
}

/// A place in the source, as text and in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location<'a> {
    /// The text of the location, as in the input; `None` when it is a plain number.
    pub text: Option<&'a str>,
    /// The plain number, when it is one.
    pub number: Option<u32>,
    /// The file, when the text has the form `file:line`.
    pub file: Option<&'a str>,
    /// The line, when the text has the form `file:line`.
    pub line: Option<u32>,
    /// The function, when it was recorded.
    pub function: Option<&'a str>,
    /// The text of the line when it was recorded, without indentation; empty if nobody could read it, and `None` from recorders
    /// that do not look.
    pub source: Option<&'a str>,
    /// What kind of object the events here are about, where events of one line are told apart by that.
    pub object: Option<&'a str>,
}

impl<'a> Location<'a> {
    /// The place that a text names.
    pub fn of_text(text: &'a str) -> Self {
        let place = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line) = place.map_or((None, None), |(file, line)| (Some(file), Some(line)));
        Location { text: Some(text), number: None, file, line, ..Location::default() }
    }
    /// Whether it is the same place in the source, whatever happens there to whichever object.
    pub fn is_place(&self, other: &Location<'_>) -> bool {
        (self.text, self.number, self.function) == (other.text, other.number, other.function)
    }
}

impl std::fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.text, self.number) {
            (Some(text), _) => f.write_str(text),
            (None, Some(number)) => write!(f, "{number}"),
            (None, None) => f.write_str("?"),
        }
    }
}

/// Between the parts of a location inside the location table: its text, its function, the text of its line, the kind of object.
/// Those at the end that are not known are left out.
const PART_MARK: char = '\u{1f}';

/// All names of a trace.
#[derive(Clone, Default)]
pub struct Names {
    tables: [NameTable; ObjectClass::ALL.len()],
    locations: NameTable,
    /// Byte ranges of variables; shorter than the variable table when the last ones have none.
    ranges: Vec<Option<ByteRange>>,
    /// What names stand for, where they are more than text.
    objects: Objects,
    stacks: Stacks,
}

impl Names {
    /// The names of places in the code only: functions, locations and call stacks, with the same numbers.
    pub fn places(&self) -> Names {
        let mut names = Names { locations: self.locations.clone(), stacks: self.stacks.clone(), ..Names::default() };
        names.tables[ObjectClass::Function as usize - 1] = self.table(ObjectClass::Function).clone();
        names
    }
    /// The table of one class.
    ///
    /// # Panics
    /// For [`ObjectClass::None`], which names nothing.
    #[inline]
    pub fn table(&self, class: ObjectClass) -> &NameTable {
        &self.tables[class as usize - 1]
    }
    /// How many objects of a class the trace names.
    pub fn count(&self, class: ObjectClass) -> usize {
        if class == ObjectClass::None { 0 } else { self.table(class).len() }
    }
    /// The number of `name` in its class; `Err` if it is not UTF-8 or there are too many.
    #[inline]
    pub fn intern(&mut self, class: ObjectClass, name: &[u8]) -> Result<u32, Problem> {
        self.tables[class as usize - 1].intern(name, class.what(), class.limit())
    }
    /// Like [`Names::intern`] for a variable that is a byte range.
    ///
    /// The same name must come with the same range each time.
    pub fn intern_range(&mut self, name: &[u8], range: ByteRange) -> Result<u32, Problem> {
        let id = self.intern(ObjectClass::Variable, name)?;
        self.set_range(id, range)?;
        Ok(id)
    }
    /// Gives a variable that exists its byte range.
    pub(crate) fn set_range(&mut self, id: u32, range: ByteRange) -> Result<(), Problem> {
        let slot = id as usize;
        if self.ranges.len() <= slot {
            self.ranges.resize(slot + 1, None);
        }
        match self.ranges[slot] {
            Some(known) if known != range => {
                Err(Problem::RangeChanged { name: self.name(ObjectClass::Variable, id).into() })
            }
            _ => {
                self.ranges[slot] = Some(range);
                Ok(())
            }
        }
    }
    /// The name of an object.
    pub fn name(&self, class: ObjectClass, id: u32) -> &str {
        self.table(class).get(id as usize)
    }
    /// The byte range of a variable, if it has one.
    pub fn range(&self, variable: u32) -> Option<ByteRange> {
        self.ranges.get(variable as usize).copied().flatten()
    }
    /// Whether any variable is a byte range.
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }
    /// The name of a thread.
    pub fn thread(&self, id: ThreadId) -> &str {
        self.name(ObjectClass::Thread, id.0)
    }
    /// What a lock is called.
    pub fn lock(&self, id: LockId) -> Cow<'_, str> {
        self.called(ObjectClass::Lock, id.0)
    }
    /// What a condition is called.
    pub fn condition(&self, id: CondId) -> Cow<'_, str> {
        self.called(ObjectClass::Condition, id.0)
    }
    /// What a semaphore is called.
    pub fn semaphore(&self, id: SemId) -> Cow<'_, str> {
        self.called(ObjectClass::Semaphore, id.0)
    }
    /// What an atomic block is called; empty when it has no name.
    pub fn block(&self, id: BlockId) -> Cow<'_, str> {
        match id.function() {
            Some(function) => match self.name(ObjectClass::Function, function) {
                name if is_librarys_own(name) => told_function(name).into(),
                name => name.into(),
            },
            None => self.name(ObjectClass::Block, id.0).into(),
        }
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }
    pub(crate) fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }
    /// The call stacks of events.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }
    /// The call stacks of events, to add to them.
    ///
    /// The functions and locations of their frames must be names of this trace.
    pub fn stacks_mut(&mut self) -> &mut Stacks {
        &mut self.stacks
    }

    /// The location with this text: canonical small numbers are held inline, the rest is interned.
    #[inline]
    pub fn intern_location(&mut self, text: &[u8]) -> Result<LocId, Problem> {
        match parse_canonical_number(text).and_then(LocId::from_number) {
            Some(loc) => Ok(loc),
            // A text that is known was looked at when it came first.
            None => match self.locations.lookup(text).and_then(|id| LocId::from_index(id as usize)) {
                Some(loc) => Ok(loc),
                None => self.new_location(text),
            },
        }
    }
    #[cold]
    fn new_location(&mut self, text: &[u8]) -> Result<LocId, Problem> {
        if text.contains(&(PART_MARK as u8)) {
            return Err(Problem::ControlInLocation { found: lossy(text) });
        }
        self.intern_location_entry(text)
    }
    /// The location `text` inside `function`.
    pub fn intern_location_in(&mut self, text: &str, function: &str) -> Result<LocId, Problem> {
        self.intern_location_entry(format!("{text}{PART_MARK}{function}").as_bytes())
    }
    /// The place `text`, as a recorder knows it that looks into the source: the function is empty where it is not known, and
    /// so is the text of the line.
    pub fn intern_source_location(&mut self, text: &str, function: &str, source: &str) -> Result<LocId, Problem> {
        self.intern_parts([text, function, source])
    }
    /// The same place, for what happens there to objects of one kind: such events are not findings together with others.
    pub fn intern_location_about(&mut self, place: LocId, object: &str) -> Result<LocId, Problem> {
        let location = self.location(place);
        let Some(text) = location.text.map(str::to_owned) else { return Ok(place) };
        let [function, source] = [location.function, location.source].map(|part| part.unwrap_or_default().to_owned());
        self.intern_parts([&text, &function, &source, object])
    }
    fn intern_parts<const N: usize>(&mut self, parts: [&str; N]) -> Result<LocId, Problem> {
        if let Some(bad) = parts.iter().find(|part| part.contains(PART_MARK)) {
            return Err(Problem::ControlInLocation { found: lossy(bad.as_bytes()) });
        }
        self.intern_location_entry(parts.join("\u{1f}").as_bytes())
    }
    pub(crate) fn intern_location_entry(&mut self, entry: &[u8]) -> Result<LocId, Problem> {
        let limit = LocId::MAX as usize;
        let id = self.locations.intern(entry, "location", limit)?;
        LocId::from_index(id as usize).ok_or(Problem::TooMany { what: "location", limit: limit as u64 })
    }
    /// The table of locations that are not plain numbers; an entry may carry more than its text, after unit
    /// separators.
    pub fn location_table(&self) -> &NameTable {
        &self.locations
    }
    /// A location in parts.
    pub fn location(&self, id: LocId) -> Location<'_> {
        let Some(index) = id.table_index().filter(|&index| index < self.locations.len()) else {
            return Location { number: id.number(), ..Location::default() };
        };
        let mut parts = self.locations.get(index).split(PART_MARK);
        let place = Location::of_text(parts.next().unwrap_or_default());
        let (function, source) = (parts.next().filter(|name| !name.is_empty()), parts.next());
        Location { function, source, object: parts.next(), ..place }
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for class in ObjectClass::ALL {
            map.entry(&class.what(), &self.count(class));
        }
        map.entry(&"location", &self.locations.len()).finish()
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned()
}

/// A decimal number that prints the way it was written: no sign, no leading zero, at most ten digits.
#[inline]
fn parse_canonical_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 10 || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    text.iter().try_fold(0u64, |n, &digit| digit.is_ascii_digit().then(|| n * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_classes_do_not_mix() {
        let mut names = Names::default();
        let x = names.intern(ObjectClass::Variable, b"x").unwrap();
        let y = names.intern(ObjectClass::Variable, b"y").unwrap();
        let lock = names.intern(ObjectClass::Lock, b"x").unwrap();
        assert_eq!((x, y, lock), (0, 1, 0));
        assert_eq!(names.intern(ObjectClass::Variable, b"x").unwrap(), x);
        assert_eq!(names.name(ObjectClass::Variable, y), "y");
    }

    #[test]
    fn locations_print_as_they_were_written() {
        let mut names = Names::default();
        for text in ["12", "0", "007", "bank.c:9", "4294967296", "2147483648", "-1", "a:b"] {
            let id = names.intern_location(text.as_bytes()).unwrap();
            assert_eq!(names.location(id).to_string(), text);
        }
        let id = names.intern_location_in("bank.c:9", "deposit").unwrap();
        let place = names.location(id);
        assert_eq!((place.file, place.line, place.function), (Some("bank.c"), Some(9), Some("deposit")));
    }

    #[test]
    fn names_of_every_length_differ_if_one_byte_does() {
        for len in 0..40 {
            let name = vec![b'a'; len];
            assert!(same(&name, &name.clone()));
            assert!(!same(&name, &vec![b'a'; len + 1]));
            for at in 0..len {
                let mut other = name.clone();
                other[at] = b'b';
                assert!(!same(&name, &other), "{len} {at}");
            }
        }
    }

    #[test]
    fn bad_utf8_is_refused() {
        assert!(matches!(Names::default().intern(ObjectClass::Lock, &[0xff]), Err(Problem::BadUtf8)));
    }

    #[test]
    fn a_range_belongs_to_its_name() {
        let mut names = Names::default();
        let range = ByteRange { region: 0, start: 8, len: 4 };
        let x = names.intern_range(b"x", range).unwrap();
        assert_eq!(names.range(x), Some(range));
        let moved = ByteRange { start: 12, ..range };
        assert!(matches!(names.intern_range(b"x", moved), Err(Problem::RangeChanged { .. })));
    }
}
