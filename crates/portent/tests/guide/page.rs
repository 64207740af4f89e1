//! A page as the test sees it: files, and commands with what they print.

use std::path::Path;

/// A page of the guide.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) actions: Vec<Action>,
}

/// What a page does, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Puts a file into the directory.
    File { name: String, text: String },
    /// Runs commands, if the tools that they need are there.
    Commands { needs: Vec<String>, commands: Vec<Command> },
}

/// A command, and what comes of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) status: i32,
    pub(crate) shown: Vec<String>,
}

impl Page {
    /// Reads a page; one that cannot be read fails the test.
    pub(crate) fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(crate::root()).unwrap_or(path).display().to_string();
        Page { name, actions: actions(&text) }
    }

    /// Whether there is something to run.
    pub(crate) fn has_commands(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Commands { .. }))
    }
}

fn actions(text: &str) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let body: Vec<(usize, &str)> = lines
            .by_ref()
            .take_while(|(_, line)| line.trim() != "```")
            .map(|(number, line)| (number + 1, line.get(indent..).unwrap_or_default()))
            .collect();
        if info.split_whitespace().next() == Some("console") {
            let needs = info.split_whitespace().find_map(|word| word.strip_prefix("needs="));
            let needs = needs.into_iter().flat_map(|tools| tools.split(',')).map(str::to_owned).collect();
            actions.push(Action::Commands { needs, commands: commands(&body) });
        } else if let Some((_, title)) = info.split_once("title=\"") {
            let name = title.split('"').next().unwrap_or_default().to_owned();
            let text = body.iter().flat_map(|(_, line)| [line, "\n"]).collect();
            actions.push(Action::File { name, text });
        }
    }
    actions
}

fn commands(body: &[(usize, &str)]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (number, line) in body {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(text), _) => {
                commands.push(Command { line: *number, text: text.to_owned(), ..Command::default() });
            }
            // A long command goes on behind `> `, as a shell shows it.
            (None, Some(last)) if line.starts_with("> ") && last.text.ends_with('\\') => {
                last.text.pop();
                last.text.push_str(&line[2..]);
            }
            (None, Some(last)) => last.shown.push(line.trim_end().to_owned()),
            (None, None) => panic!("line {number}: output before the first command"),
        }
    }
    for command in &mut commands {
        if let Some((text, status)) = command.text.rsplit_once("# exits with ") {
            command.status = status.trim().parse().expect("a status is a number");
            command.text = text.trim_end().to_owned();
        }
    }
    commands
}

/// What is wrong with what a command printed: the first shown line that is not there, in this order.
pub(crate) fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines().map(str::trim_end);
    let wanted = shown.iter().map(String::as_str).filter(|line| !line.is_empty() && line.trim() != "…");
    wanted.into_iter().find(|pattern| !lines.any(|line| fits(pattern, line)))
}

/// Whether a line is as shown, where `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|start| line.strip_prefix(start)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(end) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[test]
fn a_page_is_files_and_commands() {
    let text =
        "Text.\n```c title=\"a.c\"\nint a;\n```\n```console needs=gdb\n$ gdb \\\n> a  # exits with 3\nhello …\n```\n";
    let command = Command { line: 6, text: "gdb a".into(), status: 3, shown: vec!["hello …".into()] };
    let expected = [
        Action::File { name: "a.c".into(), text: "int a;\n".into() },
        Action::Commands { needs: vec!["gdb".into()], commands: vec![command] },
    ];
    assert_eq!(actions(text), expected);
}

#[test]
fn shown_lines_are_there_in_order() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let printed = "race-1  race on x\n  first T1\n  second T2\n";
    assert_eq!(missing(&shown("race-…  race on x\n…\n  second T…"), printed), None);
    assert_eq!(missing(&shown("  second T2\n  first T1"), printed), Some("  first T1"));
    assert_eq!(missing(&shown("race-2…"), printed), Some("race-2…"));
    assert!(fits("a…c", "abc") && !fits("a…c", "abcd") && !fits("ab…ba", "aba"));
}
