//! Compiles inside/ into the shared library that the crate embeds: rustc alone, no cargo, no dependencies, so that it
//! works the same from a checkout, from a packaged crate and under `cargo install`.
//!
//! Flags of the user's that say how to link (`RUSTC_LINKER`, `-C linker…`, `-C link-arg…` in RUSTFLAGS) are kept, because
//! without them nothing may link on this machine. All others are left out: the runtime is loaded into other people's
//! programs and must not depend on how the command was built.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=inside");
    println!("cargo::rerun-if-changed=src");
    let out = PathBuf::from(variable("OUT_DIR")).join("libportent_runtime.so");
    let target = variable("TARGET");
    if target != "x86_64-unknown-linux-gnu" {
        println!("cargo::warning=recording and replaying need Linux on x86-64 with glibc; this build cannot do it");
        write_empty(&out);
    } else {
        compile(&out, &target);
    }
    let library = match std::fs::read(&out) {
        Ok(library) => library,
        Err(error) => fail(&format!("{}: {error}", out.display())),
    };
    println!("cargo::rustc-env=PORTENT_RUNTIME_HASH={:016x}", hash(&library));
}

fn compile(out: &PathBuf, target: &OsString) {
    let rustc = variable("RUSTC");
    let mut remap = variable("CARGO_MANIFEST_DIR");
    remap.push("=portent-runtime");
    // The line tables of std are four fifths of the library; they help only those who debug the runtime.
    let strip = if variable("PROFILE") == "release" { "strip=debuginfo" } else { "strip=none" };
    let status = Command::new(&rustc)
        .args(["--crate-name", "portent_runtime", "--crate-type", "cdylib", "--edition", "2024", "--target"])
        .arg(target)
        .args(["-C", "opt-level=3", "-C", "codegen-units=1", "-C", "panic=unwind", "-C", "debuginfo=line-tables-only"])
        .args(["-C", "overflow-checks=off", "-C", "link-arg=-Wl,-soname,libportent_runtime.so"])
        .args(["-C", "link-arg=-Wl,-z,now", "-C", strip, "--cap-lints", "allow"])
        // The same sources make the same library wherever they lie.
        .arg("--remap-path-prefix")
        .arg(remap)
        .args(how_to_link())
        .arg("-o")
        .arg(out)
        .arg("inside/lib.rs")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "the runtime in inside/ did not compile: {} ended with {status}; what it said is above. Compiling it needs the \
             standard library for {} and a C linker",
            rustc.display(),
            target.display()
        )),
        Err(error) => fail(&format!("{} could not be started to compile the runtime: {error}", rustc.display())),
    }
}

/// The user's settings of the linker, and nothing else of RUSTFLAGS.
fn how_to_link() -> Vec<String> {
    let mut kept = Vec::new();
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        kept.push(format!("-Clinker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut flags = flags.split('\x1f');
    while let Some(flag) = flags.next() {
        let option = match flag {
            "-C" | "--codegen" => flags.next().unwrap_or_default(),
            _ => flag.strip_prefix("-C").or(flag.strip_prefix("--codegen=")).unwrap_or_default(),
        };
        if option.starts_with("linker") || option.starts_with("link-arg") || option.starts_with("link-self-contained") {
            kept.push(format!("-C{option}"));
        }
    }
    kept
}

/// FNV-1a: names the library; whoever unpacks it compares contents.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn write_empty(out: &PathBuf) {
    if let Err(error) = std::fs::write(out, []) {
        fail(&format!("{}: {error}", out.display()));
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
