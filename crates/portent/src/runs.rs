//! Where the runs of a check are left for replays, and how one of its findings is found again.
//!
//! A check of `./bank` leaves everything in a directory of its own, `bank.checks/1`, the next one in `bank.checks/2`; `bank.portent`
//! is a link to the recorded run of the last, `bank.findings.json` to its findings. So nothing is overwritten, and a command that an earlier report printed still
//! shows its finding: what the last check does not know is looked for in the earlier ones. The last [`KEPT`] are kept. With
//! `--output` the run is left in that file and the rest beside it, over what was there.

use crate::failure::Failure;
use crate::reports::findings_beside;
use crate::terminal;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Checks of one program that are kept.
const KEPT: usize = 10;
const CHECKS: &str = "checks";

/// Where one check leaves its runs.
pub(crate) struct Home {
    /// A directory of its own, unless a file was named.
    directory: Option<PathBuf>,
    /// The recorded run of the program itself.
    trace: PathBuf,
    /// What commands call that.
    link: PathBuf,
}

impl Home {
    /// The file that was named.
    pub(crate) fn named(path: &Path) -> Home {
        Home { directory: None, trace: path.to_owned(), link: path.to_owned() }
    }

    /// A directory for the next check of a program.
    pub(crate) fn next(program: &Path) -> Result<Home, Failure> {
        let all = named_after(program, CHECKS);
        let refused = |path: &Path, error: std::io::Error| {
            let help = "runs are left in the current directory: --output names another place";
            Failure::usage(format!("{}: {error}", path.display()), help)
        };
        std::fs::create_dir_all(&all).map_err(|error| refused(&all, error))?;
        let mut number = numbered(&all).last().map_or(1, |(last, _)| last + 1);
        loop {
            let directory = all.join(number.to_string());
            match std::fs::create_dir(&directory) {
                Ok(()) => {
                    let trace = directory.join("run.portent");
                    return Ok(Home { directory: Some(directory), trace, link: named_after(program, "portent") });
                }
                // Another check at the same time.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(refused(&directory, error)),
            }
        }
    }

    /// Where the recorded run of the program itself goes.
    pub(crate) fn trace(&self) -> &Path {
        &self.trace
    }

    /// Where the run of one of several processes goes.
    pub(crate) fn trace_of(&self, number: usize, name: &OsStr) -> Result<PathBuf, Failure> {
        let mut own = OsString::from(format!("{number}-"));
        own.push(name);
        match &self.directory {
            Some(directory) => {
                let own = directory.join(own);
                std::fs::create_dir_all(&own)
                    .map_err(|error| Failure::usage(format!("{}: {error}", own.display()), "is there room left?"))?;
                Ok(own.join("run.portent"))
            }
            None => {
                own.push(".portent");
                Ok(self.trace.with_extension(own))
            }
        }
    }

    /// What a command names to replay what the program itself showed, whichever run that was; nothing if each run is named.
    pub(crate) fn shown(&self) -> Option<&Path> {
        self.directory.as_ref().map(|_| if self.can_link() { self.link.as_path() } else { self.trace.as_path() })
    }

