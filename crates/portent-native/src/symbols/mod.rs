//! What addresses of a recorded program are called: places in the source, functions, global variables.
//!
//! Works on the files that were loaded when the program ran, which must still be the same. Everything is read when it is
//! first needed, and kept for the next run of the same program; looking something up is slow (microseconds), so callers
//! keep what they got.

mod entry_names;
mod frames;
mod globals;
mod heap;
mod lambdas;
mod read_types;
mod types;
mod units;
mod unused;

pub use frames::{FrameLayout, LocalPart};
pub use globals::Datum;
pub use heap::{Allocating, HeapType};
pub use types::Meaning;

use crate::files::{Kept, mapped};
use entry_names::demangled;
use globals::{Globals, Whole};
use object::{Object as _, ObjectSection as _};
use portent_explore::Counting;
use portent_trace::{line_identity, source_lines};
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use units::{Debug, EntryAt};
use unused::Code;

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// `file:line`, or `module+0xoffset`, or the bare address.
    pub text: String,
    /// The function in the source, even if it was inlined.
    pub function: Option<String>,
    /// The function that the machine knows, into which others may have been inlined.
    pub outer: Option<String>,
    /// What stands there in the source, in the form in which findings are recognised by it; empty if it cannot be read, or is a
    /// library's.
    pub source: String,
    /// The innermost line that is not in a system's header or library, if there is one.
    pub own: Option<OwnLine>,
    /// The functions that were inlined there, the innermost first.
    pub inlined: Vec<Inlined>,
    /// Whether it is in the runtime, of whose source nobody is told.
    pub in_runtime: bool,
}

/// A function that was inlined into another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The function.
    pub function: String,
    /// Where it would have been called, as `file:line`.
    pub call: String,
    /// The function that would have called it.
    pub caller: Option<String>,
    /// What stands there in the source.
    pub source: String,
}

/// A line of the program's own source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnLine {
    /// `file:line`.
    pub text: String,
    /// The function it is in, even if it was inlined; empty if it is not known.
    pub function: String,
    /// What stands there.
    pub source: String,
}

impl std::fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{} ({function})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A program or library in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// What to subtract from an address to get the one that the file gives.
    pub bias: u64,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Its file.
    pub path: String,
}

/// A program's file on disk.
struct Image {
    path: PathBuf,
    /// What places without debug information call it.
    name: String,
    lines: OnceCell<Option<addr2line::Loader>>,
    file: OnceCell<Option<object::File<'static>>>,
    debug: OnceCell<Option<Rc<Debug>>>,
    globals: OnceCell<Globals>,
    /// Where something is put when it is loaded.
    filled: OnceCell<Vec<u64>>,
    /// What is on the frames of functions, by where the functions are.
    frames: RefCell<FxHashMap<EntryAt, Option<Rc<FrameLayout>>>>,
    /// Places that were looked up, by the address that the file gives, as told in one directory.
    places: RefCell<FxHashMap<u64, Rc<SourcePlace>>>,
    /// What calls allocate, and how much of it.
    heap_types: RefCell<FxHashMap<(Allocating, u64), Rc<HeapType>>>,
    /// Its code, for what the program does with results, and what is known of that by the places behind calls.
    code: OnceCell<Option<Code>>,
    unused: RefCell<FxHashMap<u64, Option<Counting>>>,
}

thread_local! {
    /// Images of earlier runs. Which directory it is matters to the places.
    static IMAGES: RefCell<Kept<(PathBuf, String), Rc<Image>>> = RefCell::default();
    /// The lines of source files.
    static SOURCES: RefCell<Kept<PathBuf, Rc<[String]>>> = RefCell::default();
}

/// What stands in a line of a source file, the first being 1; empty if it cannot be read.
fn line_of(file: &Path, line: u32) -> String {
    let read = || source_lines(file).unwrap_or_default().into();
    let lines: Rc<[String]> = SOURCES.with_borrow_mut(|sources| sources.get(file.to_owned(), file, read));
    let text = (line as usize).checked_sub(1).and_then(|at| lines.get(at));
    text.map(|text| line_identity(text)).unwrap_or_default()
}

