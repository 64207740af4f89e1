//! What must not multiply behaviours, or end a proof: addresses, counters that nobody looks at, threads that nobody joins, accesses of
//! different sizes; and what comes from outside, which ends the proof and is named.

use crate::complete::{BEGIN, explored, explored_in, two_threads};
use crate::left_out;
use serde_json::Value;

fn behaviours(explored: &Value) -> (Option<bool>, Option<u64>) {
    (explored["complete"].as_bool(), explored["behaviours"].as_u64())
}

const NODES: &str = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
struct node { struct node *next; int value; }; static struct node *head; static void prepare(void) {}
static void *one(void *arg) { for (int i = 0; i < 2; i++) { struct node *n = malloc(sizeof *n); n->value = (int)(long)arg;
 pthread_mutex_lock(&m); n->next = head; head = n; pthread_mutex_unlock(&m); } return arg; }
#define two one";

/// Two threads, `one` and `two`, in C++.
fn two_in_cpp(text: &str) -> String {
    format!(
        "#include <thread>\n#include <mutex>\n#include <memory>\n#include <string>\n#include <utility>\n{text}
int main() {{ std::thread a(one), b(two); a.join(); b.join(); return 0; }}\n"
    )
}

/// As many ways as the threads can come to the lock: each allocates, and frees, what it did before. (What `std::list` and `std::map` link is
/// done inside a library without instrumentation, and not known well enough for a proof.)
#[test]
fn nodes_that_several_threads_allocate_are_where_they_were_in_every_run() {
    if left_out("nodes") {
        return;
    }
    // Two threads, twice each at the lock: six orders.
    let (list, code) = explored("list", &two_threads(NODES));
    assert_eq!((behaviours(&list), code), ((Some(true), Some(6)), Some(0)), "{list}");
    let programs = [
        (
            "std::shared_ptr",
            "std::mutex m; std::shared_ptr<int> it;
void one() { auto own = std::make_shared<int>(1); std::lock_guard<std::mutex> held(m); it = own; }
void two() { auto own = std::make_shared<int>(2); std::lock_guard<std::mutex> held(m); it = own; }",
            2,
        ),
        (
            "std::unique_ptr",
            "std::mutex m; std::unique_ptr<int> it;
void one() { auto own = std::make_unique<int>(1); std::lock_guard<std::mutex> held(m); std::swap(it, own); }
void two() { auto own = std::make_unique<int>(2); std::lock_guard<std::mutex> held(m); std::swap(it, own); }",
            2,
        ),
    ];
    for (name, text, most) in programs {
        let (explored, code) = explored_in("cpp", name, &two_in_cpp(text));
        // What ends the proof of C++'s own threads is not that addresses differ.
        assert!(
            code == Some(0) && !explored["unproven"].to_string().contains("always do the same"),
            "{name}: {explored}"
        );
        // Counts of references are looked at by whoever gives one back.
        let count = behaviours(&explored).1;
        assert!(count.is_some_and(|count| (2..=2 * most).contains(&count)), "{name}: {explored}");
    }
}

#[test]
fn updates_whose_results_nobody_looks_at_are_no_behaviours_of_their_own() {
    if left_out("counters") {
        return;
    }
    let program = |after: &str| {
        format!(
            "{BEGIN}static atomic_int hits; static atomic_uint marks;
static void *work(void *arg) {{
 for (int i = 0; i < 3; i++) atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
 atomic_fetch_or(&marks, 1u << (long)arg); return arg; }}
int main(void) {{ pthread_t t[3];
 for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)i);
 {after} }}"
        )
    };
    let join = "for (int i = 0; i < 3; i++) pthread_join(t[i], 0);";
    let (counted, code) = explored("counted", &program(&format!("{join} return hits != 9 || marks != 7;")));
    assert_eq!((behaviours(&counted), code), ((Some(true), Some(1)), Some(0)), "{counted}");
    // Whoever looks while they count sees anything from none to nine.
    let looks = "static atomic_int n; static void prepare(void) {}
static void *one(void *arg) { atomic_fetch_add(&n, 1); atomic_fetch_add(&n, 1); return arg; }
static void *two(void *arg) { return atomic_load(&n) > 1 ? arg : 0; }";
    let (looked, _) = explored("looked", &two_threads(looks));
    assert_eq!(behaviours(&looked), (Some(true), Some(3)), "{looked}");
    // A result that is looked at is an observation: who is first.
    let used = "static atomic_int n, firsts; static void prepare(void) {}
