// What programs tell ThreadSanitizer about themselves: `annotations WHAT`. Two threads use one datum, and what keeps them apart
// is code that is not instrumented: only the annotations say so. `annotations WHAT without` does the same without them, and
// with nothing that keeps the threads apart, so that they race.
#define _GNU_SOURCE
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

void AnnotateHappensBefore(const char *file, int line, const volatile void *at);
void AnnotateHappensAfter(const char *file, int line, const volatile void *at);
void AnnotateRWLockCreate(const char *file, int line, const volatile void *lock);
void AnnotateRWLockDestroy(const char *file, int line, const volatile void *lock);
void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock, long writes);
void AnnotateRWLockReleased(const char *file, int line, const volatile void *lock, long writes);
void AnnotateBenignRace(const char *file, int line, const volatile void *at, const char *why);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, long size, const char *why);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateThreadName(const char *file, int line, const char *name);
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
void __tsan_testonly_barrier_init(unsigned long *barrier, unsigned count);
void __tsan_testonly_barrier_wait(unsigned long *barrier);

#define HERE __FILE__, __LINE__
#define HIDDEN __attribute__((no_sanitize("thread"), noinline))

static int annotated = 1;
static int data;
static char bytes[16];
static int published;
static unsigned long barrier;

// What really keeps the threads apart, where nobody sees it.
static volatile int flags[8];
HIDDEN static void raise_flag(int flag)
{
    flags[flag] = 1;
}
HIDDEN static void await_flag(int flag)
{
    while (annotated && !flags[flag])
        sched_yield();
}

static void start(pthread_t *thread, void *(*routine)(void *))
{
    pthread_create(thread, NULL, routine, NULL);
}

// Order: the other thread uses what main has written.
static void *after_acquire(void *unused)
{
    await_flag(0);
    if (annotated)
        __tsan_acquire(&published);
    data++;
    return unused;
}
static void release_acquire(void)
{
    pthread_t other;
    start(&other, after_acquire);
    data = 1;
    if (annotated)
        __tsan_release(&published);
    raise_flag(0);
    pthread_join(other, NULL);
}

static void *after_both(void *unused)
{
    await_flag(1);
    await_flag(2);
    if (annotated)
        AnnotateHappensAfter(HERE, &published);
    data += bytes[0];
    return unused;
}
static void *second(void *unused)
{
    bytes[0] = 1;
    if (annotated)
        AnnotateHappensBefore(HERE, &published);
    raise_flag(2);
    return unused;
}
// Somebody has looked in between; whoever comes later is after both all the same.
static void happens(void)
{
    pthread_t last, other;
    start(&last, after_both);
    data = 1;
    if (annotated)
        AnnotateHappensBefore(HERE, &published);
    raise_flag(1);
    AnnotateHappensAfter(HERE, &published);
    start(&other, second);
    pthread_join(last, NULL);
    pthread_join(other, NULL);
}

