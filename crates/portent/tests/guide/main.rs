//! The user guide does what it says: its commands run, its links lead somewhere, its reference is what
//! `--help` says, and what code cites of it exists.
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

mod citations;
mod links;
mod page;
mod reference;
mod run;

use page::Page;
use portent_testing::command::Portent;
use portent_testing::{parallel, repository};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const PORTENT: Portent = Portent::new(env!("CARGO_BIN_EXE_portent"), env!("CARGO_TARGET_TMPDIR"));

fn root() -> PathBuf {
    repository().canonicalize().expect("the repository is there")
}

/// All pages with commands: those of the guide, and the README.
fn pages() -> Vec<Page> {
    let mut paths = links::markdown_below(&root().join("docs/src"));
    paths.push(root().join("README.md"));
    paths.iter().map(|path| Page::read(path)).collect()
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let (runner, commands) = (run::Runner::new(), AtomicUsize::new(0));
    let pages: Vec<Page> = pages().into_iter().filter(Page::has_commands).collect();
    let does_what_it_says = |page: &Page| {
        commands.fetch_add(runner.run(page)?, Ordering::Relaxed);
        Ok(())
    };
    parallel::each(&pages, |page| page.name.clone(), does_what_it_says);
    eprintln!("{} commands of the guide were run", commands.into_inner());
}

#[test]
fn every_page_is_listed_and_every_link_leads_somewhere() {
    let wrong = links::wrong(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reference_of_the_command_line_is_what_help_says() {
    let path = root().join("docs/src/reference/cli.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let renewed = reference::renewed(&page).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    if std::env::var_os("PORTENT_BLESS").is_some() {
        return std::fs::write(&path, renewed).expect("the page can be written");
    }
    let differs = page.lines().zip(renewed.lines()).find(|(is, should)| is != should);
    let help = "PORTENT_BLESS=1 cargo test -p portent --test guide writes it anew";
    assert!(page == renewed, "{} is not what --help says; {help}; first difference: {differs:#?}", path.display());
}

#[test]
fn defaults_in_the_guide_are_those_of_the_command_line() {
    let pages = links::markdown_below(&root().join("docs/src")).into_iter().chain([root().join("README.md")]);
    let wrong: Vec<String> = pages
        .flat_map(|path| reference::wrong_defaults(&path, &std::fs::read_to_string(&path).expect("a page is text")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_code_cites_is_in_the_repository() {
    let wrong = citations::wrong(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_glossary_names_is_in_the_code() {
    let wrong = citations::wrong_in_glossary(&root());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
