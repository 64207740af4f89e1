//! `portent cc` and `portent c++` with the real compilers of this machine: gcc, and clang where there is one.
//!
//! Every test says loudly when it is skipped for want of a compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

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
fn with_each(test: impl Fn(&Place)) {
    for pair in [GCC, CLANG] {
        if Command::new(pair.0).arg("--version").stdout(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED: no {} on this machine", pair.0);
            continue;
        }
        eprintln!("with {}", pair.0);
        let place = Place { folder: TempDir::new().unwrap(), compilers: pair };
        place.write("program.c", PROGRAM);
        place.write("size.h", "#define SIZE 16\n");
        place.write("program.cc", PROGRAM_CXX);
        place.write("one.c", "int two(void);\nint shared;\nint main(void) { return two() + shared++; }\n");
        place.write("two.c", "int shared_two;\nint two(void) { return shared_two++; }\n");
        test(&place);
    }
}

/// A directory to build in, with a cache of its own.
struct Place {
    folder: TempDir,
    compilers: Pair,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }
    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))).into_owned()
    }
    fn command(&self, program: impl AsRef<Path>, line: &str) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(line.split_whitespace()).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PORTENT_CACHE", self.path("cache,of builds")).env("NO_COLOR", "1").env("LC_ALL", "C");
        command.env("PORTENT_CC", self.compilers.0).env("PORTENT_CXX", self.compilers.1);
        command
    }
    fn portent(&self, line: &str) -> Command {
        self.command(assert_cmd::cargo::cargo_bin!("portent"), line)
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
    with_each(|place| {
        place.ok("cc -Wall -Wextra -Werror program.c -o program");
        place.check_program("program");
        place.ok("cc program.c");
        place.check_program("a.out");
        place.ok("cc -O2 -D_FORTIFY_SOURCE=2 -Wall -Werror program.c -o fortified");
        place.check_program("fortified");
        // Copies of known size are calls, which the runtime sees.
        let symbols = place.read("fortified");
        assert!(symbols.contains("memset") && symbols.contains("memcpy") && !symbols.contains("_chk@"));
    });
}

#[test]
fn compiling_and_linking_apart() {
    with_each(|place| {
        place.ok("cc -Wall -Werror -c program.c");
        assert!(place.is_instrumented("program.o"));
        place.ok("cc -Wall -Werror program.o -o program -lpthread");
        place.check_program("program");
        place.ok("cc -S program.c -o - ").find("__tsan_write4").unwrap();
    });
}

#[test]
fn several_sources_and_objects_in_one_command() {
    with_each(|place| {
        place.ok("cc -c two.c");
        place.ok("cc -Werror one.c two.o -o mixed");
        place.ok("cc one.c two.c -Werror -o both");
        for program in ["mixed", "both"] {
            place.check_linked(program);
            assert_eq!(place.run(program), (String::new(), Some(0)));
        }
    });
}

#[test]
fn shared_libraries_with_all_symbols_defined() {
    with_each(|place| {
        place.ok("cc -Werror -shared -fPIC -Wl,-z,defs -Wl,--as-needed two.c -o libtwo.so");
        place.check_linked("libtwo.so");
        place.ok("cc -c -fPIC two.c -o two.lo");
        place.ok("cc -shared -nostdlib two.lo -lc -o libtwo.so");
        place.check_linked("libtwo.so");
        place.ok("cc one.c -L. -ltwo -Wl,-rpath,$ORIGIN -o one");
        place.check_linked("one");
        assert_eq!(place.run("one"), (String::new(), Some(0)));
    });
}

#[test]
fn cxx_programs() {
    with_each(|place| {
        place.ok("c++ -Wall -Werror program.cc -o program");
        place.check_linked("program");
        assert_eq!(place.run("program"), ("round 1\n".into(), Some(0)));
        place.ok("c++ -O2 -c program.cc");
        place.ok("c++ program.o -o again");
        assert_eq!(place.run("again"), ("round 1\n".into(), Some(0)));
    });
}

