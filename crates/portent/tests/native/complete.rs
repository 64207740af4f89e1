//! All behaviours of small programs: how many there are, counted by hand or by enumeration, and where nothing is proven.

use crate::{PORTENT, left_out};
use portent_testing::command::{LIMIT, NOTHING, run};
use portent_testing::scratch::Scratch;
use serde_json::Value;

pub(crate) const BEGIN: &str =
    "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n#include <stdio.h>\n";
const TWO: &str = "int main(void) { pthread_t a, b; prepare();
 pthread_create(&a, 0, one, (void *)1); pthread_create(&b, 0, two, (void *)2);
 pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";

/// Two threads, `one` and `two`, after `prepare`.
pub(crate) fn two_threads(text: &str) -> String {
    format!("{BEGIN}{text}\n{TWO}")
}

/// What `check` says of how much was run, and how it ended.
pub(crate) fn explored(name: &str, text: &str) -> (Value, Option<i32>) {
    explored_in("c", name, text)
}

/// The same of a program in a language, by the end of its file's name.
pub(crate) fn explored_in(language: &str, name: &str, text: &str) -> (Value, Option<i32>) {
    explored_with(&[], language, name, text)
}

/// The same with more options.
fn explored_with(options: &[&str], language: &str, name: &str, text: &str) -> (Value, Option<i32>) {
    let file = format!("program.{language}");
    let scratch = Scratch::with(&file, text);
    let mut command = PORTENT.command();
    command.args([if language == "c" { "cc" } else { "c++" }, "-O1", "-g", &file, "-o", "program"]);
    let built = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    assert!(built.exited_with(0), "{name}: {}", built.describe());
    let mut command = PORTENT.command();
    // By default a search ends soon where the machine is slow.
    command.args(["check", "--budget", "10", "--json", "report.json"]).args(options).args(["--", "./program"]);
    let checked = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    let report: Value = serde_json::from_str(&scratch.read("report.json")).unwrap_or_else(|error| {
        panic!("{name}: {error}\n{}", checked.describe());
    });
    (report["explored"].clone(), checked.code())
}

#[test]
fn small_programs_are_proved_complete_with_the_right_number_of_behaviours() {
    if left_out("all behaviours") {
        return;
    }
    let work = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;
static void prepare(void) {}
static void *one(void *arg) { pthread_mutex_lock(&m); n = n + 1; pthread_mutex_unlock(&m); return arg; }
#define two one";
    let exchange = "static atomic_int n; static void prepare(void) { atomic_store(&n, 0); }
static void *one(void *arg) { int e = 0; if (!atomic_compare_exchange_strong(&n, &e, 1)) atomic_fetch_add(&n, 10); return arg; }
#define two one";
    let pointers = "static _Atomic(int *) slot; static void prepare(void) { atomic_store(&slot, NULL); }
static void *one(void *arg) { int *p = malloc(sizeof *p); *p = 1; free(atomic_exchange(&slot, p)); return arg; }
#define two one";
    let readers = "static pthread_rwlock_t m = PTHREAD_RWLOCK_INITIALIZER; static int n;
static void prepare(void) { n = 0; }
static void *one(void *arg) { pthread_rwlock_wrlock(&m); n = 1; pthread_rwlock_unlock(&m); return arg; }
static void *two(void *arg) { pthread_rwlock_rdlock(&m); int a = n; pthread_rwlock_unlock(&m); return a ? arg : 0; }";
    let at_first = "static atomic_int x, y = 7; static void prepare(void) {}
static void *one(void *arg) { atomic_store(&x, 1); atomic_store(&y, 0); return arg; }
static void *two(void *arg) { if (atomic_load(&x) == 0 && atomic_load(&y) == 7) atomic_store(&x, 2); return arg; }";
    // Who is first at the lock; who exchanges first, twice; before or after the writer; nothing, one or both of two writes.
    for (name, text, behaviours) in [
        ("lock", work, 2),
        ("exchange", exchange, 2),
        ("pointers", pointers, 2),
        ("readers", readers, 2),
        ("at first", at_first, 3),
    ] {
        let (explored, code) = explored(name, &two_threads(text));
        assert_eq!(
            (explored["complete"].as_bool(), explored["behaviours"].as_u64()),
            (Some(true), Some(behaviours)),
            "{name}: {explored}"
        );
        assert_eq!(code, Some(0), "{name}");
        assert!(!explored["assumptions"].as_array().is_some_and(Vec::is_empty), "{name}: {explored}");
    }
    // Three threads that load and store: sixteen ways, by enumeration.
    let three = format!(
        "{BEGIN}static atomic_int n;
static void *work(void *arg) {{ int v = atomic_load(&n); atomic_store(&n, v + 1); return arg; }}
int main(void) {{ pthread_t t[3]; atomic_store(&n, 0);
 for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
 for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
 return atomic_load(&n) > 3; }}"
    );
    let (explored, _) = explored("three", &three);
    assert_eq!((explored["complete"].as_bool(), explored["behaviours"].as_u64()), (Some(true), Some(16)), "{explored}");
}

