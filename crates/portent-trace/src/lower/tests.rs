//! What each recorded operation becomes, and every way a trace can be malformed.

use crate::generate::{Config, Generator};
use crate::{Batch, Event, Layout, Lowering};
use crate::{
    ByteRange, EventList, InputBatch, InputEvent, InputOp, InputSource, LocId, ReadOrder, ThreadId, WriteOrder,
};
use crate::{Malformed, Mode, Names, Op, Position, Problem, Reach, SemId, Trace, TraceError};

/// The kernel events of an STD text, one word each: `T1:acq(l)`. Tokens are numbered in order of their first use.
fn kernel(text: &str) -> String {
    let trace = Trace::from_std(&text.replace(' ', "\n")).unwrap_or_else(|e| panic!("{e}"));
    let mut tokens = Vec::new();
    let words: Vec<String> = trace
        .events()
        .map(|event| format!("{}:{}", trace.names().thread(event.thread), word(&trace, event.op, &mut tokens)))
        .collect();
    words.join(" ")
}

fn word(trace: &Trace, op: Op, tokens: &mut Vec<crate::TokenId>) -> String {
    let names = trace.names();
    let mut number = |token| {
        tokens.iter().position(|t| *t == token).unwrap_or_else(|| {
            tokens.push(token);
            tokens.len() - 1
        })
    };
    match op {
        Op::Read(x, _) => format!("r({})", trace.variable_name(x)),
        Op::Write(x, _) => format!("w({})", trace.variable_name(x)),
        Op::Update(x, _) => format!("u({})", trace.variable_name(x)),
        Op::Acquire(l, Mode::Exclusive) => format!("acq({})", names.lock(l)),
        Op::Acquire(l, Mode::Shared) => format!("acqs({})", names.lock(l)),
        Op::Release(l, Mode::Exclusive) => format!("rel({})", names.lock(l)),
        Op::Release(l, Mode::Shared) => format!("rels({})", names.lock(l)),
        Op::Busy(l, _) => format!("busy({})", names.lock(l)),
        Op::Send(k) => format!("snd({})", number(k)),
        Op::Receive(k) => format!("rcv({})", number(k)),
        Op::Sleep(c) => format!("slp({})", names.condition(c)),
        Op::Notify(c, Reach::One) => format!("ntf({})", names.condition(c)),
        Op::Notify(c, Reach::All) => format!("nta({})", names.condition(c)),
        Op::Wake(c) => format!("wak({})", names.condition(c)),
        Op::Post(s) => format!("post({})", names.semaphore(s)),
        Op::Wait(s) => format!("semw({})", names.semaphore(s)),
        Op::Empty(s) => format!("semf({})", names.semaphore(s)),
        Op::Begin(b) => format!("begin({})", names.block(b)),
        Op::End(b) => format!("end({})", names.block(b)),
        Op::Branch => "branch".into(),
        Op::Fence(order) => format!("fence {order:?}"),
    }
}

/// The offence in an STD text, and the number of the event it is at.
fn offence(text: &str) -> (Malformed, u64) {
    match Trace::from_std(&text.replace(' ', "\n")).unwrap_err() {
        TraceError { problem: Problem::Malformed(malformed), position: Position::Event { index, .. }, .. } => {
            (malformed, index)
        }
        other => panic!("expected an offence, found {other}"),
    }
}

#[test]
fn fork_and_join_become_tokens_around_the_child() {
    assert_eq!(kernel("A|fork(B) B|w(x) A|join(B) A|r(x)"), "A:snd(0) B:rcv(0) B:w(x) B:snd(1) A:rcv(1) A:r(x)");
}

#[test]
fn a_child_that_never_ran_still_orders_its_fork_before_its_join() {
    assert_eq!(kernel("A|fork(B) C|join(B)"), "A:snd(0) B:rcv(0) B:snd(1) C:rcv(1)");
}

