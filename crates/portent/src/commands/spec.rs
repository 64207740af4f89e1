//! `portent spec`: the monitors of a file of properties, drawn.

use super::drawing::save;
use super::print;
use crate::args::SpecArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use portent_explore::Properties;

/// Draws what was asked for, or says how large each monitor is.
pub(crate) fn run(args: &SpecArgs) -> Result<ExitCode, Failure> {
    let pictures = Properties::read(&args.file)?.pictures()?;
    if args.dot.is_none() && args.svg.is_none() {
        for picture in &pictures {
            print(&format!("{}: {}\n", picture.name, counted(picture.states() as u64, "state")))?;
        }
    }
    save(args.dot.as_deref(), || pictures.iter().map(|picture| picture.dot()).collect())?;
    if args.svg.is_some() {
        let [picture] = &pictures[..] else {
            let help = "draw them with --dot, or name a file with one of them";
            return Err(Failure::usage(format!("{} has several properties", args.file.display()), help));
        };
        save(args.svg.as_deref(), || picture.svg())?;
    }
    Ok(ExitCode::NothingFound)
}