#[test]
fn programs_with_everything_that_waits_are_proved_complete() {
    if left_out("waiting") {
        return;
    }
    let tries = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n; static void prepare(void) {}
static void *one(void *arg) { if (!pthread_mutex_trylock(&m)) { n++; pthread_mutex_unlock(&m); } return arg; }
#define two one";
    let condition = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int r; static void prepare(void) { r = 0; }
static void *one(void *arg) { pthread_mutex_lock(&m); r = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m); return arg; }
static void *two(void *arg) { pthread_mutex_lock(&m); while (!r) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); return arg; }";
    let semaphore = "static sem_t s; static int n; static void prepare(void) { sem_init(&s, 0, 0); n = 0; }
static void *one(void *arg) { n = 1; sem_post(&s); return arg; }
static void *two(void *arg) { sem_wait(&s); return n == 1 ? arg : 0; }";
    let trywait = "static sem_t s; static int n; static void prepare(void) { sem_init(&s, 0, 0); n = 0; }
static void *one(void *arg) { n = 1; sem_post(&s); return arg; }
static void *two(void *arg) { if (sem_trywait(&s) == 0) n = 2; return arg; }";
    let once = "static pthread_once_t o = PTHREAD_ONCE_INIT; static int n; static void prepare(void) {}
static void begin(void) { n = 1; }
static void *one(void *arg) { pthread_once(&o, begin); return n == 1 ? arg : 0; }
#define two one";
    let barrier =
        "static pthread_barrier_t b; static int x, y; static void prepare(void) { pthread_barrier_init(&b, 0, 2); }
static void *one(void *arg) { x = 1; pthread_barrier_wait(&b); if (y == 1) pthread_barrier_wait(&b); return arg; }
static void *two(void *arg) { y = 1; pthread_barrier_wait(&b); if (x == 1) pthread_barrier_wait(&b); return arg; }";
    // Whoever comes second meets the other one or not; it is done at once, or is waited for; only one way; posted or not; who runs it.
    for (name, text, behaviours) in [
        ("tries", tries, 4),
        ("condition", condition, 2),
        ("semaphore", semaphore, 1),
        ("trywait", trywait, 2),
        ("once", once, 2),
        ("barrier", barrier, 1),
    ] {
        let (explored, code) = explored(name, &format!("#include <semaphore.h>\n{}", two_threads(text)));
        assert_eq!(
            (explored["complete"].as_bool(), explored["behaviours"].as_u64(), code),
            (Some(true), Some(behaviours), Some(0)),
            "{name}: {explored}"
        );
        let told = explored["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assert_eq!(told.filter(|told| told.contains("barrier")).count(), usize::from(name == "barrier"), "{explored}");
    }
}

/// A process that has failed is gone, with its other threads; what these would have done is looked for all the same.
#[test]
fn programs_that_fail_are_proved_complete_as_well() {
    if left_out("programs that fail") {
        return;
    }
    let fails = |how: &str| {
        two_threads(&format!(
            "#include <assert.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int x, y; static void prepare(void) {{}}
static void *one(void *arg) {{ pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m);
 pthread_mutex_lock(&m); y = 1; pthread_mutex_unlock(&m); return arg; }}
static void *two(void *arg) {{ pthread_mutex_lock(&m); int seen = x, also = y; pthread_mutex_unlock(&m);
 if (seen && !also) {how} return arg; }}"
        ))
    };
    // It looks before both, between them, or after both.
    for (name, how) in [("assertion", "assert(also);"), ("abort", "abort();"), ("crash", "*(volatile int *)8 = 1;")] {
        let (explored, code) = explored(name, &fails(how));
        let complete = (explored["complete"].as_bool(), explored["behaviours"].as_u64(), code);
        assert_eq!(complete, (Some(true), Some(3), Some(1)), "{name}: {explored}");
    }
    // With the lock held that the other one needs: first, or last.
    let holds = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int x; static void prepare(void) {}