#[test]
fn a_thread_may_be_joined_twice() {
    assert_eq!(kernel("B|w(x) A|join(B) C|join(B)"), "B:w(x) B:snd(0) A:rcv(0) B:snd(1) C:rcv(1)");
}

#[test]
fn only_the_outermost_acquire_and_release_stay() {
    assert_eq!(kernel("T|acq(l) T|acq(l) T|w(x) T|rel(l) T|w(x) T|rel(l)"), "T:acq(l) T:w(x) T:w(x) T:rel(l)");
}

#[test]
fn a_writer_may_take_its_own_read_lock() {
    assert_eq!(
        kernel("T|acq(l) T|acqs(l) T|rel(l) U|acqs(l) T|rels(l)"),
        "T:acq(l) T:acqs(l) T:rel(l) U:acqs(l) T:rels(l)"
    );
}

#[test]
fn waiting_releases_at_all_levels_and_takes_back_as_many() {
    assert_eq!(
        kernel(
            "T|acq(m) T|acq(m) T|slp(c) T|rela(m) U|acq(m) U|ntf(c) U|rel(m) T|wak(c) T|acqa(m) T|rel(m) T|w(x) T|rel(m)"
        ),
        "T:acq(m) T:slp(c) T:rel(m) U:acq(m) U:ntf(c) U:rel(m) T:wak(c) T:acq(m) T:w(x) T:rel(m)"
    );
}

#[test]
fn a_wake_takes_the_earliest_unused_notify_since_its_sleep() {
    let text = "U|ntf(c)\nT|slp(c)\nV|slp(c)\nU|ntf(c)\nU|ntf(c)\nV|wak(c)\nT|wak(c)\n";
    let trace = Trace::from_std(text).unwrap();
    let pairs: Vec<_> = trace.pairings().iter().map(|p| (p.sleep.index(), p.notify.index(), p.wake.index())).collect();
    assert_eq!(pairs, [(2, 3, 5), (1, 4, 6)]);
    assert_eq!(trace.woken_by(crate::EventId::new(3)).len(), 1);
    assert!(trace.woken_by(crate::EventId::new(0)).is_empty(), "too early for anybody");
}

#[test]
fn a_notify_all_wakes_every_sleeper() {
    let trace = Trace::from_std("T|slp(c)\nV|slp(c)\nU|nta(c)\nV|wak(c)\nT|wak(c)\n").unwrap();
    assert_eq!(trace.woken_by(crate::EventId::new(2)).len(), 2);
}

#[test]
fn a_time_out_and_a_spurious_wake_have_no_notify() {
    let trace = Trace::from_std("T|slp(c)\nV|slp(c)\nU|ntf(c)\nT|tmo(c)\nT|slp(c)\nT|wak(c)\n").unwrap();
    assert!(trace.pairings().is_empty());
}

#[test]
fn a_time_out_of_the_only_sleeper_after_a_notify_counts_as_woken() {
    let trace = Trace::from_std("T|slp(c)\nU|ntf(c)\nT|tmo(c)\n").unwrap();
    assert_eq!(trace.pairings().len(), 1);
}

#[test]
fn an_ntf_whose_name_is_awaited_is_a_token_even_when_that_shows_late() {
    assert_eq!(kernel("T|ntf(S) T|ntf(S) U|wai(S) T|ntf(S) U|wai(S)"), "T:snd(0) T:snd(1) U:rcv(1) T:snd(2) U:rcv(2)");
}

#[test]
fn named_tokens_wait_for_every_send() {
    assert_eq!(kernel("A|snd(k) B|snd(k) C|rcv(k) C|rcv(k)"), "A:snd(0) B:snd(0) C:rcv(0) C:rcv(0)");
}

