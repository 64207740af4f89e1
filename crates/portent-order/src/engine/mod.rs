//! The order engine: decides goals exactly, in windows of a trace, in three tiers.
//!
//! 1. **Filters**: the past of the goal's events (vector clocks) and the locks held at them.
//! 2. **Saturation** (`saturate`): the closure of what the goal needs; then the observed order for what is left open.
//!    Where there are formulas, then, the threads are executed by simple rules (`guess`).
//! 3. **Search** (`search`): conflict-driven, for what saturation leaves undecided; a budget that runs out is `Unknown`.
//!
//! Papers: Sinha et al. (witness and choice graphs) and Ganai (iPA), both corrected as docs/src/internals/semantics.md §4
//! and §6 say: the past of the goal only, scopes open at the cut, and reuse of what was learnt through clauses that bind
//! inside the witness.

mod atomicity;
mod choices;
mod close;
mod counts;
mod cuts;
mod divergence;
mod finals;
mod formulas;
mod guess;
mod index;
mod layout;
mod matching;
mod races;
mod reads;
mod rows;
mod saturate;
mod search;
mod simulate;
mod sleeps;
mod slice;
mod stuck;
mod symbolic;
mod target;
mod theory;
mod threads;
mod tiers;
mod values;
mod view;
mod window;

pub use atomicity::Triple;
pub use reads::Answered;
pub use slice::{Relaxed, Slice};
pub use tiers::Tiers;
pub use view::{Span, View};

use crate::goal::{Goal, Model, Schedule, Unknown, Verdict};
use guess::Guess;
use index::{Chain, Id, Node};
use portent_trace::{ThreadId, Trace};
use rows::Cut;
use saturate::{Mark, Saturation};
use search::{Found, Search};
use simulate::Simulator;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use symbolic::Evaluation;
use target::Target;
use window::Window;

/// A short search takes that part of the effort.
const SHORT: u64 = 16;

/// How much effort one question may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Conflicts of the search, or decisions that cost as much; where there are formulas, also events to execute before it.
    pub conflicts: u64,
    /// When to stop altogether.
    pub deadline: Option<Instant>,
    /// Set by who wants it to stop now.
    pub interrupt: Option<&'static AtomicBool>,
}

impl Effort {
    /// Whether it is time to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|end| Instant::now() > end)
    }
}

impl Default for Effort {
    fn default() -> Self {
        Effort { conflicts: 20_000, deadline: None, interrupt: None }
    }
}

/// Answers one question about a whole trace. Build an [`Engine`] to ask many.
pub fn decide(trace: &Trace, model: Model, goal: &Goal) -> Verdict {
    let view = View::whole(trace, model);
    Engine::new(&view).decide(goal, Effort::default())
}

/// Decides goals whose events are in one window.
pub struct Engine<'v, 't> {
    window: &'v Window<'t>,
    saturation: Saturation<'v, 't>,
    search: Option<Search<'v, 't>>,
    simulator: Simulator,
    /// Where there are formulas.
    evaluation: Option<Evaluation<'v, 't>>,
    guess: Option<Guess<'v, 't>>,
    tiers: Tiers,
    /// Whether questions begin with what earlier ones found out.
    reuse: bool,
    /// Whether there were earlier ones.
    begun: bool,
}

/// How a target was settled.
enum Settled {
    /// By the observed order up to the floor, and then in this order.
    Order {
        floor: Cut,
        order: Vec<Node>,
    },
    Impossible,
    Unknown(Unknown),
}

impl<'v, 't> Engine<'v, 't> {
    /// An engine for a window.
    pub fn new(view: &'v View<'t>) -> Self {
        Self::on(&view.window)
    }

    fn on(window: &'v Window<'t>) -> Self {
        let (saturation, evaluation) = (Saturation::new(window), Evaluation::of(window));
        let (simulator, tiers) = (Simulator::default(), Tiers::default());
        Engine {
            window,
            saturation,
            search: None,
            simulator,
            evaluation,
            guess: None,
            tiers,
            reuse: true,
            begun: false,
        }
    }

    /// The same, which forgets what it found out when it has answered, if it is not to be reused: for comparison. It answers the same.
    pub fn reusing(self, reuse: bool) -> Self {
        Engine { reuse, ..self }
    }

    /// What the tiers have done so far.
    pub fn tiers(&self) -> Tiers {
        let mut tiers = self.tiers;
        if let Some(search) = &self.search {
            tiers.decisions += search.decisions();
            tiers.conflicts += search.conflicts();
            tiers.clauses += search.clauses();
        }
        tiers
    }

