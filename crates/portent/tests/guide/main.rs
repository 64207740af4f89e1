//! The user guide does what it says: its commands run, its links lead somewhere, its reference knows every option.
//!
//! Commands are the lines that start with `$ ` in blocks marked `console`, on any page of docs/src and in README.md. Those of
//! a page run in order, in one empty directory, with the built `portent` on the search path; every command is a shell of
//! its own. Blocks with a `title` are files of that directory.
//!
//! | in the page | means |
//! |---|---|
//! | ```` ```c title="bank.c" ```` | this file is there for the commands below |
//! | ```` ```console needs=gdb,make ```` | skipped, with a word, where one of these is missing |
//! | `$ portent check -- ./bank  # exits with 1` | the status; 0 where nothing is said |
//! | a line behind the command | is in what it prints, in this order |
//! | `…` in it | any text; alone on a line, any lines |
//!
//! Without a C compiler, pages that build programs are skipped, loudly.

mod links;
mod page;
mod reference;
mod run;

use page::Page;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All pages with commands: those of the guide, and the README.
fn pages() -> Vec<Page> {
    let mut paths = links::markdown_below(&root().join("docs/src"));
    paths.push(root().join("README.md"));
    paths.iter().map(|path| Page::read(path)).collect()
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let runner = run::Runner::new();
    let mut wrong = Vec::new();
    let mut commands = 0;
    for page in pages().iter().filter(|page| page.has_commands()) {
        match runner.run(page) {
            Ok(ran) => commands += ran,
            Err(text) => wrong.push(format!("{}: {text}", page.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    eprintln!("{commands} commands of the guide were run");
}

#[test]
fn every_page_is_listed_and_every_link_leads_somewhere() {
    let wrong = links::wrong(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reference_of_the_command_line_knows_every_command_and_option() {
    let wrong = reference::wrong(&root().join("docs/src/reference/cli.md"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
