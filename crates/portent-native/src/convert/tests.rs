//! Recordings made by hand, of a real little program: what they become.

use super::oddities::Oddity;
use super::*;
use object::{Object, ObjectSymbol};
use portent_explore::EventSink;
use portent_explore::{Crash, Fault, FaultKind, Moment, Thrown};
use portent_runtime::log::{self, MAX_EVENT, Tables, write_event, write_note};
use portent_trace::Trace;
use portent_trace::format::{PortentReader, PortentWriter};
use std::collections::HashMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const SOURCE: &str = "\
#include <pthread.h>
#include <stdlib.h>
struct account { int balance; unsigned short flags[2]; pthread_mutex_t lock; };
struct account accounts[3];
union { long whole; int half[2]; } both;
char buffer[64];
static unsigned hits = 1;
pthread_cond_t changed;
pthread_mutex_t first, second;
int counted(void) { static int counter; return ++counter; }
void deposit(void) { accounts[2].balance++; }
void *make(void) { return malloc(16); }
int main(void) { deposit(); hits++; return counted() + (make() == 0); }
static inline __attribute__((always_inline)) int twice(int *x) { *x += *x; return *x; }
int inlines(int *x) { return twice(x); }
int tally(int n) { int total = n; struct account mine[2]; mine[1].balance = n; return mine[1].balance + *&total; }
int other(int n) { long unlike[9]; unlike[n] = n; return unlike[n]; }
";

const BIAS: u64 = 0x5555_5555_4000;
const HEAP: u64 = 0x7000_0000_0000;
const STACK: u64 = 0x7fff_0000_0000;

struct Program {
    folder: TempDir,
    symbols: HashMap<String, u64>,
}

impl Program {
    fn path(&self) -> PathBuf {
        self.folder.path().join("bank")
    }
    /// The address of a symbol, as loaded.
    fn at(&self, symbol: &str) -> u64 {
        BIAS + self.symbols[symbol]
    }
    /// A program counter on the line where a function begins.
    fn in_function(&self, function: &str) -> u64 {
        self.at(function) + 1
    }
}

/// The program, compiled once.
fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("bank.c"), SOURCE).unwrap();
        let mut compiler = Command::new("gcc");
        compiler.current_dir(folder.path()).args(["-g", "-O0", "-fPIE", "-pie", "bank.c", "-o", "bank"]);
        assert!(compiler.status().expect("gcc can be started").success());
        let bytes = std::fs::read(folder.path().join("bank")).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let named = |symbol: object::Symbol<'_, '_>| Some((symbol.name().ok()?.to_owned(), symbol.address()));
        Program { folder, symbols: file.symbols().filter_map(named).collect() }
    })
}

/// A recording being made.
struct Log {
    tables: Box<Tables>,
    trails: Vec<log::Trail>,
    bytes: Vec<u8>,
    running: u32,
}

