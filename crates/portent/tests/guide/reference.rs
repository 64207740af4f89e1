//! The reference of the command line against what `--help` says: every command, every option with its value, and no other.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Commands that hand all their arguments on.
const PASSES_ON: [&str; 2] = ["cc", "c++"];

/// What is wrong with the page.
pub(crate) fn wrong(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let mut wrong = Vec::new();
    for command in commands() {
        let Some(section) = section(&text, &command) else {
            wrong.push(format!("cli.md has no section `## portent {command}`"));
            continue;
        };
        if PASSES_ON.contains(&command.as_str()) {
            continue;
        }
        let (real, told) = (options(&help(&[&command])), told(section));
        let list = |all: BTreeSet<&String>| all.into_iter().map(|option| format!("`{option}`")).collect::<Vec<_>>();
        for option in list(real.difference(&told).collect()) {
            wrong.push(format!("cli.md does not tell of {option} of portent {command}"));
        }
        for option in list(told.difference(&real).collect()) {
            wrong.push(format!("cli.md tells of {option}, which portent {command} does not have"));
        }
    }
    wrong
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_portent")).args(command).arg("--help").output().expect("it starts");
    assert!(output.status.success(), "portent {command:?} --help fails");
    String::from_utf8(output.stdout).expect("help is text")
}

fn commands() -> Vec<String> {
    let help = help(&[]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A name stands behind two blanks; descriptions that go on stand further right.
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The long options of a help page, with the names of their values.
fn options(help: &str) -> BTreeSet<String> {
    // Possible values of an option stand behind a dash and a blank.
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "));
    let long = lines.filter_map(|line| line.find("--").map(|at| &line[at..]));
    let words = long.map(|line| line.split("  ").next().unwrap_or(line).replace(['<', '>'], "").trim().to_owned());
    words.filter(|option| option != "--help").collect()
}

fn section<'a>(text: &'a str, command: &str) -> Option<&'a str> {
    let start = format!("## portent {command}\n");
    let at = text.find(&start)? + start.len();
    Some(text[at..].split("\n## ").next().unwrap_or_default())
}

/// The options that rows of tables tell of: `| --json FILE | …`, short forms before them left out.
fn told(section: &str) -> BTreeSet<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `-"));
    let first = rows.filter_map(|row| row.split('`').next());
    first.filter_map(|text| format!("-{text}").find("--").map(|at| format!("-{text}")[at..].to_owned())).collect()
}
