//! What goes wrong around a program: signals that end it, files that cannot grow, a recording that it spoils itself, outputs that
//! nobody reads. Nothing of that hangs, and nothing of it is called clean.

use crate::survives::SmallDisk;
use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::programs::{Builder, Program};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::path::PathBuf;
use std::process::Command;

fn special(name: &str) -> PathBuf {
    // It stays for as long as the tests run.
    let built = build(&Program::named(&format!("special/{name}.c")), Builder::Portent).unwrap();
    let binary = built.binary.clone();
    std::mem::forget(built);
    binary
}

/// Runs a script with the command as `$0` and these words behind it.
fn script(scratch: &Scratch, text: &str, words: &[&std::path::Path]) -> Finished {
    let portent = PORTENT.command();
    let mut command = Command::new("bash");
    command.arg("-c").arg(text).arg(portent.get_program()).args(words);
    for (name, value) in portent.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(&mut command, scratch.directory(), NOTHING, LIMIT)
}

#[test]
fn a_program_that_a_signal_ended_has_failed_whichever_it_was() {
    if left_out("programs that signals end") {
        return;
    }
    let (program, scratch) = (special("signalled"), Scratch::new());
    for signal in [1, 2, 3, 6, 9, 14, 15, 24] {
        let check = "exec $0 check --strict --budget 10 --tries 2 --json report.json -- $1 $2";
        let text = check.replace("$2", &signal.to_string());
        let finished = script(&scratch, &text, &[&program]);
        assert!(finished.exited_with(1), "signal {signal}: {}", finished.describe());
        let report = scratch.read("report.json");
        assert!(report.contains("\"kind\": \"failure\"") || report.contains("\"kind\":\"failure\""), "{report}");
    }
}

#[test]
fn a_recording_that_is_cut_short_is_never_called_clean() {
    if left_out("recordings that are cut short") {
        return;
    }
    let (program, scratch) = (special("endless"), Scratch::new());
    // 4 MB of half a kilobyte or a kilobyte each: the recording stops, and nobody dies of it.
    let text = "ulimit -f 4000; exec $0 check --strict --budget 5 --rounds 1 --tries 0 --json report.json -- $1 100000";
    let finished = script(&scratch, text, &[&program]);
    assert!(finished.exited_with(4), "{}", finished.describe());
    assert!(finished.stderr.contains("on nothing is known of what the program did"), "{}", finished.describe());
    let report = scratch.read("report.json");
    assert!(report.contains("\"cut_short\""), "{report}");
    // The same of the trace alone.
    let text = "exec $0 predict --strict --budget 5 endless.portent";
    let finished = script(&scratch, text, &[]);
    assert!(finished.exited_with(4), "{}", finished.describe());
    assert!(finished.stderr.contains("on nothing is known of what the program did"), "{}", finished.describe());
}

#[test]
fn a_limit_for_files_ends_neither_the_program_nor_its_recorder() {
    if left_out("limits for files") {
        return;
    }
    let (program, scratch) = (special("endless"), Scratch::new());
    for limit in [0, 1, 100, 1500] {
        // What the test reads is a file as well.
        let text = format!("(ulimit -f {limit}; $0 record -o a.portent -- $1 20000; echo \"status $?\") 2>&1 | cat");
        let finished = script(&scratch, &text, &[&program]);
        let told = finished.told();
        let status = told.lines().find_map(|line| line.strip_prefix("status ")).unwrap_or("none");
        assert!(["0", "2"].contains(&status), "{limit}: {}", finished.describe());
        assert!(told.contains("ulimit -f"), "{limit}: {}", finished.describe());
    }
}

#[test]
fn a_full_disk_makes_a_check_incomplete() {
    if left_out("check on a full disk") {
        return;
    }
    let disk = match SmallDisk::new("3m") {
        Ok(disk) => disk,
        Err(why) => {
            return skipped("check on a full disk", &format!("no small file system can be mounted here: {why}"));
        }
    };
    let (program, scratch) = (special("endless"), Scratch::new());
    let text = "export TMPDIR=$2; exec $0 check --strict --budget 5 --rounds 1 --tries 0 -- $1 100000";
    let finished = script(&scratch, text, &[&program, disk.directory()]);
    assert!(finished.exited_with(4), "{}", finished.describe());
    assert!(finished.stderr.contains("a full disk"), "{}", finished.describe());
}

#[test]
fn whatever_a_program_does_to_its_own_recording_is_an_error_or_a_valid_trace() {
    if left_out("programs that spoil their recording") {
        return;
    }
    let program = special("vandal");
    for how in ["truncate", "shorten", "remove", "fifo", "header", "overwrite"] {
        let scratch = Scratch::new();
        let text = format!(
            "$0 record -o a.portent -- $1 {how}; echo \"status $?\"; test ! -e a.portent || $0 validate a.portent"
        );
        let finished = script(&scratch, &text, &[&program]);
        assert!(finished.exited_with(0), "{how}: {}", finished.describe());
        let spoiled = !["remove", "fifo"].contains(&how);
        let told = finished.told();
        let said = told.contains("cannot be read") || told.contains("is damaged");
        assert_eq!(said, spoiled, "{how}: {}", finished.describe());
        assert!(!told.contains("panicked"), "{how}: {}", finished.describe());
    }
}

