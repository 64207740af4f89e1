//! What a compiler's command line asks for, as far as it matters here: whether something is compiled, whether something
//! is linked, and how.
//!
//! Nothing is refused: what is not understood is the compiler's business. An option that takes a separate argument and is
//! missing in [`TAKES_ARGUMENT`] would have its argument taken for an input file; the worst that follows is that a
//! question to the compiler (`-dumpmachine`) is answered with our flags added.

use super::response::expanded;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a command line asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Something other than plain assembly is compiled or preprocessed.
    pub(crate) compiles: bool,
    pub(crate) links: Linking,
    /// The program is to need no shared libraries.
    pub(crate) statically: bool,
    /// The user turned this instrumentation off, by name.
    pub(crate) opted_out: bool,
}

/// What the linker makes, if it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Linking {
    #[default]
    Nothing,
    /// Objects into one object: without libraries.
    Object,
    /// A program or a shared library.
    Whole,
}

/// The options that end the work before the linker.
const NO_LINK: [&str; 12] = [
    "-c",
    "-S",
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--compile",
    "--assemble",
    "--preprocess",
    "--precompile",
    "--analyze",
    "-emit-ast",
];

/// The options whose argument is the next word.
#[rustfmt::skip]
const TAKES_ARGUMENT: [&str; 71] = [
    "-o", "-x", "-I", "-L", "-D", "-U", "-A", "-B", "-F", "-T", "-u", "-e", "-z", "-R", "-l", "-G",
    "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-iwithprefix", "-iwithprefixbefore",
    "-isysroot", "-imultilib", "-iframework", "-ivfsoverlay", "-include-pch", "-cxx-isystem", "-c-isystem",
    "-stdlib++-isystem", "-MF", "-MT", "-MQ", "-MJ", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang",
    "-Xanalyzer", "-Xopenmp-target", "-mllvm", "--param", "-aux-info", "-dumpbase", "-dumpbase-ext", "-dumpdir",
    "-wrapper", "-specs", "--specs", "-target", "-arch", "-framework", "-install_name", "-gcc-toolchain",
    "-resource-dir", "-working-directory", "-serialize-diagnostics", "-dependency-file", "-index-store-path", "-Tbss",
    "-Tdata", "-Ttext", "--sysroot", "--output", "--language", "--include", "--include-directory",
    "--define-macro", "--undefine-macro",
];

/// File endings of sources, of all languages that compilers of this kind take; others are for the linker.
#[rustfmt::skip]
const SOURCES: [&str; 50] = [
    "c", "i", "ii", "m", "mi", "mm", "M", "mii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "cppm", "ccm", "cxxm", "ixx",
    "ll", "bc", "cu", "cl", "d", "go", "adb", "ads", "S", "sx", "f", "for", "ftn", "F", "FOR", "fpp", "FPP", "FTN", "f90",
    "f95", "f03", "f08", "F90", "F95", "F03", "F08", "mod", "hip", "rs", "cui", "modi",
];

/// File endings of headers: compiled on their own, and never linked.
const HEADERS: [&str; 10] = ["h", "hh", "H", "hp", "hxx", "hpp", "HPP", "h++", "tcc", "pch"];

/// What an input file is to the compiler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Source,
    Header,
    Assembly,
    ForLinker,
}

impl Request {
    /// Understands a command line, without the compiler's own name.
    pub(crate) fn of(arguments: &[OsString]) -> Self {
        // The compiler proper, called past its driver.
        if arguments.first().is_some_and(|first| first.as_bytes().starts_with(b"-cc1")) {
            return Self::default();
        }
        let all = expanded(arguments);
        let mut reader = Reader::default();
        let mut rest = all.iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_str().unwrap_or("?");
            if reader.after_options || !text.starts_with('-') || text == "-" {
                reader.input(argument);
            } else if text == "--" {
                reader.after_options = true;
            } else if TAKES_ARGUMENT.contains(&text) {
                match rest.next() {
                    Some(value) => reader.option_with(text, value),
                    // The compiler complains about the last word; ours must not come after it.
                    None => return Self::default(),
                }
            } else {
                reader.option(text);
            }
        }
        reader.request()
    }
}

/// What is known while reading.
#[derive(Default)]
struct Reader {
    after_options: bool,
    language: Option<OsString>,
    inputs: Vec<Input>,
    output: bool,
    for_linker: bool,
    no_link: bool,
    shared: bool,
    relocatable: bool,
    statically: bool,
    opted_out: bool,
}

impl Reader {
    fn option_with(&mut self, option: &str, value: &OsStr) {
        match option {
            "-x" | "--language" => self.language = Some(value.to_owned()),
            "-o" | "--output" => self.output = true,
            "-l" => self.inputs.push(Input::ForLinker),
            "-Xlinker" => self.for_linker(value.to_str().unwrap_or_default()),
            _ => {}
        }
    }

    fn option(&mut self, option: &str) {
        match option {
            "-static" | "--static" | "-static-pie" => self.statically = true,
            "-shared" | "--shared" => self.shared = true,
            "-r" => self.relocatable = true,
            _ => {}
        }
        self.no_link |= NO_LINK.contains(&option);
        if let Some(language) = option.strip_prefix("-x").or(option.strip_prefix("--language=")) {
            self.language = Some(language.into());
        } else if option.starts_with("-l") {
            self.inputs.push(Input::ForLinker);
        } else if option.starts_with("-o") || option.starts_with("--output=") {
            self.output = true;
        } else if let Some(list) = option.strip_prefix("-Wl,") {
            list.split(',').for_each(|word| self.for_linker(word));
        } else if let Some(list) = option.strip_prefix("-fsanitize=") {
            self.opted_out &= !names(list, &["thread"]);
        } else if let Some(list) = option.strip_prefix("-fno-sanitize=") {
            self.opted_out |= names(list, &["thread", "all"]);
        }
    }