impl Log {
    /// A recording of the program with so many threads, each with a stack.
    fn new(threads: u64) -> Log {
        let mut log =
            Log { tables: Tables::boxed(), trails: vec![log::Trail::default(); 64], bytes: Vec::new(), running: 0 };
        let path = program().path();
        log.note(note::MODULE, &[BIAS, BIAS, BIAS + 0x10000], path.to_str().unwrap());
        for thread in 0..threads {
            let stack = STACK + thread * 0x10_0000;
            let child = thread.saturating_sub(1);
            log.note(note::THREAD, &[thread, 0, child, 1000 + thread, stack, stack + 0x10_0000], "");
        }
        log
    }
    fn note(&mut self, kind: u16, numbers: &[u64], text: &str) -> &mut Self {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.raw_note(kind, &[&numbers, text.as_bytes()])
    }
    fn raw_note(&mut self, kind: u16, parts: &[&[u8]]) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.resize(start + 8 + parts.iter().map(|part| part.len()).sum::<usize>(), 0);
        #[allow(unsafe_code)]
        // SAFETY: the buffer has just got the room that a note needs, all zero.
        let end = unsafe { write_note(self.bytes.as_mut_ptr().add(start), kind, parts) };
        self.cut(end);
        self
    }
    fn cut(&mut self, end: *mut u8) {
        let length = end as usize - self.bytes.as_ptr() as usize;
        self.bytes.truncate(length);
    }
    fn on(&mut self, thread: u32) -> &mut Self {
        if thread != self.running {
            self.running = thread;
            self.raw_note(note::SWITCH, &[&thread.to_le_bytes()]);
        }
        self
    }
    fn event(&mut self, event: LogEvent) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.resize(start + MAX_EVENT, 0);
        let trail = &mut self.trails[self.running as usize];
        #[allow(unsafe_code)]
        // SAFETY: the buffer has just got the room that an event needs, all zero.
        let end = unsafe { write_event(&mut self.tables, trail, self.bytes.as_mut_ptr().add(start), &event) };
        self.cut(end);
        self
    }
    fn access(&mut self, op: u16, address: u64, size: u32, value: Option<u64>) -> &mut Self {
        self.event(LogEvent { op, pc: program().in_function("deposit"), address, size, value })
    }
    fn write(&mut self, address: u64, size: u32, value: u64) -> &mut Self {
        self.access(op::WRITE, address, size, Some(value))
    }
    fn read(&mut self, address: u64, size: u32, value: u64) -> &mut Self {
        self.access(op::READ, address, size, Some(value))
    }
    fn sync(&mut self, op: u16, address: u64) -> &mut Self {
        self.event(LogEvent { op, pc: program().in_function("main"), address, size: 0, value: None })
    }
    fn sync_with(&mut self, op: u16, address: u64, value: u64) -> &mut Self {
        self.event(LogEvent { op, pc: program().in_function("main"), address, size: 0, value: Some(value) })
    }
    fn allocate(&mut self, address: u64, size: u64) -> &mut Self {
        self.note(note::ALLOCATE, &[address, size, program().in_function("make"), 0], "")
    }

    fn free(&mut self, address: u64) -> &mut Self {
        self.note(note::FREE, &[address, program().in_function("make"), 0], "")
    }

    /// It as a file.
    fn file(&self, folder: &TempDir) -> LogFile {
        let path = folder.path().join("log");
        crate::run::log_file::create(&path).unwrap();
        let mut file = std::fs::read(&path).unwrap();
        file.extend(&self.bytes);
        std::fs::write(&path, file).unwrap();
        LogFile::open(&path).unwrap()
    }
    fn call(&mut self, function: &str, caller: u64) -> &mut Self {
        let pc = program().in_function(function);
        self.event(LogEvent { op: op::CALL, pc, address: caller, size: 0, value: None })
    }
    /// The places on the way to each event, as `function place`, the user's own with a star.
    fn stacks(&self) -> (Names, Vec<Vec<String>>) {
        let folder = TempDir::new().unwrap();
        let mut sink = EventSink::default();
        let names = convert(&self.file(&folder), program().folder.path(), &mut Known::default(), &mut sink, |_| {})
            .unwrap()
            .names;
        let told = sink.events.iter().enumerate().map(|(i, event)| {
            let frames = names.stack_frames(event.loc, sink.stacks.get(i)).into_iter();
            let star = |user| if user { "*" } else { "" };
            frames.map(|f| format!("{}{} {}", star(f.user), f.function, names.location(f.location))).collect()
        });
        let told = told.collect();
        (names, told)
    }

    /// Converts, checks that readers accept it, and returns what came out with the trace as text.
    fn convert(&self) -> (Converted, Vec<String>) {
        let folder = TempDir::new().unwrap();
        let log = self.file(&folder);
        let mut bytes = Vec::new();
        let mut writer = PortentWriter::new(&mut bytes).unwrap();
        let converted = convert(&log, program().folder.path(), &mut Known::default(), &mut writer, |_| {}).unwrap();
        writer.finish().unwrap();
        let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
        let (mut batch, mut lines) = (InputBatch::default(), Vec::new());
        while reader.next_batch(&mut batch).unwrap() {
            let names = reader.names();
            for event in batch.iter() {
                let class = event.op.class();
                let object = if class == ObjectClass::None { "" } else { names.name(class, event.object) };
                let value = event.value.map(|value| format!(" {value}")).unwrap_or_default();
                let thread = names.thread(event.thread);
                lines.push(format!("{thread} {}({object}){value} {}", event.op.text(), names.location(event.loc)));
            }
        }
        assert_eq!(lines.len() as u64, converted.survey.events);
        let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
        if let Err(error) = Trace::from_input(&mut reader) {
            panic!("readers refuse it: {error}\n{}", lines.join("\n"));
        }
        // What contradicts itself is made harmless, in one way or another.
        if converted.survey.damage.is_none() && converted.oddities.iter().next().is_none() {
            self.grows_into(&lines);
        }
        (converted, lines)
    }
    /// Holds what it becomes while it grows, in pieces of any number of records, to what all of it becomes.
    fn grows_into(&self, whole: &[String]) {
        // Threads are told by their numbers as long as the run goes on, allocations by where they were made.
        let mut ends = vec![0];
        let mut scanner = log::LogScanner::default();
        while let Ok(Some(_)) = scanner.next_record(&self.bytes[scanner.offset()..]) {
            ends.push(scanner.offset());
        }
        let operation = |line: &str| line.split_once(' ').unwrap().1.split('(').next().unwrap().to_owned();
        let value_and_place = |line: &str| line.rsplit_once(')').unwrap().1.to_owned();
        for records in [1, 2, 3, 7, usize::MAX] {
            let mut live = Live::new(program().folder.path()).unwrap();
            let mut lines = Vec::new();
            let mut each = |names: &Names, batch: &InputBatch| {
                for event in batch.iter() {
                    let value = event.value.map(|value| format!(" {value}")).unwrap_or_default();
                    let at = names.location(event.loc);
                    lines.push(format!("{} {}(){value} {at}", event.thread.index(), event.op.text()));
                }
            };
            for piece in ends.windows(2).collect::<Vec<_>>().chunks(records) {
                let (from, to) = (piece[0][0], piece[piece.len() - 1][1]);
                live.feed(&self.bytes[from..to], false, &mut each).unwrap();
            }
            live.feed(&[], true, &mut each).unwrap();
            let told = |line: &String| (operation(line), value_and_place(line));
            assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), whole.iter().map(told).collect::<Vec<_>>());
        }
    }
    /// The objects and values only.
    fn objects(&self) -> Vec<String> {
        let part = |line: &String| {
            let (_, rest) = line.split_once(' ').unwrap();
            rest.rsplit_once(' ').unwrap().0.to_owned()
        };
        self.convert().1.iter().map(part).collect()
    }
}

