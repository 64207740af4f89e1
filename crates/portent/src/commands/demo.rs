//! `portent demo`: builds the bundled programs, checks each, and tells what was found.
//!
//! Everything happens as in `portent cc` and `portent check`, by the same code, in a temporary directory.

mod programs;

use super::{cc, exploring, print, print_as_it_is};
use crate::args::DemoArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::reports;
use crate::terminal;
use portent_explore::{Options, Properties};
use portent_native::record::NativeProgram;
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use portent_predict::BugKind;
use portent_report::text::{self, Look};
use portent_report::words::wrapped;
use portent_report::{Level, Report, Settings, Story, Tsan, Verdict, html};
use portent_trace::TraceError;
use programs::{Bug, Check, PROGRAMS, Program};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What the property file of a program is called.
const SPEC: &str = "landing.spec";
/// By how much everything below a program's title is indented.
const INDENT: usize = 3;

/// Builds, checks and explains all programs.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    cc::ready()?;
    let folder = Folder::enter(args.keep.as_deref())?;
    let bugs = PROGRAMS.iter().filter(|program| program.bug.is_some()).count();
    print(&format!(
        "Portent records one run of a program, works out what could go wrong in other interleavings of it,\n\
         and replays the program to show that. Here are {bugs} small C programs, each with a bug of which the\n\
         recorded run shows nothing, and {} without one.\n",
        counted((PROGRAMS.len() - bugs) as u64, "twin"),
    ))?;
    let look = terminal::look();
    let mut rows = Vec::new();
    for (number, program) in (1..).zip(&PROGRAMS) {
        rows.push(one(number, program, &look, args.keep.is_some())?);
    }
    print(&format!("\n{}", table(&rows)))?;
    let wrong = rows.iter().filter(|row| !row.good).count();
    let seconds = started.elapsed().as_secs_f64();
    print(&match wrong {
        0 => format!("All {} came out as they should, in {seconds:.1} s.\n", counted(rows.len() as u64, "program")),
        _ => format!("{wrong} of {} did not come out as they should.\n", counted(rows.len() as u64, "program")),
    })?;
    print(&format!("\n{}", next(args.keep.as_deref())))?;
    folder.leave();
    Ok(if wrong == 0 { ExitCode::NothingFound } else { ExitCode::Findings })
}

/// Where the programs are built, which is the current directory from then on: all paths that users see are short.
struct Folder {
    temporary: Option<tempfile::TempDir>,
    before: Option<std::path::PathBuf>,
}

impl Folder {
    fn enter(keep: Option<&Path>) -> Result<Folder, Failure> {
        let failed =
            |path: &Path, error| Failure::Trace(TraceError::whole(error).in_input(&path.display().to_string()));
        let before = std::env::current_dir().ok();
        let temporary = match keep {
            Some(_) => None,
            None => {
                let made = tempfile::Builder::new().prefix("portent-demo-").tempdir();
                Some(made.map_err(|error| failed(&std::env::temp_dir(), error))?)
            }
        };
        let path = temporary.as_ref().map(tempfile::TempDir::path).or(keep).unwrap_or(Path::new("."));
        std::fs::create_dir_all(path).and_then(|()| std::env::set_current_dir(path)).map_err(|e| failed(path, e))?;
        Ok(Folder { temporary, before })
    }

    fn leave(self) {
        if let Some(before) = self.before {
            // A directory that is gone by now is not missed.
            let _ = std::env::set_current_dir(before);
        }
        drop(self.temporary);
    }
}

/// Where the run of a program is left.
fn beside(program: &NativeProgram) -> PathBuf {
    let mut name = program.invocation.program.file_name().unwrap_or_default().to_owned();
    name.push(".portent");
    name.into()
}

/// A line of the table at the end.
struct Row {
    name: &'static str,
    found: String,
    replays: String,
    tsan: &'static str,
    good: bool,
}

/// Builds, checks and explains one program.
fn one(number: usize, program: &Program, look: &Look, keep: bool) -> Result<Row, Failure> {
    let name = program.name;
    let (source, binary) = (format!("{name}.c"), format!("./{name}"));
    let story: String = program.story().map(|line| format!("{line}\n")).collect();
    let heading = format!("{number}. {}", program.title());
    let heading = if look.colours { format!("\x1b[1m{heading}\x1b[0m") } else { heading };
    let option = match program.check {
        Check::Plain => String::new(),
        Check::Spec(_) => format!("--spec {SPEC} "),
        Check::SameOutput => "--same-output ".into(),
    };
    let commands = format!("$ portent cc -o {name} {source}\n$ portent check {option}{binary}\n");
    print_as_it_is(&format!("\n{heading}\n{}", indented(&format!("{story}{commands}"))))?;
    std::fs::write(&source, program.source).map_err(|error| TraceError::whole(error).in_input(&source))?;
    if let Check::Spec(text) = program.check {
        std::fs::write(SPEC, text).map_err(|error| TraceError::whole(error).in_input(SPEC))?;
    }
    cc::build(&source, name)?;
    let (mut report, failed) = checked(&binary, &program.check)?;
    if keep {
        let page = html::page(&report).map_err(std::io::Error::from)?;
        let path = format!("{name}.html");
        std::fs::write(&path, page).map_err(|error| TraceError::whole(error).in_input(&path))?;
    } else {
        // There will be nothing to replay.
        report.stories.iter_mut().for_each(|story| story.command = None);
    }
    let (text, row) = match (&program.bug, failed) {
        (_, true) => told_unexpected(name, &report, look, "the recorded run itself failed"),
        (None, _) if !report.has_failures() => {
            let row =
                Row { name, found: "no failure, as it should be".into(), replays: "-".into(), tsan: "-", good: true };
            ("No failure found, as it should be.\n".to_owned(), row)
        }
        (None, _) => told_unexpected(name, &report, look, "there should be no failure to find"),
        (Some(bug), _) => told(name, bug, &report, look),
    };
    print_as_it_is(&format!("\n{}", indented(&text)))?;
    Ok(row)
}