    fn for_linker(&mut self, word: &str) {
        self.for_linker = true;
        self.relocatable |= ["-r", "-i", "-Ur", "--relocatable"].contains(&word);
    }

    fn input(&mut self, file: &OsStr) {
        let language = self.language.as_ref().and_then(|language| language.to_str()).unwrap_or("none");
        let ending = Path::new(file).extension().and_then(OsStr::to_str).unwrap_or_default();
        self.inputs.push(match language {
            "none" if SOURCES.contains(&ending) || file == "-" => Input::Source,
            "none" if HEADERS.contains(&ending) => Input::Header,
            "none" if ending == "s" => Input::Assembly,
            "none" => Input::ForLinker,
            "assembler" => Input::Assembly,
            _ if language.ends_with("-header") || language.ends_with("-header-unit") => Input::Header,
            _ => Input::Source,
        });
    }

    fn request(self) -> Request {
        let any = |kind| self.inputs.contains(&kind);
        // `-Wl,--version` alone asks a question, `-o x -Wl,--whole-archive,y.a` links.
        let linkable = any(Input::ForLinker) || any(Input::Source) || any(Input::Assembly);
        let linkable = linkable || (self.output && self.for_linker && self.inputs.is_empty());
        let links = match linkable && !self.no_link {
            false => Linking::Nothing,
            true if self.relocatable => Linking::Object,
            true => Linking::Whole,
        };
        Request {
            compiles: any(Input::Source) || any(Input::Header),
            links,
            // A library that was asked to prefer archives is still a shared library.
            statically: self.statically && !self.shared,
            opted_out: self.opted_out,
        }
    }
}

fn names(list: &str, wanted: &[&str]) -> bool {
    list.split(',').any(|name| wanted.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Request {
        Request::of(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    /// Whether a line compiles and links.
    fn work(line: &str) -> (bool, bool) {
        let request = of(line);
        (request.compiles, request.links == Linking::Whole)
    }

    #[test]
    fn compiling_and_linking_are_told_apart() {
        for line in [
            "-c a.c",
            "a.cc -S -o -",
            "-E -",
            "-M a.c",
            "-MM a.c -MF a.d",
            "-fsyntax-only a.c",
            "a.h",
            "-x c++-header a",
            "-MD -MF a.c -MT b.o -c a.c",
            "-xc -c a.o",
            "-c -- a.c",
        ] {
            assert_eq!(work(line), (true, false), "{line}");
        }
        for line in
            ["a.c", "a.o b.cpp -o x", "-x c -", "-shared -fPIC a.c -o liba.so", "-x c a.txt -x none b.o", "-- a.c"]
        {
            assert_eq!(work(line), (true, true), "{line}");
        }
        for line in [
            "a.o",
            "-shared -o liba.so a.lo",
            "a.s",
            "liba.a",
            "-o x -lfoo",
            "-o x -l foo",
            "x.so.1",
            "-o x -Wl,--whole-archive,y.a",
        ] {
            assert_eq!(work(line), (false, true), "{line}");
        }
    }

    #[test]
    fn questions_to_the_compiler_are_neither() {
        for line in [
            "",
            "-v",
            "--version",
            "-dumpmachine",
            "-print-search-dirs",
            "-print-file-name=libtsan.so",
            "-Wl,--version",
            "-Q --help=params",
            "-o",
            "a.c -o",
            "-x c",
            "-I include -v",
            "-c a.s",
            "-cc1 -triple x a.c",
        ] {
            assert_eq!(work(line), (false, false), "{line}");
        }
    }

    #[test]
    fn objects_are_linked_into_objects() {
        for line in ["-r a.o -o b.o", "-Wl,-r a.o", "-Xlinker -r a.o -nostdlib"] {
            let request = of(line);
            assert_eq!((request.compiles, request.links), (false, Linking::Object), "{line}");
        }
        let both = of("-x c a.txt -r -o b.o");
        assert_eq!((both.compiles, both.links), (true, Linking::Object));
    }

    #[test]
    fn static_programs_are_noticed() {
        assert!(of("-static a.o").statically);
        assert!(of("a.c -static-pie").statically);
        assert!(!of("-static -shared a.o").statically);
        assert!(!of("-static-libgcc a.o").statically);
    }

    #[test]
    fn the_last_word_on_instrumentation_counts() {
        assert!(!of("-fsanitize=thread a.c").opted_out);
        assert!(of("-fsanitize=thread -fno-sanitize=undefined,thread a.c").opted_out);
        assert!(of("-fno-sanitize=all a.c").opted_out);
        assert!(!of("-fno-sanitize=all -fsanitize=undefined,thread a.c").opted_out);
        assert!(!of("-fno-sanitize=undefined a.c").opted_out);
    }

    #[test]
    fn response_files_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("args");
        std::fs::write(&file, "-c 'a b.c'\n-o").unwrap();
        assert_eq!(work(&format!("@{} x.o", file.display())), (true, false));
    }
}