use portent_trace::InputSource;

#[test]
fn operations_have_the_codes_of_the_trace_format() {
    use InputOp::*;
    let pairs = [
        (op::ACQUIRE, Acquire),
        (op::RELEASE, Release),
        (op::ACQUIRE_SHARED, AcquireShared),
        (op::TRY_ACQUIRE, TryAcquire),
        (op::TRY_ACQUIRE_SHARED, TryAcquireShared),
        (op::RELEASE_SHARED, ReleaseShared),
        (op::BUSY, Busy),
        (op::BUSY_SHARED, BusyShared),
        (op::RELEASE_ALL, ReleaseAll),
        (op::ACQUIRE_ALL, AcquireAll),
        (op::FORK, Fork),
        (op::JOIN, Join),
        (op::SEND, Send),
        (op::RECEIVE, Receive),
        (op::SLEEP, Sleep),
        (op::NOTIFY, Notify),
        (op::NOTIFY_ALL, NotifyAll),
        (op::WAKE, Wake),
        (op::WAKE_IN_TIME, WakeInTime),
        (op::TIME_OUT, TimeOut),
        (op::WAKE_BY_ITSELF, WakeByItself),
        (op::SEMAPHORE_INIT, SemaphoreInit),
        (op::POST, Post),
        (op::SEMAPHORE_WAIT, SemaphoreWait),
        (op::SEMAPHORE_TRY, SemaphoreTry),
        (op::SEMAPHORE_BUSY, SemaphoreBusy),
        (op::ARRIVE, Arrive),
        (op::DEPART, Depart),
        (op::ONCE_BEGIN, OnceBegin),
        (op::ONCE_END, OnceEnd),
        (op::ONCE_PASS, OncePass),
        (op::BEGIN, Begin),
        (op::END, End),
        (op::CALL, Call),
        (op::RETURN, Return),
    ];
    for (code, name) in pairs {
        assert_eq!(InputOp::from_code(code), Some(name));
    }
    for (code, kind) in [(op::READ, "r"), (op::WRITE, "w"), (op::UPDATE, "u")] {
        assert_eq!(InputOp::from_code(code).map(InputOp::text), Some(kind));
    }
    assert!(
        InputOp::all()
            .all(|op| matches!(op, InputOp::Free | InputOp::Destroy) || op.is_access() == (op.code() < op::ACCESSES))
    );
    for pending in [op::RESUME, op::EXIT, op::START] {
        assert_eq!(InputOp::from_code(pending), None);
    }
}

#[test]
fn globals_are_named_after_the_members_that_are_accessed() {
    let accounts = program().at("accounts");
    let mut log = Log::new(1);
    let size = 48;
    log.write(accounts + 2 * size, 4, 0xffff_fffe).write(accounts + 6, 2, 0xffff);
    log.access(op::WRITE, accounts + size, size as u32, None).access(op::READ, accounts + 40, 16, None);
    log.write(program().at("buffer") + 3, 1, 0xff).write(program().at("hits"), 4, u64::from(u32::MAX));
    let counter = program().symbols.iter().find(|(name, _)| name.starts_with("counter.")).unwrap().1;
    log.write(BIAS + counter, 4, 7);
    assert_eq!(
        log.objects(),
        [
            "w(accounts[2].balance) -2",
            "w(accounts[0].flags[1]) 65535",
            "w(accounts[1])",
            "r(accounts+40)",
            "w(buffer[3]) -1",
            "w(hits) 4294967295",
            "w(counted()::counter) 7",
        ]
    );
    assert!(log.convert().1[0].ends_with("bank.c:11"));
}

#[test]
fn what_a_copy_wrote_is_known_although_it_is_announced_before_its_read() {
    let (hits, buffer) = (program().at("hits"), program().at("buffer"));
    let mut log = Log::new(2);
    log.write(buffer, 4, 7).write(hits, 4, 0).on(1).write(buffer + 4, 4, 1).on(0).read(buffer, 4, 7);
    log.note(note::COPIED, &[7], "").read(hits, 4, 7);
    let values: Vec<String> = log.objects().into_iter().filter(|told| told.contains("hits")).collect();
    assert_eq!(values, ["w(hits) 7", "r(hits) 7"]);
}

#[test]
fn accesses_of_different_sizes_overlap_and_have_different_names() {
    let both = program().at("both");
    let mut log = Log::new(2);
    log.write(both, 8, 0x1_0000_0002).on(1).read(both, 4, 2).read(both + 4, 4, 1).read(both, 2, 2).read(both + 1, 1, 0);
    log.read(both, 1, 2).access(op::READ, both, 16, None);
    let names = [
        "w(both.whole) 4294967298",
        "r(both.half[0]) 2",
        "r(both.half[1]) 1",
        "r(both) 2",
        "r(both+1) 0",
        "r(both:1) 2",
        "r(both:16)",
    ];
    let objects = log.objects();
    // A part of a union has the first member's name before its offset.
    assert_eq!(objects[..3], names[..3]);
    let mut different = objects.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), objects.len(), "{objects:?}");
}