static void *one(void *arg) { pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); return arg; }
static void *two(void *arg) { pthread_mutex_lock(&m); if (!x) __builtin_trap(); pthread_mutex_unlock(&m); return arg; }";
    let (holding, code) = explored("holding", &two_threads(holds));
    let complete = (holding["complete"].as_bool(), holding["behaviours"].as_u64(), code);
    assert_eq!(complete, (Some(true), Some(2), Some(1)), "{holding}");
    // The process ends by one of two.
    let both = "#include <stdlib.h>
static int x; static void prepare(void) { x = 0; }
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int add(void) { pthread_mutex_lock(&m); int v = x++; pthread_mutex_unlock(&m); return v; }
static void *one(void *arg) { if (add() == 1) abort(); return arg; }
static void *two(void *arg) { int v = add(); if (v == 0) abort(); return arg; }";
    let (both, code) = explored("both", &two_threads(both));
    assert_eq!((both["complete"].as_bool(), code), (Some(false), Some(1)), "{both}");
}

/// Nobody notifies too early, and only one thread waits: `if` in place of `while` is wrong only because a wait may end by itself.
#[test]
fn waits_that_end_by_themselves_are_tried_where_somebody_asks_for_it() {
    if left_out("spurious wake-ups") {
        return;
    }
    let waits = |how: &str| {
        two_threads(&format!(
            "#include <assert.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready; static void prepare(void) {{}}
static void *one(void *arg) {{ pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m); return arg; }}
static void *two(void *arg) {{ pthread_mutex_lock(&m); {how} (!ready) pthread_cond_wait(&c, &m);
 assert(ready); pthread_mutex_unlock(&m); return arg; }}"
        ))
    };
    let asked = "--spurious-wakeups";
    // It waits, or it need not; it waits and wakes by itself before or after the other one has been there.
    for (how, options, behaviours, code, granted) in [
        ("if", &[][..], Some(2), 0, "woken by notifies only"),
        ("while", &[asked], Some(4), 0, "and once by itself"),
        ("if", &[asked], None, 1, "and once by itself"),
    ] {
        let (explored, exit) = explored_with(options, "c", how, &waits(how));
        assert_eq!(exit, Some(code), "{how} {options:?}: {explored}");
        let told = explored["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(behaviours) = behaviours {
            let complete = (explored["complete"].as_bool(), explored["behaviours"].as_u64());
            assert_eq!(complete, (Some(true), Some(behaviours)), "{how} {options:?}: {explored}");
            assert!(told.clone().any(|told| told.contains(granted)), "{how} {options:?}: {explored}");
        }
    }
}

#[test]
fn what_is_not_explored_exactly_is_never_called_complete() {
    if left_out("no proof") {
        return;
    }
    let barrier = format!(
        "{BEGIN}static pthread_barrier_t b;
static void *work(void *arg) {{ pthread_barrier_wait(&b); return arg; }}
int main(void) {{ pthread_t t[4]; pthread_barrier_init(&b, 0, 2);
 for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
 for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
 return 0; }}"
    );
    let at_first = "static atomic_int *x; static void prepare(void) { x = malloc(sizeof *x); }
static void *one(void *arg) { atomic_store(x, 1); return arg; }
static void *two(void *arg) { if (atomic_load(x) == 0) atomic_store(x, 2); return arg; }";
    let programs =
        [("barrier", barrier, "more threads use a barrier"), ("at first", two_threads(at_first), "holds at first")];
    for (name, text, why) in programs {
        let (explored, _) = explored(name, &text);
        assert_eq!(explored["complete"].as_bool(), Some(false), "{name}: {explored}");
        let told = explored["unproven"].as_array().unwrap_or_else(|| panic!("{name}: {explored}"));
        assert!(told.iter().any(|told| told.as_str().is_some_and(|told| told.contains(why))), "{name}: {explored}");
    }
}

