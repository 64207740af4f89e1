//! Comparing what a program did, natively, recorded or replayed, with what its comments say.

use crate::PORTENT;
use portent_testing::command::{Finished, Input, LIMIT, NOTHING, run};
use portent_testing::programs::{Built, Contents, Ending, Output, Program, matches, read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

type Result<T = ()> = std::result::Result<T, String>;

/// The arguments a program is started with.
pub(crate) fn arguments(program: &Program, built: &Built) -> Vec<String> {
    let library = built.library.iter().map(|path| path.display().to_string());
    program.arguments.iter().cloned().chain(library).collect()
}

/// Runs a program without Portent. One that deadlocks is given a second.
pub(crate) fn natively(program: &Program, built: &Built, directory: &Path) -> Result {
    let deadlocks = matches!(program.ending, Ending::Deadlock(_));
    let limit = if deadlocks { Duration::from_secs(1) } else { LIMIT };
    let mut command = Command::new(&built.binary);
    command.args(arguments(program, built));
    let finished = run(&mut command, directory, Input::File(program.stdin.as_bytes()), limit);
    if !deadlocks {
        ended(program, &finished)?;
    } else if finished.status.is_some() {
        return Err(format!("should hang natively\n{}", finished.describe()));
    }
    printed(program, &finished)
}

/// Records a program into a new trace of this name, and compares everything that users see.
pub(crate) fn record(program: &Program, built: &Built, directory: &Path, options: &[&str]) -> Result<Recorded> {
    let trace = directory.join("run.portent");
    let mut command = PORTENT.command();
    command.arg("record").arg("-o").arg(&trace).args(options).arg("--").arg(&built.binary);
    command.args(arguments(program, built));
    let finished = run(&mut command, directory, Input::File(program.stdin.as_bytes()), LIMIT);
    if program.instrumented {
        ended(program, &finished)?;
    } else if !finished.exited_with(2) {
        return Err(format!("expected exit 2, because nothing was recorded\n{}", finished.describe()));
    }
    printed(program, &finished)?;
    if let Some(text) = program.messages.iter().find(|text| !finished.stderr.contains(*text)) {
        return Err(format!("Portent should have said \"{text}\"\n{}", finished.describe()));
    }
    Ok(Recorded { trace, finished })
}

/// A recorded run.
pub(crate) struct Recorded {
    pub(crate) trace: PathBuf,
    pub(crate) finished: Finished,
}

impl Recorded {
    /// The trace is well formed.
    pub(crate) fn validate(&self) -> Result {
        let directory = self.trace.parent().expect("a trace lies in a directory");
        let finished = run(PORTENT.command().arg("validate").arg(&self.trace), directory, NOTHING, LIMIT);
        let good = finished.exited_with(0);
        good.then_some(()).ok_or_else(|| format!("the trace is not well formed\n{}", finished.describe()))
    }

    /// The trace holds what the program's comments say.
    pub(crate) fn holds(&self, program: &Program) -> Result<Contents> {
        let contents = read(&self.trace)?;
        let (ops, threads) = (contents.ops(), contents.threads());
        let mut wrong = Vec::new();
        if let Some(expected) = program.threads
            && expected != threads
        {
            wrong.push(format!("{threads} threads in the trace, expected {expected}"));
        }
        for (op, expected) in &program.ops {
            let found = ops.get(op).copied().unwrap_or(0);
            if found < expected.number || (found > expected.number && !expected.or_more) {
                let more = if expected.or_more { " or more" } else { "" };
                wrong.push(format!("{found} events {op} in the trace, expected {}{more}", expected.number));
            }
        }
        for (class, pattern) in program.names.iter().filter(|(class, pattern)| !contents.has(class, pattern)) {
            let some = contents.named(class).take(25).collect::<Vec<_>>().join(", ");
            wrong.push(format!("no {class} named {pattern} in the trace; there are {some}"));
        }
        if wrong.is_empty() { Ok(contents) } else { Err(wrong.join("\n")) }
    }

    /// The recorded schedule makes the program do the same again, event for event and byte for byte.
    pub(crate) fn replay(&self, program: &Program) -> Result {
        let directory = self.trace.parent().expect("a trace lies in a directory");
        let finished = run(
            PORTENT.command().arg("replay").arg(&self.trace),
            directory,
            Input::File(program.stdin.as_bytes()),
            LIMIT,
        );
        if !finished.exited_with(0) {
            return Err(format!("the replay is not the recorded run\n{}", finished.describe()));
        }
        // What Portent says about the replay comes after what the program printed.
        if !finished.stdout.starts_with(&self.finished.stdout) {
            return Err(format!(
                "the replay printed something else\n{}\n--- the recorded run printed\n{}",
                finished.describe(),
                self.finished.describe()
            ));
        }
        Ok(())
    }
}

/// All of it: recorded, validated, looked into and replayed.
pub(crate) fn record_and_replay(program: &Program, built: &Built, directory: &Path, options: &[&str]) -> Result {
    let recorded = record(program, built, directory, options)?;
    if !program.instrumented {
        let exists = recorded.trace.exists();
        return if exists { Err("there should be no trace".into()) } else { Ok(()) };
    }
    // All three, so that one report says all that is wrong.
    let wrong: Vec<String> = [recorded.validate(), recorded.holds(program).map(drop), recorded.replay(program)]
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn ended(program: &Program, finished: &Finished) -> Result {
    let (expected, good) = match &program.ending {
        Ending::Exit(code) => (format!("exit {code}"), finished.exited_with(*code)),
        Ending::Signal(number) => {
            (format!("signal {number}"), finished.status.and_then(|status| status.signal()) == Some(*number))
        }
        Ending::Deadlock(names) => {
            let said = finished.stderr.to_lowercase().contains("deadlock");
            let named = names.iter().all(|name| finished.stderr.contains(name));
            let text = format!("exit 1 and the report of a deadlock that mentions {}", names.join(", "));
            (text, finished.exited_with(1) && said && named)
        }
    };
    if good { Ok(()) } else { Err(format!("expected {expected}\n{}", finished.describe())) }
}

fn printed(program: &Program, finished: &Finished) -> Result {
    let good = match &program.stdout {
        Output::Lines(expected) => {
            let out = finished.out();
            let lines: Vec<&str> = out.lines().collect();
            lines.len() == expected.len() && expected.iter().zip(lines).all(|(pattern, line)| matches(pattern, line))
        }
        Output::Much { bytes, hash } => finished.stdout.len() == *bytes && fnv(&finished.stdout) == *hash,
    };
    if !good {
        return Err(format!("expected on standard output: {:?}\n{}", program.stdout, finished.describe()));
    }
    if let Some(text) = program.stderr.iter().find(|text| !finished.stderr.contains(*text)) {
        return Err(format!("expected on standard error: {text}\n{}", finished.describe()));
    }
    Ok(())
}

fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
