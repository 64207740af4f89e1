//! `portent cc` and `portent c++` with the real compilers of this machine: gcc, and clang where there is one.
//!
//! Every test says loudly when it is skipped for want of a compiler.

use crate::PORTENT;
use portent_testing::command::there_is;
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Shared memory, threads, and a copy whose size is known.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "size.h"
int hits;
char from[SIZE], to[SIZE];
void *thread(void *unused) { hits++; memset(to, 1, SIZE); return unused; }
int main(int count, char **words) {
    pthread_t t;
    pthread_create(&t, 0, thread, 0);
    pthread_join(t, 0);
    hits++;
    memcpy(to, from, SIZE);
    printf("%d hits, %d words\n", hits, count);
    (void)words;
    return 7;
}
"#;

const PROGRAM_CXX: &str = r#"
#include <atomic>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
std::atomic<int> hits;
struct Shape { virtual ~Shape() {} virtual std::string name() { return "shape"; } };
struct Round : Shape { std::string name() override { return "round"; } };
int main() {
    Shape *shape = new Round;
    std::thread thread([&] { hits++; shape->name(); });
    thread.join();
    try { throw std::runtime_error(shape->name()); }
    catch (const std::exception &caught) { std::cout << caught.what() << " " << hits << std::endl; }
    delete shape;
}
"#;

/// A C and a C++ compiler.
#[derive(Clone, Copy, PartialEq)]
struct Pair(&'static str, &'static str);
const GCC: Pair = Pair("gcc", "g++");
const CLANG: Pair = Pair("clang", "clang++");

/// Runs a test with every pair of compilers there is.
fn with_each(test: impl Fn(&Workshop)) {
    for pair in [GCC, CLANG] {
        if !there_is(pair.0) {
            skipped("cc", &format!("no {} on this machine", pair.0));
            continue;
        }
        eprintln!("with {}", pair.0);
        let scratch = Scratch::with("program.c", PROGRAM)
            .and("size.h", "#define SIZE 16\n")
            .and("program.cc", PROGRAM_CXX)
            .and("one.c", "int two(void);\nint shared;\nint main(void) { return two() + shared++; }\n")
            .and("two.c", "int shared_two;\nint two(void) { return shared_two++; }\n");
        test(&Workshop { scratch, compilers: pair });
    }
}

/// A directory to build in, with a cache of its own.
struct Workshop {
    scratch: Scratch,
    compilers: Pair,
}