// A lock of the program's own.
static _Atomic int word, second_word;
static void take(_Atomic int *lock, unsigned flags)
{
    if (annotated) {
        __tsan_mutex_pre_lock((void *)lock, flags);
        int expected = 0;
        while (!__atomic_compare_exchange_n((int *)lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            expected = 0;
            sched_yield();
        }
        __tsan_mutex_post_lock((void *)lock, flags, 0);
    }
}
static void give(_Atomic int *lock)
{
    if (annotated) {
        __tsan_mutex_pre_unlock((void *)lock, 0);
        __atomic_store_n((int *)lock, 0, __ATOMIC_RELEASE);
        __tsan_mutex_post_unlock((void *)lock, 0);
    }
}
static void *add_locked(void *unused)
{
    for (int i = 0; i < 3; i++) {
        take(&word, 0);
        data++;
        give(&word);
    }
    return unused;
}
static void two(void *(*routine)(void *))
{
    pthread_t a, b;
    start(&a, routine);
    start(&b, routine);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
static void mutex(void)
{
    if (annotated)
        __tsan_mutex_create((void *)&word, __tsan_mutex_not_static);
    two(add_locked);
    if (annotated)
        __tsan_mutex_destroy((void *)&word, __tsan_mutex_not_static);
}

// Tries to lock; who fails does something else.
static void *add_tried(void *unused)
{
    if (!annotated) {
        data++;
        return unused;
    }
    __tsan_mutex_pre_lock((void *)&word, __tsan_mutex_try_lock);
    int expected = 0;
    int got = __atomic_compare_exchange_n((int *)&word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    __tsan_mutex_post_lock((void *)&word, __tsan_mutex_try_lock | (got ? 0 : __tsan_mutex_try_lock_failed), 0);
    if (got) {
        data++;
        give(&word);
    }
    return unused;
}
static void try_lock(void)
{
    two(add_tried);
}

// Readers read together, and a writer is alone.
static int readers;
HIDDEN static int may_read(void)
{
    if (word)
        return 0;
    readers++;
    return 1;
}
HIDDEN static void has_read(void)
{
    readers--;
}
HIDDEN static int may_write(void)
{
    if (word || readers)
        return 0;
    word = 1;
    return 1;
}
HIDDEN static void has_written(void)
{
    word = 0;
}
static void *reads(void *unused)
{
    if (annotated) {
        __tsan_mutex_pre_lock((void *)&word, __tsan_mutex_read_lock);
        while (!may_read())
            sched_yield();
        __tsan_mutex_post_lock((void *)&word, __tsan_mutex_read_lock, 0);
    }
    int got = data;
    if (annotated) {
        __tsan_mutex_pre_unlock((void *)&word, __tsan_mutex_read_lock);
        has_read();
        __tsan_mutex_post_unlock((void *)&word, __tsan_mutex_read_lock);
    }
    return got ? unused : NULL;
}
static void *writes(void *unused)
{
    if (annotated) {
        __tsan_mutex_pre_lock((void *)&word, 0);
        while (!may_write())
            sched_yield();
        __tsan_mutex_post_lock((void *)&word, 0, 0);
    }
    data++;
    if (annotated) {
        __tsan_mutex_pre_unlock((void *)&word, 0);
        has_written();
        __tsan_mutex_post_unlock((void *)&word, 0);
    }
    return unused;
}
static void read_lock(void)
{
    pthread_t a, b;
    start(&a, reads);
    start(&b, writes);
    reads(NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

// The older annotations, after locking and before unlocking; what makes the lock is not seen.
HIDDEN static void hidden_lock(void)
{
    while (annotated && __atomic_exchange_n((int *)&word, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}
HIDDEN static void hidden_unlock(void)
{
    __atomic_store_n((int *)&word, 0, __ATOMIC_RELEASE);
}
static void *add_rwlocked(void *unused)
{
    hidden_lock();
    if (annotated)
        AnnotateRWLockAcquired(HERE, &word, 1);
    data++;
    if (annotated)
        AnnotateRWLockReleased(HERE, &word, 1);
    hidden_unlock();
    return unused;
}
static void rwlock(void)
{
    if (annotated)
        AnnotateRWLockCreate(HERE, &word);
    two(add_rwlocked);
    if (annotated)
        AnnotateRWLockDestroy(HERE, &word);
}

// Accesses that nobody is to look at.
static void *add_plain(void *unused)
{
    data++;
    return unused;
}
static void benign(void)
{
    if (annotated)
        AnnotateBenignRace(HERE, &data, "statistics");
    two(add_plain);
}
static int *heap;
static void *add_heap(void *unused)
{
    heap[2]++;
    return unused;
}
static void benign_sized(void)
{
    heap = calloc(4, sizeof *heap);
    if (annotated)
        AnnotateBenignRaceSized(HERE, heap + 2, sizeof *heap, "statistics");
    two(add_heap);
    free(heap);
}
static void *add_ignored(void *unused)
{
    if (annotated) {
        AnnotateIgnoreReadsBegin(HERE);
        AnnotateIgnoreWritesBegin(HERE);
    }
    data++;
    if (annotated) {
        AnnotateIgnoreWritesEnd(HERE);
        AnnotateIgnoreReadsEnd(HERE);
    }
    return unused;
}
static void ignore(void)
{
    two(add_ignored);
}
static void *add_thread_ignored(void *unused)
{
    if (annotated)
        __tsan_ignore_thread_begin();
    data++;
    if (annotated)
        __tsan_ignore_thread_end();
    return unused;
}
static void ignore_thread(void)
{
    two(add_thread_ignored);
}

static void *write_then_wait(void *unused)
{
    data = 1;
    if (annotated)
        __tsan_testonly_barrier_wait(&barrier);
    return unused;
}
static void testonly_barrier(void)
{
    pthread_t other;
    __tsan_testonly_barrier_init(&barrier, 2);
    start(&other, write_then_wait);
    if (annotated)
        __tsan_testonly_barrier_wait(&barrier);
    data++;
    pthread_join(other, NULL);
}

// Two fibers of one thread. Without the annotations of the switch they would be told apart by nobody; with `no_sync` they race.
static ucontext_t main_context, fiber_context;
static char stack[1 << 16];
static void *main_fiber, *fiber;
static void in_fiber(void)
{
    data++;
    __tsan_switch_to_fiber(main_fiber, annotated ? 0 : __tsan_switch_to_fiber_no_sync);
    swapcontext(&fiber_context, &main_context);
}
static void fibers(void)
{
    main_fiber = __tsan_get_current_fiber();
    fiber = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fiber, "a fiber");
    getcontext(&fiber_context);
    fiber_context.uc_stack.ss_sp = stack;
    fiber_context.uc_stack.ss_size = sizeof stack;
    makecontext(&fiber_context, in_fiber, 0);
    data = 1;
    __tsan_switch_to_fiber(fiber, annotated ? 0 : __tsan_switch_to_fiber_no_sync);
    swapcontext(&main_context, &fiber_context);
    data++;
    __tsan_destroy_fiber(fiber);
}

// Accesses that are told of, or made by hand: a mutex keeps them apart, or nothing does.
static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
static void *unaligned(void *unused)
{
    if (annotated)
        pthread_mutex_lock(&plain_mutex);
    __sanitizer_unaligned_store32(bytes + 1, __sanitizer_unaligned_load32(bytes + 1) + 1);
    __sanitizer_unaligned_store16(bytes + 7, __sanitizer_unaligned_load16(bytes + 7) + 1);
    __sanitizer_unaligned_store64(bytes + 1, __sanitizer_unaligned_load64(bytes + 1));
    if (annotated)
        pthread_mutex_unlock(&plain_mutex);
    return unused;
}
static void unaligned_accesses(void)
{
    two(unaligned);
}
static void *tag;
static void *external_write(void *unused)
{
    if (annotated)
        pthread_mutex_lock(&plain_mutex);
    __tsan_external_read(&data, __builtin_return_address(0), tag);
    __tsan_external_write(&data, __builtin_return_address(0), tag);
    if (annotated)
        pthread_mutex_unlock(&plain_mutex);
    return unused;
}
static void external(void)
{
    tag = __tsan_external_register_tag("list");
    two(external_write);
}

// System calls by hand, between the hooks of `sanitizer/linux_syscall_hooks.h`: one thread gets random bytes, the other sends them.
void __sanitizer_syscall_post_impl_getrandom(long result, long buffer, long size, long flags);
void __sanitizer_syscall_pre_impl_write(long fd, long buffer, long size);
void __sanitizer_syscall_post_impl_write(long result, long fd, long buffer, long size);
static void *fills(void *unused)
{
    if (annotated)
        pthread_mutex_lock(&plain_mutex);
    long result = syscall(SYS_getrandom, bytes, 8, 0);
    __sanitizer_syscall_post_impl_getrandom(result, (long)bytes, 8, 0);
    if (annotated)
        pthread_mutex_unlock(&plain_mutex);
    return unused;
}
static void *sends(void *unused)
{
    if (annotated)
        pthread_mutex_lock(&plain_mutex);
    __sanitizer_syscall_pre_impl_write(-1, (long)bytes, 8);
    long result = syscall(SYS_write, -1, bytes, 8);
    __sanitizer_syscall_post_impl_write(result, -1, (long)bytes, 8);
    if (annotated)
        pthread_mutex_unlock(&plain_mutex);
    return unused;
}
static void system_calls(void)
{
    pthread_t a, b;
    start(&a, fills);
    start(&b, sends);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

// Two locks in two orders. (`without`: in one order.)
static void *first_then_second(void *unused)
{
    take(&word, 0);
    take(&second_word, 0);
    data++;
    give(&second_word);
    give(&word);
    return unused;
}
static void *second_then_first(void *unused)
{
    take(&second_word, 0);
    take(&word, 0);
    data++;
    give(&word);
    give(&second_word);
    return unused;
}
static void deadlock(void)
{
    pthread_t a, b;
    int wrong = annotated;
    annotated = 1;
    start(&a, first_then_second);
    start(&b, wrong ? second_then_first : first_then_second);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

static void *named(void *unused)
{
    AnnotateThreadName(HERE, "the one that writes");
    data = 1;
    return unused;
}
static void thread_name(void)
{
    pthread_t other;
    start(&other, named);
    data = 2;
    pthread_join(other, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} WAYS[] = {
    {"release", release_acquire}, {"happens", happens},       {"mutex", mutex},
    {"try", try_lock},            {"read", read_lock},        {"rwlock", rwlock},
    {"benign", benign},           {"sized", benign_sized},    {"ignore", ignore},
    {"thread", ignore_thread},    {"barrier", testonly_barrier}, {"fibers", fibers},
    {"unaligned", unaligned_accesses}, {"external", external}, {"deadlock", deadlock},
    {"name", thread_name},        {"syscall", system_calls},
};

int main(int count, char **words)
{
    annotated = count < 3;
    for (unsigned i = 0; count > 1 && i < sizeof WAYS / sizeof *WAYS; i++)
        if (strcmp(WAYS[i].name, words[1]) == 0) {
            WAYS[i].run();
            puts("done");
            return 0;
        }
    return 2;
}
