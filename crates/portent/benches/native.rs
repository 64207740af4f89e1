//! What recording costs, against the bare program and against the compiler's own ThreadSanitizer, in the same run. Prints
//! numbers with their goals; asserts nothing about time.
//!
//! `cargo bench -p portent --bench native [-- NAME…]` runs the parts whose name contains a NAME: `bank`, `queue`, `matmul`,
//! `pbzip2`, `switch`, `runs` (how many runs a second has of a small program with 200 events; `runs-2k`: of one with 2,400),
//! `large` (100 MB of debug information). The best of three runs counts. Times are processor time, user and system, of the program and, apart
//! from it, of the command that turns the recording into a trace; the slow-downs include both.

use portent_explore::{Plan, Policy, Program, Run, Schedule};
use portent_native::record::NativeProgram;
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use portent_predict::Control;
use portent_trace::FunctionBlocks;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const REPEAT: usize = 3;

/// Runs the words after it and reports their processor time, and that of all their children, in seconds.
const TIMED: &str = r#"TIMEFORMAT="processor time %U %S"; time "$@""#;

fn portent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portent"));
    command.env("NO_COLOR", "1").env("PORTENT_CACHE", scratch().join("cache"));
    command
}

fn scratch() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-bench");
    std::fs::create_dir_all(&path).expect("the target directory can be written");
    path
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs")
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Native,
    Sanitized,
    Recorded,
}

/// A command line that builds with the compiler of a kind.
fn compiler(kind: Kind, cxx: bool) -> Vec<String> {
    let plain = if cxx { "g++" } else { "gcc" };
    match kind {
        Kind::Native => vec![plain.into()],
        Kind::Sanitized => vec![plain.into(), "-fsanitize=thread".into()],
        Kind::Recorded => vec![env!("CARGO_BIN_EXE_portent").into(), if cxx { "c++" } else { "cc" }.into()],
    }
}

/// Builds one of the bench programs.
fn build(file: &str, kind: Kind, name: &str) -> Result<PathBuf, String> {
    let cxx = file.ends_with(".cpp");
    let binary = scratch().join(format!("{name}-{}", kind as u8));
    let words = compiler(kind, cxx);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(if cxx { "-std=c++20" } else { "-std=gnu11" }).args(["-O2", "-g", "-pthread"]);
    command.env("PORTENT_CACHE", scratch().join("cache"));
    finished(command.arg(programs().join(file)).arg("-o").arg(&binary))?;
    Ok(binary)
}

fn finished(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end()))
}

/// The processor times that [`TIMED`] reported, innermost first.
fn times(output: &Output) -> Vec<f64> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("processor time "));
    lines.map(|line| line.split(' ').filter_map(|number| number.parse::<f64>().ok()).sum()).collect()
}