impl Image {
    fn new(path: &str) -> Image {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("?");
        let (lines, file, debug, globals, filled, frames, places, heap_types) = Default::default();
        let (code, unused) = Default::default();
        Image {
            path: path.into(),
            name: name.into(),
            lines,
            file,
            debug,
            globals,
            filled,
            frames,
            places,
            heap_types,
            code,
            unused,
        }
    }
    /// The image of a file as it is now, for places that are told relative to a directory.
    fn of(path: &str, directory: &Path) -> Rc<Image> {
        let key = (directory.to_owned(), path.to_owned());
        IMAGES.with_borrow_mut(|images| images.get(key, Path::new(path), || Rc::new(Image::new(path))))
    }
    fn is_runtime(&self) -> bool {
        ["libportent_runtime.so", "libtsan.so"].iter().any(|start| self.name.starts_with(start))
    }
    fn lines(&self) -> Option<&addr2line::Loader> {
        self.lines.get_or_init(|| addr2line::Loader::new(&self.path).ok()).as_ref()
    }
    fn file(&self) -> Option<&object::File<'static>> {
        // It stays mapped: what is known of a file is kept for as long as the process may need it, and a mapping costs
        // nothing but addresses.
        let map = || Some(&**Box::leak(Box::new(mapped(&self.path).ok()?)));
        self.file.get_or_init(|| object::File::parse(map()?).ok()).as_ref()
    }
    fn debug(&self) -> Option<&Rc<Debug>> {
        let read = || if self.is_runtime() { None } else { Debug::of(self.file()?).map(Rc::new) };
        self.debug.get_or_init(read).as_ref()
    }
    fn globals(&self) -> &Globals {
        let read = || self.file().map(|file| Globals::of(file, self.debug().cloned()));
        self.globals.get_or_init(|| read().unwrap_or_default())
    }
    /// What a call that returns there counts, if nobody looks at its result.
    fn unused(&self, back: u64) -> Option<Counting> {
        let code = self.code.get_or_init(|| self.file().map(Code::of)).as_ref()?;
        *self.unused.borrow_mut().entry(back).or_insert_with(|| code.unused(back))
    }
    /// The bytes at an address of the file, if they are data that can change and that nothing is put into while it is loaded.
    fn initial(&self, address: u64, size: u32) -> Option<u64> {
        let (file, end) = (self.file()?, address + u64::from(size));
        let holds = |section: &object::Section<'_, '_>| {
            section.address() <= address && end <= section.address() + section.size() && section.address() > 0
        };
        let section = file.sections().find(holds)?;
        let filled =
            self.filled.get_or_init(|| file.dynamic_relocations().into_iter().flatten().map(|(at, _)| at).collect());
        if size > 8 || filled.iter().any(|&at| at < end && address < at + 8) {
            return None;
        }
        match section.kind() {
            object::SectionKind::UninitializedData => Some(0),
            object::SectionKind::Data => {
                let bytes = section.data_range(address, u64::from(size)).ok()??;
                let mut value = [0; 8];
                value.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(u64::from_le_bytes(value))
            }
            _ => None,
        }
    }
    /// What is on the frame of the function that contains `pc`, by the addresses of the file.
    fn frame(&self, pc: u64) -> Option<Rc<FrameLayout>> {
        let debug = self.debug()?;
        let function = debug.function(pc)?;
        let read = || FrameLayout::of(debug, function).map(Rc::new);
        self.frames.borrow_mut().entry(function).or_insert_with(read).clone()
    }
}

/// A module where it is in memory.
#[derive(Clone)]
struct Loaded {
    start: u64,
    end: u64,
    bias: u64,
    image: Rc<Image>,
}

impl Loaded {
    /// What has a name here that may be told.
    fn globals(&self) -> Option<&Globals> {
        (!self.image.is_runtime()).then(|| self.image.globals())
    }

    /// Bytes in which no symbol is known.
    fn without_symbol(&self, inside: u64) -> Datum {
        // Somewhere in the runtime, a pointer that has gone wild leads: of that nobody is told.
        let name = if self.image.is_runtime() { "memory that is not the program's" } else { &self.image.name };
        Datum { whole: Whole::Module(name.to_owned(), inside), path: String::new(), offset: 0, meaning: Meaning::Bits }
    }
}

/// The modules of a program, and what is known about them.
pub struct Symbols {
    /// Paths below it are told relative to it.
    directory: PathBuf,
    loaded: Vec<Loaded>,
    images: FxHashMap<String, Rc<Image>>,
    /// Lines of source files that were asked for.
    sources: RefCell<FxHashMap<PathBuf, Vec<String>>>,
}

impl Symbols {
    /// Nothing is loaded yet.
    pub fn new(directory: &Path) -> Symbols {
        Symbols {
            directory: directory.to_owned(),
            loaded: Vec::new(),
            images: FxHashMap::default(),
            sources: RefCell::default(),
        }
    }

