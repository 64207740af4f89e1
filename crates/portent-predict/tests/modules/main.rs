//! Modules form no cycles: what a module is built on can be read without it.
//!
//! Told from the source text: which other modules the `crate::` and `super::` paths of each file name. Top-level modules
//! are told apart, a folder being one of them; and so are the files of each folder, but for its `mod.rs`, which may name
//! its files and be named by them. Unit tests do not count.

mod scan;

use scan::{Module, cycle, edges};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates without cycles. Another one belongs here as soon as it has none.
const CRATES: [&str; 1] = ["portent-predict"];

/// Every module of a crate with its text.
fn modules(src: &Path) -> Vec<Module> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(src).unwrap().with_extension("");
                let parts = relative.iter().map(|part| part.to_str().unwrap().to_owned());
                found.push(Module::new(parts.collect(), &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// Made-up files of a crate.
fn sample(files: &[(&str, &str)]) -> Vec<Module> {
    let module = |(path, text): &(&str, &str)| Module::new(path.split('/').map(str::to_owned).collect(), text);
    files.iter().map(module).collect()
}

/// The first cycle of a crate: at the top, or among the files of a folder.
fn first_cycle(modules: &[Module]) -> Option<Vec<String>> {
    let folders: BTreeSet<&[String]> = modules.iter().map(|module| module.folder()).collect();
    folders.into_iter().find_map(|folder| cycle(&edges(modules, folder)))
}

#[test]
fn no_module_is_built_on_itself() {
    for name in CRATES {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let modules = modules(&src);
        assert!(modules.len() > 5, "{name}: hardly anything was read");
        if let Some(cycle) = first_cycle(&modules) {
            panic!("{name}: {}", cycle.join(" → "));
        }
    }
}

#[test]
fn the_scanner_sees_what_the_prediction_is_built_on() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all: BTreeMap<String, BTreeSet<String>> = edges(&modules(&src), &[]);
    assert!(all["predict"].contains("stream") && all["predict"].contains("answers"));
    assert!(all["stream"].contains("board"), "named only in files of the folder");
    assert!(all["kinds"].contains("asking") && !all["asking"].contains("kinds"));
}

#[test]
fn a_cycle_of_three_is_named() {
    let files = [
        ("a", "use crate::b::Thing;\n"),
        ("b", "pub fn f() -> crate::c::Other { crate::c::Other }\n"),
        ("c", "use crate::{\n    d,\n    a::{Deep, more},\n};\n"),
        ("d", "pub struct Nothing;\n"),
    ];
    assert_eq!(first_cycle(&sample(&files)).unwrap(), ["a", "b", "c", "a"]);
    assert_eq!(first_cycle(&sample(&files[..2])), None);
}

#[test]
fn a_cycle_through_a_folder_is_named() {
    let files = [("x/mod", "mod deep;\n"), ("x/deep", "use crate::y::Y;\n"), ("y", "use crate::x::X;\n")];
    assert_eq!(first_cycle(&sample(&files)).unwrap(), ["x", "y", "x"]);
}

#[test]
fn a_cycle_inside_a_folder_is_named_also_through_what_the_folder_shows() {
    let by_name = [("x/mod", ""), ("x/one", "use super::two::Two;"), ("x/two", "use crate::x::one::One;")];
    assert_eq!(first_cycle(&sample(&by_name)).unwrap(), ["x::one", "x::two", "x::one"]);
    let shown = [
        ("x/mod", "mod one;\nmod two;\npub(crate) use one::One;\nuse two::{Two, Other as Another};\n"),
        ("x/one", "use super::Another;"),
        ("x/two", "use super::{One, three::Three};"),
    ];
    assert_eq!(first_cycle(&sample(&shown)).unwrap(), ["x::one", "x::two", "x::one"]);
}

#[test]
fn comments_strings_unit_tests_and_the_folder_itself_do_not_count() {
    let files = [
        (
            "a",
            "//! See [`crate::b`].\nconst TEXT: &str = \"crate::b\";\n#[cfg(test)]\nmod tests {\n use crate::b::B;\n}\n",
        ),
        ("b", "use crate::a::A;\n"),
        ("x/mod", "mod one;\npub struct Own;\nuse one::One;\n"),
        ("x/one", "use super::Own;\n"),
        ("x/tests", "use super::one::One;\nuse crate::b::B;\n"),
    ];
    assert_eq!(first_cycle(&sample(&files)), None);
}
