//! Portent under Portent: the threads of a prediction, recorded, predicted and replayed.
//!
//! Rust programs need instrumentation that only the compiler's unstable options give, and a standard library built with it:
//! without that, what its locks do is not seen. docs/src/howto/rust.md says the same to users.
//!
//! Tests start in the order of their names: this one takes longest, mostly on one core, and so is among the first.

use crate::PORTENT;
use portent_testing::{repository, skipped};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TARGET: &str = "x86_64-unknown-linux-gnu";

const TEST: &str = "Portent under Portent";

fn output(command: &mut Command) -> Option<Output> {
    command.output().ok()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether the standard library's source is there; fetched where that is possible.
fn has_source(workspace: &Path) -> bool {
    let there = || {
        let root = output(Command::new("rustc").current_dir(workspace).args(["--print", "sysroot"]))?;
        let root = PathBuf::from(String::from_utf8(root.stdout).ok()?.trim());
        root.join("lib/rustlib/src/rust/library/Cargo.lock").exists().then_some(())
    };
    if there().is_none() {
        output(Command::new("rustup").current_dir(workspace).args(["component", "add", "rust-src"]));
    }
    there().is_some()
}

#[test]
fn the_threads_of_a_prediction_have_no_races_and_no_deadlocks() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return skipped(TEST, "recording needs Linux on x86-64 with glibc");
    }
    let workspace = repository();
    if !has_source(&workspace) {
        return skipped(TEST, "the source of Rust's standard library is not there: rustup component add rust-src");
    }
    let directory = Path::new(PORTENT.folder).join("own");
    std::fs::create_dir_all(&directory).unwrap();
    // A linker has to be one word.
    let linker = directory.join("portent-cc");
    let _ = std::fs::remove_file(&linker);
    std::os::unix::fs::symlink(PORTENT.program, &linker).unwrap();
    let flags = format!(
        "-Zsanitizer=thread -Zexternal-clangrt -Cunsafe-allow-abi-mismatch=sanitizer \
         -Cllvm-args=-tsan-instrument-read-before-write=1 -Clinker-flavor=gcc -Clinker={}",
        linker.display()
    );
    let built = Command::new(env!("CARGO"))
        .current_dir(&workspace)
        .args([
            "build",
            // The workspace leaves dependencies unoptimised; this program is recorded, event by event.
            "--config",
            "profile.dev.package.\"*\".opt-level=1",
            "-Zbuild-std=std,panic_unwind",
            "--target",
            TARGET,
            "-p",
            "portent-predict",
            "--example",
            "jobs",
        ])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags)
        // The standard library takes a minute or two; less of it is needed than usual.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .env("PORTENT_CACHE", PORTENT.cache())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    let checked = PORTENT
        .command()
        .current_dir(&directory)
        // Complete, and nothing but what can happen: the optimistic model has hundreds of candidates here, none of which can.
        // Few tries around it: each takes a second, and none is needed for what is predicted.
        .args(["check", "--kind", "race,deadlock", "--model", "reads", "--strict", "--tries", "4", "--"])
        .arg(directory.join("target").join(TARGET).join("debug/examples/jobs"))
        .output()
        .unwrap();
    let said = text(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.contains("no failure"), "{said}");
    let threads = said.contains("2 findings; with three threads 2");
    assert!(threads, "the program itself says what it found: {said}");
}
