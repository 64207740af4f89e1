//! What the tests of a suite are called: `ctest` and `meson test` know that, and the processes that they start do not.
//!
//! The driver is asked for its list of tests, and a process that was started with the command line of one is told by its name.

use portent_native::run::family::Member;
use portent_native::run::launch::Invocation;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// The tests that a driver runs, as far as it tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suite {
    tests: Vec<Test>,
}

impl Suite {
    /// The tests of a driver; none of one that has no list.
    pub(crate) fn of(driver: &Invocation) -> Suite {
        let given = driver.arguments.get(1..).unwrap_or_default();
        let called = driver.program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (question, tests) = match called {
            "ctest" | "ctest3" => ([given, &["--show-only=json-v1".into()]].concat(), "/tests"),
            "meson" if given.first().is_some_and(|word| word == "test") => {
                (["introspect".into(), "--tests".into()].into_iter().chain(meson_directory(given)).collect(), "")
            }
            _ => return Suite::default(),
        };
        let mut ask = Command::new(&driver.program);
        ask.args(question).current_dir(&driver.directory).env_clear().envs(driver.environment.iter().cloned());
        let Ok(answer) = ask.stdin(Stdio::null()).stderr(Stdio::null()).output() else { return Suite::default() };
        let document: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        let listed = document.pointer(tests).and_then(Value::as_array);
        Suite { tests: listed.into_iter().flatten().filter_map(Test::read).collect() }
    }

    /// What the test is called that a process was started for, if it is one.
    pub(crate) fn test_of(&self, process: &Member) -> Option<&str> {
        let (program, arguments) = process.command();
        let is_it = |test: &&Test| test.arguments == arguments && same_file(&test.program, program);
        self.tests.iter().find(is_it).map(|test| test.name.as_str())
    }
}

impl Test {
    fn read(told: &Value) -> Option<Test> {
        // What meson calls `cmd`, ctest calls `command`.
        let command = told.get("command").or_else(|| told.get("cmd"))?.as_array()?;
        let mut words = command.iter().map(|word| word.as_str().map(OsString::from));
        let name = told.get("name")?.as_str()?.to_owned();
        Some(Test { name, program: words.next()??.into(), arguments: words.collect::<Option<_>>()? })
    }
}

/// Where `meson test` finds the build: `-C build`. Without that, here.
fn meson_directory(given: &[OsString]) -> Vec<OsString> {
    let named = given.iter().position(|word| word == "-C").and_then(|at| given.get(at + 1)).cloned();
    let joined = || given.iter().find_map(|word| word.to_str()?.strip_prefix("-C").map(OsString::from));
    vec![named.or_else(joined).unwrap_or_else(|| ".".into())]
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lists_of_tests_are_read() {
        let told = serde_json::json!({ "name": "racy", "command": ["/b/cases", "--filter=racy"] });
        let test = Test::read(&told).unwrap();
        assert_eq!((&*test.name, test.program.as_path()), ("racy", Path::new("/b/cases")));
        let told = serde_json::json!({ "name": "racy", "cmd": ["/b/cases", "--filter=racy"], "suite": [] });
        assert_eq!(Test::read(&told), Some(test));
        assert_eq!(Test::read(&serde_json::json!({ "name": "disabled" })), None, "ctest lists tests without a command");
    }

    #[test]
    fn the_directory_of_a_meson_build_is_the_one_that_was_named() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(meson_directory(&words("test -C build -v")), ["build"]);
        assert_eq!(meson_directory(&words("test -Cbuild")), ["build"]);
        assert_eq!(meson_directory(&words("test racy")), ["."]);
    }
}