#[test]
fn the_write_before_a_free_frees() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 8).write(HEAP, 8, 1).write(HEAP, 24, 0);
    log.note(note::FREE, &[HEAP], "").read(HEAP, 8, 1);
    let objects = log.objects();
    assert!(objects[0].starts_with("w(8 bytes from bank.c:12"), "{objects:?}");
    assert!(objects[1].starts_with("free(8 bytes from bank.c:12"), "{objects:?}");
}

#[test]
fn a_block_is_called_what_the_program_calls_it() {
    let mut log = Log::new(1);
    log.note(note::BLOCK, &[], "transfer").sync(op::BEGIN, 0).sync(op::BEGIN, 0).sync(op::END, 0).sync(op::END, 0);
    assert_eq!(log.objects(), ["begin(transfer)", "begin(main)", "end(main)", "end(transfer)"]);
}

#[test]
fn memory_that_is_used_again_is_another_variable() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 16).write(HEAP, 8, 1).write(HEAP + 8, 8, 2);
    log.note(note::FREE, &[HEAP], "").read(HEAP, 8, 1);
    log.allocate(HEAP, 8).read(HEAP, 8, 77).read(HEAP + 8, 8, 2).read(HEAP + 4, 8, 3);
    assert_eq!(
        log.objects(),
        [
            "w(16 bytes from bank.c:12) 1",
            "w(byte 8 of 16 bytes from bank.c:12) 2",
            "r(16 bytes from bank.c:12) 1",
            "r(8 bytes from bank.c:12 (second)) 77",
            "r(byte 8 of 16 bytes from bank.c:12) 2",
            "r(byte 4 of 8 bytes from bank.c:12 (second))",
        ]
    );
}

#[test]
fn allocations_inside_libraries_are_named_after_where_the_thread_was_last_seen() {
    let mut log = Log::new(1);
    let pc = program().in_function("counted");
    let call = LogEvent { op: op::CALL, pc, address: program().in_function("deposit"), size: 0, value: None };
    log.event(call).note(note::ALLOCATE, &[HEAP, 8, 0x1234_5678, 0], "").write(HEAP, 1, 1).sync(op::RETURN, 0);
    log.note(note::ALLOCATE, &[HEAP + 64, 8, 0x1234_5678, 0], "").write(HEAP + 64, 1, 1);
    let expected = ["call(counted)", "w(8 bytes from bank.c:10) 1", "ret(counted)", "w(8 bytes from bank.c:11) 1"];
    assert_eq!(log.objects(), expected);
}

#[test]
fn a_stack_leads_from_an_event_to_where_its_thread_begins() {
    let symbols = {
        let mut symbols = Symbols::new(program().folder.path());
        let path = program().path().to_str().unwrap().to_owned();
        symbols.load(&Module { bias: BIAS, start: BIAS, end: BIAS + 0x10000, path });
        symbols
    };
    let begin = program().at("inlines");
    let inside = (begin..begin + 64).find(|&pc| !symbols.place(pc).inlined.is_empty()).expect("twice is inlined");
    let mut log = Log::new(2);
    log.call("main", 0x1234).call("inlines", program().in_function("main"));
    log.event(LogEvent { op: op::WRITE, pc: inside, address: HEAP, size: 4, value: Some(1) });
    log.on(1).call("deposit", 0x1234).write(HEAP, 4, 2);
    log.on(0).event(LogEvent {
        op: op::RETURN,
        pc: program().in_function("inlines"),
        address: 0,
        size: 0,
        value: None,
    });
    log.sync(op::ACQUIRE, program().at("first"));
    let (_, stacks) = log.stacks();
    let main = ["*main bank.c:13", " 0x1234"];
    assert_eq!(stacks[0], main, "a call is in the function that it begins");
    assert_eq!(stacks[1], ["*inlines bank.c:15", main[0], main[1]]);
    assert_eq!(stacks[2], ["*twice bank.c:14", "*inlines bank.c:15", main[0], main[1]]);
    assert_eq!(stacks[4], ["*deposit bank.c:11", " 0x1234"], "threads have their own");
    assert_eq!(stacks[5], stacks[1], "a return is still in its function");
    assert_eq!(stacks[6], main);
}

#[test]
fn code_that_does_not_tell_of_its_calls_was_called_in_the_last_function_that_did() {
    let mut log = Log::new(1);
    log.call("main", 0x1234).call("deposit", program().in_function("main"));
    log.event(LogEvent { op: op::ACQUIRE, pc: 0x7777, address: program().at("first"), size: 0, value: None });
    log.call("counted", 0x8888);
    let (_, stacks) = log.stacks();
    let below = ["*deposit bank.c:11", "*main bank.c:13", " 0x1234"];
    assert_eq!(stacks[2], [&["0x7777 0x7777"], &below[..]].concat());
    assert_eq!(stacks[3], [&["*counted bank.c:10", "0x8888 0x8888"], &below[..]].concat());
}