static void *one(void *arg) { if (atomic_fetch_add(&n, 1) == 0) atomic_store(&firsts, 1); return arg; }
#define two one";
    let (used, _) = explored("used", &two_threads(used));
    assert_eq!(behaviours(&used), (Some(true), Some(2)), "{used}");
}

#[test]
fn threads_that_nobody_joins_are_whole_when_they_have_ended() {
    if left_out("threads that nobody joins") {
        return;
    }
    let detached = format!(
        "{BEGIN}static atomic_int x;
static void *work(void *arg) {{ atomic_store(&x, 1); return arg; }}
int main(void) {{ pthread_t a; atomic_store(&x, 0); pthread_create(&a, 0, work, 0); pthread_detach(a); return atomic_load(&x) > 5; }}"
    );
    let (explored, code) = explored("detached", &detached);
    assert_eq!((behaviours(&explored), code), ((Some(true), Some(2)), Some(0)), "{explored}");
}

#[test]
fn parts_of_what_is_read_end_a_proof_only_where_they_could_be_others() {
    if left_out("parts") {
        return;
    }
    let record = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; struct record { int a, b, c, d; };
struct record all, copy[2]; int sum;";
    let before = format!(
        "{record} static void prepare(void) {{ all.a = 1; all.b = 2; all.c = 3; all.d = 4; }}
static void *one(void *arg) {{ copy[(long)arg - 1] = all; pthread_mutex_lock(&m); sum += all.b; pthread_mutex_unlock(&m); return arg; }}
#define two one"
    );
    let (fixed, _) = explored("fixed", &two_threads(&before));
    assert_eq!(behaviours(&fixed), (Some(true), Some(2)), "{fixed}");
    let meanwhile = format!(
        "{record} static void prepare(void) {{}}
static void *one(void *arg) {{ pthread_mutex_lock(&m); all.a = 1; all.d = 2; pthread_mutex_unlock(&m); return arg; }}
static void *two(void *arg) {{ pthread_mutex_lock(&m); copy[0] = all; pthread_mutex_unlock(&m); return arg; }}"
    );
    let (torn, _) = explored("torn", &two_threads(&meanwhile));
    assert_eq!(torn["complete"].as_bool(), Some(false), "{torn}");
    assert!(torn["unproven"].to_string().contains("different sizes"), "{torn}");
}

#[test]
fn memory_that_is_allocated_as_zero_is_known_to_be() {
    if left_out("zeroed memory") {
        return;
    }
    let zeroed = "static atomic_int *x; static void prepare(void) { x = calloc(1, sizeof *x); }
static void *one(void *arg) { atomic_store(x, 1); return arg; }
static void *two(void *arg) { if (atomic_load(x) == 0) atomic_store(x, 2); return arg; }";
    let (explored, _) = explored("zeroed", &two_threads(zeroed));
    assert_eq!(behaviours(&explored), (Some(true), Some(2)), "{explored}");
}

/// The search goes on: both orders at the lock are run.
#[test]
fn what_comes_from_outside_ends_the_proof_and_not_the_search() {
    if left_out("proofs and what comes from outside") {
        return;
    }
    let asks = [
        ("clock", "time(NULL) != 0", "reads the clock at "),
        ("random", "(getentropy(&drawn, sizeof drawn), drawn != 0)", "draws random numbers at "),
        ("number", "getpid() != 0", "asks for numbers of processes"),
        ("network", "receives()", "another outcome of system calls"),
    ];
    for (name, asks, why) in asks {
        let text = format!(
            "#include <time.h>\n#include <unistd.h>\n#include <sys/socket.h>\n#include <netinet/in.h>\n#include <sys/random.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n, asked; static unsigned drawn;
static int receives(void) {{ char byte; int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
 struct sockaddr_in at = {{.sin_family = AF_INET}}; bind(fd, (struct sockaddr *)&at, sizeof at);
 return recv(fd, &byte, 1, 0) + close(fd) < 0; }}
static void prepare(void) {{ asked = {asks}; (void)receives; (void)drawn; }}
static void *one(void *arg) {{ pthread_mutex_lock(&m); n += asked; pthread_mutex_unlock(&m); return arg; }}
#define two one"
        );
        let (explored, _) = explored(name, &two_threads(&text));
        assert_eq!(explored["complete"].as_bool(), Some(false), "{name}: {explored}");
        let told = explored["unproven"].as_array().unwrap_or_else(|| panic!("{name}: {explored}"));
        assert!(told.iter().any(|told| told.as_str().is_some_and(|told| told.contains(why))), "{name}: {explored}");
        assert!(explored["behaviours"].as_u64() >= Some(2), "{name}: {explored}");
    }
}
