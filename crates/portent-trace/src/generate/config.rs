//! The knobs of the generator, and what they allow.

/// How threads come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first thread forks all others at the start and joins them at the end.
    Flat,
    /// Each thread forks up to two others and joins them at the end.
    Tree,
    /// All threads are simply there.
    Unforked,
}

/// What locations look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locations {
    /// Plain numbers.
    Numbers,
    /// `file.c:LINE` inside functions.
    Named,
}

/// The knobs of the generator.
///
/// Counts are what the trace really has: every thread runs, every variable is touched, every lock is taken and exactly
/// that many atomic blocks are run, unless the trace is [truncated](Config::truncated). A *share* is between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Any number; the same configuration and seed give the same trace on every machine.
    pub seed: u64,
    /// Input events, exactly: 1 to 4,000,000,000, and enough to touch everything that is asked for.
    pub events: u64,
    /// Threads: 1 to 65,536.
    pub threads: u32,
    /// Variables: 1 to 100,000,000.
    pub variables: u32,
    /// Locks: 0 to 1,000,000.
    pub locks: u32,
    /// Atomic blocks that are run, in all: 0 to 1,000,000,000.
    pub blocks: u64,
    /// Share of the events that lie inside atomic blocks.
    pub block_share: f64,
    /// Cut the trace at its last event, with locks held and blocks open, instead of ending the program.
    pub truncated: bool,
    /// How threads come to be.
    pub start: Start,
    /// Mean number of events a thread runs before another one does: 1 to 1,000,000.
    pub quantum: u32,

    /// Accesses, about that many; by default whatever is left of the events. If fixed, what is left becomes branches and
    /// calls, in the proportion of their shares.
    pub accesses: Option<u64>,
    /// Share of accesses that read.
    pub reads: f64,
    /// Share of accesses that update (read and write at once); the rest, after reads, writes.
    pub updates: f64,
    /// Share of accesses that are atomic; they have variables of their own if there are at least two shared ones.
    pub atomic: f64,
    /// Share of accesses that carry their value.
    pub values: f64,
    /// Share of variables that belong to one thread, and of accesses under locks that go to those. Outside locks every
    /// access goes to those, if there are any, unless it is `unguarded`.
    pub local: f64,
    /// Share of shared accesses that break the discipline: made without the variable's lock. This is where races are.
    pub unguarded: f64,
    /// Share of shared accesses that go to the hot variables.
    pub hot: f64,
    /// How many variables are hot: at least 1.
    pub hot_variables: u32,

    /// Share of accesses made while holding a lock. Each variable has a usual lock.
    pub guarded: f64,
    /// Mean number of accesses in a critical section: 1 to 1,000,000.
    pub section: u32,
    /// Acquires and releases, about that many; by default they follow from `guarded` and `section`.
    pub lock_events: Option<u64>,
    /// How many locks a thread holds at most: 1 to 64.
    pub nesting: u32,
    /// Locks are nested in one global order only, so that no order of events deadlocks.
    pub ordered_locks: bool,
    /// Share of releases that let go of the oldest lock first.
    pub hand_over_hand: f64,
    /// Share of acquires that take a lock the thread holds already.
    pub reentrant: f64,
    /// Share of acquires that are shared.
    pub shared: f64,
    /// Share of events that are failed try-locks; fewer where locks are rarely contended.
    pub busy: f64,

    /// Condition variables: 0 to 1,000,000. Each belongs to a lock.
    pub conditions: u32,
    /// Share of events that sleep, notify or wake.
    pub waits: f64,
    /// Sleeps, notifies and wakes, about that many; by default they follow from `waits`.
    pub wait_events: Option<u64>,
    /// Share of notifies that wake all sleepers.
    pub notify_all: f64,
    /// Share of waits that end by time-out.
    pub time_outs: f64,

    /// Semaphores: 0 to 1,000,000.
    pub semaphores: u32,
    /// Share of events that are operations of semaphores.
    pub semaphore_events: f64,
    /// Latches: 0 to 1,000,000.
    pub latches: u32,
    /// Share of events that are operations of latches.
    pub latch_events: f64,
    /// Barriers: 0 to 1,000,000. All threads there are take part in a round.
    pub barriers: u32,
    /// Share of events that arrive at or leave barriers.
    pub barrier_events: f64,
    /// Once objects: 0 to 1,000,000; each is initialised once and passed a few times.
    pub once: u32,
    /// Explicit ordering tokens: 0 to 1,000,000.
    pub tokens: u32,
    /// Share of events that send or receive them.
    pub token_events: f64,

    /// Share of events that are branches.
    pub branches: f64,
    /// Share of reads that a branch follows at once; by default 0.3 if [`symbolic`](Config::symbolic), and 0 otherwise.
    pub read_branches: Option<f64>,
    /// Every write, update and branch has a formula over what its thread has read, and every access its value.
    pub symbolic: bool,
    /// Share of events that are calls and returns.
    pub calls: f64,
    /// What locations look like.
    pub locations: Locations,
}

impl Default for Config {
    /// A small program with locks, nothing exotic, and a few races.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 10_000,
            threads: 4,
            variables: 64,
            locks: 8,
            blocks: 0,
            block_share: 0.8,
            truncated: false,
            start: Start::Flat,
            quantum: 20,
            accesses: None,
            reads: 0.65,
            updates: 0.0,
            atomic: 0.0,
            values: 0.0,
            local: 0.25,
            unguarded: 0.05,
            hot: 0.2,
            hot_variables: 2,
            guarded: 0.6,
            section: 5,
            lock_events: None,
            nesting: 2,
            ordered_locks: false,
            hand_over_hand: 0.0,
            reentrant: 0.0,
            shared: 0.0,
            busy: 0.0,
            conditions: 0,
            waits: 0.0,
            wait_events: None,
            notify_all: 0.2,
            time_outs: 0.1,
            semaphores: 0,
            semaphore_events: 0.0,
            latches: 0,
            latch_events: 0.0,
            barriers: 0,
            barrier_events: 0.0,
            once: 0,
            tokens: 0,
            token_events: 0.0,
            branches: 0.0,
            read_branches: None,
            symbolic: false,
            calls: 0.0,
            locations: Locations::Numbers,
        }
    }
}