#[test]
fn operations_of_semaphores_are_the_kernels_and_who_served_whom_is_not_kept() {
    assert_eq!(
        kernel("A|semi(s)||1 A|semw(s) B|post(s) A|semw(s) A|semf(s) B|post(s)"),
        "A:semw(s) B:post(s) A:semw(s) A:semf(s) B:post(s)"
    );
    let trace = Trace::from_std("A|post(r)\nA|semi(s)||3\nA|semw(s)\n").unwrap();
    assert_eq!([0, 1].map(|s| trace.initial_count(SemId::new(s))), [0, 3]);
}

#[test]
fn declared_order_adds_up_and_orders_nobody_who_only_declares() {
    assert_eq!(kernel("A|hb(k) B|hb(k) C|ha(k)"), "A:snd(0) B:snd(0) C:rcv(0)");
    // D comes after A too, although C has taken that over already.
    assert_eq!(kernel("A|hb(k) C|ha(k) B|hb(k) D|ha(k)"), "A:snd(0) C:rcv(0) B:snd(1) D:rcv(0) D:rcv(1)");
    // Only what is new, and nothing of one's own.
    assert_eq!(kernel("A|hb(k) B|ha(k) B|ha(k) A|hb(k) B|ha(k) A|ha(k)"), "A:snd(0) B:rcv(0) A:snd(1) B:rcv(1)");
    assert_eq!(kernel("A|ha(k) A|hb(k)"), "A:snd(0)");
}

#[test]
fn a_latch_opens_after_all_count_downs_and_ignores_later_ones() {
    assert_eq!(kernel("A|cdn(f) B|cdn(f) C|lwt(f) A|cdn(f) D|lwt(f)"), "A:snd(0) B:snd(0) C:rcv(0) D:rcv(0)");
}

#[test]
fn a_barrier_round_ends_with_its_first_departure() {
    assert_eq!(
        kernel("A|arr(b) B|arr(b) A|dep(b) A|arr(b) B|dep(b) B|arr(b) A|dep(b) B|dep(b)"),
        "A:snd(0) B:snd(0) A:rcv(0) A:snd(1) B:rcv(0) B:snd(1) A:rcv(1) B:rcv(1)"
    );
}

#[test]
fn a_once_is_a_lock_and_a_token_from_the_initialiser() {
    assert_eq!(
        kernel("A|onceb(o) A|w(x) A|oncee(o) B|oncep(o)"),
        "A:acq(o) A:w(x) A:snd(0) A:rel(o) B:acq(o) B:rel(o) B:rcv(0)"
    );
}

#[test]
fn nested_blocks_keep_the_outermost_and_a_missing_name_matches() {
    assert_eq!(kernel("T|begin(b) T|begin(i) T|w(x) T|end(i) T|end()"), "T:begin(b) T:w(x) T:end(b)");
}

#[test]
fn calls_become_nothing_and_branches_stay() {
    assert_eq!(kernel("T|call(f) T|branch T|ret(f)"), "T:branch");
}

#[test]
fn a_trace_may_stop_anywhere() {
    kernel("T|acq(l) T|begin(b) U|slp(c) T|w(x)");
}

#[test]
fn mutual_exclusion_is_checked() {
    let (found, at) = offence("T|acq(l) U|acq(l)");
    assert_eq!(
        (found, at),
        (Malformed::LockHeld { thread: "U".into(), lock: "l".into(), holder: "T".into(), since: 0 }, 1)
    );
    assert!(matches!(offence("T|acqs(l) U|acq(l)").0, Malformed::LockHeld { .. }));
    assert!(matches!(offence("T|acq(l) U|acqs(l)").0, Malformed::LockHeld { .. }));
    assert!(matches!(offence("A|onceb(o) A|oncee(o) A|onceb(o) B|oncep(o)").0, Malformed::LockHeld { .. }));
    kernel("T|acqs(l) U|acqs(l)");
}

