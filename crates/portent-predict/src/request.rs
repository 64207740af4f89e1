//! What is asked: which kinds of bug, in which model, with how much effort; and how a prediction is watched and stopped.

use crate::bug::BugKind;
use crate::undecided::Why;
use portent_order::Model;
use portent_order::engine::Effort;
use portent_trace::Trace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What to predict, and with how much effort.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which kinds of bug.
    pub kinds: Vec<BugKind>,
    /// What reads in a reordering must see.
    pub model: Model,
    /// A trace of so many events is examined as a whole.
    pub window: usize,
    /// Events that one question about a longer trace may look at.
    pub reach: usize,
    /// Stop after this long.
    pub budget: Option<Duration>,
    /// Threads to use.
    pub jobs: usize,
    /// Conflicts of the search that one candidate may cost.
    pub conflicts: u64,
    /// Whether a trace longer than a window is also examined where no two threads contend: for comparison; it finds the same.
    pub unshared: bool,
    /// Whether a window's questions begin with what earlier ones found out: without, for comparison; it finds the same.
    pub reuse: bool,
    /// Whether deadlocks are looked for that are neither cycles of locks nor lost wake-ups: stuck threads, whatever they wait for. Not unless asked:
    /// replays of such findings have not been held against programs yet.
    pub stuck: bool,
}

impl Options {
    /// Events per window, unless told otherwise.
    pub const WINDOW: usize = 10_000;
    /// The same where formulas are executed: what a question costs grows faster with the window.
    pub const SYMBOLIC_WINDOW: usize = 1_000;

    /// Events that one question about a longer trace may look at, unless told otherwise.
    pub const REACH: usize = 100_000;

    /// Events per window that suit a trace.
    pub fn window_for(trace: &Trace, model: Model) -> usize {
        let executed = model == Model::Values && trace.symbols().is_some();
        if executed { Self::SYMBOLIC_WINDOW } else { Self::WINDOW }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kinds: BugKind::ALL.to_vec(),
            model: Model::Reads,
            window: Self::WINDOW,
            reach: Self::REACH,
            budget: None,
            jobs: 1,
            conflicts: Effort::default().conflicts,
            unshared: false,
            reuse: true,
            stuck: false,
        }
    }
}

/// How the caller watches and stops a prediction.
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    /// Set it to stop early with what is known by then.
    pub interrupt: Option<&'static AtomicBool>,
    /// Told how many events are done, of how many.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// When to stop.
pub(crate) struct Stop {
    pub(crate) interrupt: Option<&'static AtomicBool>,
    pub(crate) deadline: Option<Instant>,
    over: AtomicBool,
}

impl Stop {
    pub(crate) fn new(interrupt: Option<&'static AtomicBool>, deadline: Option<Instant>) -> Self {
        Stop { interrupt, deadline, over: AtomicBool::new(false) }
    }
    /// Why to stop, if so.
    pub(crate) fn why(&self) -> Option<Why> {
        if self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(Why::Interrupted);
        }
        let deadline = self.deadline?;
        if self.over.load(Ordering::Relaxed) {
            return Some(Why::Budget);
        }
        let over = Instant::now() >= deadline;
        self.over.store(over, Ordering::Relaxed);
        over.then_some(Why::Budget)
    }
}