/// What `portent check` finds in a program, whose output goes nowhere; and whether the recorded run itself failed.
fn checked(binary: &str, check: &Check) -> Result<(Report, bool), Failure> {
    let path = examine::find(binary.as_ref(), &std::env::current_dir().unwrap_or_default())?;
    let nature = examine::examine(&path)?;
    let mut invocation = Invocation::here(path, vec![binary.into()])?;
    invocation.silent = true;
    let program = NativeProgram::new(invocation, nature).for_many_runs();
    let spec = matches!(check, Check::Spec(_)).then_some(SPEC);
    let mut options =
        Options { properties: spec.map(|spec| Properties::read(Path::new(spec))).transpose()?, ..Options::default() };
    options.search.jobs = std::thread::available_parallelism().map_or(1, usize::from);
    options.search.kinds = BugKind::ALL.into_iter().chain(spec.map(|_| BugKind::Property)).collect();
    let (report, _) = {
        let path = beside(&program);
        let settings = Settings {
            input: binary.to_owned(),
            sources: reports::sources(&[], &path),
            same_output: matches!(check, Check::SameOutput),
            ..Settings::default()
        };
        exploring::check(&program, &options, &path, settings)?
    };
    let failed =
        report.stories.iter().any(|story| story.verdict == Verdict::Observed && story.finding.bug.failure().is_some());
    Ok((report, failed))
}

fn narrower(look: &Look) -> Look {
    Look { width: look.width.saturating_sub(INDENT), ..*look }
}

/// The finding that shows the bug, and the other failures in a line.
fn told(name: &'static str, bug: &Bug, report: &Report, look: &Look) -> (String, Row) {
    let Some(best) = bug.shown(report) else {
        return told_unexpected(name, report, look, &format!("there should be a confirmed {}", bug.title()));
    };
    let mut text = text::brief(report, best, &narrower(look));
    let others: Vec<&Story> =
        report.of_level(Level::Failure).filter(|story| story.finding.id != best.finding.id).collect();
    if !others.is_empty() {
        let more = format!("Also found in this program: {}.", in_short(&others));
        text.push_str(&format!("\n{}\n", wrapped(&more, narrower(look).width).join("\n")));
    }
    let replays = best.replayed.as_ref().map(|all| format!("{} of {} replays", all.hits, all.runs)).unwrap_or_default();
    // One bug may show in several ways, and it is enough to see one of them: a failure itself is nothing that it looks for.
    // What could happen is told by what happened, but a detector would report it all the same.
    let could = |story: &Story| {
        story.level == Level::Failure || story.finding.bug.form().comes_true_as(best.finding.bug.form())
    };
    let seen = |tsan| report.stories.iter().filter(|story| could(story)).any(|story| story.tsan == tsan);
    let tsan = match () {
        () if seen(Tsan::Reports) => "report it",
        () if seen(Tsan::MayWarn) => "perhaps warn",
        () => "stay silent",
    };
    let found = found(best);
    (text, Row { name, found, replays, tsan, good: true })
}

/// Everything, where something is wrong.
fn told_unexpected(name: &'static str, report: &Report, look: &Look, why: &str) -> (String, Row) {
    let page = text::page(report, &narrower(look));
    let row = Row { name, found: format!("UNEXPECTED: {why}"), replays: "-".into(), tsan: "-", good: false };
    (format!("This is not as it should be: {why}.\n{page}"), row)
}

/// What was found, and the line that it is told at.
fn found(story: &Story) -> String {
    let what = terminal::printable(&story.what()).into_owned();
    let line = story.places.first().and_then(|spot| spot.at.as_ref()?.line).map(|line| format!(", line {line}"));
    what + &line.unwrap_or_default()
}

/// Findings by what they are, each once, with how many there are.
fn in_short(stories: &[&Story]) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for story in stories {
        let what = found(story);
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, number)) => *number += 1,
            None => groups.push((what, 1)),
        }
    }
    let shown =
        |(what, number): &(String, usize)| if *number == 1 { what.clone() } else { format!("{number} × {what}") };
    groups.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn table(rows: &[Row]) -> String {
    let heading = ["program", "found", "seen in", "ThreadSanitizer would"];
    let cells = rows.iter().map(|row| [row.name, &row.found, &row.replays, row.tsan]);
    let all: Vec<[&str; 4]> = std::iter::once(heading).chain(cells).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [a, b, c] = [0, 1, 2].map(width);
    let line = |row: &[&str; 4]| format!("{:<a$}  {:<b$}  {:<c$}  {}", row[0], row[1], row[2], row[3]);
    let mut text = String::new();
    for row in &all {
        text.push_str(line(row).trim_end());
        text.push('\n');
    }
    text + "\n"
}

/// What to do next.
fn next(keep: Option<&Path>) -> String {
    let kept = match keep {
        Some(path) => format!(
            "cd {}     has the programs, runs and HTML reports: open one, or replay a finding by the\n{:28}command at its end; --debugger gdb stops where it happens\n",
            path.display(),
            ""
        ),
        None => "portent demo --keep DIR     keeps programs, runs and HTML reports, to look at and to replay\n".into(),
    };
    let next = "portent cc -o prog prog.c   builds your own program (or: make CC=\"portent cc\" CXX=\"portent c++\")\n\
                portent check ./prog        finds its bugs and shows them; --html report.html draws them\n";
    format!("What to do next:\n{}", indented(&format!("{next}{kept}")))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("{:INDENT$}{line}\n", "") }).collect()
}