#[test]
fn releases_need_their_acquire() {
    let (found, at) = offence("T|acq(l) U|rel(l)");
    assert_eq!((found, at), (Malformed::NotHeld { thread: "U".into(), lock: "l".into(), holder: Some("T".into()) }, 1));
    assert!(matches!(offence("T|acq(l) T|rels(l)").0, Malformed::NotHeld { .. }));
    assert!(matches!(offence("T|acq(l) T|rel(l) T|rel(l)").0, Malformed::NotHeld { holder: None, .. }));
    assert!(matches!(offence("T|rela(l)").0, Malformed::NotHeld { .. }));
    assert!(matches!(offence("T|oncee(o)").0, Malformed::NotHeld { .. }));
    assert!(matches!(offence("T|acqa(l)").0, Malformed::NothingToTakeBack { .. }));
}

#[test]
fn a_failed_try_needs_another_holder() {
    assert_eq!(offence("T|busy(l)").0, Malformed::NotBusy { thread: "T".into(), lock: "l".into() });
    assert!(matches!(offence("T|acq(l) T|busy(l)").0, Malformed::NotBusy { .. }));
    assert!(matches!(offence("T|acqs(l) U|busys(l)").0, Malformed::NotBusy { .. }));
    kernel("T|acqs(l) U|busy(l)");
    kernel("T|acq(l) U|busys(l)");
}

#[test]
fn tokens_are_sent_before_they_are_received_and_not_after() {
    assert!(matches!(offence("T|rcv(k)").0, Malformed::NotSent { .. }));
    assert!(matches!(offence("T|wai(k)").0, Malformed::NotSent { .. }));
    assert!(matches!(offence("T|lwt(f)").0, Malformed::NotSent { .. }));
    assert!(matches!(offence("T|oncep(o)").0, Malformed::NotSent { .. }));
    assert!(matches!(offence("T|snd(k) U|rcv(k) T|snd(k)"), (Malformed::SentTooLate { .. }, 2)));
    assert!(matches!(offence("A|onceb(o) A|oncee(o) A|onceb(o) A|oncee(o)").0, Malformed::SentTooLate { .. }));
}

#[test]
fn threads_start_after_their_fork_and_end_before_their_join() {
    assert!(matches!(offence("T|w(x) U|fork(T)").0, Malformed::ForkedTwice { started: true, .. }));
    assert!(matches!(offence("T|fork(U) T|fork(U)").0, Malformed::ForkedTwice { started: false, .. }));
    assert!(matches!(offence("T|fork(T)").0, Malformed::ForkedTwice { started: true, .. }));
    assert!(matches!(offence("U|w(x) T|join(U) U|w(x)"), (Malformed::RunsAfterJoin { joined: 1, .. }, 2)));
    assert!(matches!(offence("T|join(T)").0, Malformed::JoinsItself { .. }));
}

#[test]
fn ends_match_begins() {
    assert!(matches!(offence("T|end(b)").0, Malformed::EndWithoutBegin { .. }));
    assert!(matches!(offence("T|begin(a) T|begin(b) T|end(a)").0, Malformed::WrongEnd { .. }));
    assert!(matches!(offence("T|begin(a) U|end(a)").0, Malformed::EndWithoutBegin { .. }));
}