#[test]
fn recursion_does_not_fill_the_trace_with_stacks() {
    let mut log = Log::new(1);
    let (mut state, mut depth) = (7u64, 0);
    for _ in 0..40_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let [deeper, left] = [state >> 40 & 1 == 1, state >> 41 & 1 == 1];
        if depth == 0 || (deeper && depth < 40) {
            log.call("counted", program().in_function(if left { "main" } else { "deposit" }));
            depth += 1;
        } else {
            log.sync(op::RETURN, 0);
            depth -= 1;
        }
    }
    let (names, stacks) = log.stacks();
    let room = (STACKS + 40_000 / EVENTS_PER_STACK) as usize;
    assert!((STACKS as usize..room + 16).contains(&names.stacks().len()), "{} stacks", names.stacks().len());
    assert!(stacks.iter().all(|stack| stack.len() > 1), "and every event has one");
}

#[test]
fn stacks_are_named_after_their_threads_and_counted_from_where_they_begin() {
    let mut log = Log::new(2);
    log.note(note::THREAD_NAME, &[1], "early").note(note::THREAD_NAME, &[1], "teller");
    log.on(1).write(STACK + 0x20_0000 - 0x120, 4, 1).on(0).write(0x10, 4, 2);
    let lines = log.convert().1;
    assert_eq!(
        lines,
        ["T1:teller w(byte 288 of the stack of T1:teller) 1 bank.c:11", "T0 w(null pointer+16) 2 bank.c:11"]
    );
}

/// Where a variable of a function is, on a frame.
fn local_at(function: &str, frame: CallFrame, variable: &str) -> u64 {
    let mut symbols = Symbols::new(program().folder.path());
    let path = program().path().to_str().unwrap().to_owned();
    symbols.load(&Module { bias: BIAS, start: BIAS, end: BIAS + 0x10000, path });
    let (layout, bias) = symbols.frame(program().at(function)).unwrap();
    let pc = program().in_function(function) - bias;
    let of_frame = frame.stack - 512..frame.frame_pointer().unwrap() + 16;
    let found = of_frame.into_iter().filter_map(|address| layout.find(frame, pc, address));
    let found = found.into_iter().find(|found| layout.name(found.number).0 == variable);
    found.unwrap_or_else(|| panic!("{variable} is not on the frame of {function}")).start
}

#[test]
fn variables_on_stacks_are_called_by_their_names_whoever_accesses_them() {
    let frame = CallFrame { stack: STACK + 0x8000, pointer: 64 };
    let call = |function| LogEvent {
        op: op::CALL,
        pc: program().in_function(function),
        address: program().in_function("main"),
        size: 0,
        value: Some(frame.value()),
    };
    let (total, mine) = (local_at("tally", frame, "total"), local_at("tally", frame, "mine"));
    let mut log = Log::new(2);
    log.event(call("tally")).write(total, 4, 7);
    // From a function that it calls.
    let inner = CallFrame { stack: STACK + 0x7000, pointer: 64 };
    log.event(LogEvent { value: Some(inner.value()), ..call("other") }).read(total, 4, 7).sync(op::RETURN, 0);
    log.on(1).read(total, 4, 7).write(mine + 48, 4, 1).sync(op::ACQUIRE, mine + 48 + 8);
    log.on(0).sync(op::RETURN, 0);
    // Nothing has taken its place.
    log.on(1).read(total, 4, 7);
    log.on(0).event(call("other")).write(local_at("other", frame, "unlike") + 8, 8, 3).sync(op::RETURN, 0);
    log.event(call("tally")).write(total, 4, 8);
    let expected = [
        "call(tally)",
        "w(total in tally()) 7",
        "call(other)",
        "r(total in tally()) 7",
        "ret(other)",
        "r(total in tally()) 7",
        "w(mine[1].balance in tally()) 1",
        "acq(mine[1].lock in tally())",
        "ret(tally)",
        "r(total in tally()) 7",
        "call(other)",
        "w(unlike[1] in other()) 3",
        "ret(other)",
        "call(tally)",
        "w(total in tally()) 8",
    ];
    assert_eq!(log.objects(), expected);
}

#[test]
fn variables_of_one_name_on_two_stacks_are_counted() {
    let mut log = Log::new(2);
    for thread in 0..2 {
        let frame = CallFrame { stack: STACK + u64::from(thread) * 0x10_0000 + 0x8000, pointer: 64 };
        let (pc, address) = (program().in_function("tally"), program().in_function("main"));
        log.on(thread).event(LogEvent { op: op::CALL, pc, address, size: 0, value: Some(frame.value()) });
        log.write(local_at("tally", frame, "total"), 4, 1).write(frame.stack, 4, 1);
    }
    let names = ["total in tally()", "a local of tally()", "total in tally() (second)", "a local of tally() (second)"];
    let written: Vec<String> = log.objects().into_iter().filter(|object| object.starts_with('w')).collect();
    assert_eq!(written, names.map(|name| format!("w({name}) 1")));
}

#[test]
fn reads_of_what_code_without_instrumentation_wrote_lose_their_values() {
    let hits = program().at("hits");
    let mut log = Log::new(1);
    log.read(hits, 4, 9).write(hits, 4, 1).read(hits, 4, 1).read(hits, 4, 5).read(hits, 4, 5).read(hits, 4, 1);
    log.write(hits, 4, 6).read(hits, 4, 6).access(op::WRITE, hits, 16, None).read(hits, 4, 8);
    let mut values = log.objects();
    values.iter_mut().for_each(|line| *line = line.replace("hits", "x"));
    let expected = ["r(x) 9", "w(x) 1", "r(x) 1", "r(x)", "r(x)", "r(x)", "w(x) 6", "r(x) 6", "w(x:16)", "r(x) 8"];
    assert_eq!(values, expected);
    let (converted, _) = log.convert();
    assert_eq!(converted.oddities.count(Oddity::StrangeRead), 3);
    let odd = converted.oddities.iter().next().unwrap();
    assert_eq!((odd.count, odd.is_harmless), (3, true));
    assert!(odd.text.starts_with("reads saw values that no recorded write left there"), "{odd:?}");
    assert_eq!(converted.names.location(odd.at).to_string(), "bank.c:11");
}