    /// Decides a goal. All its events must be in the window; if one is not, the answer is `Unknown`.
    pub fn decide(&mut self, goal: &Goal, effort: Effort) -> Verdict {
        self.tiers.queries += 1;
        let Some(targets) = target::targets(self.window, goal) else {
            self.tiers.unknown += 1;
            return Verdict::Unknown(Unknown::Window);
        };
        self.decide_one_of(&targets, effort)
    }

    /// Decides whether one of some targets can be reached.
    fn decide_one_of(&mut self, targets: &[Target], effort: Effort) -> Verdict {
        let mut undecided = None;
        for target in targets {
            let settled = match target.freed {
                Some(update) => {
                    let freed = self.window.freeing(update);
                    let mut engine = Engine::on(&freed);
                    let settled = engine.settle(target, effort);
                    self.tiers.add(&engine.tiers());
                    settled
                }
                None => self.settle(target, effort),
            };
            match settled {
                Settled::Order { floor, order } => return Verdict::Feasible(self.schedule(target, &floor, &order)),
                Settled::Impossible => {}
                Settled::Unknown(why) => undecided = Some(why),
            }
        }
        undecided.map_or(Verdict::Infeasible, Verdict::Unknown)
    }

    /// Notes questions that a sweep passed over, because clocks alone settle them.
    pub fn note_filtered(&mut self, questions: u64) {
        self.tiers.queries += questions;
        self.tiers.filtered += questions;
    }

    fn settle(&mut self, target: &Target, effort: Effort) -> Settled {
        if target.is_contradictory() || self.share_a_lock(target) {
            self.tiers.filtered += 1;
            return Settled::Impossible;
        }
        if let Some(settled) = self.project(target) {
            return settled;
        }
        let mark = self.saturation.mark();
        self.settle_from(&mark, target, effort)
    }

    /// By an engine that knows nothing of earlier questions.
    fn settle_anew(&mut self, target: &Target, effort: Effort) -> Settled {
        let mut engine = Engine::on(self.window);
        let settled = engine.settle(target, effort);
        self.tiers.add(&engine.tiers());
        settled
    }

    /// The observed order of just the events that the target needs, if that will do.
    fn project(&mut self, target: &Target) -> Option<Settled> {
        let w = self.window;
        let as_observed = target.edges.iter().all(|(before, after)| before < after)
            && target.last.is_none_or(|(x, last)| {
                w.last_writes(x, &target.cut).all(|d| last.node().is_some_and(|last| d <= last))
            });
        if target.stuck.is_some()
            || !target.finds.is_empty()
            || !as_observed
            || !target.is_met_by(w, &target.cut)
            || !w.projects(&target.cut)
        {
            return None;
        }
        let below = w.nodes().filter(|&node| w.is_in(&target.cut, node));
        if !choices::keeps_values(w, self.evaluation.as_mut(), below, &target.cut, target) {
            return None;
        }
        self.tiers.observed += 1;
        Some(Settled::Order { floor: target.cut.clone(), order: Vec::new() })
    }

    /// Tiers 2 and 3, from a set that the target contains; leaves it as it was at the mark.
    fn settle_from(&mut self, mark: &Mark, target: &Target, effort: Effort) -> Settled {
        if !self.reuse {
            self.saturation.undo(mark);
            return self.settle_anew(target, effort);
        }
        self.tiers.reused += u64::from(std::mem::replace(&mut self.begun, true));
        if self.saturation.close(target).is_err() {
            self.saturation.undo(mark);
            self.tiers.saturated += 1;
            return Settled::Impossible;
        }
        if target.stuck.is_none()
            && self.saturation.assume_observed_holders(target).is_ok()
            && self.saturation.choose_contained(target).is_ok()
            && let Some(settled) = self
                .simulate(target)
                .or_else(|| {
                    // In `values`, what reads saw is a good guess for what they could see.
                    let grown = self.saturation.assume_observed_writers(target);
                    if matches!(grown, Ok(true)) { self.simulate(target) } else { None }
                })
                .or_else(|| {
                    // A scope that is open need not stay open: once more, with the releases.
                    let closed = self.saturation.close_open_scopes(target);
                    if matches!(closed, Ok(true)) { self.simulate(target) } else { None }
                })
        {
            self.saturation.undo(mark);
            self.tiers.observed += 1;
            return settled;
        }
        let guesses = target.stuck.is_some() && self.window.values.is_none();
        let guessed = if guesses { self.guess_stuck(target) } else { None };
        self.saturation.undo(mark);
        if let Some(order) = guessed.or_else(|| if guesses { self.guess_late(target) } else { None }) {
            self.tiers.observed += 1;
            return Settled::Order { floor: self.window.nothing(), order };
        }
        if let Some(settled) = self.execute(target, effort) {
            return settled;
        }
        let found = self.search(target, effort);
        self.searched(found)
    }

