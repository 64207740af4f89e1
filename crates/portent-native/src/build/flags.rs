//! The flags that make a compiler instrument, and a linker link Portent's runtime in place of libtsan.
//!
//! | flag | why |
//! |---|---|
//! | `-O1 -g`, before the user's own, which win | few but all accesses of shared memory; source lines |
//! | `-fno-inline-functions` and others (gcc), `-finline-hint-functions` (clang), likewise | functions are atomic blocks: one that is inlined is none. Those marked `inline` still are |
//! | `-fsanitize=thread` | every access becomes a call into the runtime |
//! | `-fno-omit-frame-pointer` | call stacks |
//! | `-fno-builtin-memcpy` and others | gcc expands small copies and comparisons into instructions that it does not instrument |
//! | `-U_FORTIFY_SOURCE` | the fortified headers reach the same built-ins by another name |
//! | `-Wno-tsan` (gcc) | gcc warns that libtsan ignores fences; this runtime does not |
//! | `-idirafter` and the runtime's directory | `<portent.h>`, after every directory of the user's and the system's |
//! | `-mllvm -tsan-instrument-read-before-write=1` (clang) | otherwise the read in `x++` is not reported |
//!
//! `-fsanitize=thread` must not reach a driver that links: it would link libtsan as well. So it is turned off there,
//! whatever the user said, and given to the compiler proper alone: by a specs file for gcc, by `-Xclang` for clang. One
//! command thus stays one command, with the same names of outputs and dependency files as ever.
//!
//! Not used: gcc's `--param tsan-distinguish-volatile=1`. A volatile access is an access; calls of its own would add nothing
//! and could not be linked with libtsan any more.

use super::compiler::Family;
use super::request::{Linking, Request};
use crate::Error;
use crate::run::library::SPECS_NAME;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The functions that gcc expands, unseen, when their sizes are known. Clang instruments the accesses it makes of them,
/// except for copies, which it leaves alone.
const GCC_BUILTINS: [&str; 13] = [
    "memcpy", "memmove", "memset", "memcmp", "bcmp", "bzero", "strcpy", "stpcpy", "strncpy", "strcat", "strncat",
    "strcmp", "strncmp",
];
const CLANG_BUILTINS: [&str; 3] = ["memcpy", "memmove", "memset"];

/// The user's arguments with ours around them. `directory` gives the runtime's; only linking cannot do without.
pub fn instrumented(
    arguments: &[OsString],
    family: Family,
    directory: impl FnOnce() -> Result<PathBuf, Error>,
) -> Result<Vec<OsString>, Error> {
    let request = Request::of(arguments);
    let compiles = request.compiles && !request.opted_out;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if compiles {
        before.extend(words("-O1 -g"));
        before.extend(words(match family {
            Family::Gcc => "-fno-inline-functions -fno-inline-small-functions -fno-inline-functions-called-once",
            Family::Clang => "-finline-hint-functions",
        }));
        after.extend(compiling(family));
    }
    let needed = compiles || request.links != Linking::Nothing;
    let statically = request.statically && request.links == Linking::Whole;
    let directory = (needed && !statically).then(directory);
    if let (true, Some(Ok(directory))) = (compiles, &directory) {
        after.extend(["-idirafter".into(), directory.into()]);
    }
    if request.links == Linking::Nothing {
        after.extend(compiles.then_some("-fsanitize=thread".into()));
    } else {
        let Some(directory) = directory else {
            return Err(Error::refused(
                "a statically linked program cannot be recorded: the runtime is a shared library",
                "link without -static, or build this program with the compiler itself",
            ));
        };
        let directory = directory?;
        if request.links == Linking::Whole {
            before.extend(linking(&directory));
        }
        after.push("-fno-sanitize=thread".into());
        match family {
            // Without sources, too: with -flto, linking compiles.
            Family::Gcc if !request.opted_out => before.push(joined("-specs=", &directory.join(SPECS_NAME))),
            Family::Clang if compiles => after.extend(words("-Xclang -fsanitize=thread")),
            _ => {}
        }
    }
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (options, files) = arguments.split_at(end);
    Ok([&before, options, &after, files].concat())
}