    /// What a command names to replay what one of several processes showed.
    pub(crate) fn shown_of_processes(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether the link can be made: what is no link, such as a trace of `portent record`, stays.
    fn can_link(&self) -> bool {
        self.directory.is_some() && self.link.symlink_metadata().map_or(true, |there| there.is_symlink())
    }

    /// Makes the link, and one to the findings. To be called when there is a run.
    pub(crate) fn publish(&self) {
        if !self.can_link() {
            return;
        }
        let findings = (findings_beside(&self.trace), findings_beside(&self.link));
        for (to, link) in [(self.trace.clone(), self.link.clone()), findings] {
            if link.symlink_metadata().is_ok_and(|there| !there.is_symlink()) {
                continue;
            }
            let _ = std::fs::remove_file(&link);
            if let Err(error) = std::os::unix::fs::symlink(&to, &link) {
                terminal::message("warning", &format!("{}: {error}; see {}", link.display(), to.display()));
            }
        }
    }

    /// Removes the oldest checks, and says so.
    pub(crate) fn tidy(&self) {
        let Some(all) = self.directory.as_deref().and_then(Path::parent) else { return };
        let checks = numbered(all);
        for (_, old) in &checks[..checks.len().saturating_sub(KEPT)] {
            if std::fs::remove_dir_all(old).is_ok() {
                let text = format!("{} is removed: the last {KEPT} checks are kept", old.display());
                terminal::message("note", &text);
            }
        }
    }
}

impl Drop for Home {
    /// A check that came to nothing leaves nothing: only empty directories can be removed so.
    fn drop(&mut self) {
        if let Some(directory) = &self.directory
            && std::fs::remove_dir(directory).is_ok()
            && let Some(all) = directory.parent()
        {
            let _ = std::fs::remove_dir(all);
        }
    }
}

/// A file or directory here that is named after a program.
fn named_after(program: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(program.file_name().unwrap_or(OsStr::new("program")));
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The recorded run of the last check of a program that has something.
pub(crate) fn last_with(program: &Path, has: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let checks = numbered(&named_after(program, CHECKS)).into_iter().rev();
    checks.map(|(_, directory)| directory.join("run.portent")).find(|trace| has(trace))
}

/// The directories in another one whose names are numbers, in their order.
fn numbered(all: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(all).into_iter().flatten();
    let number = |path: PathBuf| Some((path.file_name()?.to_str()?.parse().ok()?, path));
    let mut found: Vec<(u64, PathBuf)> = entries.filter_map(|entry| number(entry.ok()?.path())).collect();
    found.sort();
    found
}

/// The run that a finding can be replayed from, where the trace that was named, its check or an earlier one has it, and the
/// file with its findings. `None` where nobody knows the finding.
///
/// Says so if an earlier check is the one that has it.
pub(crate) fn locate(named: &Path, id: &str) -> Option<(PathBuf, PathBuf)> {
    let knows = |findings: &PathBuf| {
        let text = std::fs::read_to_string(findings).unwrap_or_default();
        let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let listed = document.and_then(|document| {
            Some(document.get("findings")?.as_array()?.iter().any(|finding| finding["id"].as_str() == Some(id)))
        });
        listed.unwrap_or(false)
    };
    let real = named.canonicalize().unwrap_or_else(|_| named.to_owned());
    let check = if real.is_dir() { real.clone() } else { real.parent()?.to_owned() };
    let mut places = vec![findings_beside(&real)];
    places.extend(findings_below(&check));
    let all = check.parent().filter(|all| all.extension().is_some_and(|ending| ending == CHECKS));
    for (_, earlier) in all.map(numbered).unwrap_or_default().into_iter().rev().filter(|(_, other)| *other != check) {
        places.extend(findings_below(&earlier));
    }
    let findings = places.into_iter().find(knows)?;
    let name = findings.to_string_lossy().into_owned();
    let trace = PathBuf::from(name.strip_suffix(".findings.json")?.to_owned() + ".portent");
    if !trace.is_file() {
        return None;
    }
    if !findings.starts_with(&check) {
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
        let shown = trace.strip_prefix(&here).unwrap_or(&trace);
        terminal::message("note", &format!("{id} is of an earlier check: {}", shown.display()));
    }
    let is_same = trace.canonicalize().is_ok_and(|found| found == real);
    Some((if is_same { named.to_owned() } else { trace }, findings))
}

/// The lists of findings in a directory, and in those of processes in it.
fn findings_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            found.extend(findings_below(&path));
        } else if path.to_string_lossy().ends_with(".findings.json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The recorded run that a path names: of a directory of a check, the one of its program.
pub(crate) fn run_in(path: &Path) -> PathBuf {
    let run = path.join("run.portent");
    if path.is_dir() && run.is_file() { run } else { path.to_owned() }
}
