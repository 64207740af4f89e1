//! What programs do to memory and objects that are no longer theirs, and how they die: exactly that is told, of those that
//! do nothing of the kind nothing.

use portent_explore::{End, Fault, FaultKind, Outcome, Plan, Policy, Program};
use portent_native::build::compiler::{Compiler, Language};
use portent_native::build::flags;
use portent_native::record::NativeProgram;
use portent_native::run::examine::Nature;
use portent_native::run::launch::Invocation;
use portent_native::run::library;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

struct Built {
    _folder: TempDir,
    binary: PathBuf,
    source: String,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(name)
}

impl Built {
    fn new(name: &str) -> Built {
        let source = source(name);
        let is_cxx = name.ends_with(".cpp");
        let compiler = Compiler::find(if is_cxx { Language::Cxx } else { Language::C }).unwrap();
        let folder = TempDir::new().unwrap();
        let binary = folder.path().join("program");
        let standard = if is_cxx { "-std=c++20" } else { "-std=gnu11" };
        let mut arguments: Vec<OsString> =
            [standard, "-g", "-O1", "-w", "-pthread", "-o"].map(OsString::from).into_iter().collect();
        arguments.extend([binary.clone().into(), source.clone().into()]);
        let family = compiler.family().unwrap();
        let arguments = flags::instrumented(&arguments, family, library::directory).unwrap();
        let said = compiler.run(&arguments).unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Built { _folder: folder, binary, source: std::fs::read_to_string(source).unwrap() }
    }

    fn run(&self, arguments: &[&str], policy: Policy, seed: u64) -> Outcome {
        let mut all = vec![self.binary.clone().into_os_string()];
        all.extend(arguments.iter().map(OsString::from));
        let mut invocation = Invocation::here(self.binary.clone(), all).unwrap();
        invocation.input = Some("/dev/null".into());
        let program = NativeProgram::new(invocation, Nature::Instrumented);
        let limit = Some(Duration::from_secs(60));
        let plan = Plan { policy, seed, schedule: None, like: None, limit, silent: true, parks: false };
        program.run(&plan).unwrap().outcome
    }

    /// The end of the place of the line with this comment.
    fn line(&self, comment: &str) -> String {
        let comment = format!("// {comment}");
        let found = self.source.lines().position(|line| line.ends_with(&comment));
        format!(":{}", found.unwrap_or_else(|| panic!("no line has the comment {comment}")) + 1)
    }
}

fn c() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| Built::new("special/faults.c"))
}

fn cxx() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| Built::new("special/faults.cpp"))
}

/// Runs a case, which must have one fault: of this kind, at the line that bears its name.
fn one_fault(built: &Built, case: &str, kind: FaultKind, place: &str) -> (Fault, Outcome) {
    let mut outcome = built.run(&[case], Policy::Stay, 1);
    assert_eq!(outcome.faults.len(), 1, "{case}: {outcome:#?}");
    let fault = outcome.faults.remove(0);
    assert_eq!(fault.kind, kind, "{case}: {fault:#?}");
    assert!(fault.at.place.ends_with(&built.line(place)), "{case}: {fault:#?}");
    (fault, outcome)
}

#[test]
fn every_way_to_use_freed_memory_is_told_with_who_made_and_who_freed_it() {
    for case in ["read_after", "write_after", "copy_after", "atomic_after"] {
        let (fault, outcome) = one_fault(c(), case, FaultKind::UseAfterFree, case);
        assert_eq!(outcome.end, End::Status(0), "{case}: the program goes on");
        assert!(fault.made.as_ref().unwrap().place.ends_with(&c().line("made")), "{fault:#?}");
        let ended = fault.ended.as_ref().unwrap();
        assert!(ended.place.ends_with(&c().line("dropped")), "{fault:#?}");
        assert!(ended.event < fault.at.event, "{fault:#?}");
        assert!(fault.object.contains(" from "), "{fault:#?}");
    }
    let detail = |case| one_fault(c(), case, FaultKind::UseAfterFree, case).0.detail;
    assert_eq!(detail("read_after"), "read of 4 bytes, 8 bytes into a block of 120");
    assert_eq!(detail("write_after"), "write of 4 bytes, at the start of a block of 120");
    let (fault, _) = one_fault(c(), "text_after", FaultKind::UseAfterFree, "text_after");
    assert!(fault.made.unwrap().place.ends_with(&c().line("text_made")));
    let (fault, _) = one_fault(c(), "realloc_after", FaultKind::UseAfterFree, "realloc_after");
    assert!(fault.ended.unwrap().place.ends_with(&c().line("realloc_freed")));
}