fn compiling(family: Family) -> Vec<OsString> {
    let mut flags: Vec<_> = words("-fno-omit-frame-pointer -U_FORTIFY_SOURCE").collect();
    let builtins = match family {
        Family::Gcc => {
            flags.push("-Wno-tsan".into());
            &GCC_BUILTINS[..]
        }
        Family::Clang => {
            flags.extend(words("-mllvm -tsan-instrument-read-before-write=1"));
            &CLANG_BUILTINS[..]
        }
    };
    flags.extend(builtins.iter().map(|name| format!("-fno-builtin-{name}").into()));
    flags
}

/// The runtime, before anything the user links: it must come before libc when symbols are looked up.
fn linking(directory: &Path) -> Vec<OsString> {
    let mut flags = vec![joined("-L", directory)];
    flags.extend(words(
        "-Wl,--push-state,--no-as-needed,-Bdynamic -lportent_runtime -Wl,--pop-state -Wl,--enable-new-dtags",
    ));
    // Not -Wl, which would split a path at its commas.
    flags.extend(words("-Xlinker -rpath -Xlinker"));
    flags.push(directory.into());
    flags
}

fn words(text: &str) -> impl Iterator<Item = OsString> {
    text.split(' ').map(OsString::from)
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &str, family: Family) -> String {
        let arguments: Vec<_> = arguments.split_whitespace().map(OsString::from).collect();
        let all = instrumented(&arguments, family, || Ok("/r,t".into())).unwrap();
        all.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn questions_and_what_opted_out_pass_as_they_are() {
        for arguments in ["--version", "-print-search-dirs", "-c a.s", "-fno-sanitize=thread -c a.c"] {
            assert_eq!(line(arguments, Family::Gcc), arguments);
            assert_eq!(line(arguments, Family::Clang), arguments);
        }
    }

    #[test]
    fn the_users_flags_win_over_the_level_and_ours_over_the_rest() {
        let gcc = line("-O3 -c a.c", Family::Gcc);
        assert!(gcc.starts_with("-O1 -g -fno-inline-functions "), "{gcc}");
        assert!(gcc.contains(" -O3 -c a.c -fno-omit-frame-pointer "), "{gcc}");
        assert!(gcc.ends_with(" -idirafter /r,t -fsanitize=thread") && !gcc.contains("-L/r,t"), "{gcc}");
        let clang = line("-c -- a.c", Family::Clang);
        assert!(clang.starts_with("-O1 -g -finline-hint-functions -c -fno-omit"), "{clang}");
        assert!(clang.ends_with(" -fsanitize=thread -- a.c"), "{clang}");
    }

    #[test]
    fn drivers_that_link_do_not_hear_of_the_instrumentation() {
        let runtime = "-L/r,t -Wl,--push-state,--no-as-needed,-Bdynamic -lportent_runtime -Wl,--pop-state \
            -Wl,--enable-new-dtags -Xlinker -rpath -Xlinker /r,t";
        assert_eq!(
            line("a.o -fsanitize=thread", Family::Gcc),
            format!("{runtime} -specs=/r,t/gcc.specs a.o -fsanitize=thread -fno-sanitize=thread")
        );
        assert_eq!(line("a.o", Family::Clang), format!("{runtime} a.o -fno-sanitize=thread"));
        assert_eq!(line("-r a.o", Family::Clang), "-r a.o -fno-sanitize=thread");
        let both = line("a.c", Family::Gcc);
        assert!(
            both.starts_with("-O1 -g -fno-inline")
                && both.contains(" -L/r,t ")
                && both.ends_with(" -fno-sanitize=thread"),
            "{both}"
        );
        assert!(line("a.c", Family::Clang).ends_with(" -fno-sanitize=thread -Xclang -fsanitize=thread"));
    }

    #[test]
    fn static_programs_are_refused_but_not_static_objects() {
        let arguments = ["-static".into(), "a.o".into()];
        let refused = instrumented(&arguments, Family::Gcc, || Ok("/r".into())).unwrap_err();
        assert!(refused.to_string().starts_with("a statically linked program cannot be recorded"));
        assert!(line("-static -c a.c", Family::Gcc).contains("-fsanitize=thread"));
    }
}