#[test]
fn what_ends_a_block_cuts_what_was_begun_inside_it() {
    use crate::FunctionBlocks;
    let marks = |events: &str, which: FunctionBlocks| {
        let text: String = events.split(' ').map(|event| format!("T|{event}\n")).collect();
        let source = &mut crate::format::StdReader::new(text.as_bytes());
        let trace = Trace::from_input_watched(source, which, |_| {}).unwrap_or_else(|why| panic!("{events}: {why}"));
        let names = trace.names();
        let mark = |event: crate::Event| match event.op {
            Op::Begin(b) => Some(format!("{} begin {}", trace.input_index(event.id), names.block(b))),
            Op::End(b) => Some(format!("{} end {}", trace.input_index(event.id), names.block(b))),
            _ => None,
        };
        trace.events().filter_map(mark).collect::<Vec<_>>()
    };
    let every = || FunctionBlocks::Chosen(Box::new(|_| true));
    // A return that is missing, or comes after the end.
    assert_eq!(marks("begin(b) call(f) call(g) end(b)", FunctionBlocks::BelowRoots), ["0 begin b", "3 end b"]);
    assert_eq!(marks("begin(b) call(f) end(b) ret(f)", every()), ["0 begin b", "2 end b"]);
    // A mark that outlives its function.
    assert_eq!(marks("call(f) begin(b) ret(f) w(x) end(b)", every()), ["0 begin f", "2 end f"]);
    // What was cut ends nothing, also if another block is open by then.
    let later = "call(f) begin(b) ret(f) begin(c) call(g) end(c) call(h) ret(h) ret(g) end(b)";
    let cut = ["0 begin f", "2 end f", "3 begin c", "5 end c", "6 begin h", "7 end h"];
    assert_eq!(marks(later, every()), cut);
    let inner = "begin(a) call(f) begin(b) ret(f) call(g) end(b) ret(g) end(a)";
    assert_eq!(marks(inner, every()), ["0 begin a", "7 end a"]);
    // Marks alone say whether the trace is well-formed, whatever functions are blocks.
    for (events, is_fine) in [
        ("call(f) begin(b) ret(f) end(b)", true),
        ("begin(a) call(f) begin(b) ret(f) end(a)", false),
        ("call(f) end(b)", false),
        ("call(f) begin(b) ret(f) end(b) end(b)", false),
    ] {
        for which in [FunctionBlocks::None, FunctionBlocks::BelowRoots, every()] {
            let text: String = events.split(' ').map(|event| format!("T|{event}\n")).collect();
            let source = &mut crate::format::StdReader::new(text.as_bytes());
            let said = format!("{events} with {which:?}");
            assert_eq!(Trace::from_input_watched(source, which, |_| {}).is_ok(), is_fine, "{said}");
        }
    }
}

#[test]
fn presets_are_well_formed_whatever_functions_are_blocks() {
    use crate::FunctionBlocks;
    use crate::generate::{Config, Generator, PRESETS};
    let small = PRESETS.iter().filter_map(|(name, _)| Some((name, Config::preset(name)?)));
    for (name, config) in small.filter(|(_, config)| config.events < 20_000) {
        for which in [FunctionBlocks::None, FunctionBlocks::BelowRoots, FunctionBlocks::Chosen(Box::new(|_| true))] {
            let said = format!("{name} with {which:?}");
            let mut source = Generator::new(config.clone()).unwrap();
            if let Err(why) = Trace::from_input_watched(&mut source, which, |_| {}) {
                panic!("{said}: {why}");
            }
        }
    }
}

#[test]
fn a_read_sees_the_value_last_written() {
    let (found, at) = offence("T|w(x)||1 U|w(x)||2 T|r(x)||1");
    assert_eq!(
        (found, at),
        (Malformed::WrongValue { thread: "T".into(), variable: "x".into(), found: 1, expected: 2 }, 2)
    );
    assert!(matches!(offence("T|u(x)||1 T|r(x)||0").0, Malformed::WrongValue { .. }));
    kernel("T|w(x)||1 T|w(x) T|r(x)||9");
    kernel("T|r(x)||5 T|w(x)||1 T|r(x)");
}

#[test]
fn wakes_need_their_sleep() {
    assert!(matches!(offence("T|wak(c)").0, Malformed::WakeWithoutSleep { .. }));
    assert!(matches!(offence("T|slp(c) T|wak(d)").0, Malformed::WakeWithoutSleep { .. }));
    assert!(matches!(offence("T|slp(c) U|tmo(c)").0, Malformed::WakeWithoutSleep { .. }));
}

#[test]
fn one_name_is_not_a_condition_and_a_token() {
    assert!(matches!(offence("T|ntf(c) U|wai(c) T|slp(c)"), (Malformed::MixedUse { now_token: false, .. }, 2)));
    assert!(matches!(offence("T|slp(c) U|ntf(c) T|wai(c)"), (Malformed::MixedUse { now_token: true, .. }, 2)));
    assert!(matches!(offence("U|ntf(c) U|wai(c) U|nta(c)").0, Malformed::MixedUse { .. }));
}