#[test]
fn dependency_files_are_those_of_the_compiler() {
    const FILES: [&str; 4] = ["x.d", "d", "depends.d", "x-depends.d"];
    with_each(|place| {
        place.write("depends.c", "#include \"size.h\"\nint main(void) { return SIZE; }\n");
        let written = |command: &mut Command| {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
            let read = |name| std::fs::read_to_string(place.path(name)).unwrap_or_default();
            let files = FILES.map(read);
            FILES.iter().for_each(|name| std::fs::remove_file(place.path(name)).unwrap_or_default());
            (text(&output.stdout), files)
        };
        for line in
            ["-MD -c depends.c -o x.o", "-MMD -MP depends.c -o x", "-MMD -MF d -MT t -c depends.c", "-MM depends.c"]
        {
            let plain = written(&mut place.command(place.compilers.0, line));
            assert!(plain.0.contains("size.h") || plain.1.iter().any(|file| file.contains("size.h")), "{line}");
            let mut ours = written(&mut place.portent(&format!("cc {line}")));
            if place.compilers == CLANG && line.ends_with("-o x") {
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
    with_each(|place| {
        place.write(
            "macro.c",
            "#if defined(__has_feature)\n#if __has_feature(thread_sanitizer)\nint yes;\n#endif\n\
             #elif defined(__SANITIZE_THREAD__)\nint yes;\n#endif\n",
        );
        assert!(place.ok("cc -E macro.c").contains("int yes;"));
        let mut piped = place.portent("cc -E -x c -");
        let output = piped.stdin(std::fs::File::open(place.path("macro.c")).unwrap()).output().unwrap();
        assert!(text(&output.stdout).contains("int yes;"));
        // In a command that also links, and with the preprocessor as a step of its own.
        place.write("use.c", "#include \"macro.c\"\nint main(void) { return yes; }\n");
        place.ok("cc use.c -o use");
        place.ok("cc -save-temps -g0 use.c -o use");
        assert_eq!(place.run("use").1, Some(0));
    });
}

#[test]
fn sources_from_standard_input_and_of_a_named_language() {
    with_each(|place| {
        let mut piped = place.portent("cc -x c - -o program");
        let output = piped.stdin(std::fs::File::open(place.path("program.c")).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        place.check_program("program");
        std::fs::copy(place.path("program.c"), place.path("program.txt")).unwrap();
        place.ok("cc -xc program.txt -o named");
        place.check_program("named");
    });
}

#[test]
fn response_files() {
    with_each(|place| {
        place.write("inner", "-fsanitize=thread\n'program.c'");
        place.write("outer", "-o \"in file\" @inner");
        place.ok("cc @outer");
        place.check_program("in file");
        place.write("compile", "-c program.c");
        place.ok("cc @compile -Werror");
        assert!(place.is_instrumented("program.o"));
    });
}

#[test]
fn the_users_own_sanitizers() {
    with_each(|place| {
        place.ok("cc -fsanitize=thread program.c -o program");
        place.check_program("program");
        place.ok("cc -fsanitize=thread,undefined -c program.c");
        place.ok("cc -fsanitize=thread,undefined program.o -o program");
        place.check_program("program");
        // Not both: the compiler says so itself.
        let output = place.portent("cc -fsanitize=address -c program.c").output().unwrap();
        assert!(text(&output.stderr).contains("thread"), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1));
        // A file may opt out, and links with others that did not.
        place.ok("cc -fno-sanitize=thread -c two.c");
        assert!(!place.read("two.o").contains("__tsan"));
        place.ok("cc one.c two.o -o one");
        assert_eq!(place.run("one").1, Some(0));
    });
}

#[test]
fn link_time_optimisation() {
    with_each(|place| {
        let lld = Command::new("ld.lld").arg("--version").stdout(Stdio::null()).status().is_ok();
        if place.compilers == CLANG && !lld {
            return eprintln!("SKIPPED: clang's link-time optimisation needs ld.lld");
        }
        let linker = if place.compilers == CLANG { "-fuse-ld=lld" } else { "-Wall" };
        place.ok(&format!("cc -O2 -flto {linker} program.c -o program"));
        place.check_program("program");
        place.ok("cc -O2 -flto -c program.c");
        place.ok(&format!("cc -flto {linker} program.o -o program"));
        place.check_program("program");
    });
}

#[test]
fn objects_linked_into_one_object_and_plain_assembly() {
    with_each(|place| {
        place.ok("cc -c one.c two.c");
        place.ok("cc -Werror -nostdlib -r one.o two.o -o three.o");
        place.ok("cc three.o -o three");
        place.ok("cc -Werror -nostdlib -r one.c -o one.r.o");
        assert!(place.is_instrumented("one.r.o") && !place.read("one.r.o").contains("ThreadSanitizer"));
        place.ok("cc one.r.o two.o -o four");
        assert_eq!(place.run("three").1, Some(0));
        place.ok("cc -S one.c");
        place.ok("cc -Werror -c one.s");
        place.ok("cc -Werror one.s two.o -o one");
        assert_eq!(place.run("one").1, Some(0));
    });
}

#[test]
fn questions_and_mistakes_get_the_compilers_own_answers() {
    with_each(|place| {
        place.write("wrong.c", "int main(void) { return 1 + ; }\n");
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
            let plain = place.command(place.compilers.0, line).output().unwrap();
            same(&place.portent(&format!("cc {line}")).output().unwrap(), &plain);
        }
        let undefined = place.portent("cc one.c").output().unwrap();
        assert_eq!(undefined.status.code(), Some(1));
        assert!(text(&undefined.stderr).contains("undefined reference to `two'"));
    });
}

#[test]
fn static_programs_are_refused_with_a_reason_but_static_objects_are_not() {
    with_each(|place| {
        for line in ["cc -static program.c", "cc program.c -static-pie"] {
            let output = place.portent(line).output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            let said = text(&output.stderr);
            assert!(said.starts_with("error: a statically linked program cannot be recorded"), "{said}");
            assert!(said.contains("\nhelp: link without -static"), "{said}");
        }
        place.ok("cc -static -c program.c");
        place.ok("cc -static-libgcc program.o -o program");
        place.check_program("program");
    });
}

#[test]
fn the_compiler_may_be_several_words_or_missing_or_portent_itself() {
    with_each(|place| {
        let said = |command: &mut Command| {
            let output = command.output().unwrap();
            (output.status.code(), text(&output.stderr))
        };
        let words = format!(" env  {} -DWORDS ", place.compilers.0);
        place.write("words.c", "#ifndef WORDS\n#error no\n#endif\nint main(void) { return 3; }\n");
        assert_eq!(said(place.portent("cc words.c -o words").env("PORTENT_CC", words)), (Some(0), String::new()));
        assert_eq!(place.run("words").1, Some(3));

        let (code, text) = said(place.portent("cc -c one.c").env("PORTENT_CC", "no-such-compiler"));
        assert_eq!(code, Some(3));
        assert!(text.starts_with("error: the compiler no-such-compiler could not be started: "), "{text}");
        let (code, text) =
            said(place.portent("c++ -c one.c").env_remove("PORTENT_CXX").env("PATH", place.folder.path()));
        assert_eq!(code, Some(3));
        assert!(
            text.starts_with("error: no compiler found: none of g++, c++, clang++ is on the search path"),
            "{text}"
        );
        assert!(text.contains("\nhelp: install one") && text.contains("PORTENT_CXX"), "{text}");

        let ourselves: OsString = assert_cmd::cargo::cargo_bin!("portent").into();
        let (code, text) = said(place.portent("cc -c one.c").env("PORTENT_CC", ourselves));
        assert_eq!(code, Some(2));
        assert!(text.starts_with("error: PORTENT_CC names portent itself\nhelp: "), "{text}");
    });
}

#[test]
fn a_link_by_the_name_of_portent_cc_is_the_command() {
    with_each(|place| {
        std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("portent"), place.path("portent-cc")).unwrap();
        let output = place.command(place.path("portent-cc"), "program.c -o program").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        place.check_program("program");
    });
}

#[test]
fn a_home_that_cannot_be_written_to_is_no_obstacle() {
    with_each(|place| {
        // A file in the way stops even root.
        place.write("home", "");
        let (home, temporary) = (place.path("home"), place.path("temporary"));
        std::fs::create_dir(&temporary).unwrap();
        let build = |temporary: &Path| {
            let mut command = place.portent("cc program.c -o program");
            command.env_remove("PORTENT_CACHE").env_remove("XDG_CACHE_HOME");
            command.env("HOME", &home).env("TMPDIR", temporary).output().unwrap()
        };
        let output = build(&temporary);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(place.run("program").1, Some(7));
        assert!(
            std::fs::read_dir(&temporary)
                .unwrap()
                .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("portent-of-") })
        );
        let output = build(&home);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(
            said.starts_with("error: the runtime could not be unpacked: ")
                && said.contains("\nhelp: set PORTENT_CACHE")
        );
    });
}
