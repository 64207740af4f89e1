//! The C and C++ programs of `tests/programs`: what their comments say about them (tests/programs/README.md), building each
//! once, and what is in their traces.

mod build;
mod contents;

pub use build::{Builder, Built, build, unsupported};
pub use contents::{Contents, read};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exit(i32),
    /// By a signal of this number.
    Signal(i32),
    /// Never: nobody can move. The report mentions these names.
    Deadlock(Vec<String>),
}

/// What it prints to standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// These lines, in which `*` stands for any text.
    Lines(Vec<String>),
    /// Much: so many bytes, with this hash.
    #[allow(missing_docs)]
    Much { bytes: usize, hash: u32 },
}

/// How a shared library gets into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// Named when the program is linked.
    Linked,
    /// By `dlopen`; the program gets its path as its last argument.
    Opened,
}

/// How many events of a kind there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// So many,
    pub number: u64,
    /// or more.
    pub or_more: bool,
}

/// A test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, without the ending.
    pub name: String,
    /// Its file.
    pub source: PathBuf,
    /// Flags of the compiler.
    pub build: Vec<String>,
    /// A shared library that it needs.
    pub library: Option<(String, Linking)>,
    /// Whether it is built to be recorded.
    pub instrumented: bool,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// What it reads.
    pub stdin: String,
    /// How it ends.
    pub ending: Ending,
    /// What it prints.
    pub stdout: Output,
    /// Texts that standard error contains, from the program.
    pub stderr: Vec<String>,
    /// Texts that standard error contains, from Portent.
    pub messages: Vec<String>,
    /// How many threads its trace has.
    pub threads: Option<usize>,
    /// How many events of an operation its trace has.
    pub ops: BTreeMap<String, Count>,
    /// What a name belongs to (`variable`, `lock`, `thread`), and the name.
    pub names: Vec<(String, String)>,
}

/// Where the programs are.
pub fn directory() -> PathBuf {
    crate::repository().join("tests/programs")
}

