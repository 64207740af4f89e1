//! A look at a program before it is started: can it be recorded, and if not, why not and what to do.

use crate::Error;
use crate::files::{FileState, Kept, mapped};
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a program is, as far as recording goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It calls the runtime.
    Instrumented,
    /// It does not, but it may start something that does.
    Plain,
    /// A script: its interpreter is started, and what happens then cannot be foretold.
    Script,
}

const BUILD: &str = "build it with `portent cc` or `portent c++` in place of the compiler, for example `make CC=\"portent cc\" CXX=\"portent c++\"`";

/// Finds the file of a program, as a shell would.
pub fn find(program: &OsStr, directory: &Path) -> Result<PathBuf, Error> {
    let refused = |message: String, help: &str| Error::not_started(message, help);
    let name = program.to_string_lossy().into_owned();
    // Joined piece by piece, so that `./` goes away.
    let with_directory = |path: &Path| directory.join(path).components().collect::<PathBuf>();
    if program.as_encoded_bytes().contains(&b'/') {
        let path = with_directory(Path::new(program));
        return match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(refused(format!("{name}: there is no such file"), "is the path right? Is the program built?"))
            }
            Err(error) => Err(refused(format!("{name}: {error}"), "is the path right?")),
            Ok(found) if found.is_dir() => Err(refused(format!("{name} is a directory"), "name a program in it")),
            Ok(found) if found.permissions().mode() & 0o111 == 0 => Err(refused(
                format!("{name} is not executable"),
                "is it the program, or its source? `chmod +x` makes it so",
            )),
            Ok(_) => Ok(path),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&search).map(|folder| with_directory(&folder.join(program)));
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    candidates.into_iter().find(runs).ok_or_else(|| {
        let help = if directory.join(program).is_file() {
            format!("there is one here: `./{name}` names it")
        } else {
            "is the name right? A program in this directory is named with `./`".to_owned()
        };
        refused(format!("{name}: no such program in PATH"), &help)
    })
}

/// Looks into a program, and refuses one that cannot be recorded.
pub fn examine(path: &Path) -> Result<Nature, Error> {
    let name = path.display();
    let bytes = mapped(path).map_err(|error| Error::not_started(format!("{name}: {error}"), "it must be readable"))?;
    if bytes.starts_with(b"#!") {
        return Ok(Nature::Script);
    }
    let no_program =
        |what: &str| Error::not_started(format!("{name}: {what}"), "portent records programs for Linux on x86-64");
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(no_program("this is not a program that the system can start"));
    }
    let header = elf::FileHeader64::<Endianness>::parse(&*bytes)
        .map_err(|_| no_program("a program of 32 bits, or a damaged one"))?;
    let endian = header.endian().map_err(|_| no_program("a damaged program"))?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return Err(no_program("a program for another kind of machine"));
    }
    let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(|_| no_program("a damaged program"))?;
    let references = file.dynamic_symbols().any(|symbol| symbol.is_undefined() && is_runtime(&symbol));
    let dynamic = header.program_headers(endian, &*bytes).map_err(|_| no_program("a damaged program"))?;
    if !dynamic.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return Err(Error::refused(
            format!("{name} is linked statically: no runtime can be loaded into it"),
            "link it without -static",
        ));
    }
    let own_runtime = file
        .symbols()
        .chain(file.dynamic_symbols())
        .any(|symbol| !symbol.is_undefined() && symbol.name().is_ok_and(|name| name == "__tsan_init"));
    if own_runtime {
        return Err(Error::refused(
            format!("{name} has the compiler's own thread sanitizer linked into it, in place of Portent's runtime"),
            "link it without -fsanitize=thread, or with -shared-libsan; `portent cc` as compiler and linker does that",
        ));
    }
    if references || needs_runtime(header, endian, &bytes) { Ok(Nature::Instrumented) } else { Ok(Nature::Plain) }
}

fn is_runtime<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    symbol.name().is_ok_and(|name| name.starts_with("__tsan_"))
}

/// Whether the program asks for a runtime to be loaded.
fn needs_runtime(header: &elf::FileHeader64<Endianness>, endian: Endianness, bytes: &[u8]) -> bool {
    let needed = || {
        let sections = header.sections(endian, bytes).ok()?;
        let (entries, link) = sections.dynamic(endian, bytes).ok()??;
        let strings = sections.strings(endian, bytes, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED);
        let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
        Some(names.into_iter().any(|name| {
            [&b"libtsan.so"[..], b"libportent_runtime.so", b"libclang_rt.tsan"]
                .iter()
                .any(|start| name.starts_with(start))
        }))
    };
    needed().unwrap_or(false)
}

/// Whether a program or library calls the runtime; `None` for what is neither.
pub fn asks_for_runtime(path: &Path) -> Option<bool> {
    let bytes = mapped(path).ok()?;
    let file = ElfFile64::<Endianness>::parse(&*bytes).ok()?;
    Some(file.dynamic_symbols().any(|symbol| symbol.is_undefined() && is_runtime(&symbol)))
}

/// Functions that tell their caller what no event shows, by parts of their names, and what is not looked for because of them.
const UNSEEN: [(&str, &str); 8] = [
    ("pthread_cancel", "threads could be cancelled at other times"),
    ("tryjoin", "another outcome of tries to join is not looked for"),
    ("timedjoin", "another outcome of tries to join is not looked for"),
    ("clockjoin", "another outcome of tries to join is not looked for"),
    ("sem_getvalue", "the program may ask what a semaphore counts, which is not seen"),
    ("sem_open", "semaphores may be shared with other processes"),
    ("futex", "how many a futex wakes is not looked for"),
    ("syscall", "how many a futex wakes, and what other system calls give, is not looked for"),
];

/// What a program or library may learn that is not seen, in sentences; that it cannot be read is one, too.
pub fn unseen(path: &Path) -> Vec<&'static str> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return vec!["not all of the program can be read"] };
    let calls = |part: &str| {
        let mut symbols = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        symbols.any(|symbol| symbol.name().is_ok_and(|name| name.contains(part)))
    };
    UNSEEN.iter().filter(|(part, _)| calls(part)).map(|&(_, sentence)| sentence).collect()
}

/// What to tell somebody whose program turned out to be not instrumented.
pub fn not_instrumented(program: &Path, nature: Nature) -> Error {
    let name = program.display();
    match nature {
        Nature::Plain => Error::refused(
            format!("nothing was recorded: {name} is built without instrumentation, and started nothing that has it"),
            BUILD,
        ),
        Nature::Script => {
            Error::refused(format!("nothing was recorded: {name} started no program with instrumentation"), BUILD)
        }
        Nature::Instrumented => Error::refused(
            format!("nothing was recorded: {name} did not load Portent's runtime"),
            "was it linked with another runtime, or is it privileged (set-user-id), which LD_LIBRARY_PATH does not reach?",
        ),
    }
}

/// What tells one build of a file from another.
pub fn build_id(path: &Path) -> Option<String> {
    thread_local! {
        static KNOWN: RefCell<Kept<PathBuf, Option<String>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| known.get(path.to_owned(), path, || read_build_id(path)))
}

fn read_build_id(path: &Path) -> Option<String> {
    let bytes = mapped(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Which build of a program a file is, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    id: Option<String>,
    size: u64,
    /// Where the linker left no id.
    file: Option<FileState>,
}

impl Build {
    /// The build that a file is now; `None` if it is gone.
    pub fn of(path: &Path) -> Option<Build> {
        let (file, id) = (FileState::of(path)?, build_id(path));
        Some(Build { size: file.size(), file: id.is_none().then_some(file), id })
    }
}