#[test]
fn semaphores_are_counted() {
    assert!(matches!(offence("T|semw(s)").0, Malformed::SemaphoreEmpty { .. }));
    assert!(matches!(offence("T|post(s) T|semw(s) T|semw(s)"), (Malformed::SemaphoreEmpty { .. }, 2)));
    assert!(matches!(offence("T|post(s) T|semf(s)").0, Malformed::SemaphoreNotEmpty { count: 1, .. }));
    assert!(matches!(offence("T|semi(s)").0, Malformed::BadSemaphoreCount { .. }));
    assert!(matches!(offence("T|semi(s)||-1").0, Malformed::BadSemaphoreCount { .. }));
    assert!(matches!(offence("T|post(s) T|semi(s)||1").0, Malformed::BadSemaphoreCount { .. }));
}

#[test]
fn departures_need_their_arrival() {
    assert!(matches!(offence("T|arr(b) U|dep(b)").0, Malformed::DepartWithoutArrive { .. }));
}

fn overlapping(events: &[(InputOp, u32, Option<i64>)]) -> EventList<'static> {
    let mut names = Names::default();
    names.intern(crate::ObjectClass::Thread, b"T").unwrap();
    names.intern_range(b"word", ByteRange { region: 0, start: 64, len: 4 }).unwrap();
    names.intern_range(b"high", ByteRange { region: 0, start: 66, len: 2 }).unwrap();
    let loc = LocId::from_number(1).unwrap();
    let events =
        events.iter().map(|&(op, object, value)| InputEvent { thread: ThreadId::new(0), op, object, value, loc });
    EventList::new(names, events.collect())
}

#[test]
fn a_wide_access_becomes_one_event_per_part_with_its_bytes() {
    let (write, read) = (InputOp::Write(WriteOrder::Plain), InputOp::Read(ReadOrder::Plain));
    let mut source =
        overlapping(&[(write, 0, Some(-2)), (read, 1, Some(0xffff)), (write, 1, Some(7)), (read, 0, Some(0x7_fffe))]);
    let trace = Trace::from_input(&mut source).unwrap();
    let seen: Vec<_> =
        trace.events().map(|e| (trace.variable_name(e.op.variable().unwrap()).into_owned(), e.value)).collect();
    let expected =
        [("word[0..2]", 0xfffe), ("high", 0xffff), ("high", 0xffff), ("high", 7), ("word[0..2]", 0xfffe), ("high", 7)];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), Some(value))));
}

#[test]
fn values_are_compared_part_by_part() {
    let (write, read) = (InputOp::Write(WriteOrder::Plain), InputOp::Read(ReadOrder::Plain));
    let mut source = overlapping(&[(write, 0, Some(0)), (write, 1, Some(7)), (read, 0, Some(0))]);
    let found = Trace::from_input(&mut source).unwrap_err();
    assert!(
        matches!(&found.problem, Problem::Malformed(Malformed::WrongValue { variable, .. }) if variable == "high"),
        "{found}"
    );
}

#[test]
fn events_that_name_nothing_defined_are_refused() {
    let mut source = overlapping(&[(InputOp::Acquire, 5, None)]);
    let found = Trace::from_input(&mut source).unwrap_err();
    assert!(matches!(found.problem, Problem::Malformed(Malformed::Undefined { what: "lock", id: 5 })), "{found}");
    let nobody = InputEvent {
        thread: ThreadId::new(9),
        op: InputOp::Branch,
        object: 0,
        value: None,
        loc: LocId::from_number(1).unwrap(),
    };
    let found = Trace::from_input(&mut EventList::new(Names::default(), vec![nobody])).unwrap_err();
    assert!(matches!(found.problem, Problem::Malformed(Malformed::Undefined { what: "thread", id: 9 })), "{found}");
}

