//! Reports on their way out: what is left out of them, where each is written, and what the exit status says.

use crate::args::{ReportArgs, SearchArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::terminal::{self, print_as_it_is};
use crate::traces::is_standard;
use portent_report::baseline::Baseline;
use portent_report::source::Sources;
use portent_report::suppress::Suppressions;
use portent_report::{Report, Settings, html, json, junit, sarif, text};
use portent_trace::TraceError;
use portent_trace::format::open_without_waiting;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What is to be left out of a report: read before the work, so that a wrong file does not waste it.
pub(crate) struct Filters {
    suppressions: Option<(String, Suppressions)>,
    baseline: Option<Baseline>,
}

impl Filters {
    /// Reads the files that the arguments name.
    pub(crate) fn read(args: &ReportArgs) -> Result<Filters, Failure> {
        let outputs = args.outputs();
        if let Some(path) =
            outputs.iter().enumerate().find_map(|(at, path)| outputs[..at].contains(path).then_some(path))
            && !is_standard(path)
        {
            let message = format!("{}: two reports in the same file", path.display());
            return Err(Failure::usage(message, "name another file for one of them"));
        }
        let standard = outputs.into_iter().filter(|path| is_standard(path)).count();
        if standard > 1 {
            return Err(Failure::usage(
                "more than one report on standard output",
                "`-` can stand for one of --json, --sarif, --junit and --html; name files for the others",
            ));
        }
        for path in args.outputs() {
            writable(path)?;
        }
        let suppressions = match &args.suppress {
            None => None,
            Some(path) => {
                let rules = Suppressions::parse(&read(path)?).map_err(|error| {
                    Failure::usage(
                        format!("{}: {error}", path.display()),
                        "a rule is a line such as `kind=race file=src/stats.c object=hits`; `#` starts a comment",
                    )
                })?;
                Some((path.display().to_string(), rules))
            }
        };
        let baseline = match &args.baseline {
            None => None,
            Some(path) => Some(Baseline::parse(&read(path)?).map_err(|error| {
                Failure::usage(
                    format!("{}: {error}", path.display()),
                    "make one with `portent predict TRACE --json FILE`",
                )
            })?),
        };
        Ok(Filters { suppressions, baseline })
    }

    /// Leaves out what is to be left out, and points at rules that leave out nothing.
    pub(crate) fn apply(mut self, report: &mut Report) {
        self.hide(report);
        if let Some((name, rules)) = &self.suppressions {
            for (line, rule) in rules.unused() {
                terminal::message("warning", &format!("{name}: line {line}: no finding matches the rule `{rule}`"));
            }
        }
    }
}

impl Filters {
    /// Leaves out what the rules and the baseline say, of a report that is one of several.
    pub(crate) fn hide(&mut self, report: &mut Report) {
        report.withhold(self.suppressions.as_mut().map(|(_, rules)| rules), self.baseline.as_ref());
    }
}

impl ReportArgs {
    /// What a report of what `input` told has to know.
    pub(crate) fn settings(&self, search: &SearchArgs, input: String, trace: &Path) -> Settings {
        Settings {
            input,
            sources: sources(&self.source, trace),
            asked: search.kind.iter().map(|kind| kind.bug_kind()).collect(),
            detailed: self.verbose,
            observations: self.observations,
            quiet: self.quiet,
            ..Settings::default()
        }
    }
    fn outputs(&self) -> Vec<&Path> {
        [&self.json, &self.sarif, &self.junit, &self.html].into_iter().flatten().map(PathBuf::as_path).collect()
    }
    /// Whether a report goes to standard output instead of the text.
    pub(crate) fn takes_standard_output(&self) -> bool {
        self.outputs().into_iter().any(is_standard)
    }
    /// Writes everything that was asked for; the text unless another report takes its place.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Failure> {
        if !self.takes_standard_output() {
            read_or_not(print_as_it_is(&text::page(report, &terminal::look())).map_err(Failure::from))?;
        }
        // One that cannot be written keeps none of the others from it.
        let json = save(self.json.as_deref(), |out| json::write(report, out));
        let sarif = save(self.sarif.as_deref(), |out| sarif::write(report, out));
        let junit = save(self.junit.as_deref(), |out| out.write_all(junit::document(report).as_bytes()));
        let html = save(self.html.as_deref(), |out| html::write(report, out));
        [json, sarif, junit, html].into_iter().try_for_each(read_or_not)
    }
}