impl Program {
    /// Every program whose name contains a word of PORTENT_PROGRAMS, if that is set, by name. Not the benches.
    pub fn all() -> Vec<Program> {
        let wanted = std::env::var("PORTENT_PROGRAMS").unwrap_or_default();
        let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let mut programs: Vec<Program> = std::fs::read_dir(directory())
            .expect("tests/programs can be listed")
            .map(|entry| entry.expect("tests/programs can be listed").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "c" || ending == "cpp"))
            .map(|path| Program::read(&path))
            .filter(|program| !program.name.starts_with("bench_"))
            .filter(|program| wanted.is_empty() || wanted.iter().any(|word| program.name.contains(word)))
            .collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        programs
    }

    /// The program of a file below tests/programs.
    pub fn named(file: &str) -> Program {
        Program::read(&directory().join(file))
    }

    fn read(source: &Path) -> Program {
        let text = std::fs::read_to_string(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let name = source.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        Program::parse(name, source.to_path_buf(), &text)
            .unwrap_or_else(|error| panic!("{}: {error}", source.display()))
    }

    /// A program of which nothing is expected but that it ends with status 0 and prints nothing.
    pub fn new(name: String, source: PathBuf) -> Program {
        Program {
            name,
            source,
            build: Vec::new(),
            library: None,
            instrumented: true,
            arguments: Vec::new(),
            stdin: String::new(),
            ending: Ending::Exit(0),
            stdout: Output::Lines(Vec::new()),
            stderr: Vec::new(),
            messages: Vec::new(),
            threads: None,
            ops: BTreeMap::new(),
            names: Vec::new(),
        }
    }

    fn parse(name: String, source: PathBuf, text: &str) -> Result<Program, String> {
        if !text.lines().take(2).all(|line| line.starts_with("// ") && !line.starts_with("// portent:")) {
            return Err("expected two lines first that say what it exercises and what must come out".into());
        }
        let mut program = Program::new(name, source);
        for line in text.lines().filter_map(|line| line.strip_prefix("// portent: ")) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            program.expect(word, rest).map_err(|error| format!("\"portent: {line}\": {error}"))?;
        }
        Ok(program)
    }

    fn expect(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("\"{text}\" is no number"));
        match word {
            "exit" => self.ending = Ending::Exit(number(rest)? as i32),
            "signal" => self.ending = Ending::Signal(signal(rest)?),
            "deadlock" => self.ending = Ending::Deadlock(rest.split(' ').map(str::to_owned).collect()),
            "stdout" => match &mut self.stdout {
                Output::Lines(lines) => lines.push(rest.to_owned()),
                Output::Much { .. } => return Err("either lines or their number of bytes".into()),
            },
            "stdout-bytes" => self.stdout = Output::Much { bytes: number(rest)? as usize, hash: 0 },
            "stdout-hash" => match &mut self.stdout {
                Output::Much { hash, .. } => {
                    *hash = u32::from_str_radix(rest, 16).map_err(|_| "no hash of eight hexadecimal digits")?;
                }
                Output::Lines(_) => return Err("expected stdout-bytes before".into()),
            },
            "stderr" => self.stderr.push(rest.to_owned()),
            "message" => self.messages.push(rest.to_owned()),
            "args" => self.arguments = words(rest),
            "stdin" => self.stdin = format!("{rest}\n"),
            "threads" => self.threads = Some(number(rest)? as usize),
            "ops" => {
                let (op, count) = rest.split_once(' ').ok_or("expected an operation and a number")?;
                let or_more = count.ends_with('+');
                let count = Count { number: number(count.trim_end_matches('+'))?, or_more };
                self.ops.insert(op.to_owned(), count);
            }
            "variable" | "lock" | "thread" => self.names.push((word.to_owned(), rest.to_owned())),
            "build" => self.build = words(rest),
            "library" => {
                let (name, linking) = rest.split_once(' ').ok_or("expected a name and a way of linking")?;
                let linking = match linking {
                    "linked" => Linking::Linked,
                    "opened" => Linking::Opened,
                    _ => return Err("a library is linked or opened".into()),
                };
                self.library = Some((name.to_owned(), linking));
            }
            "uninstrumented" => self.instrumented = false,
            _ => return Err("nothing of this name is known; see tests/programs/README.md".into()),
        }
        Ok(())
    }

    /// The C++ compiler or the C compiler.
    pub fn is_cxx(&self) -> bool {
        self.source.extension().is_some_and(|ending| ending == "cpp")
    }
}

/// Words between blanks; double quotes keep blanks together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in text.split('"').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn signal(name: &str) -> Result<i32, String> {
    match name {
        "ABRT" => Ok(6),
        "FPE" => Ok(8),
        "KILL" => Ok(9),
        "SEGV" => Ok(11),
        _ => Err(format!("signal {name} is not known here yet")),
    }
}

/// Whether a text is what a pattern says, in which `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn stars_stand_for_any_text() {
    for (pattern, text) in [("a", "a"), ("*", ""), ("a*", "abc"), ("*c", "abc"), ("a*b*d", "axbxxd"), ("*x*", "axb")] {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("a", "ab"), ("", "a"), ("a*b", "ac"), ("a*b*c", "acb")] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn expectations_are_read_and_wrong_ones_are_pointed_out() {
    let parse = |lines: &str| Program::parse("x".into(), "x.c".into(), &format!("// What.\n// Result.\n{lines}"));
    let program = parse("// portent: ops acq 3+\n// portent: args a \"b c\"\n// portent: signal SEGV\n").unwrap();
    assert_eq!(program.arguments, ["a", "b c"]);
    assert_eq!(program.ops["acq"], Count { number: 3, or_more: true });
    assert_eq!(program.ending, Ending::Signal(11));
    assert!(parse("// portent: thread\n// portent: threats 3\n").unwrap_err().contains("threats 3"));
    assert!(Program::parse("x".into(), "x.c".into(), "int main;\n").is_err());
}