#[test]
fn an_access_beyond_the_end_of_its_memory_disturbs_nobody() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 8).allocate(HEAP + 8, 8).write(HEAP + 8, 8, 5);
    log.write(HEAP + 4, 8, u64::MAX).read(HEAP + 8, 4, 0xffff_ffff).read(HEAP + 12, 4, 0);
    let (converted, lines) = log.convert();
    assert!(lines[1].contains("w(byte 4 of 8 bytes from bank.c:12) bank.c"), "{lines:?}");
    assert_eq!(converted.oddities.count(Oddity::StrangeRead), 1);
}

#[test]
fn a_recording_that_was_cut_off_is_converted_as_far_as_it_goes() {
    let hits = program().at("hits");
    let mut log = Log::new(1);
    for i in 0..100 {
        log.write(hits + i * 8 % 24, 4, i * 1000);
    }
    let whole = log.convert().1;
    for cut in [1, 2, 3, 5, 8, 13, 21] {
        log.bytes.truncate(log.bytes.len() - cut);
        let (converted, lines) = log.convert();
        assert_eq!(lines[..], whole[..lines.len()]);
        assert!(lines.len() < whole.len());
        assert!(converted.survey.damage.is_none_or(|damage| damage.offset <= log.bytes.len()));
    }
    let good = log.convert().1;
    log.bytes.extend((50u16 << 3 | 1 << 12).to_le_bytes());
    log.bytes.extend([0; 8]);
    let (converted, lines) = log.convert();
    assert_eq!(lines, good);
    assert_eq!(converted.survey.damage.unwrap().what, "an event has an impossible operation");
}

#[test]
fn a_deadlock_tells_who_waits_for_whom() {
    let (first, second) = (program().at("first"), program().at("second"));
    let mut log = Log::new(3);
    log.sync_with(op::FORK, 0, 1).sync_with(op::FORK, 0, 2);
    log.on(1).sync(op::ACQUIRE, first).on(2).sync(op::ACQUIRE, second);
    let pc = program().in_function("deposit");
    let rows = [[0, op::JOIN.into(), 1, pc], [1, op::ACQUIRE.into(), second, pc], [2, op::ACQUIRE.into(), first, pc]];
    log.note(note::DEADLOCK, rows.as_flattened(), "");
    let (converted, _) = log.convert();
    let sentences: Vec<_> = converted.deadlock.unwrap().iter().map(Waiting::sentence).collect();
    assert_eq!(
        sentences,
        [
            "T0 waits for T1 to end at bank.c:11 (deposit)",
            "T1 waits for lock second at bank.c:11 (deposit); it is held by T2, which took it at bank.c:13",
            "T2 waits for lock first at bank.c:11 (deposit); it is held by T1, which took it at bank.c:13",
        ]
    );
}

#[test]
fn locks_are_named_after_their_variable_and_calls_after_their_function() {
    let lock = program().at("accounts") + 48 + 8;
    let mut log = Log::new(1);
    let pc = program().in_function("deposit");
    log.event(LogEvent { op: op::CALL, pc, address: program().in_function("main"), size: 0, value: None });
    log.sync(op::ACQUIRE, lock).sync(op::SLEEP, program().at("changed")).sync(op::RELEASE, lock);
    log.sync(op::RETURN, 0).sync(op::RETURN, 0);
    let expected = [
        "call(deposit)",
        "acq(accounts[1].lock)",
        "slp(changed)",
        "rel(accounts[1].lock)",
        "ret(deposit)",
        "ret(main)",
    ];
    assert_eq!(log.objects(), expected);
}

#[test]
fn a_lock_that_another_thread_gives_back_keeps_its_recorded_order() {
    let lock = program().at("first");
    let mut log = Log::new(2);
    log.sync(op::ACQUIRE, lock).on(1).sync(op::RELEASE, lock).sync(op::ACQUIRE, lock).on(0).sync(op::RELEASE, lock);
    log.sync(op::ACQUIRE, lock);
    let (converted, _) = log.convert();
    assert_eq!(converted.oddities.count(Oddity::HandedOver), 1);
    let expected = [
        "acq(first)",
        "snd(first handed over #1)",
        "rcv(first handed over #1)",
        "snd(first handed over #2)",
        "rcv(first handed over #2)",
    ];
    assert_eq!(log.objects(), expected);
}

