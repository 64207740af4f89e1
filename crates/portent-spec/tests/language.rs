//! The language from the outside: what is read, and what is said about mistakes.

use portent_spec::{Bound, Compiled, Scope, parse};
use portent_trace::Trace;

fn complaint(source: &str) -> String {
    parse(source).map(|file| panic!("{file:?}")).unwrap_err().render("p.spec", source)
}

#[test]
fn a_complaint_points_at_the_character_and_says_what_was_expected() {
    let cases = [
        (
            "property p: alway x == 1",
            13,
            "expected `always`, `never` or `final`, found `alway`",
            Some("did you mean `always`?"),
        ),
        ("property p always x == 1", 12, "expected `:`, found `always`", None),
        (
            "proprety p: always x == 1",
            1,
            "expected `property` or `initial`, found `proprety`",
            Some("did you mean `property`?"),
        ),
        ("property p: always x = 1", 22, "expected a comparison, found `=`", Some("equal is `==`")),
        ("property p: always (x == 1", 27, "expected `)`, found the end of the file", None),
        ("property p: always wirte(x)", 20, "expected a kind of event, found `wirte`", Some("did you mean `write`?")),
        (
            "property p: always x == 99999999999999999999",
            25,
            "`99999999999999999999` is not a number that fits 64 bits",
            None,
        ),
        (
            "property p: always x == \"y",
            25,
            "a name in quotation marks does not end on its line",
            Some("expected another `\"`"),
        ),
        (
            "property p: never (write(x) . !(write(x) . write(y)))",
            31,
            "`!` is for one event, this is a sequence",
            Some("`~` stands for every other sequence"),
        ),
        ("property p: always x == 1 y", 27, "expected an operator, or the end of the property, found `y`", None),
        (
            "property p: always x == 1\nproperty p: always x == 2",
            10,
            "there is a property called `p` already",
            Some("expected a name of its own"),
        ),
        (
            "property p: always @",
            20,
            "`@` has no meaning here",
            Some("names with other characters than letters, digits and `_` go in quotation marks"),
        ),
    ];
    for (source, column, message, help) in cases {
        let wrong = parse(source).map(|file| panic!("{source}: {file:?}")).unwrap_err();
        assert_eq!(
            (wrong.position(source).1, wrong.message.as_str(), wrong.help.as_deref()),
            (column, message, help),
            "{source}"
        );
    }
    let shown = complaint("# two\nproperty p: always (x = 1)");
    assert_eq!(
        shown,
        "p.spec:2:23: expected a comparison, found `=`\n  |\n2 | property p: always (x = 1)\n  |                       ^\n  = equal is `==`\n"
    );
}

#[test]
fn nesting_without_end_is_refused_and_does_not_overflow() {
    let deep = format!("property p: always {}x == 1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&deep).unwrap_err().message.contains("levels inside each other"));
    let deep = format!("property p: always {}true", "!".repeat(5000));
    assert!(parse(&deep).unwrap_err().message.contains("levels inside each other"));
    let deep = format!("property p: never ({}write(x){})", "(".repeat(60), ")".repeat(60));
    assert!(parse(&deep).is_ok());
}

#[test]
fn names_that_are_close_are_suggested_by_class() {
    let trace = Trace::from_std("T1|acq(mutex)|a.c:1\nT1|w(count)|a.c:2|1\nT1|rel(mutex)|a.c:3\n").unwrap();
    let help = |source: &str| {
        let wrong = Bound::all(&parse(source).unwrap(), &Scope::of(&trace)).unwrap_err();
        (wrong[0].message.clone(), wrong[0].help.clone().unwrap_or_default())
    };
    let said = |message: &str, help: &str| (message.to_owned(), help.to_owned());
    assert_eq!(
        help("property p: always cuont == 1"),
        said("the trace has no variable called `cuont`", "did you mean `count`?")
    );
    assert_eq!(
        help("property p: never acquire(mutx)"),
        said("the trace has no lock called `mutx`", "did you mean `mutex`?")
    );
    assert_eq!(help("property p: never (write(count) & by(T2))").1, "did you mean `T1`?");
    assert_eq!(help("property p: never at(\"b.c:2\")").0, "nothing in the trace happened at `b.c:2`");
    assert_eq!(help("property p: never notify(c)").1, "it has no conditions at all");
    assert_eq!(help("initial cont = 1\nproperty p: always count == 1").1, "did you mean `count`?");
}

#[test]
fn a_variable_may_be_named_by_where_it_is_declared() {
    let trace = Trace::from_std("T1|w(total(a.c))|a.c:2|1\n").unwrap();
    let mut scope = Scope::of(&trace);
    scope.declared.insert("a.c:7".into(), "total(a.c)".into());
    assert!(Bound::all(&parse("property p: always \"a.c:7\" == 1").unwrap(), &scope).is_ok());
}

#[test]
fn what_is_too_large_says_so() {
    let trace = Trace::from_std("T1|w(x)|1|1\n").unwrap();
    let refused = |source: &str| {
        let file = parse(source).unwrap();
        let bound = Bound::all(&file, &Scope::of(&trace)).unwrap();
        Compiled::new(&bound[0]).err().unwrap().to_string()
    };
    let many: Vec<String> = (0..70).map(|i| format!("prev x == {i}")).collect();
    assert!(refused(&format!("property p: always ({})", many.join(" & "))).contains("more than 64 different"));
    assert!(refused("property p: never (write(x)*)").contains("may be empty"));
    let many: Vec<String> = (0..11).map(|i| format!("(write(x) & (x == {i}))")).collect();
    assert!(refused(&format!("property p: never ({})", many.join(" . "))).contains("kinds of event apart"));
}

#[test]
fn start_and_end_are_changes_so_nothing_starts_or_ends_before_the_first_event() {
    use portent_spec::{Assume, Judgement, Monitor, Ruling, evaluate};
    let trace = Trace::from_std("T1|w(x)|1|0\nT1|w(x)|2|1\nT1|w(x)|3|0\n").unwrap();
    let run: Vec<portent_trace::Event> = trace.events().collect();
    // What the page, the definition and the monitor say of each: broken after how many events, if at all.
    let cases = [
        ("always !once start(x == 0)", Some(3)),
        ("always !once start(x >= 0)", None),
        ("always !once end(x == 0)", Some(2)),
        ("always !once end(x < 0)", None),
        ("always ![start(x == 0), x == 1)", Some(3)),
        ("always ![x == 0, start(x == 0))", Some(1)),
        ("always (start(x == 0) <-> (x == 0 & prev x != 0))", None),
        ("always prev !start(x == 0)", None),
    ];
    for (text, expected) in cases {
        let file = parse(&format!("initial x = 0\nproperty p: {text}")).unwrap();
        let bound = &Bound::all(&file, &Scope::of(&trace)).unwrap()[0];
        let by_definition = evaluate(bound, &run, true, Assume::Zero);
        assert_eq!(by_definition, expected.map_or(Ruling::Holds, |count| Ruling::Broken(count - 1)), "{text}");
        let mut monitor = Compiled::new(bound).unwrap();
        let mut state = vec![0; monitor.words()];
        monitor.start(&mut state);
        let mut bad = |event| monitor.letter(event).is_some_and(|l| monitor.step(&mut state, l) == Judgement::Bad);
        assert_eq!(run.iter().position(&mut bad).map(|at| at + 1), expected, "{text}");
    }
}
