//! Compiles inside/ into the shared library that the crate embeds: rustc alone, no cargo, no dependencies, so that it
//! works the same from a checkout, from a packaged crate and under `cargo install`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=inside");
    println!("cargo::rerun-if-changed=src");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("libportent_runtime.so");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if target != "x86_64-unknown-linux-gnu" {
        println!("cargo::warning=recording and replaying need Linux on x86-64 with glibc; this build cannot do it");
        std::fs::write(&out, []).expect("OUT_DIR can be written");
        return;
    }
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let status = Command::new(rustc)
        .args(["--crate-name", "portent_runtime", "--crate-type", "cdylib", "--edition", "2024", "--target", &target])
        .args(["-C", "opt-level=3", "-C", "codegen-units=1", "-C", "panic=unwind", "-C", "debuginfo=line-tables-only"])
        .args(["-C", "overflow-checks=off", "-C", "link-arg=-Wl,-soname,libportent_runtime.so"])
        .args(["-C", "link-arg=-Wl,-z,now", "--cap-lints", "allow"])
        .arg("-o")
        .arg(&out)
        .arg("inside/lib.rs")
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "the runtime did not compile");
}