/// What a trace becomes event by event, without the short cut for runs of accesses, up to its first offence.
fn one_by_one(names: &Names, inputs: &[InputEvent]) -> (Vec<(Event, u32)>, Option<String>) {
    let mut lowering = Lowering::new(Layout::of(names).unwrap());
    let mut out = Batch::default();
    let mut offence = None;
    for &event in inputs {
        if let Err(problem) = lowering.lower_one(names, event, &mut out) {
            offence = Some(problem.to_string());
            break;
        }
    }
    (out.iter().enumerate().map(|(i, event)| (event, out.input_index(i))).collect(), offence)
}

fn in_bulk(names: &Names, inputs: &[InputEvent]) -> (Vec<(Event, u32)>, Option<String>) {
    let mut lowering = Lowering::new(Layout::of(names).unwrap());
    let (mut input, mut out) = (InputBatch::default(), Batch::default());
    inputs.iter().for_each(|&event| input.push(event));
    let offence = lowering.lower(names, &input, &mut out).err().map(|error| error.problem.to_string());
    (out.iter().enumerate().map(|(i, event)| (event, out.input_index(i))).collect(), offence)
}

#[test]
fn accesses_in_bulk_become_what_they_become_one_by_one() {
    let mut offences = 0;
    for seed in 0..400 {
        let values = [0.0, 0.02, 1.0][seed as usize % 3];
        let config = Config { seed, events: 600, values, updates: 0.1, reentrant: 0.2, ..Config::default() };
        let mut source = Generator::new(config).unwrap();
        let (mut inputs, mut batch) = (Vec::new(), InputBatch::default());
        while source.next_batch(&mut batch).unwrap() {
            inputs.extend(batch.iter());
        }
        // Every other trace has something wrong somewhere: a value, an object or a thread.
        let at = seed as usize * 7919 % inputs.len();
        match seed % 8 {
            1 => inputs[at].value = Some(-1),
            3 => inputs[at].object += 64,
            5 => inputs[at].thread = ThreadId::new(2 + at),
            7 => inputs.swap(at, 599 - at),
            _ => {}
        }
        let expected = one_by_one(source.names(), &inputs);
        assert_eq!(in_bulk(source.names(), &inputs), expected, "seed {seed}");
        offences += u32::from(expected.1.is_some());
    }
    assert!((50..200).contains(&offences), "{offences}");
}

#[test]
fn functions_are_blocks_where_that_is_asked_for() {
    let text = "T1|call(root)|1\nT1|call(f)|2\nT1|w(x)|3\nT1|call(g)|4\nT1|ret(g)|5\nT1|ret(f)|6\nT1|call(g)|7\nT1|ret(g)|8\n\
                T1|ret(root)|9\nT1|ret(root)|10\n";
    let marks = |which: crate::FunctionBlocks| {
        let trace =
            Trace::from_input_watched(&mut crate::format::StdReader::new(text.as_bytes()), which, |_| {}).unwrap();
        let names = trace.names();
        let mark = |op| match op {
            Op::Begin(b) => Some(format!("begin {}", names.block(b))),
            Op::End(b) => Some(format!("end {}", names.block(b))),
            _ => None,
        };
        assert_eq!(trace.input_len(), 10);
        trace.events().filter_map(|event| mark(event.op)).collect::<Vec<_>>()
    };
    assert!(marks(crate::FunctionBlocks::None).is_empty());
    assert_eq!(marks(crate::FunctionBlocks::BelowRoots), ["begin f", "end f", "begin g", "end g"]);
    let chosen = crate::FunctionBlocks::Chosen(Box::new(|name| name.starts_with('g') || name == "root"));
    assert_eq!(marks(chosen), ["begin root", "end root"]);
    let chosen = crate::FunctionBlocks::Chosen(Box::new(|name| name == "g"));
    assert_eq!(marks(chosen), ["begin g", "end g", "begin g", "end g"]);
}
