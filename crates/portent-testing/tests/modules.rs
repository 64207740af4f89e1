//! Modules form no cycles: what a module is built on can be read without it.

use portent_testing::modules::{Module, cycle, edges, first_cycle, of_crate};

/// Crates without cycles. Another one belongs here as soon as it has none.
const WITHOUT: [&str; 7] = [
    "portent",
    "portent-explore",
    "portent-predict",
    "portent-runtime",
    "portent-search",
    "portent-spec",
    "portent-testing",
];

/// Crates without cycles of top-level modules.
const WITHOUT_AT_THE_TOP: [&str; 2] = ["portent-native", "portent-order"];

/// Made-up files of a crate.
fn sample(files: &[(&str, &str)]) -> Vec<Module> {
    let module = |(path, text): &(&str, &str)| Module::new(path.split('/').map(str::to_owned).collect(), text);
    files.iter().map(module).collect()
}

#[test]
fn no_module_is_built_on_itself() {
    for name in WITHOUT {
        let modules = of_crate(name);
        assert!(modules.len() > 2, "{name}: hardly anything was read");
        assert_eq!(first_cycle(&modules), None, "{name}");
    }
    for name in WITHOUT_AT_THE_TOP {
        let modules = of_crate(name);
        assert!(modules.len() > 2, "{name}: hardly anything was read");
        assert_eq!(cycle(&edges(&modules, &[])), None, "{name}");
    }
}

#[test]
fn the_scanner_sees_what_the_prediction_is_built_on() {
    let all = edges(&of_crate("portent-predict"), &[]);
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