    /// A module is in memory now; whatever was there before is gone. Whether that changes anything.
    pub fn load(&mut self, module: &Module) -> bool {
        let same = |loaded: &Loaded| {
            (loaded.start, loaded.end, loaded.bias) == (module.start, module.end, module.bias)
                && loaded.image.path == Path::new(&module.path)
        };
        if self.loaded.iter().any(same) {
            return false;
        }
        let image = self.images.entry(module.path.clone()).or_insert_with(|| Image::of(&module.path, &self.directory));
        let &Module { bias, start, end, .. } = module;
        let image = Rc::clone(image);
        self.loaded.retain(|loaded| loaded.end <= start || end <= loaded.start);
        self.loaded.push(Loaded { start, end, bias, image });
        true
    }

    /// Whether something is loaded between two addresses.
    pub fn is_occupied(&self, start: u64, end: u64) -> bool {
        self.loaded.iter().any(|loaded| loaded.start < end && start < loaded.end)
    }

    fn at(&self, address: u64) -> Option<&Loaded> {
        self.loaded.iter().find(|loaded| (loaded.start..loaded.end).contains(&address))
    }

    /// The place of a call that returns to `pc`.
    pub fn place(&self, pc: u64) -> Rc<SourcePlace> {
        let call = pc.wrapping_sub(1);
        let Some(loaded) = self.at(call) else {
            // The runtime's own events, such as the end of the process, have no place.
            let text = if pc == 0 { "?".to_owned() } else { format!("{pc:#x}") };
            return SourcePlace { text, ..SourcePlace::default() }.into();
        };
        let address = call.wrapping_sub(loaded.bias);
        if let Some(known) = loaded.image.places.borrow().get(&address) {
            return Rc::clone(known);
        }
        let place = Rc::new(self.look_up(loaded, address));
        loaded.image.places.borrow_mut().insert(address, Rc::clone(&place));
        place
    }

    /// The place at an address that the file of a module gives.
    fn look_up(&self, loaded: &Loaded, address: u64) -> SourcePlace {
        let in_runtime = loaded.image.is_runtime();
        let mut place = SourcePlace { in_runtime, ..SourcePlace::default() };
        let without_line = || format!("{}+{address:#x}", loaded.image.name);
        if let Some(lines) = loaded.image.lines().filter(|_| !in_runtime) {
            if let Ok(mut frames) = lines.find_frames(address) {
                let mut inner: Option<String> = None;
                while let Ok(Some(frame)) = frames.next() {
                    let (mut here, mut source) = (None, String::new());
                    let name =
                        frame.function.and_then(|name| Some(clean(demangled(&name.raw_name().ok()?).to_string())));
                    if let Some((file, line)) = frame.location.and_then(|at| Some((at.file?, at.line?))) {
                        let text = clean(format!("{}:{line}", self.path(file)));
                        if is_user_text(&text) {
                            source = line_of(&self.directory.join(file), line);
                            let own = || OwnLine {
                                text: text.clone(),
                                function: name.clone().unwrap_or_default(),
                                source: source.clone(),
                            };
                            place.own.get_or_insert_with(own);
                        }
                        if place.text.is_empty() {
                            place.text.clone_from(&text);
                            place.source.clone_from(&source);
                        }
                        here = Some(text);
                    }
                    if let Some(function) = inner.take() {
                        let call = here.unwrap_or_else(without_line);
                        place.inlined.push(Inlined { function, call, caller: name.clone(), source });
                    }
                    inner = Some(name.clone().unwrap_or_else(|| "?".to_owned()));
                    if let Some(name) = name {
                        place.function.get_or_insert_with(|| name.clone());
                        place.outer = Some(name);
                    }
                }
            }
            if place.inlined.iter().any(|inlined| inlined.function == OPERATOR) {
                let lambdas = loaded.image.debug().map(|debug| lambdas::inlined_at(debug, address)).unwrap_or_default();
                name_lambdas(&mut place, &lambdas);
            }
            let symbol = lines.find_symbol(address);
            let symbol = symbol.map(|name| clean(demangled(name).to_string()));
            if place.function.is_none() {
                place.function = symbol;
                place.outer.clone_from(&place.function);
            } else if let Some(whole) = symbol.and_then(|symbol| whole_name(place.outer.as_deref()?, &symbol)) {
                if let Some(own) = place.own.as_mut().filter(|own| Some(&own.function) == place.outer.as_ref()) {
                    own.function.clone_from(&whole);
                }
                match place.inlined.last_mut() {
                    Some(outermost) => outermost.caller = Some(whole.clone()),
                    None => place.function = Some(whole.clone()),
                }
                place.outer = Some(whole);
            }
        }
        if place.text.is_empty() {
            place.text = without_line();
        }
        place
    }