#[test]
fn outputs_that_take_nothing_are_told_in_a_line_and_nothing_waits_for_them() {
    if left_out("outputs that take nothing") {
        return;
    }
    let (program, scratch) = (special("signalled"), Scratch::new());
    let cases = [
        ("mkfifo pipe.portent; exec $0 record -o pipe.portent -- $1", 2, "this is no file"),
        ("ln -sf /dev/full full.portent; exec $0 record -o full.portent -- $1", 2, "this is no file"),
        ("$0 record -o a.portent -- $1; mkfifo pipe.std; exec $0 convert a.portent pipe.std", 2, "nobody reads"),
        ("exec $0 convert a.portent - >/dev/full", 2, "disk is full"),
        ("mkfifo pipe; exec $0 check --budget 5 --json pipe -- $1", 2, "nobody reads"),
        // What was found does not depend on who reads it.
        ("set -o pipefail; $0 check --budget 10 -- $1 11 2>/dev/null | true", 1, ""),
    ];
    for (text, status, said) in cases {
        let finished = script(&scratch, text, &[&program]);
        assert!(finished.exited_with(status) && finished.stderr.contains(said), "{text}: {}", finished.describe());
    }
}

#[test]
fn a_trace_that_was_not_recorded_here_runs_nothing_unless_told_to() {
    if left_out("traces of others") {
        return;
    }
    let (program, scratch) = (special("signalled"), Scratch::new());
    let ran = "LD_NOTE=1 MY_TOKEN=hunter2 $0 record -o a.portent -- $1 && $0 replay a.portent";
    let ours = script(&scratch, ran, &[&program]);
    assert!(
        ours.exited_with(0) && ours.stderr.contains("recorded by this user on this machine"),
        "{}",
        ours.describe()
    );
    assert!(ours.stderr.contains("LD_NOTE=1"), "{}", ours.describe());
    // A secret is not in the file; the formats are compressed, so it is looked for in what comes out of it.
    assert!(
        !ours.told().contains("hunter2") && ours.stderr.contains("not set here as they were: MY_TOKEN"),
        "{}",
        ours.describe()
    );
    let elsewhere = "export PORTENT_STATE=$PWD/state;";
    for (text, status, said) in [
        ("$0 replay a.portent", 2, "it is not known who recorded it"),
        ("$0 replay a.portent --debugger gdb", 2, "it is not known who recorded it"),
        ("$0 replay a.portent --trust", 0, "because of --trust"),
        ("$0 replay a.portent -- $1", 0, "is run here, in this environment"),
    ] {
        let finished = script(&scratch, &format!("{elsewhere} {text}"), &[&program]);
        assert!(finished.exited_with(status) && finished.stderr.contains(said), "{text}: {}", finished.describe());
    }
    // Who has no place for a key is not trusted, either, not even by himself.
    let text = "mkdir open; chmod 777 open; export PORTENT_STATE=$PWD/open; $0 record -o b.portent -- $1 && $0 replay b.portent";
    let finished = script(&scratch, text, &[&program]);
    assert!(finished.exited_with(2) && finished.stderr.contains("it is not known who"), "{}", finished.describe());
}

#[test]
fn a_cache_that_somebody_else_prepared_is_refused() {
    if left_out("foreign caches") {
        return;
    }
    let (program, scratch) = (special("signalled"), Scratch::new());
    let text = "mkdir cache; chmod 777 cache; export PORTENT_CACHE=$PWD/cache; exec $0 record -o a.portent -- $1";
    let finished = script(&scratch, text, &[&program]);
    assert!(
        finished.exited_with(2) && finished.stderr.contains("only this user can write to"),
        "{}",
        finished.describe()
    );
}

#[test]
fn what_a_killed_recorder_leaves_is_private_ends_and_is_recovered() {
    if left_out("killed recorders") {
        return;
    }
    let (program, scratch) = (special("endless"), Scratch::new());
    let text = "mkdir tmp; export TMPDIR=$PWD/tmp; $0 record -o a.portent -- $1 >out & recorder=$!; \
        until test -s out; do sleep 0.01; done; sleep 0.05; stat -c '%a %n' tmp/portent-*/ tmp/portent-*/log; \
        kill -9 $recorder; wait; sleep 0.2; grep -qs '^State:.*[RSDtT] ' /proc/$(head -1 out)/status && echo orphan; \
        $0 recover --list; $0 record -o b.portent -- $2; $0 recover && $0 validate endless.recovered-1.portent; \
        ls -A tmp | sed 's/^/left: /'";
    let finished = script(&scratch, text, &[&program, &special("signalled")]);
    let told = finished.told();
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(
        told.contains("well formed") && told.contains("1 recording of a portent that was ended"),
        "{}",
        finished.describe()
    );
    assert!(!told.contains("orphan"), "{}", finished.describe());
    for line in told.lines().filter(|line| line.ends_with("tmp/") || line.contains(" tmp/portent-")) {
        assert!(line.starts_with("700 ") || line.starts_with("600 "), "{line}");
    }
    // Nothing is left: neither the session nor the directory for other processes.
    assert!(!told.contains("left: "), "{}", finished.describe());
}

#[test]
fn whoever_ends_portent_while_it_writes_a_trace_can_have_it_later() {
    if left_out("ends while a trace is written") {
        return;
    }
    let (program, scratch) = (special("endless"), Scratch::new());
    let text = "mkdir tmp; export TMPDIR=$PWD/tmp; $0 record -o a.portent -- $1 4000000 >out & recorder=$!; \
        until grep -q counted out; do sleep 0.01; done; sleep 0.1; kill -TERM $recorder; wait $recorder; echo \"status $?\"; \
        ls -A; $0 recover --list; $0 recover --discard";
    let finished = script(&scratch, text, &[&program]);
    let told = finished.told();
    assert!(told.contains("status 130") && told.contains("the recording is kept"), "{}", finished.describe());
    assert!(!told.contains(".portent-") && !told.contains("a.portent\n"), "nothing half: {}", finished.describe());
    assert!(told.contains("endless") && told.contains("removed"), "{}", finished.describe());
    assert_eq!(std::fs::read_dir(scratch.path("tmp")).unwrap().count(), 0, "{}", finished.describe());
}