#[test]
fn objects_that_begin_anew_are_new_objects() {
    let at = program().at("buffer");
    let mut log = Log::new(2);
    log.sync_with(op::SEMAPHORE_INIT, at, 1).sync(op::SEMAPHORE_WAIT, at).sync(op::SEMAPHORE_WAIT, at);
    log.sync_with(op::SEMAPHORE_INIT, at, 0).sync(op::POST, at).sync(op::SEMAPHORE_BUSY, at);
    log.sync(op::ONCE_BEGIN, at).sync(op::ONCE_END, at).sync(op::ONCE_PASS, at).sync(op::ONCE_BEGIN, at);
    log.sync_with(op::SEND, 64, 1).sync_with(op::RECEIVE, 64, 1).sync_with(op::SEND, 64, 1).sync_with(
        op::RECEIVE,
        64,
        2,
    );
    log.sync_with(op::JOIN, 0, 1).on(1).sync(op::WAKE, at);
    let expected = [
        "semi(buffer) 1",
        "semw(buffer)",
        "snd(nobody)",
        "semi(buffer#2) 0",
        "post(buffer#2)",
        "snd(nobody)",
        "onceb(buffer)",
        "oncee(buffer)",
        "oncep(buffer)",
        "onceb(buffer#2)",
        "snd(chan 0x40:1)",
        "rcv(chan 0x40:1)",
        "snd(chan 0x40:1#2)",
        "snd(nobody)",
        "snd(nobody)",
        "snd(nobody)",
    ];
    assert_eq!(log.objects(), expected);
}

/// Whatever is recorded, readers accept the trace, and it has as many events.
#[test]
fn no_recording_makes_a_trace_that_readers_refuse() {
    let ops: Vec<u16> = InputOp::all().map(InputOp::code).collect();
    let mut state = 1u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    for _ in 0..150 {
        let mut log = Log::new(4);
        let span = 8 << next(4);
        for _ in 0..400 {
            log.on(next(4) as u32);
            let base = [HEAP, HEAP, program().at("buffer"), STACK + 0x1000, 0x40][next(5) as usize];
            let address = base + next(span);
            match next(20) {
                0 => log.allocate(HEAP + next(span), next(24)),
                1 => {
                    let numbers = [HEAP + next(span), next(9), next(2)];
                    let kind = [note::FREE, note::RELEASE, note::DESTROY, note::CLOSE][next(4) as usize];
                    match next(4) {
                        0 => log.note(note::FAULT, &[next(6), HEAP + next(span), next(9), next(9)], "text"),
                        1 => log.note([note::ABORTED, note::FATAL, note::THROWN][next(3) as usize], &numbers, "?"),
                        _ => log.note(kind, &numbers, ""),
                    }
                }
                2 => log.note(note::THREAD, &[next(4), 0, 0, 0, HEAP + next(span), HEAP + 16 + next(span)], ""),
                3 => log.note(note::MODULE, &[BIAS, HEAP + next(span), HEAP + next(2 * span)], "no/such/file"),
                4..12 => {
                    let op = ops[next(ops.len() as u64) as usize];
                    let value = (next(2) == 0).then(|| next(4));
                    let address = if op == op::RETURN { 0 } else { address };
                    if op < op::ACCESSES {
                        log.access(op, address, next(40) as u32, None)
                    } else {
                        log.event(LogEvent { op, pc: next(9), address, size: 0, value })
                    }
                }
                _ => {
                    let op = [op::READ, op::WRITE, op::UPDATE][next(3) as usize];
                    log.access(op, address, [1, 2, 4, 8][next(4) as usize], Some(next(2)))
                }
            };
        }
        log.convert();
    }
}

#[test]
fn what_the_runtime_says_besides_events_is_kept() {
    let mut log = Log::new(2);
    log.on(1).note(note::INPUT, &[log::input::TIME], "abc").note(note::INPUT, &[log::input::RANDOM], "");
    log.note(note::MESSAGE, &[log::message::ASSERTION, 7], "x == y\n").note(note::FATAL, &[11, 0x10, 0x20], "");
    log.note(note::GOAL, &[1, 8, 64, 4, 99, 1], "").note(note::PLAN_DONE, &[3], "").note(note::EXIT, &[5], "");
    log.note(note::DIVERGED, &[1, 2, 3, 0, 4, 5, 6], "").raw_note(note::FULL, &[]);
    let survey = log.convert().0.survey;
    assert_eq!(survey.threads[1].answers, [(0, b"abc".to_vec()), (1, vec![])]);
    assert_eq!(survey.threads[1].family, Some((0, 0)));
    assert_eq!(survey.messages[0].text, "x == y");
    assert_eq!(survey.fatal.unwrap().signal, 11);
    assert!(survey.goal.unwrap()[0].enabled);
    assert_eq!((survey.plan_done, survey.exit, survey.full), (Some(3), Some(5), true));
    assert_eq!(survey.diverged.unwrap().left, 3);
}

/// What the program is said to have done: kind, thread, event and detail of each fault.
fn faults(log: &Log) -> Vec<(FaultKind, u32, u32, String)> {
    let faults = log.convert().0.misdeeds.faults;
    faults.into_iter().map(|fault| (fault.kind, fault.at.thread, fault.at.event, fault.detail)).collect()
}

