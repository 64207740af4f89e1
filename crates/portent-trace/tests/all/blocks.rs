//! Which blocks there are where functions are taken for blocks: a guess gives way to marks and to waiting, what was declared stays.

use portent_trace::format::StdReader;
use portent_trace::{FunctionBlocks, Op, Trace};

/// Begins and ends of blocks, with the input event of each and whether the block was declared.
fn blocks(events: &str, functions: FunctionBlocks) -> Vec<String> {
    let text: String = events.split_whitespace().map(|event| format!("{event}\n")).collect();
    let trace = Trace::from_input_watched(&mut StdReader::new(text.as_bytes()), functions, |_| {}).unwrap();
    let told = |op| match op {
        Op::Begin(block) => Some(("begin", block)),
        Op::End(block) => Some(("end", block)),
        _ => None,
    };
    let tell = |event: portent_trace::Event| {
        let (what, block) = told(event.op)?;
        let declared = if trace.is_declared(block) { " declared" } else { "" };
        Some(format!("{} {what} {}{declared}", trace.input_index(event.id), trace.names().block(block)))
    };
    trace.events().filter_map(tell).collect()
}

fn chosen() -> FunctionBlocks {
    FunctionBlocks::Chosen(Box::new(|name| name == "f"))
}

#[test]
fn a_function_that_waits_or_starts_a_thread_is_a_block_only_up_to_there() {
    let operations = ["slp(c)", "semw(s)", "lwt(l)", "arr(b)", "rcv(k)", "fork(T2)", "snd(system\u{20}calls)"];
    for operation in operations.iter().take(6) {
        let before = match *operation {
            "semw(s)" => "T3|post(s)",
            "lwt(l)" => "T3|cdn(l)",
            "rcv(k)" => "T3|snd(k)",
            _ => "T3|w(z)",
        };
        let text = format!(
            "{before} T1|call(root) T1|call(f) T1|w(x) T1|{operation} T1|w(x) T1|call(g) T1|w(x) T1|ret(g) T1|ret(f)"
        );
        let found = blocks(&text, FunctionBlocks::BelowRoots);
        // What it calls afterwards is a block of its own.
        assert_eq!(found, ["2 begin f", "4 end f", "6 begin g", "8 end g"], "{operation}");
        assert_eq!(blocks(&text, chosen()), ["2 begin f declared", "9 end f declared"], "{operation}");
    }
}

#[test]
fn a_function_that_joins_is_a_block_only_up_to_there() {
    let text = "T1|fork(T2) T2|w(y) T1|call(root) T1|call(f) T1|w(x) T1|join(T2) T1|w(x) T1|ret(f)";
    assert_eq!(blocks(text, FunctionBlocks::BelowRoots), ["3 begin f", "5 end f"]);
}

#[test]
fn coming_back_from_the_system_ends_a_guess() {
    let text = "T1|call(root)\nT1|call(f)\nT1|w(x)\nT1|snd(system calls)\nT1|w(x)\nT1|ret(f)\n";
    let trace =
        Trace::from_input_watched(&mut StdReader::new(text.as_bytes()), FunctionBlocks::BelowRoots, |_| {}).unwrap();
    let marks: Vec<u32> =
        trace.events().filter(|e| matches!(e.op, Op::Begin(_) | Op::End(_))).map(|e| trace.input_index(e.id)).collect();
    assert_eq!(marks, [1, 3]);
}

#[test]
fn taking_locks_ends_nothing() {
    let text = "T1|call(root) T1|call(f) T1|acq(m) T1|w(x) T1|rel(m) T1|acq(m) T1|w(x) T1|rel(m) T1|ret(f)";
    assert_eq!(blocks(text, FunctionBlocks::BelowRoots), ["1 begin f", "8 end f"]);
}

#[test]
fn marks_say_more_than_functions_and_stay_whole() {
    let text =
        "T1|call(root) T1|call(f) T1|w(x) T1|begin(b) T1|w(x) T1|slp(c) T1|tmo(c) T1|w(x) T1|end(b) T1|w(x) T1|ret(f)";
    assert_eq!(
        blocks(text, FunctionBlocks::BelowRoots),
        ["1 begin f", "3 end f", "3 begin b declared", "8 end b declared"]
    );
    // Chosen, both are declared: the outermost counts.
    assert_eq!(blocks(text, chosen()), ["1 begin f declared", "10 end f declared"]);
    assert_eq!(blocks(text, FunctionBlocks::None), ["3 begin b declared", "8 end b declared"]);
}

#[test]
fn a_free_is_a_write_that_the_trace_remembers() {
    let trace = Trace::from_std("T1|w(p)|1|5\nT2|free(p)|2\nT1|r(p)|3|5\n").unwrap();
    let frees: Vec<bool> = trace.events().map(|event| trace.ends(event.id).is_some()).collect();
    assert_eq!(frees, [false, true, false]);
    assert!(trace.events().nth(1).is_some_and(|event| event.op.writes() && !event.op.reads() && event.value.is_none()));
}
