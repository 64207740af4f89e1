//! Which compiler stands behind `portent cc` and `portent c++`, and what kind it is.
//!
//! `PORTENT_CC` and `PORTENT_CXX` name it, with words before and after it as in `ccache gcc -m64`; otherwise it is the
//! first of a few well-known names on the search path.

use crate::Error;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The language of the command: C or C++. It says which compiler, not what the sources are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cxx,
}

impl Language {
    /// The variable that names the compiler.
    fn variable(self) -> &'static str {
        match self {
            Language::C => "PORTENT_CC",
            Language::Cxx => "PORTENT_CXX",
        }
    }

    /// The names to look for, best first.
    fn names(self) -> [&'static str; 3] {
        match self {
            Language::C => ["gcc", "cc", "clang"],
            Language::Cxx => ["g++", "c++", "clang++"],
        }
    }
}

/// The two kinds of compiler, which want different flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// GNU.
    Gcc,
    /// LLVM.
    Clang,
}

/// A compiler, as the words that start it.
#[derive(Debug)]
pub struct Compiler {
    words: Vec<OsString>,
    language: Language,
}

impl Compiler {
    /// The compiler for a language.
    pub fn find(language: Language) -> Result<Self, Error> {
        let ourselves = env::current_exe().and_then(|path| path.canonicalize()).ok();
        let is_ourselves = |path: &Path| ourselves.is_some() && path.canonicalize().ok() == ourselves;
        let (variable, names) = (language.variable(), language.names());
        let words = words(&env::var_os(variable).unwrap_or_default());
        if let Some(first) = words.first() {
            if on_path(first).is_some_and(|path| is_ourselves(&path)) {
                return Err(Error::refused(
                    format!("{variable} names portent itself"),
                    format!("set it to the compiler that portent is to use, such as {}", names[0]),
                ));
            }
            return Ok(Self { words, language });
        }
        let found = names.into_iter().find(|name| on_path(name.as_ref()).is_some_and(|path| !is_ourselves(&path)));
        match found {
            Some(name) => Ok(Self { words: vec![name.into()], language }),
            None => Err(Error::not_started(
                format!("no compiler found: none of {} is on the search path", names.join(", ")),
                format!("install one (on Debian and Ubuntu: apt install {}), or name yours in {variable}", names[0]),
            )),
        }
    }

    /// What kind of compiler it is: by the names of its files, and only if they do not tell, by asking it.
    pub fn family(&self) -> Result<Family, Error> {
        for word in self.words.iter().filter(|word| !word.as_bytes().starts_with(b"-")) {
            // `cc` is often a link to the real one; `gcc` may be a link to ccache, or even to clang.
            let real = on_path(word).and_then(|path| path.canonicalize().ok());
            let family = real.as_deref().and_then(family_of_name).or_else(|| family_of_name(Path::new(word)));
            if let Some(family) = family {
                return Ok(family);
            }
        }
        let mut asked = self.command(&["--version".into()]);
        let answer = asked.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let answer = answer.map_err(|error| self.not_started(&error))?.stdout;
        let answer = String::from_utf8_lossy(&answer);
        let clang = ["clang", "InstalledDir"].iter().any(|mark| answer.contains(mark));
        Ok(if clang { Family::Clang } else { Family::Gcc })
    }

    /// Becomes the compiler; returns only if that fails.
    pub fn become_with(&self, arguments: &[OsString]) -> Error {
        self.not_started(&self.command(arguments).exec())
    }

    /// Runs the compiler, and returns what it says.
    pub fn run(&self, arguments: &[OsString]) -> Result<Output, Error> {
        self.command(arguments).stdin(Stdio::null()).output().map_err(|error| self.not_started(&error))
    }

    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(arguments);
        command
    }

    fn not_started(&self, error: &std::io::Error) -> Error {
        let variable = self.language.variable();
        Error::not_started(
            format!("the compiler {} could not be started: {error}", self.words[0].display()),
            format!("install it, or name another in {variable}"),
        )
    }
}

/// What the name of a compiler's file says of its kind.
fn family_of_name(path: &Path) -> Option<Family> {
    let name = path.file_name()?.to_str()?;
    if name.contains("clang") {
        Some(Family::Clang)
    } else if name.contains("gcc") || name.contains("g++") {
        Some(Family::Gcc)
    } else {
        None
    }
}

fn words(text: &OsStr) -> Vec<OsString> {
    let words = text.as_bytes().split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty()).map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

/// The file that starts when `name` is started.
fn on_path(name: &OsStr) -> Option<PathBuf> {
    let starts =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(starts);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_family() {
        let family = |name: &str| family_of_name(Path::new(name));
        assert_eq!(family("/usr/bin/x86_64-linux-gnu-g++-12"), Some(Family::Gcc));
        assert_eq!(family("clang++-19"), Some(Family::Clang));
        assert_eq!(family("/opt/clang/bin/cc"), None);
        assert_eq!(family("ccache"), None);
    }

    #[test]
    fn a_compiler_may_be_several_words() {
        assert_eq!(words("  ccache\tgcc -m64 ".as_ref()), ["ccache", "gcc", "-m64"]);
        assert!(words(" ".as_ref()).is_empty());
    }
}