#[test]
fn freed_memory_may_not_be_used_until_it_is_released() {
    let freed = || {
        let mut log = Log::new(2);
        log.allocate(HEAP, 32).write(HEAP, 4, 1).read(HEAP + 8, 8, 0);
        log.on(1).access(op::WRITE, HEAP, 32, None).free(HEAP);
        log
    };
    let mut log = freed();
    log.on(0).read(HEAP + 8, 8, 0);
    let detail = "read of 8 bytes, 8 bytes into a block of 32".to_owned();
    assert_eq!(faults(&log), [(FaultKind::UseAfterFree, 0, 3, detail)]);
    let (converted, _) = log.convert();
    let Fault { object, made, ended, .. } = &converted.misdeeds.faults[0];
    let moment = |thread, event, place: &str| Some(Moment { thread, event, place: place.to_owned() });
    assert_eq!(object, "32 bytes from bank.c:12");
    assert_eq!((made, ended), (&moment(0, 0, "bank.c:12"), &moment(1, 2, "bank.c:12")));
    // Given back to the C library, and perhaps given out again unseen.
    let mut log = freed();
    log.note(note::RELEASE, &[HEAP], "").on(0).read(HEAP + 8, 8, 0).write(HEAP, 4, 1);
    assert_eq!(faults(&log), []);
}

#[test]
fn memory_that_is_given_out_again_is_new() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 32).write(HEAP, 4, 1).free(HEAP).allocate(HEAP, 16).write(HEAP, 4, 2).read(HEAP + 8, 4, 0);
    assert_eq!(faults(&log), []);
    log.read(HEAP + 24, 4, 0);
    assert_eq!(faults(&log).len(), 1, "the rest of the first block is still freed");
}

#[test]
fn of_many_uses_in_one_place_the_first_is_told() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 32).free(HEAP).write(HEAP, 4, 1).write(HEAP + 4, 4, 1).sync(op::ACQUIRE, HEAP + 8);
    let kinds: Vec<_> = faults(&log).into_iter().map(|(kind, _, event, _)| (kind, event)).collect();
    assert_eq!(kinds, [(FaultKind::UseAfterFree, 0), (FaultKind::UsedAfterDestroy, 2)]);
}

#[test]
fn a_lock_that_is_freed_while_somebody_else_holds_it_is_told() {
    let mut log = Log::new(2);
    log.allocate(HEAP, 64).sync(op::ACQUIRE, HEAP + 16).sync(op::ACQUIRE, program().at("first"));
    log.on(1).access(op::WRITE, HEAP, 64, None).free(HEAP);
    let detail = "freed while T0 holds the lock in it, taken at bank.c:13".to_owned();
    assert_eq!(faults(&log), [(FaultKind::DestroyedInUse, 1, 2, detail)]);
    let mut own = Log::new(1);
    own.allocate(HEAP, 64).sync(op::ACQUIRE, HEAP + 16).free(HEAP);
    assert_eq!(faults(&own), [], "nobody is kept waiting");
}

/// Somebody who was notified may still have to wake when the condition is gone, and futexes are no objects.
#[test]
fn waking_after_the_end_of_what_was_slept_on_is_no_fault() {
    let mut log = Log::new(1);
    log.allocate(HEAP, 64).sync(op::SLEEP, HEAP).sync(op::ARRIVE, HEAP + 32).free(HEAP);
    log.sync(op::WAKE, HEAP).sync(op::DEPART, HEAP + 32);
    log.event(LogEvent { op: op::NOTIFY, pc: 0, address: HEAP, size: 0, value: None });
    assert_eq!(faults(&log), []);
    log.sync(op::NOTIFY, HEAP);
    assert_eq!(faults(&log), [(FaultKind::UsedAfterDestroy, 0, 5, "its memory was freed".to_owned())]);
}

#[test]
fn a_free_that_the_c_library_does_not_survive_was_a_bad_one() {
    let pc = program().in_function("deposit");
    let mut log = Log::new(1);
    log.write(program().at("hits"), 1, 0).note(note::FREE, &[program().at("hits"), pc, 1], "");
    let survived = log.bytes.clone();
    log.note(note::ABORTED, &[0x1234], "");
    assert_eq!(faults(&log), [(FaultKind::BadFree, 0, 0, "the C library does not know it".to_owned())]);
    let crash = log.convert().0.misdeeds.crash.unwrap();
    assert_eq!(crash, Crash { signal: 6, place: "bank.c:11".into(), thread: Some(0), address: None });
    log.bytes = survived;
    log.write(program().at("hits"), 1, 0).note(note::FATAL, &[11, 0x10, pc - 1], "");
    assert_eq!(faults(&log), []);
    let crash = log.convert().0.misdeeds.crash.unwrap();
    assert_eq!(crash, Crash { signal: 11, place: "bank.c:11".into(), thread: Some(0), address: Some(0x10) });
}

#[test]
fn an_exception_counts_as_uncaught_only_if_a_library_called_abort() {
    let (pc, elsewhere) = (program().in_function("deposit"), 0x1234_5678);
    for (caller, uncaught) in [(elsewhere, true), (pc, false)] {
        let mut log = Log::new(1);
        log.note(note::THROWN, &[pc], "St13runtime_error").note(note::MESSAGE, &[log::message::ABORT, caller], "abort");
        log.note(note::ABORTED, &[elsewhere], "");
        let thrown = Thrown { thread: 0, place: "bank.c:11".into(), type_name: "std::runtime_error".into() };
        assert_eq!(log.convert().0.misdeeds.thrown, uncaught.then_some(thrown));
    }
}