    /// Where there are formulas: what executing the threads settles, or a short search.
    fn execute(&mut self, target: &Target, effort: Effort) -> Option<Settled> {
        let mut guess = self.guess.take().or_else(|| Guess::of(self.window))?;
        let mut settled = guess.find(target, effort.conflicts).map(|order| self.guessed(order));
        if settled.is_none() {
            // What is easy to refute should not be guessed at for long.
            let short = Effort { conflicts: effort.conflicts / SHORT, ..effort };
            settled = match self.search(target, short) {
                Found::Unknown(_) => guess.insist(target).map(|order| self.guessed(order)),
                found => Some(self.searched(found)),
            };
        }
        self.guess = Some(guess);
        settled
    }

    fn guessed(&mut self, order: &[Node]) -> Settled {
        self.tiers.guessed += 1;
        Settled::Order { floor: self.window.nothing(), order: order.to_vec() }
    }

    fn search(&mut self, target: &Target, effort: Effort) -> Found {
        let search = self.search.get_or_insert_with(|| Search::new(self.window));
        search.solve(target, effort)
    }

    fn searched(&mut self, found: Found) -> Settled {
        match found {
            Found::Order(order) => {
                self.tiers.searched += 1;
                Settled::Order { floor: self.window.nothing(), order }
            }
            Found::Impossible => {
                self.tiers.searched += 1;
                Settled::Impossible
            }
            Found::Unknown(why) => {
                self.tiers.unknown += 1;
                Settled::Unknown(why)
            }
        }
    }

    /// Puts what saturation left into observed order, if that works.
    fn simulate(&mut self, target: &Target) -> Option<Settled> {
        let floor = self.window.lock_free_cut(self.saturation.cut(), &target.cap(self.window));
        let (w, cut) = (self.window, self.saturation.cut());
        if let Some(values) = &w.values {
            self.simulator.chosen.clear();
            for read in w.nodes() {
                if let (Some(until), Some(observed)) = (values.until[read], values.observed[read])
                    && w.is_in(cut, until)
                    && observed.node().is_none_or(|writer| w.is_in(cut, writer))
                {
                    self.simulator.chosen.choose(w, read, observed);
                }
            }
        }
        if !target.is_met_by(w, cut) {
            return None;
        }
        self.simulator.run(w, self.saturation.clock(), &floor, cut, false).ok()?;
        let order = self.simulator.order().iter().copied();
        if !choices::keeps_values(w, self.evaluation.as_mut(), order, cut, target) {
            return None;
        }
        let reached = target.last.is_none_or(|(x, last)| self.simulator.last_write(x) == last)
            && target.finds.iter().all(|&finds| self.simulator.finds(w, finds));
        reached.then(|| Settled::Order { floor, order: self.simulator.order().to_vec() })
    }

    /// Whether two threads that the target stops hold the same lock there.
    fn share_a_lock(&self, target: &Target) -> bool {
        let w = self.window;
        let stopped: Vec<Chain> = w.chains().filter(|&c| target.stop[c] < w.chain[c].end()).collect();
        stopped.iter().enumerate().any(|(i, &one)| {
            stopped[i + 1..].iter().any(|&two| {
                // Stopped exactly where the target needs them: those locks are held for sure.
                let exact = target.cut[one] == target.stop[one] && target.cut[two] == target.stop[two];
                exact
                    && w.open_before(one, target.stop[one]).iter().any(|&s| {
                        let scope = w.scopes[s];
                        w.open_before(two, target.stop[two]).iter().any(|&other| {
                            let other = w.scopes[other];
                            scope.lock == other.lock && scope.mode.conflicts_with(other.mode)
                        })
                    })
            })
        })
    }

    fn schedule(&self, target: &Target, floor: &Cut, order: &[Node]) -> Schedule {
        let w = self.window;
        let mut schedule = Schedule::as_observed(w.prefix);
        let below = w.nodes().filter(|&node| w.is_in(floor, node));
        for node in below.chain(order.iter().copied()).chain(target.tail.iter().copied()) {
            schedule.push(ThreadId::new(w.chain_of[node].index()));
        }
        schedule
    }
}
