//! `portent cc` and `portent c++`: the compiler, with instrumentation and the runtime added.
//!
//! The command becomes the compiler: output, exit status and signals are the compiler's own.

use crate::exit::ExitCode;
use crate::failure::Failure;
use portent_native::build::compiler::{Compiler, Language};
use portent_native::build::flags;
use portent_native::run::library;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The language and the arguments, if a command line is for the compiler. They are none of this command's own business:
/// `--help` and `--version` included, all go to the compiler. The command can also be called by the names `portent-cc` and
/// `portent-c++`, for build systems that want one word.
pub(crate) fn arguments(line: &[OsString]) -> Option<(Language, &[OsString])> {
    let name = line.first().and_then(|name| Path::new(name).file_name());
    match name.and_then(OsStr::to_str) {
        Some("portent-cc") => return Some((Language::C, &line[1..])),
        Some("portent-c++") => return Some((Language::Cxx, &line[1..])),
        _ => {}
    }
    match line.get(1)?.to_str()? {
        "cc" => Some((Language::C, &line[2..])),
        "c++" => Some((Language::Cxx, &line[2..])),
        _ => None,
    }
}

/// Whether C programs can be built at all.
pub(crate) fn ready() -> Result<(), Failure> {
    library::available()?;
    Ok(Compiler::find(Language::C).map(drop)?)
}

/// Builds a program of one C file, as `portent cc -pthread -o PROGRAM SOURCE` does.
pub(crate) fn build(source: &str, program: &str) -> Result<(), Failure> {
    let compiler = Compiler::find(Language::C)?;
    let arguments = ["-pthread", "-o", program, source].map(OsString::from);
    let said = compiler.run(&flags::instrumented(&arguments, compiler.family()?, library::directory)?)?;
    if said.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&said.stderr);
    Err(Failure::not_started(
        format!("{source} could not be built ({}):\n{}", said.status, words.trim_end()),
        "does the compiler build other programs with threads? PORTENT_CC names another one",
    ))
}

/// Becomes the compiler. Returns only when that is not possible.
pub(crate) fn run(language: Language, arguments: &[OsString]) -> Result<ExitCode, Failure> {
    library::available()?;
    let compiler = Compiler::find(language)?;
    let arguments = flags::instrumented(arguments, compiler.family()?, library::directory)?;
    Err(compiler.become_with(&arguments).into())
}
