//! Building test programs, each once, and keeping the result until its source or the command changes.

use super::{Linking, Program, directory};
use crate::command::{NOTHING, Portent, run};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builder {
    /// `portent cc`, `portent c++`
    Portent,
    /// The compiler, without instrumentation.
    Plain,
    /// The compiler with its own `-fsanitize=thread`, compiling and linking.
    ThreadSanitizer,
}

/// A program that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The program.
    pub binary: PathBuf,
    /// What the program needs as its last argument.
    pub library: Option<PathBuf>,
}

/// Why nothing can be recorded on this machine; `None` if it can.
pub fn unsupported() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Some("recording needs Linux on x86-64 with glibc".into());
    }
    let missing = |compiler: &&str| Command::new(compiler).arg("--version").output().is_err();
    ["gcc", "g++"].into_iter().find(missing).map(|compiler| format!("there is no {compiler}"))
}

type Result = std::result::Result<Built, String>;

/// The program, built; at most one thread builds it, and only if it has changed.
pub fn build(program: &Program, builder: Builder, portent: Portent) -> Result {
    type Slots = Mutex<HashMap<(PathBuf, Builder), Arc<OnceLock<Result>>>>;
    static SLOTS: OnceLock<Slots> = OnceLock::new();
    let slot = {
        let mut slots = SLOTS.get_or_init(Slots::default).lock().unwrap_or_else(|poison| poison.into_inner());
        slots.entry((program.source.clone(), builder)).or_default().clone()
    };
    slot.get_or_init(|| build_now(program, builder, portent)).clone()
}

fn build_now(program: &Program, builder: Builder, portent: Portent) -> Result {
    let library = match &program.library {
        None => None,
        Some((name, linking)) => {
            let source = directory().join("lib").join(format!("{name}.c"));
            let flags = ["-shared".into(), "-fPIC".into()];
            Some((
                compile(&source, false, &format!("{}-lib{name}.so", program.name), &flags, builder, portent)?,
                linking,
            ))
        }
    };
    let mut flags = program.build.clone();
    if let Some((path, Linking::Linked)) = &library {
        flags.push(path.display().to_string());
        flags.push(format!("-Wl,-rpath,{}", path.parent().expect("it lies in a directory").display()));
    }
    let binary = compile(&program.source, program.is_cxx(), &program.name, &flags, builder, portent)?;
    let library = library.and_then(|(path, linking)| (*linking == Linking::Opened).then_some(path));
    Ok(Built { binary, library })
}

fn compile(
    source: &Path,
    cxx: bool,
    name: &str,
    flags: &[String],
    builder: Builder,
    portent: Portent,
) -> std::result::Result<PathBuf, String> {
    let text = std::fs::read(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut hasher = DefaultHasher::new();
    (text, flags, builder).hash(&mut hasher);
    if builder == Builder::Portent && std::env::var_os("PORTENT_KEEP_BUILT").is_none() {
        // A changed command may compile differently.
        let command = std::fs::metadata(portent.program).and_then(|file| file.modified());
        command.map_err(|error| error.to_string())?.hash(&mut hasher);
    }
    // The program's own name must stay: it is in error messages and in /proc/self/exe.
    let folder = Path::new(portent.folder).join("built").join(format!("{name}-{builder:?}"));
    let (binary, stamp) = (folder.join(name), format!("{:x}", hasher.finish()));
    if std::fs::read_to_string(folder.join("stamp")).is_ok_and(|found| found == stamp) && binary.exists() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut command = match builder {
        Builder::Portent => portent.command(),
        _ => Command::new(if cxx { "g++" } else { "gcc" }),
    };
    match builder {
        Builder::Portent => drop(command.arg(if cxx { "c++" } else { "cc" })),
        Builder::Plain => {}
        Builder::ThreadSanitizer => drop(command.arg("-fsanitize=thread")),
    }
    command.arg(if cxx { "-std=c++20" } else { "-std=gnu11" }).args(["-O1", "-g", "-pthread", "-o"]);
    command.arg(&binary).arg(source).args(flags);
    let finished = run(&mut command, &folder, NOTHING, Duration::from_secs(120));
    if !finished.exited_with(0) {
        return Err(format!("does not build\n{}", finished.describe()));
    }
    std::fs::write(folder.join("stamp"), stamp).map_err(|error| error.to_string())?;
    Ok(binary)
}