/// Rounds of loops that only look are left out, and where they are is told. A loop that counts its rounds is no such loop.
#[test]
fn programs_with_spin_loops_are_proved_complete() {
    if left_out("spin loops") {
        return;
    }
    let flag = "static int data; static atomic_int ready; static void prepare(void) {}
static void *one(void *arg) { data = 1; atomic_store(&ready, 1); return arg; }
static void *two(void *arg) { while (!atomic_load(&ready)) ; return data == 1 ? arg : 0; }";
    let lock = "static int n; static atomic_int locked; static void prepare(void) {}
static void *one(void *arg) { int no = 0; while (!atomic_compare_exchange_strong(&locked, &no, 1)) no = 0;
 n = n + 1; atomic_store(&locked, 0); return arg; }
#define two one";
    let peterson = "static atomic_int wants[2], turn, inside; static void prepare(void) {}
static void *one(void *arg) { int me = (int)(long)arg - 1, other = 1 - me;
 atomic_store(&wants[me], 1); atomic_store(&turn, other);
 while (atomic_load(&wants[other]) && atomic_load(&turn) != me) ;
 int was = atomic_fetch_add(&inside, 1); atomic_fetch_sub(&inside, 1); atomic_store(&wants[me], 0);
 return was ? arg : 0; }
#define two one";
    let counts = "static int sum; static atomic_int x; static void prepare(void) {}
static void *one(void *arg) { atomic_store(&x, 1); return arg; }
static void *two(void *arg) { int s = 0; for (int i = 0; i < 3; i++) s += atomic_load(&x); sum = s; return arg; }";
    // Seen at once, or after a round; that for whoever is second; by enumeration; seen by none, one, two or three of the reads.
    for (name, text, behaviours, spins) in [
        ("flag", flag, Some(2), Some("program.c:7")),
        ("lock", lock, Some(4), Some("program.c:6")),
        ("Peterson", peterson, None, Some("program.c:8")),
        ("counts", counts, Some(4), None),
    ] {
        let (explored, code) = explored(name, &two_threads(text));
        assert_eq!((explored["complete"].as_bool(), code), (Some(true), Some(0)), "{name}: {explored}");
        assert!(behaviours.is_none_or(|wanted| explored["behaviours"].as_u64() == Some(wanted)), "{name}: {explored}");
        let told = explored["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let told: Vec<&str> = told.filter_map(|told| told.strip_prefix("spin loops at ")).collect();
        assert_eq!(told, spins.into_iter().collect::<Vec<_>>(), "{name}: {explored}");
    }
}

/// Two threads that wait for each other in loops: nobody stops them, and nobody has to wait until they are stopped.
#[test]
fn a_livelock_is_told_as_a_hang() {
    if left_out("a livelock") {
        return;
    }
    let text = "static atomic_int a, b; static void prepare(void) {}
static void *one(void *arg) { while (!atomic_load(&a)) ; atomic_store(&b, 1); return arg; }
static void *two(void *arg) { while (!atomic_load(&b)) ; atomic_store(&a, 1); return arg; }";
    let scratch = Scratch::with("program.c", two_threads(text));
    let build =
        run(PORTENT.command().args(["cc", "-g", "program.c", "-o", "program"]), scratch.directory(), NOTHING, LIMIT);
    assert!(build.exited_with(0), "{}", build.describe());
    let checked = run(PORTENT.command().args(["check", "--", "./program"]), scratch.directory(), NOTHING, LIMIT);
    assert!(checked.exited_with(1), "{}", checked.describe());
    let told = checked.out().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("hang in one()") && told.contains("loops for ever until a changes"),
        "{}",
        checked.describe()
    );
}

/// Nobody reads anything there: no behaviour shows it, and no cycle of locks.
#[test]
fn a_join_under_a_lock_is_run_into() {
    if left_out("a join under a lock") {
        return;
    }
    let text = format!(
        "{BEGIN}static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {{ pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return arg; }}
int main(void) {{ pthread_t a; pthread_create(&a, 0, work, 0); for (volatile int i = 0; i < 9; i++) {{}}
 pthread_mutex_lock(&m); pthread_join(a, 0); pthread_mutex_unlock(&m); return 0; }}"
    );
    assert_eq!(explored("join", &text).1, Some(1));
}
