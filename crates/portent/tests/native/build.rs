//! Building test programs, each once, and keeping the result until its source or the command changes.

use crate::program::{Linking, Program, directory};
use crate::run::run;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Builder {
    /// `portent cc`, `portent c++`
    Portent,
    /// The compiler, without instrumentation.
    Plain,
    /// The compiler with its own `-fsanitize=thread`, compiling and linking.
    ThreadSanitizer,
}

/// A program that was built.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) binary: PathBuf,
    /// What the program needs as its last argument.
    pub(crate) library: Option<PathBuf>,
}

/// The command under test.
pub(crate) fn portent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portent"));
    command.env("NO_COLOR", "1").env("PORTENT_CACHE", scratch().join("cache"));
    command
}

/// A directory that stays from run to run.
pub(crate) fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
        std::fs::create_dir_all(path.join("built")).expect("the target directory can be written");
        path
    })
}

/// Why nothing can be recorded on this machine; `None` if it can.
pub(crate) fn unsupported() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Some("recording needs Linux on x86-64 with glibc".into());
    }
    let missing = |compiler: &&str| Command::new(compiler).arg("--version").output().is_err();
    ["gcc", "g++"].into_iter().find(missing).map(|compiler| format!("there is no {compiler}"))
}

type Result = std::result::Result<Built, String>;

/// The program, built; at most one thread builds it, and only if it has changed.
pub(crate) fn build(program: &Program, builder: Builder) -> Result {
    type Slots = Mutex<HashMap<(PathBuf, Builder), Arc<OnceLock<Result>>>>;
    static SLOTS: OnceLock<Slots> = OnceLock::new();
    let slot = {
        let mut slots = SLOTS.get_or_init(Slots::default).lock().unwrap_or_else(|poison| poison.into_inner());
        slots.entry((program.source.clone(), builder)).or_default().clone()
    };
    slot.get_or_init(|| build_now(program, builder)).clone()
}

fn build_now(program: &Program, builder: Builder) -> Result {
    let library = match &program.library {
        None => None,
        Some((name, linking)) => {
            let source = directory().join("lib").join(format!("{name}.c"));
            let flags = ["-shared".into(), "-fPIC".into()];
            Some((compile(&source, false, &format!("{}-lib{name}.so", program.name), &flags, builder)?, linking))
        }
    };
    let mut flags = program.build.clone();
    if let Some((path, Linking::Linked)) = &library {
        flags.push(path.display().to_string());
        flags.push(format!("-Wl,-rpath,{}", path.parent().expect("it lies in a directory").display()));
    }
    let binary = compile(&program.source, program.is_cxx(), &program.name, &flags, builder)?;
    let library = library.and_then(|(path, linking)| (*linking == Linking::Opened).then_some(path));
    Ok(Built { binary, library })
}

fn compile(
    source: &Path,
    cxx: bool,
    name: &str,
    flags: &[String],
    builder: Builder,
) -> std::result::Result<PathBuf, String> {
    let text = std::fs::read(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut hasher = DefaultHasher::new();
    (text, flags, builder).hash(&mut hasher);
    if builder == Builder::Portent && std::env::var_os("PORTENT_KEEP_BUILT").is_none() {
        // A changed command may compile differently.
        let command = std::fs::metadata(env!("CARGO_BIN_EXE_portent")).and_then(|file| file.modified());
        command.map_err(|error| error.to_string())?.hash(&mut hasher);
    }
    // The program's own name must stay: it is in error messages and in /proc/self/exe.
    let place = scratch().join("built").join(format!("{name}-{builder:?}"));
    let (binary, stamp) = (place.join(name), format!("{:x}", hasher.finish()));
    if std::fs::read_to_string(place.join("stamp")).is_ok_and(|found| found == stamp) && binary.exists() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let mut command = match builder {
        Builder::Portent => portent(),
        _ => Command::new(if cxx { "g++" } else { "gcc" }),
    };
    match builder {
        Builder::Portent => drop(command.arg(if cxx { "c++" } else { "cc" })),
        Builder::Plain => {}
        Builder::ThreadSanitizer => drop(command.arg("-fsanitize=thread")),
    }
    command.arg(if cxx { "-std=c++20" } else { "-std=gnu11" }).args(["-O1", "-g", "-pthread", "-o"]);
    command.arg(&binary).arg(source).args(flags);
    let outcome = run(&mut command, &place, "", Duration::from_secs(120));
    if !outcome.exited_with(0) {
        return Err(format!("does not build\n{}", outcome.describe()));
    }
    std::fs::write(place.join("stamp"), stamp).map_err(|error| error.to_string())?;
    Ok(binary)
}