    /// A path as the user knows it.
    fn path(&self, file: &str) -> String {
        let mut clean = PathBuf::new();
        for part in Path::new(file).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if clean.parent().is_some() => drop(clean.pop()),
                part => clean.push(part),
            }
        }
        clean.strip_prefix(&self.directory).unwrap_or(&clean).to_string_lossy().into_owned()
    }

    /// What some bytes of a module are.
    pub fn datum(&self, address: u64, len: u64) -> Option<Datum> {
        let loaded = self.at(address)?;
        let inside = address.wrapping_sub(loaded.bias);
        let named = loaded.globals().and_then(|globals| globals.datum(inside, len));
        Some(named.unwrap_or_else(|| loaded.without_symbol(inside)))
    }

    /// What is on the frame of the function that contains `pc`, and what to subtract from addresses in its code.
    pub fn frame(&self, pc: u64) -> Option<(Rc<FrameLayout>, u64)> {
        let loaded = self.at(pc)?;
        Some((loaded.image.frame(pc.wrapping_sub(loaded.bias))?, loaded.bias))
    }

    /// What is allocated for the program's own code.
    pub fn heap_type(&self, by: Allocating, size: u64) -> Rc<HeapType> {
        let Allocating { pc, called, own, outer } = by;
        let at = self.at(own.wrapping_sub(1));
        let counted = |loaded: &Loaded, pc: u64| pc.wrapping_sub(loaded.bias);
        let known = |at: &Loaded| {
            let [pc, called, own, outer] = [pc, called, own, outer].map(|pc| counted(at, pc));
            (Allocating { pc, called, own, outer }, size)
        };
        // What libraries allocate is allocated by the same call for many: only the program's own image knows for whom.
        if let Some(found) = at.and_then(|at| at.image.heap_types.borrow().get(&known(at)).cloned()) {
            return found;
        }
        let found = || {
            let place = self.place(pc);
            let inlined = place.inlined.iter().map(|inlined| inlined.function.clone());
            let functions: Vec<String> = inlined.chain(place.outer.clone()).collect();
            let place_of_call = place.text.clone();
            let [place, own_place] = [called, own].map(|pc| self.place(pc));
            let around = place.inlined.iter().map(|inlined| &inlined.function).chain(&place.outer);
            let own_inlined = own_place.inlined.iter().map(|inlined| &inlined.function);
            let around: Vec<String> = around.chain(own_inlined).cloned().collect();
            let at = self.at(own.wrapping_sub(1))?;
            let line = own_place.own.as_ref().and_then(|line| self.source_line(&line.text)).unwrap_or_default();
            let call = match self.at(pc.wrapping_sub(1)) {
                Some(loaded) if Rc::ptr_eq(&loaded.image, &at.image) => pc,
                _ => own,
            };
            let counted = |pc: u64| pc.wrapping_sub(1).wrapping_sub(at.bias);
            let inlined = own_place.inlined.iter().map(|inlined| (inlined.call.clone(), own));
            let own_line = |pc: u64| self.place(pc).own.as_ref().map(|line| (line.text.clone(), pc));
            let callers = inlined.chain(Some(outer).filter(|&outer| outer != own).and_then(own_line));
            let text = |(place, pc): (String, u64)| Some((self.source_line(&place)?, counted(pc)));
            let callers: Vec<(String, u64)> = callers.filter_map(text).filter(|(caller, _)| *caller != line).collect();
            let allocation = heap::Allocation {
                functions: &functions,
                around: &around,
                place: &place_of_call,
                line: &line,
                callers: &callers,
                own: counted(own),
                call: counted(call),
                size,
            };
            heap::heap_type(at.image.debug()?, &allocation)
        };
        let found = Rc::new(found().unwrap_or_else(|| HeapType::of_size(size)));
        if let Some(at) = at {
            at.image.heap_types.borrow_mut().insert(known(at), Rc::clone(&found));
        }
        found
    }

    /// The text of a line of the source, given as `file:line`.
    fn source_line(&self, place: &str) -> Option<String> {
        let (file, line) = place.rsplit_once(':')?;
        let line: usize = line.parse().ok()?;
        let path = self.directory.join(file);
        let mut sources = self.sources.borrow_mut();
        let text = sources.entry(path.clone()).or_insert_with(|| source_lines(&path).unwrap_or_default());
        text.get(line.checked_sub(1)?).cloned()
    }

    /// The variable or part of one that begins at an address.
    pub fn named_object(&self, address: u64) -> Option<Datum> {
        let loaded = self.at(address)?;
        loaded.globals()?.object(address.wrapping_sub(loaded.bias))
    }

    /// What a lock or the like in a module is.
    pub fn object(&self, address: u64) -> Option<Datum> {
        let loaded = self.at(address)?;
        let inside = address.wrapping_sub(loaded.bias);
        let named = loaded.globals().and_then(|globals| globals.object(inside));
        Some(named.unwrap_or_else(|| loaded.without_symbol(inside)))
    }

    /// What an atomic update that returns there does, if the program does not look at its result.
    pub fn unused(&self, back: u64) -> Option<Counting> {
        let loaded = self.at(back)?;
        loaded.image.unused(back.wrapping_sub(loaded.bias))
    }

    /// What a global variable holds when its module is loaded, as far as the file says that.
    pub fn initial(&self, address: u64, size: u32) -> Option<u64> {
        let loaded = self.at(address)?;
        loaded.image.initial(address.wrapping_sub(loaded.bias), size)
    }
}