/// One run: processor time of the program, and of the command around it.
fn once(kind: Kind, binary: &Path, arguments: &[String], trace: &Path) -> Result<(f64, f64), String> {
    let mut command = Command::new("bash");
    command.args(["-c", TIMED, "bash"]).current_dir(scratch()).env("PORTENT_CACHE", scratch().join("cache"));
    match kind {
        // ThreadSanitizer's own layout of memory does not go with much randomness of addresses.
        Kind::Native | Kind::Sanitized => drop(command.args(["setarch", "-R"])),
        Kind::Recorded => {
            command.args([env!("CARGO_BIN_EXE_portent"), "record", "-o"]).arg(trace).arg("--");
            command.args(["bash", "-c", TIMED, "bash"]);
        }
    }
    let output = finished(command.arg(binary).args(arguments))?;
    match times(&output)[..] {
        [whole] => Ok((whole, 0.0)),
        [program, whole] => Ok((program, whole - program)),
        _ => Err(format!("no times in\n{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The run with the least processor time of several.
fn best(kind: Kind, binary: &Path, arguments: &[String], trace: &Path) -> Result<(f64, f64), String> {
    let mut runs = (0..REPEAT).map(|_| once(kind, binary, arguments, trace)).collect::<Result<Vec<_>, _>>()?;
    runs.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    Ok(runs[0])
}

fn header() {
    println!(
        "{:8} {:>8} {:>16} {:>26} {:>12} {:>12} {:>10} {:>9} {:>9}",
        "",
        "native",
        "ThreadSanitizer",
        "recorded + converted",
        "× of TSan",
        "(goal)",
        "events",
        "bytes/ev.",
        "switches"
    );
}

/// One line of the table: a program in its three forms.
fn compare(name: &str, goal: &str, arguments: &[String], binaries: &[PathBuf; 3]) -> Result<(), String> {
    let trace = scratch().join(format!("{name}.portent"));
    let (native, _) = best(Kind::Native, &binaries[0], arguments, &trace)?;
    let (sanitized, _) = best(Kind::Sanitized, &binaries[1], arguments, &trace)?;
    let (program, converting) = best(Kind::Recorded, &binaries[2], arguments, &trace)?;
    let statistics = finished(portent().args(["stats", "--json"]).arg(&trace))?;
    let statistics: serde_json::Value =
        serde_json::from_slice(&statistics.stdout).map_err(|error| error.to_string())?;
    let number = |field: &str| statistics[field].as_u64().unwrap_or(0) as f64;
    let bytes = std::fs::metadata(&trace).map_err(|error| error.to_string())?.len() as f64;
    let events = number("events");
    let whole = program + converting;
    println!(
        "{name:8} {native:>6.2} s {sanitized:>7.2} s {:>5.1}× {program:>7.2} s + {converting:>5.2} s {:>5.1}× {:>12.2} {goal:>12} {:>8.1} M {:>9.2} {:>9}",
        sanitized / native,
        whole / native,
        whole / sanitized,
        events / 1e6,
        bytes / events,
        number("switches"),
    );
    println!(
        "{:8} {:.0} ns per event recorded, {:.0} ns per event converted, {:.1} events per switch",
        "",
        (program - native) / events * 1e9,
        converting / events * 1e9,
        events / number("switches").max(1.0)
    );
    let _ = std::fs::remove_file(trace);
    Ok(())
}

fn program(name: &str, file: &str, arguments: &[&str], goal: &str) -> Result<(), String> {
    let binary = |kind| build(file, kind, name);
    let binaries = [binary(Kind::Native)?, binary(Kind::Sanitized)?, binary(Kind::Recorded)?];
    compare(name, goal, &arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &binaries)
}

/// A real program from the distribution's packages, compressing a few megabytes of text with four threads.
fn pbzip2() -> Result<(), String> {
    finished(Command::new(programs().join("fetch-pbzip2")).arg(scratch()))
        .map_err(|why| format!("skipped, its source could not be fetched: {why}"))?;
    let text = scratch().join("text");
    let words: String = (0..1_500_000u32).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761) % 5000)).collect();
    std::fs::write(&text, words).map_err(|error| error.to_string())?;
    let make = |kind: Kind| {
        let place = scratch().join(format!("pbzip2-{}", kind as u8));
        let _ = std::fs::remove_dir_all(&place);
        finished(Command::new("cp").arg("-r").arg(scratch().join("pbzip2")).arg(&place))?;
        let mut command = Command::new("make");
        command.arg("-C").arg(&place).arg("pbzip2").arg(format!("CXX={}", compiler(kind, true).join(" ")));
        finished(command.env("PORTENT_CACHE", scratch().join("cache")))?;
        Ok::<_, String>(place.join("pbzip2"))
    };
    let binaries = [make(Kind::Native)?, make(Kind::Sanitized)?, make(Kind::Recorded)?];
    let arguments = ["-p4", "-b1", "-k", "-f", &text.display().to_string()].map(str::to_owned);
    compare("pbzip2", "≤ 1", &arguments, &binaries)
}

/// What a forced switch costs beyond the two futex calls that it must make, in processor time. Runs of two lengths, so
/// that starting up cancels out.
fn switch() -> Result<(), String> {
    let (few, many) = (20_000, 120_000);
    let trace = scratch().join("switch.portent");
    let per_switch = |kind: Kind, how: &str| {
        let binary = build("bench_switch.c", kind, "switch")?;
        let time = |times: u32| Ok::<_, String>(best(kind, &binary, &[how.to_owned(), times.to_string()], &trace)?.0);
        Ok::<_, String>((time(many)? - time(few)?) / f64::from(2 * (many - few)) * 1e6)
    };
    let two_calls = per_switch(Kind::Native, "futex")?;
    let switch = per_switch(Kind::Recorded, "yield")?;
    println!(
        "switch   {switch:.2} µs per forced switch, {two_calls:.2} µs per hand-over by two futex calls alone: {:.2} µs beyond (goal ≤ 1)",
        switch - two_calls
    );
    let _ = std::fs::remove_file(trace);
    Ok(())
}

/// How many times in a second a small program can be run as a check runs it: under a schedule of its own each time, its
/// recording turned into events. With the processor time of a run, Portent's own and the program's, which other work on the
/// machine hardly changes.
fn runs(name: &str, file: &str) -> Result<(), String> {
    const RUNS: u64 = 300;
    let binary = build(file, Kind::Recorded, name)?;
    let failed = |error: portent_explore::Error| error.to_string();
    let nature = examine::examine(&binary).map_err(failed)?;
    let invocation = Invocation::here(binary, vec![name.into()]).map_err(failed)?;
    let started = NativeProgram::new(invocation, nature);
    let copied = started.clone().for_many_runs();
    let limit = Duration::from_secs(10);
    let plan = Plan { silent: true, limit: Some(limit), ..Plan::default() };
    let first = started.run(&plan).map_err(failed)?;
    let schedule = Schedule::default();
    let (like, policy, schedule) = (Some(&first), Policy::Random, Some(&schedule));
    let plans: Vec<Plan<'_>> = (0..RUNS).map(|seed| Plan { policy, seed, like, schedule, ..plan.clone() }).collect();
    let time = |program: &NativeProgram, look: &dyn Fn(&Run)| {
        // What one made must not be known to the next.
        let program = if program.server.is_some() { &started.clone().for_many_runs() } else { program };
        let (start, before) = (Instant::now(), processor_times());
        let mut ran = |run: Option<Run>| {
            run.iter().for_each(look);
            true
        };
        program.run_each(&plans, &|| limit, &mut ran).map_err(failed)?;
        let a_second = RUNS as f64 / start.elapsed().as_secs_f64();
        let [own, theirs] = [0, 1].map(|at| (processor_times()[at] - before[at]) / RUNS as f64 * 1e3);
        Ok::<_, String>((a_second, own, theirs))
    };
    let line = |what: &str, goal: &str, program: &NativeProgram, look: &dyn Fn(&Run)| {
        let mut times = (0..REPEAT).map(|_| time(program, look)).collect::<Result<Vec<_>, _>>()?;
        times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (a_second, own, theirs) = times[0];
        println!(
            "{name:8} {a_second:>6.0} runs per second {what}{goal}; {own:.2} ms of Portent and {theirs:.2} ms of the program each"
        );
        Ok::<_, String>(())
    };
    let nothing = |_: &Run| ();
    let predicted = |run: &Run| {
        if let Ok(trace) = run.trace(FunctionBlocks::BelowRoots) {
            drop(portent_predict::predict(&trace, &portent_predict::Options::default(), &Control::default()));
        }
    };
    println!("{name:8} {} events, {} switches at first", first.events.len(), first.schedule().steps.len());
    line("where each is started", "", &started, &nothing)?;
    line("by the fork server", " (goal ≥ 500)", &copied, &nothing)?;
    line("with prediction of every run", " (goal ≥ 100)", &copied, &predicted)?;
    match copied.server.as_ref().and_then(|server| server.unused()) {
        Some(why) => Err(format!("the program has no fork server: {why}")),
        None => Ok(()),
    }
}

/// The processor time of this process and of the children it has waited for, in seconds.
fn processor_times() -> [f64; 2] {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may contain anything: user and system time, and the same of children.
    let fields: Vec<f64> =
        text.rsplit(')').next().unwrap_or_default().split(' ').map(|n| n.parse().unwrap_or(0.0)).collect();
    let sum = |from: usize| fields.iter().skip(from).take(2).sum::<f64>() / TICKS;
    [sum(12), sum(14)]
}

/// What names cost in a program with 100 MB of debug information: as many copies of one file, compiled once, of which some
/// or all are run. Prints the processor time of the command that turns the recording into a trace.
fn large() -> Result<(), String> {
    const UNITS: usize = 45;
    let failed = |error: std::io::Error| error.to_string();
    let place = scratch().join("large");
    std::fs::create_dir_all(&place).map_err(failed)?;
    let words = compiler(Kind::Recorded, true);
    let compile = || {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["-std=c++17", "-O1", "-g"]).current_dir(&place);
        command.env("PORTENT_CACHE", scratch().join("cache"));
        command
    };
    finished(compile().arg("-S").arg(programs().join("special/large_unit.cpp")).args(["-o", "unit.s"]))?;
    let unit = std::fs::read_to_string(place.join("unit.s")).map_err(failed)?;
    let (mut declared, mut runs, mut objects) = (String::new(), [String::new(), String::new()], Vec::new());
    for number in 1..=UNITS {
        let name = format!("unit_{number:04}");
        std::fs::write(place.join("one.s"), unit.replace("unit_0000", &name)).map_err(failed)?;
        finished(Command::new("as").current_dir(&place).args(["one.s", "-o", &format!("{name}.o")]))?;
        objects.push(format!("{name}.o"));
        declared += &format!("long {name}_run(int);\n");
        for (run, some) in runs.iter_mut().zip([number <= 8, true]) {
            *run += &if some { format!("sum += {name}_run(argc); ") } else { String::new() };
        }
    }
    for (run, told) in runs.iter().zip(["8 of its files run", "all of them run"]) {
        let main = format!("{declared}int main(int argc, char**) {{ long sum = 0; {run} return sum < 0; }}\n");
        std::fs::write(place.join("main.cpp"), main).map_err(failed)?;
        finished(compile().arg("main.cpp").args(&objects).args(["-o", "large"]))?;
        let sections = finished(Command::new("size").arg("-A").arg(place.join("large")))?;
        let sections = String::from_utf8_lossy(&sections.stdout).into_owned();
        let debug = sections.lines().filter(|line| line.starts_with(".debug"));
        let bytes: u64 = debug.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum();
        let (_, command) = best(Kind::Recorded, &place.join("large"), &[], &place.join("large.portent"))?;
        println!("large    {} MB of debug information, {told}: {command:.2} s (goal ≤ 2)", bytes / 1_000_000);
    }
    std::fs::remove_dir_all(place).map_err(failed)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let run = |name: &str, part: &dyn Fn() -> Result<(), String>| {
        if (wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())))
            && let Err(why) = part()
        {
            println!("{name:8} {why}");
        }
    };
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("skipped: recording needs Linux on x86-64");
        return;
    }
    header();
    run("bank", &|| program("bank", "bench_bank.c", &["1000000"], "≤ 1"));
    run("queue", &|| program("queue", "bench_queue.cpp", &["300000"], "≤ 1"));
    run("matmul", &|| program("matmul", "bench_matmul.c", &["300"], "≤ 3"));
    run("pbzip2", &pbzip2);
    run("switch", &switch);
    run("runs", &|| runs("runs", "../twins/account_transfer/fixed.cpp"));
    run("runs-2k", &|| runs("runs-2k", "mutex_normal.c"));
    run("large", &large);
    println!("goal for bytes per event: ≤ 8");
}
