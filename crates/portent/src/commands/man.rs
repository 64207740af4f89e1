//! `portent man`: manual pages, made from the definition of the command line.

use super::{print, print_as_it_is};
use crate::args::{self, ManArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use portent_trace::TraceError;
use std::path::Path;

/// Prints the page of `portent` itself, or writes one for every command.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let mut command = args::command_line();
    command.build();
    let Some(folder) = &args.output else {
        print_as_it_is(&String::from_utf8_lossy(&page(&command)?))?;
        return Ok(ExitCode::NothingFound);
    };
    std::fs::create_dir_all(folder).map_err(|error| in_file(error, folder))?;
    let commands: Vec<&clap::Command> = std::iter::once(&command).chain(command.get_subcommands()).collect();
    for command in &commands {
        let path = folder.join(format!("{}.1", name(command)));
        std::fs::write(&path, page(command)?).map_err(|error| in_file(error, &path))?;
    }
    print(&format!("{}: {} written\n", folder.display(), counted(commands.len() as u64, "manual page")))?;
    Ok(ExitCode::NothingFound)
}

fn in_file(error: std::io::Error, path: &Path) -> Failure {
    Failure::Trace(TraceError::whole(error).in_input(&path.display().to_string()))
}

/// `portent`, `portent-check` and so on.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of one command.
fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let described = command.clone().after_long_help(Resettable::Reset);
    let man = Man::new(described).source(concat!("portent ", env!("CARGO_PKG_VERSION"))).manual("Portent");
    let mut page = Vec::new();
    man.render(&mut page)?;
    if let Some(text) = command.get_after_long_help() {
        as_written(&text.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// The examples and exit statuses behind a help page, whose lines must not be joined: a section for each of its headings.
fn as_written(text: &str) -> Roff {
    let mut roff = Roff::default();
    for part in text.split("\n\n") {
        let (heading, lines) = part.split_once('\n').unwrap_or((part, ""));
        roff.control("SH", [heading.trim_end_matches(':').to_uppercase().as_str()]);
        roff.control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff
}
