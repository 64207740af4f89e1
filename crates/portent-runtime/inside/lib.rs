//! The runtime: loaded into a program in place of ThreadSanitizer's, it records what the program does and makes it
//! follow a plan.
//!
//! Programs built with `-fsanitize=thread` call `__tsan_*` at every access; this library defines those symbols and
//! interposes threads, locks, memory and blocking calls of the C library. **One thread runs at a time**: it holds the
//! *token*, and gives it away only at events. So the order and the values in the recording are exactly what happened,
//! and a replay is the same machine fed with a schedule.
//!
//! ## State inventory
//! | state | where | who may touch it |
//! |---|---|---|
//! | recording: cursor, tables | [`record`] | the holder of the token |
//! | [`state::Thread`] of a thread | an array in zeroed memory, never freed | its own thread while it has the token; others under the scheduler's lock while it waits |
//! | who has the token, who lives, permits of conditions, plan | [`sched`] | under the scheduler's lock |
//! | `Thread::inside` | | its own thread only: 1 while it is inside the runtime, so that nothing re-enters |
//! | which blocks are allocated | [`blocks`] | everybody, a byte at a time |
//! | who holds an annotated lock | [`annotated`] | the holder of the token |
//! | fibers | threads of the table that are not in the list while another fiber runs in their place | as threads |
//! | freed blocks that are kept | [`quarantine`] | the holder of the token |
//! | what was sent and received on pipes, sockets, signals | [`channels`] | the holder of the token |
//! | objects of the program (mutexes, …) | the program's memory | read to see whether an operation is possible; changed only by the C library's own functions, called by the holder |
//!
//! ## Rules
//! - Without `PORTENT_SESSION` in the environment nothing is recorded: every entry point passes straight on.
//! - Inside, only raw system calls and the arrays above: the program may be inside malloc or hold any lock of the C library.
//! - Entry points are naked functions that pass the return address on, as the site of the event.
//! - No Rust frame with a destructor is on the stack where a thread can be cancelled or can exit.
//!
//! ## What it does not do
//! Signal handlers that run while their thread waits inside the runtime are put off until it goes on. A child process
//! made by `fork` runs unrecorded until it makes a thread ([`family`]). Memory mapped from files or shared with other processes is recorded like other memory; what
//! other processes do to it is not seen.

#![allow(clippy::missing_safety_doc, reason = "entry points are called by compilers, under the C library's contracts")]
#![allow(missing_docs, reason = "nothing here is an interface for people: the names are those of C")]
#![allow(unreachable_pub)]
#![allow(clippy::deref_addrof, reason = "the only way to a mutable static that makes no reference on the way")]

#[allow(dead_code)]
#[path = "../src/log.rs"]
mod log;
#[allow(dead_code)]
#[path = "../src/plan.rs"]
mod plan;

mod access;
mod annotate;
mod annotated;
mod answers;
mod arena;
mod atomics;
mod blocking;
mod blocks;
mod c11;
mod channels;
mod condition;
mod connections;
mod descriptors;
mod entry;
mod family;
mod fibers;
mod forward;
mod futex;
mod heap;
mod init;
mod libc_heap;
mod libc_memory;
mod libc_state;
mod marks;
mod mutex;
mod objects;
mod once;
mod one_core;
mod openmp;
mod outside;
mod process;
mod quarantine;
mod readiness;
mod real;
mod record;
mod rwlock;
mod sanitizer;
mod sched;
mod semaphore;
mod server;
mod signals;
mod spin;
mod state;
mod streams;
mod sys;
mod syscall_hooks;
mod threads;
mod throw;
mod timers;
mod waits;