#[test]
fn what_a_smart_pointer_or_a_vector_owned_is_freed_with_it() {
    let (fault, _) = one_fault(cxx(), "owned_after", FaultKind::UseAfterFree, "owned_after");
    assert!(fault.ended.unwrap().place.ends_with(&cxx().line("owner_reset")));
    one_fault(cxx(), "shared_after", FaultKind::UseAfterFree, "shared_after");
    one_fault(cxx(), "iterator_after", FaultKind::UseAfterFree, "iterator_after");
}

#[test]
fn freeing_twice_aborts_as_the_c_library_does_and_is_told() {
    for (built, case) in [(c(), "twice"), (cxx(), "delete_twice")] {
        let (fault, outcome) = one_fault(built, case, FaultKind::DoubleFree, case);
        assert_eq!(outcome.end, End::Signal(6));
        assert!(fault.ended.is_some() && fault.made.is_some(), "{fault:#?}");
        let crash = outcome.crash.unwrap();
        assert_eq!((crash.signal, crash.thread), (6, Some(0)));
        assert!(crash.place.ends_with(&built.line(case)), "{crash:?}");
    }
}

#[test]
fn freeing_what_is_no_block_aborts_and_is_told() {
    for case in ["of_stack", "of_inside", "of_global"] {
        let (_, outcome) = one_fault(c(), case, FaultKind::BadFree, case);
        assert_eq!(outcome.end, End::Signal(6), "{case}");
    }
}

#[test]
fn freeing_by_the_wrong_function_is_told_and_goes_on() {
    let cases = [
        ("new_free", "allocated by new, freed by free"),
        ("malloc_delete", "allocated by malloc, freed by delete"),
        ("array_delete", "allocated by new[], freed by delete"),
    ];
    for (case, detail) in cases {
        let (fault, outcome) = one_fault(cxx(), case, FaultKind::BadFree, case);
        assert_eq!((fault.detail.as_str(), outcome.end), (detail, End::Status(0)));
    }
}

#[test]
fn objects_that_end_while_they_are_used_are_told() {
    for case in ["free_waited", "destroy_held", "destroy_waited"] {
        let (fault, _) = one_fault(c(), case, FaultKind::DestroyedInUse, case);
        assert!(fault.made.is_some(), "{fault:#?}");
    }
    let outcome = c().run(&["free_held"], Policy::Stay, 1);
    let told: Vec<_> = outcome.faults.iter().map(|fault| (fault.kind, fault.at.thread)).collect();
    assert_eq!(told, [(FaultKind::DestroyedInUse, 0), (FaultKind::UsedAfterDestroy, 1)], "{outcome:#?}");
    assert!(outcome.faults[0].at.place.ends_with(&c().line("free_held")));
    assert!(outcome.faults[1].at.place.ends_with(&c().line("unlock_after")));
}

#[test]
fn objects_that_are_used_after_their_end_are_told() {
    for case in ["lock_destroyed", "signal_destroyed", "post_destroyed", "rwlock_destroyed"] {
        one_fault(c(), case, FaultKind::UsedAfterDestroy, case);
    }
    let (fault, _) = one_fault(c(), "lock_destroyed", FaultKind::UsedAfterDestroy, "lock_destroyed");
    assert!(fault.ended.unwrap().place.ends_with(&c().line("destroyed")));
}

