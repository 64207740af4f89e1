//! The reference of the command line: its tables are made from the definition that `--help` shows, between markers.
//!
//! `PORTENT_BLESS=1 cargo test -p portent --test guide` writes them anew; otherwise the page must be as it would be written.
//! Numbers elsewhere in the guide that stand behind a flag, as in `` `--reach` events (100,000) ``, must be its default.

use clap::{Arg, Command};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- from --help: ";
const END: &str = "<!-- end -->";

/// The page as it should be: what stands between markers is made anew, everything else is kept.
pub(crate) fn renewed(page: &str) -> Result<String, String> {
    let mut definition = portent::command_line();
    definition.build();
    let mut names: Vec<&str> = definition.get_subcommands().map(Command::get_name).collect();
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, marked)) = rest.split_once(BEGIN) {
        let (name, body) = marked.split_once(" -->\n").ok_or("a marker has no end")?;
        let (_, after) = body.split_once(END).ok_or_else(|| format!("nothing ends what begins with {name}"))?;
        let made = match definition.find_subcommand(name) {
            Some(command) => section(command),
            None if name == "commands" => list(&definition),
            None => return Err(format!("there is no command {name:?}")),
        };
        names.retain(|known| *known != name);
        write!(text, "{before}{BEGIN}{name} -->\n{made}{END}").expect("a string takes everything");
        rest = after;
    }
    text.push_str(rest);
    if names.is_empty() { Ok(text) } else { Err(format!("nothing is said of {}", names.join(", "))) }
}

/// All commands, each with its first sentence.
fn list(definition: &Command) -> String {
    let mut text = "| command | what it does |\n|---|---|\n".to_owned();
    for command in definition.get_subcommands() {
        let name = command.get_name();
        let anchor = name.replace('+', "");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "| [`portent {name}`](#portent-{anchor}) | {} |", marked_up(&about)).expect("it is a string");
    }
    text
}

/// What `--help` says of one command: usage, description, and its arguments by heading.
fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let mut text = format!("```text\n{usage}\n```\n{}.\n", marked_up(about.trim_end_matches('.')));
    let shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    let mut headings: Vec<Option<&str>> = vec![None];
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        let rows: Vec<String> =
            args.iter().filter(|arg| arg.get_help_heading() == heading).map(|arg| row(arg)).collect();
        if !rows.is_empty() {
            let title = heading.map(|heading| format!("\n{heading}:\n")).unwrap_or_default();
            writeln!(text, "{title}\n| argument | |\n|---|---|\n{}", rows.join("\n")).expect("it is a string");
        }
    }
    text
}

fn row(arg: &Arg) -> String {
    let mut help = arg.get_help().map(|help| marked_up(&help.to_string())).unwrap_or_default();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && takes_value(arg) && !arg.is_hide_default_value_set() {
        write!(help, " [default: {}]", defaults.join(", ")).expect("a string takes everything");
    }
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}`: {}", value.get_name(), marked_up(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    let is_choice = takes_value(arg) && arg.get_value_names().is_none_or(|names| names[0] != "BOOL");
    if !values.is_empty() && is_choice {
        let separator = if values.iter().any(|value| value.contains(": ")) { "<br>" } else { ", " };
        write!(help, "<br>{}", values.join(separator)).expect("a string takes everything");
    }
    format!("| `{}` | {help} |", name(arg))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The argument as a command line has it: `-o, --output TRACE`.
fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let Some(long) = arg.get_long() else {
        let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        return if many { format!("{value}…") } else { value };
    };
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    match (takes_value(arg), optional) {
        (false, _) => format!("{short}--{long}"),
        (true, true) => format!("{short}--{long} [{value}]"),
        (true, false) => format!("{short}--{long} {value}"),
    }
}

/// Text of a help page for a table: flags and file endings as code, bars escaped.
fn marked_up(text: &str) -> String {
    let mut marked = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            write!(marked, "`{part}`").expect("a string takes everything");
            continue;
        }
        for word in part.split_inclusive([' ', '\n']) {
            let bare = word.trim_start_matches(['(', '[']).trim_end_matches([' ', '\n', ',', '.', ':', ';', ')', ']']);
            let is_flag = bare.starts_with('-') && bare.len() > 1;
            let is_ending = bare.starts_with('.') && bare.len() > 1;
            let word =
                if is_flag || is_ending { word.replacen(bare, &format!("`{bare}`"), 1) } else { word.to_owned() };
            marked.push_str(&word);
        }
    }
    marked.replace('|', "\\|")
}

/// Defaults that the guide states as a number behind a flag and that no command has.
pub(crate) fn wrong_defaults(page: &Path, text: &str) -> Vec<String> {
    let definition = portent::command_line();
    let mut wrong = Vec::new();
    for (flag, number) in stated(text) {
        let args =
            definition.get_subcommands().flat_map(Command::get_arguments).filter(|arg| arg.get_long() == Some(flag));
        // Some defaults are not clap's to fill in, and stand in the help.
        let told = args.flat_map(|arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let texts = help.rsplit_once("[default: ").map(|(_, text)| text.trim_end_matches(']').to_owned());
            arg.get_default_values()
                .iter()
                .map(|value| value.to_string_lossy().into_owned())
                .chain(texts)
                .collect::<Vec<_>>()
        });
        if !told.into_iter().any(|default| default.split([';', ' ']).next() == Some(number.as_str())) {
            wrong.push(format!("{}: --{flag} has no default of {number}", page.display()));
        }
    }
    wrong
}

/// Flags with the number in parentheses behind them, of which a word may come first: `` `--reach` events (100,000) ``.
fn stated(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("`--") {
        let Some((code, behind)) = text[at + 3..].split_once('`') else { break };
        let flag = code.split(' ').next().unwrap_or_default();
        let behind = behind.strip_prefix(" events").unwrap_or(behind);
        let Some((number, _)) = behind.strip_prefix(" (").and_then(|rest| rest.split_once(')')) else { continue };
        let number = number.replace(',', "");
        if number.parse::<f64>().is_ok() {
            found.push((flag, number));
        }
    }
    found
}

#[test]
fn numbers_behind_flags_are_taken_for_defaults() {
    let text = "up to `--reach` events (100,000), `--timeout SECONDS` (60) and `--window N` (see above)";
    assert_eq!(stated(text), [("reach", "100000".to_owned()), ("timeout", "60".to_owned())]);
    assert!(wrong_defaults(Path::new("page"), text).is_empty());
    assert_eq!(wrong_defaults(Path::new("page"), "`--reach` (7)").len(), 1);
}

#[test]
fn flags_and_endings_are_code() {
    assert_eq!(marked_up("a .std file (see --all), or `-`"), "a `.std` file (see `--all`), or `-`");
}