impl Deref for Workshop {
    type Target = Scratch;
    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl Workshop {
    fn command(&self, program: impl AsRef<Path>, line: &str) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(line.split_whitespace()).current_dir(self.directory()).stdin(Stdio::null());
        command.env("PORTENT_CACHE", self.path("cache,of builds")).env("NO_COLOR", "1").env("LC_ALL", "C");
        command.env("PORTENT_CC", self.compilers.0).env("PORTENT_CXX", self.compilers.1);
        command
    }
    fn portent(&self, line: &str) -> Command {
        self.command(PORTENT.program, line)
    }
    /// Runs a line that must succeed, silently on standard error; what it printed.
    fn ok(&self, line: &str) -> String {
        let output = self.portent(line).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{line}: {}\n{said}", output.status);
        text(&output.stdout)
    }
    /// Runs a program that was built; what it printed, and its exit status.
    fn run(&self, program: &str) -> (String, Option<i32>) {
        let output = self.command(self.path(program), "").output().unwrap();
        assert!(output.stderr.is_empty(), "{program}: {}", text(&output.stderr));
        (text(&output.stdout), output.status.code())
    }
    /// The shared libraries that a program names, in their order; the first must be ours and none libtsan.
    fn check_linked(&self, file: &str) {
        let output = self.command("readelf", "-d").arg(self.path(file)).output().unwrap();
        let dynamic = text(&output.stdout);
        let needed: Vec<_> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
        assert!(needed[0].contains("[libportent_runtime.so]"), "{file}: {dynamic}");
        assert!(!dynamic.contains("libtsan"), "{file}: {dynamic}");
        assert!(dynamic.contains("(RUNPATH)") && dynamic.contains("cache,of builds/runtime-"), "{file}: {dynamic}");
    }
    fn is_instrumented(&self, file: &str) -> bool {
        self.read(file).contains("__tsan_write4")
    }
    fn check_program(&self, file: &str) {
        self.check_linked(file);
        assert!(self.is_instrumented(file), "{file}");
        assert_eq!(self.run(file), ("2 hits, 1 words\n".into(), Some(7)), "{file}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn same(first: &Output, second: &Output) {
    assert_eq!(text(&first.stdout), text(&second.stdout));
    assert_eq!(text(&first.stderr), text(&second.stderr));
    assert_eq!(first.status, second.status);
}

#[test]
fn one_command_compiles_and_links_and_the_program_runs_as_ever() {
    with_each(|workshop| {
        workshop.ok("cc -Wall -Wextra -Werror program.c -o program");
        workshop.check_program("program");
        workshop.ok("cc program.c");
        workshop.check_program("a.out");
        workshop.ok("cc -O2 -D_FORTIFY_SOURCE=2 -Wall -Werror program.c -o fortified");
        workshop.check_program("fortified");
        // Copies of known size are calls, which the runtime sees.
        let symbols = workshop.read("fortified");
        assert!(symbols.contains("memset") && symbols.contains("memcpy") && !symbols.contains("_chk@"));
    });
}

#[test]
fn compiling_and_linking_apart() {
    with_each(|workshop| {
        workshop.ok("cc -Wall -Werror -c program.c");
        assert!(workshop.is_instrumented("program.o"));
        workshop.ok("cc -Wall -Werror program.o -o program -lpthread");
        workshop.check_program("program");
        workshop.ok("cc -S program.c -o - ").find("__tsan_write4").unwrap();
    });
}

#[test]
fn several_sources_and_objects_in_one_command() {
    with_each(|workshop| {
        workshop.ok("cc -c two.c");
        workshop.ok("cc -Werror one.c two.o -o mixed");
        workshop.ok("cc one.c two.c -Werror -o both");
        for program in ["mixed", "both"] {
            workshop.check_linked(program);
            assert_eq!(workshop.run(program), (String::new(), Some(0)));
        }
    });
}

#[test]
fn shared_libraries_with_all_symbols_defined() {
    with_each(|workshop| {
        workshop.ok("cc -Werror -shared -fPIC -Wl,-z,defs -Wl,--as-needed two.c -o libtwo.so");
        workshop.check_linked("libtwo.so");
        workshop.ok("cc -c -fPIC two.c -o two.lo");
        workshop.ok("cc -shared -nostdlib two.lo -lc -o libtwo.so");
        workshop.check_linked("libtwo.so");
        workshop.ok("cc one.c -L. -ltwo -Wl,-rpath,$ORIGIN -o one");
        workshop.check_linked("one");
        assert_eq!(workshop.run("one"), (String::new(), Some(0)));
    });
}

#[test]
fn cxx_programs() {
    with_each(|workshop| {
        workshop.ok("c++ -Wall -Werror program.cc -o program");
        workshop.check_linked("program");
        assert_eq!(workshop.run("program"), ("round 1\n".into(), Some(0)));
        workshop.ok("c++ -O2 -c program.cc");
        workshop.ok("c++ program.o -o again");
        assert_eq!(workshop.run("again"), ("round 1\n".into(), Some(0)));
    });
}

#[test]
fn dependency_files_are_those_of_the_compiler() {
    const FILES: [&str; 4] = ["x.d", "d", "depends.d", "x-depends.d"];
    with_each(|workshop| {
        workshop.write("depends.c", "#include \"size.h\"\nint main(void) { return SIZE; }\n");
        let written = |command: &mut Command| {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
            let read = |name| std::fs::read_to_string(workshop.path(name)).unwrap_or_default();
            let files = FILES.map(read);
            FILES.iter().for_each(|name| std::fs::remove_file(workshop.path(name)).unwrap_or_default());
            (text(&output.stdout), files)
        };
        for line in
            ["-MD -c depends.c -o x.o", "-MMD -MP depends.c -o x", "-MMD -MF d -MT t -c depends.c", "-MM depends.c"]
        {
            let plain = written(&mut workshop.command(workshop.compilers.0, line));
            assert!(plain.0.contains("size.h") || plain.1.iter().any(|file| file.contains("size.h")), "{line}");
            let mut ours = written(&mut workshop.portent(&format!("cc {line}")));
            if workshop.compilers == CLANG && line.ends_with("-o x") {
                // The target is then clang's temporary object, with a random name.
                ours = (ours.0, ours.1.map(|file| file.split_once(':').map_or(file.clone(), |pair| pair.1.into())));
                assert!(plain.1.iter().zip(&ours.1).all(|(plain, ours)| plain.ends_with(ours)), "{plain:?} {ours:?}");
            } else {
                assert_eq!(ours, plain, "{line}");
            }
        }
    });
}

#[test]
fn preprocessing_sees_the_macros_of_the_compilation() {
    with_each(|workshop| {
        workshop.write(
            "macro.c",
            "#if defined(__has_feature)\n#if __has_feature(thread_sanitizer)\nint yes;\n#endif\n\
             #elif defined(__SANITIZE_THREAD__)\nint yes;\n#endif\n",
        );
        assert!(workshop.ok("cc -E macro.c").contains("int yes;"));
        let mut piped = workshop.portent("cc -E -x c -");
        let output = piped.stdin(std::fs::File::open(workshop.path("macro.c")).unwrap()).output().unwrap();
        assert!(text(&output.stdout).contains("int yes;"));
        // In a command that also links, and with the preprocessor as a step of its own.
        workshop.write("use.c", "#include \"macro.c\"\nint main(void) { return yes; }\n");
        workshop.ok("cc use.c -o use");
        workshop.ok("cc -save-temps -g0 use.c -o use");
        assert_eq!(workshop.run("use").1, Some(0));
    });
}

#[test]
fn sources_from_standard_input_and_of_a_named_language() {
    with_each(|workshop| {
        let mut piped = workshop.portent("cc -x c - -o program");
        let output = piped.stdin(std::fs::File::open(workshop.path("program.c")).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        workshop.check_program("program");
        std::fs::copy(workshop.path("program.c"), workshop.path("program.txt")).unwrap();
        workshop.ok("cc -xc program.txt -o named");
        workshop.check_program("named");
    });
}

#[test]
fn response_files() {
    with_each(|workshop| {
        workshop.write("inner", "-fsanitize=thread\n'program.c'");
        workshop.write("outer", "-o \"in file\" @inner");
        workshop.ok("cc @outer");
        workshop.check_program("in file");
        workshop.write("compile", "-c program.c");
        workshop.ok("cc @compile -Werror");
        assert!(workshop.is_instrumented("program.o"));
    });
}

#[test]
fn the_users_own_sanitizers() {
    with_each(|workshop| {
        workshop.ok("cc -fsanitize=thread program.c -o program");
        workshop.check_program("program");
        workshop.ok("cc -fsanitize=thread,undefined -c program.c");
        workshop.ok("cc -fsanitize=thread,undefined program.o -o program");
        workshop.check_program("program");
        // Not both: the compiler says so itself.
        let output = workshop.portent("cc -fsanitize=address -c program.c").output().unwrap();
        assert!(text(&output.stderr).contains("thread"), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1));
        // A file may opt out, and links with others that did not.
        workshop.ok("cc -fno-sanitize=thread -c two.c");
        assert!(!workshop.read("two.o").contains("__tsan"));
        workshop.ok("cc one.c two.o -o one");
        assert_eq!(workshop.run("one").1, Some(0));
    });
}

#[test]
fn link_time_optimisation() {
    with_each(|workshop| {
        if workshop.compilers == CLANG && !there_is("ld.lld") {
            return skipped("clang's link-time optimisation", "no ld.lld on this machine");
        }
        let linker = if workshop.compilers == CLANG { "-fuse-ld=lld" } else { "-Wall" };
        workshop.ok(&format!("cc -O2 -flto {linker} program.c -o program"));
        workshop.check_program("program");
        workshop.ok("cc -O2 -flto -c program.c");
        workshop.ok(&format!("cc -flto {linker} program.o -o program"));
        workshop.check_program("program");
    });
}

#[test]
fn objects_linked_into_one_object_and_plain_assembly() {
    with_each(|workshop| {
        workshop.ok("cc -c one.c two.c");
        workshop.ok("cc -Werror -nostdlib -r one.o two.o -o three.o");
        workshop.ok("cc three.o -o three");
        workshop.ok("cc -Werror -nostdlib -r one.c -o one.r.o");
        assert!(workshop.is_instrumented("one.r.o") && !workshop.read("one.r.o").contains("ThreadSanitizer"));
        workshop.ok("cc one.r.o two.o -o four");
        assert_eq!(workshop.run("three").1, Some(0));
        workshop.ok("cc -S one.c");
        workshop.ok("cc -Werror -c one.s");
        workshop.ok("cc -Werror one.s two.o -o one");
        assert_eq!(workshop.run("one").1, Some(0));
    });
}

#[test]
fn questions_and_mistakes_get_the_compilers_own_answers() {
    with_each(|workshop| {
        workshop.write("wrong.c", "int main(void) { return 1 + ; }\n");
        for line in [
            "--version",
            "--help",
            "-dumpmachine",
            "-print-search-dirs",
            "",
            "-o",
            "-c missing.c",
            "wrong.c",
            "-fnonsense",
        ] {
            let plain = workshop.command(workshop.compilers.0, line).output().unwrap();
            same(&workshop.portent(&format!("cc {line}")).output().unwrap(), &plain);
        }
        let undefined = workshop.portent("cc one.c").output().unwrap();
        assert_eq!(undefined.status.code(), Some(1));
        assert!(text(&undefined.stderr).contains("undefined reference to `two'"));
    });
}

#[test]
fn static_programs_are_refused_with_a_reason_but_static_objects_are_not() {
    with_each(|workshop| {
        for line in ["cc -static program.c", "cc program.c -static-pie"] {
            let output = workshop.portent(line).output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            let said = text(&output.stderr);
            assert!(said.starts_with("error: a statically linked program cannot be recorded"), "{said}");
            assert!(said.contains("\nhelp: link without -static"), "{said}");
        }
        workshop.ok("cc -static -c program.c");
        workshop.ok("cc -static-libgcc program.o -o program");
        workshop.check_program("program");
    });
}

#[test]
fn the_compiler_may_be_several_words_or_missing_or_portent_itself() {
    with_each(|workshop| {
        let said = |command: &mut Command| {
            let output = command.output().unwrap();
            (output.status.code(), text(&output.stderr))
        };
        let words = format!(" env  {} -DWORDS ", workshop.compilers.0);
        workshop.write("words.c", "#ifndef WORDS\n#error no\n#endif\nint main(void) { return 3; }\n");
        assert_eq!(said(workshop.portent("cc words.c -o words").env("PORTENT_CC", words)), (Some(0), String::new()));
        assert_eq!(workshop.run("words").1, Some(3));

        let (code, text) = said(workshop.portent("cc -c one.c").env("PORTENT_CC", "no-such-compiler"));
        assert_eq!(code, Some(3));
        assert!(text.starts_with("error: the compiler no-such-compiler could not be started: "), "{text}");
        let (code, text) =
            said(workshop.portent("c++ -c one.c").env_remove("PORTENT_CXX").env("PATH", workshop.directory()));
        assert_eq!(code, Some(3));
        assert!(
            text.starts_with("error: no compiler found: none of g++, c++, clang++ is on the search path"),
            "{text}"
        );
        assert!(text.contains("\nhelp: install one") && text.contains("PORTENT_CXX"), "{text}");

        let (code, text) = said(workshop.portent("cc -c one.c").env("PORTENT_CC", PORTENT.program));
        assert_eq!(code, Some(2));
        assert!(text.starts_with("error: PORTENT_CC names portent itself\nhelp: "), "{text}");
    });
}

#[test]
fn a_link_by_the_name_of_portent_cc_is_the_command() {
    with_each(|workshop| {
        std::os::unix::fs::symlink(PORTENT.program, workshop.path("portent-cc")).unwrap();
        let output = workshop.command(workshop.path("portent-cc"), "program.c -o program").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        workshop.check_program("program");
    });
}

#[test]
fn a_home_that_cannot_be_written_to_is_no_obstacle() {
    with_each(|workshop| {
        // A file in the way stops even root.
        workshop.write("home", "");
        let (home, temporary) = (workshop.path("home"), workshop.path("temporary"));
        std::fs::create_dir(&temporary).unwrap();
        let build = |temporary: &Path| {
            let mut command = workshop.portent("cc program.c -o program");
            command.env_remove("PORTENT_CACHE").env_remove("XDG_CACHE_HOME");
            command.env("HOME", &home).env("TMPDIR", temporary).output().unwrap()
        };
        let output = build(&temporary);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(workshop.run("program").1, Some(7));
        let mut left = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.any(|name| name.to_string_lossy().starts_with("portent-of-")));
        let output = build(&home);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(
            said.starts_with("error: the runtime could not be unpacked: ")
                && said.contains("\nhelp: set PORTENT_CACHE")
        );
    });
}