#[test]
fn descriptors_that_are_closed_under_somebody_are_told() {
    let (fault, _) = one_fault(c(), "close_used", FaultKind::ClosedInUse, "close_used");
    assert!(fault.detail.contains("T1"), "{fault:#?}");
    let (fault, _) = one_fault(c(), "use_closed", FaultKind::ClosedInUse, "use_closed");
    assert!(fault.ended.unwrap().place.ends_with(&c().line("closed")));
}

#[test]
fn a_crash_is_told_with_its_thread_its_place_and_the_address() {
    for (case, signal, address) in [
        ("fault_of_null", 11, Some(0x1000)),
        ("fault_in_library", 11, Some(0x1000)),
        ("aborts", 6, None),
        ("fails", 6, None),
    ] {
        let outcome = c().run(&[case], Policy::Stay, 1);
        let crash = outcome.crash.as_ref().unwrap_or_else(|| panic!("{case}: {outcome:#?}"));
        assert_eq!((crash.signal, crash.thread, crash.address), (signal, Some(0), address), "{case}");
        assert!(crash.place.ends_with(&c().line(case)), "{case}: {crash:?}");
        assert!(outcome.faults.is_empty(), "{case}: {outcome:#?}");
    }
}

#[test]
fn an_exception_that_nobody_catches_is_told_with_its_type_and_where_it_was_thrown() {
    let outcome = cxx().run(&["uncaught"], Policy::Stay, 1);
    let thrown = outcome.thrown.as_ref().unwrap_or_else(|| panic!("{outcome:#?}"));
    assert_eq!((thrown.thread, thrown.type_name.as_str()), (1, "Refused"));
    assert!(thrown.place.ends_with(&cxx().line("uncaught")), "{thrown:?}");
    let crash = outcome.crash.unwrap();
    assert_eq!((crash.signal, crash.thread, &crash.place), (6, Some(1), &thrown.place));
    let outcome = cxx().run(&["aborts_in_handler"], Policy::Stay, 1);
    assert_eq!(outcome.thrown, None);
    assert!(outcome.crash.unwrap().place.ends_with(&cxx().line("aborts_in_handler")));
}

#[test]
fn programs_that_do_nothing_wrong_have_no_faults_under_any_schedule() {
    for name in ["special/faultless.c", "special/faultless.cpp"] {
        let built = Built::new(name);
        for (policy, seed) in [(Policy::Stay, 1), (Policy::RoundRobin, 1), (Policy::Random, 1), (Policy::Random, 2)] {
            let outcome = built.run(&[], policy, seed);
            assert_eq!(outcome.end, End::Status(0), "{name} {policy:?} {seed}: {outcome:#?}");
            assert!(outcome.faults.is_empty() && outcome.crash.is_none(), "{name} {policy:?} {seed}: {outcome:#?}");
        }
    }
}

/// Programs of tests/programs that are wrong on purpose.
const WRONG: [&str; 1] = ["fail_double_free.c"];

#[test]
#[ignore = "builds a hundred programs: minutes"]
fn no_program_of_the_other_tests_has_a_fault_that_it_should_not_have() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(source("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_source = name.ends_with(".c") || name.ends_with(".cpp");
        if !is_source || WRONG.contains(&name.as_str()) || name.starts_with("bench_") {
            continue;
        }
        let text = std::fs::read_to_string(source(&name)).unwrap();
        if ["library", "uninstrumented", "build"].iter().any(|word| text.contains(&format!("// portent: {word}"))) {
            continue;
        }
        let arguments = text.lines().find_map(|line| line.strip_prefix("// portent: args "));
        let arguments: Vec<_> = arguments.unwrap_or_default().split_whitespace().collect();
        let built = Built::new(&name);
        for (policy, seed) in [(Policy::Stay, 1), (Policy::Random, 1)] {
            let outcome = built.run(&arguments, policy, seed);
            if !outcome.faults.is_empty() {
                wrong.push(format!("{name} {policy:?}: {:#?}", outcome.faults));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