/// A knob outside what it allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{knob}: {given} given; expected {allowed}")]
pub struct ConfigError {
    /// The knob, by the name of its field.
    pub knob: &'static str,
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: String,
}

impl ConfigError {
    fn new(knob: &'static str, given: impl ToString, allowed: impl Into<String>) -> Self {
        Self { knob, given: given.to_string(), allowed: allowed.into() }
    }
}

const OBJECTS: u64 = 1_000_000;

impl Config {
    /// How many of the threads are forked and joined.
    pub(super) fn children(&self) -> u32 {
        if self.start == Start::Unforked { 0 } else { self.threads - 1 }
    }

    /// The share of reads that a branch follows.
    pub(super) fn read_branches(&self) -> f64 {
        self.read_branches.unwrap_or(if self.symbolic { 0.3 } else { 0.0 })
    }

    /// The fewest events that touch everything that is asked for.
    pub(super) fn fewest_events(&self) -> u64 {
        let forks_and_joins = 2 * u64::from(self.children());
        let first_steps = u64::from(self.threads);
        forks_and_joins + first_steps + u64::from(self.variables) + 2 * u64::from(self.locks) + 2 * self.blocks
    }

    /// Checks every knob.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_counts()?;
        self.check_shares()?;
        self.check_objects()?;
        let fewest = if self.truncated { 1 } else { self.fewest_events() };
        if self.events < fewest {
            let allowed = format!(
                "at least {fewest}, enough to run {} threads and {} blocks, touch {} variables and take {} locks",
                self.threads, self.blocks, self.variables, self.locks
            );
            return Err(ConfigError::new("events", self.events, allowed));
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), ConfigError> {
        let counts = [
            ("events", self.events, 1, 4_000_000_000),
            ("threads", self.threads.into(), 1, 65_536),
            ("variables", self.variables.into(), 1, 100_000_000),
            ("locks", self.locks.into(), 0, OBJECTS),
            ("blocks", self.blocks, 0, 1_000_000_000),
            ("quantum", self.quantum.into(), 1, 1_000_000),
            ("section", self.section.into(), 1, 1_000_000),
            ("nesting", self.nesting.into(), 1, 64),
            ("hot_variables", self.hot_variables.into(), 1, 100_000_000),
            ("conditions", self.conditions.into(), 0, OBJECTS),
            ("semaphores", self.semaphores.into(), 0, OBJECTS),
            ("latches", self.latches.into(), 0, OBJECTS),
            ("barriers", self.barriers.into(), 0, OBJECTS),
            ("once", self.once.into(), 0, OBJECTS),
            ("tokens", self.tokens.into(), 0, OBJECTS),
        ];
        match counts.into_iter().find(|(_, given, least, most)| !(least..=most).contains(&given)) {
            Some((knob, given, least, most)) => Err(ConfigError::new(knob, given, format!("{least} to {most}"))),
            None => Ok(()),
        }
    }

    fn check_shares(&self) -> Result<(), ConfigError> {
        let shares = [
            ("block_share", self.block_share),
            ("reads", self.reads),
            ("updates", self.updates),
            ("atomic", self.atomic),
            ("values", self.values),
            ("local", self.local),
            ("unguarded", self.unguarded),
            ("hot", self.hot),
            ("guarded", self.guarded),
            ("hand_over_hand", self.hand_over_hand),
            ("reentrant", self.reentrant),
            ("shared", self.shared),
            ("busy", self.busy),
            ("waits", self.waits),
            ("notify_all", self.notify_all),
            ("time_outs", self.time_outs),
            ("semaphore_events", self.semaphore_events),
            ("latch_events", self.latch_events),
            ("barrier_events", self.barrier_events),
            ("token_events", self.token_events),
            ("branches", self.branches),
            ("read_branches", self.read_branches()),
            ("calls", self.calls),
        ];
        if let Some((knob, given)) = shares.into_iter().find(|(_, given)| !(0.0..=1.0).contains(given)) {
            return Err(ConfigError::new(knob, given, "a share from 0 to 1"));
        }
        if self.reads + self.updates > 1.0 {
            let allowed = format!("at most {} beside reads of {}", 1.0 - self.reads, self.reads);
            return Err(ConfigError::new("updates", self.updates, allowed));
        }
        Ok(())
    }

    /// Operations need objects to operate on.
    fn check_objects(&self) -> Result<(), ConfigError> {
        let waits = self.waits > 0.0 || self.wait_events.is_some_and(|events| events > 0);
        let needs = [
            ("conditions", self.conditions, waits, "waits"),
            ("locks", self.locks, self.conditions > 0, "conditions"),
            ("locks", self.locks, self.busy > 0.0, "busy"),
            ("semaphores", self.semaphores, self.semaphore_events > 0.0, "semaphore_events"),
            ("latches", self.latches, self.latch_events > 0.0, "latch_events"),
            ("barriers", self.barriers, self.barrier_events > 0.0, "barrier_events"),
            ("tokens", self.tokens, self.token_events > 0.0, "token_events"),
        ];
        match needs.into_iter().find(|(_, count, needed, _)| *needed && *count == 0) {
            Some((knob, given, _, because)) => {
                Err(ConfigError::new(knob, given, format!("at least 1 where {because} is not 0")))
            }
            None => Ok(()),
        }
    }
}
