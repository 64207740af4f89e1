//! Pipes: a reader that goes away, and a line without end.

use crate::{BANK, Session};
use portent_testing::scratch::Scratch;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

fn piped(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.portent(line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let scratch = Scratch::with("bank.std", BANK);
    let long: String = (0..200_000).map(|i| format!("T1|w(x)|{i}\n")).collect();
    scratch.write("long.std", long);
    for line in ["convert long.std -", "stats bank.std", "gen --events 1000000 --seed 1"] {
        let mut child = piped(&scratch, line).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn a_line_of_a_gigabyte_is_an_error_at_once() {
    let scratch = Scratch::new();
    for command in ["validate -", "stats -", "convert - -"] {
        let mut child = piped(&scratch, command).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let block = vec![b'x'; 1 << 20];
        let written = (0..1024).take_while(|_| stdin.write_all(&block).is_ok()).count();
        assert!(written < 100, "{command} read {written} MiB of one line");
        drop(stdin);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        assert_eq!(
            said,
            "error: standard input: line 1: the line is longer than 65536 bytes; expected thread|op(object)|location\n\
             help: the file has lines that are not events: is it a trace?\n"
        );
    }
}

#[test]
fn nothing_but_results_goes_to_standard_output_and_no_bar_to_a_pipe() {
    let scratch = Scratch::with("bank.std", BANK);
    let output = piped(&scratch, "stats bank.std").stdin(Stdio::null()).output().unwrap();
    assert!(output.stderr.is_empty());
}