/// Whoever does not read a report to its end, as `head` does, is told the same by the exit status.
fn read_or_not(written: Result<(), Failure>) -> Result<(), Failure> {
    written.or_else(|failure| if failure.is_broken_pipe() { Ok(()) } else { Err(failure) })
}

/// Where source is looked for: the working directory, then what was named, then beside the trace.
pub(crate) fn sources(named: &[PathBuf], trace: &Path) -> Sources {
    let beside = trace.parent().filter(|dir| !dir.as_os_str().is_empty()).map(Path::to_owned);
    Sources::below(std::iter::once(PathBuf::from(".")).chain(named.iter().cloned()).chain(beside))
}

/// Where the findings of a trace are, unless said otherwise.
pub(crate) fn findings_beside(trace: &Path) -> PathBuf {
    trace.with_extension("findings.json")
}

/// What the exit status says: what is left out of the report does not count.
pub(crate) fn status(report: &Report, errors: bool, strict: bool) -> ExitCode {
    let incomplete = !report.incomplete.is_empty() || report.cut_short > 0 || errors;
    match (!report.has_failures(), incomplete) {
        (false, _) => ExitCode::Findings,
        (true, true) if strict => ExitCode::Incomplete,
        (true, true) => {
            terminal::message(
                "warning",
                "no failure found, but not everything was examined (--strict makes this status 4)",
            );
            ExitCode::NothingFound
        }
        (true, false) => ExitCode::NothingFound,
    }
}

/// A path as a word of a shell's command line.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let safe = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A command as a shell takes it.
pub(crate) fn words(command: &[std::ffi::OsString]) -> String {
    command.iter().map(|word| quoted(Path::new(word))).collect::<Vec<_>>().join(" ")
}

/// Refuses what is no file where a run is to be left, such as a pipe: it is read again.
pub(crate) fn is_for_runs(path: &Path) -> Result<(), Failure> {
    match path.metadata() {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let message = format!("{}: this is no file", path.display());
            Err(Failure::usage(message, "a recording is written to a file: name another one with --output"))
        }
        _ => Ok(()),
    }
}

/// Refuses a path that no report can be written to, before the work and not after it. Nothing is left of the attempt.
pub(crate) fn writable(path: &Path) -> Result<(), Failure> {
    if is_standard(path) {
        return Ok(());
    }
    let refused = |why: String, help: &str| Failure::usage(format!("{}: {why}", path.display()), help);
    let is_new = match path.metadata() {
        Ok(found) if found.is_dir() => return Err(refused("this is a directory".into(), "name a file in it")),
        // Whoever reads a pipe would take the attempt for its end.
        Ok(found) if !found.is_file() => return Ok(()),
        found => found.is_err(),
    };
    match std::fs::File::options().append(true).create(true).open(path) {
        Ok(_) if is_new => {
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) => {
            let help = "a report cannot be written there: its directory does not exist";
            Err(refused(error.to_string(), help))
        }
        Err(error) => Err(refused(error.to_string(), "a report cannot be written there: name another file")),
    }
}

fn save(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if is_standard(path) {
        let mut out = BufWriter::new(std::io::stdout().lock());
        return Ok(write(&mut out).and_then(|()| out.flush())?);
    }
    save_file(path, write).map_err(|error| in_file(path, error))
}

/// Writes a report into a file as it is made.
pub(crate) fn save_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    let is_special = path.metadata().is_ok_and(|found| !found.is_file());
    let file = if is_special { open_without_waiting(path) } else { std::fs::File::create(path) };
    file.and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out).and_then(|()| out.flush())
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| in_file(path, error))
}

fn in_file(path: &Path, error: std::io::Error) -> Failure {
    Failure::Trace(TraceError::whole(error).in_input(&path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_of_a_shell() {
        assert_eq!(quoted(Path::new("a/b-1.portent")), "a/b-1.portent");
        assert_eq!(quoted(Path::new("it's here")), "'it'\\''s here'");
    }
}