/// Where the global variables of a program are declared, as `file.c:12`, and what they are called.
pub fn declarations(program: &Path) -> std::collections::BTreeMap<String, String> {
    Image::new(&program.to_string_lossy()).globals().declarations()
}

/// The name of a function with its scopes, by its symbol. Debug information has only the last part for functions of local
/// classes, such as lambdas: `operator()` for `main::{lambda()#1}::operator()() const`.
fn whole_name(name: &str, symbol: &str) -> Option<String> {
    let symbol = symbol.split(" [clone").next().unwrap_or(symbol);
    let (_, parameters) = symbol.rsplit_once(&format!("::{name}"))?;
    (!name.contains("::") && parameters.starts_with(['(', '<'])).then(|| symbol.to_owned())
}

/// What debug information calls a lambda.
const OPERATOR: &str = "operator()";

/// Gives lambdas that were inlined, the innermost first, their names.
fn name_lambdas(place: &mut SourcePlace, lambdas: &[Option<String>]) {
    for (at, name) in lambdas.iter().enumerate().take(place.inlined.len()) {
        let Some(name) = name.as_ref().filter(|_| place.inlined[at].function == OPERATOR) else { continue };
        place.inlined[at].function.clone_from(name);
        match at.checked_sub(1) {
            Some(inner) => place.inlined[inner].caller = Some(name.clone()),
            None => place.function = Some(name.clone()),
        }
    }
}

/// Control characters would break the tables of names, and terminals.
fn clean(mut text: String) -> String {
    text.retain(|c| !c.is_control());
    text
}

/// Whether a place is in the user's own code.
fn is_user_text(text: &str) -> bool {
    portent_trace::is_user_place(&portent_trace::Location::of_text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_that_were_inlined_have_their_names() {
        let inlined = |function: &str, caller: &str| Inlined {
            function: function.into(),
            call: "a.cpp:1".into(),
            caller: Some(caller.into()),
            source: String::new(),
        };
        let inlined = vec![inlined("get", OPERATOR), inlined(OPERATOR, "run")];
        let mut place = SourcePlace { function: Some("get".into()), inlined, ..SourcePlace::default() };
        name_lambdas(&mut place, &[None, Some("main::{lambda()#1}::operator()() const".into())]);
        assert_eq!(place.inlined[1].function, "main::{lambda()#1}::operator()() const");
        assert_eq!(place.inlined[0].caller.as_deref(), Some("main::{lambda()#1}::operator()() const"));
        assert_eq!(place.function.as_deref(), Some("get"));
    }

    #[test]
    fn functions_of_local_classes_are_named_with_their_scopes() {
        let named = |name: &str, symbol: &str| whole_name(name, symbol);
        let lambda = "main::{lambda()#1}::operator()() const";
        assert_eq!(named("operator()", lambda).as_deref(), Some(lambda));
        assert_eq!(named("operator()", &format!("{lambda} [clone .cold]")).as_deref(), Some(lambda));
        assert_eq!(named("run<int>", "run<int>(int)"), None, "it has no scopes");
        assert_eq!(named("Account::deposit", "Account::deposit(long)"), None, "it has them already");
        assert_eq!(named("lock", "std::mutex::unlock()"), None, "another function");
    }
}
