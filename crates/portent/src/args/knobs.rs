//! The knobs of the generator as flags, each defined once: its flag, its help, and where it goes in the configuration.

use portent_trace::generate::{Config, Locations, Start};

macro_rules! knobs {
    ($($heading:literal { $($(#[$doc:meta])* $name:ident: $type:ty = $value:literal $($extra:literal)?,)* })*) => {
        /// Every knob; those that are not given stay as the preset has them.
        #[derive(Clone, Debug, Default, clap::Args)]
        pub(crate) struct Knobs {$($(
            $(#[$doc])*
            #[arg(long, help_heading = $heading, value_name = $value, $(default_missing_value = $extra, num_args = 0..=1)?)]
            $name: Option<$type>,
        )*)*}

        impl Knobs {
            /// Turns the knobs that were given.
            pub(crate) fn turn(&self, config: &mut Config) {
                $($(if let Some(value) = self.$name { config.$name = value.into(); })*)*
                if self.branches.is_some() && self.read_branches.is_none() {
                    config.read_branches = Some(0.0);
                }
            }
            /// Each knob with what it is without a preset, as the help shows it.
            pub(crate) fn defaults() -> Vec<(&'static str, String)> {
                let config = Config::default();
                vec![$($((stringify!($name), shown(&config.$name)),)*)*]
            }
        }
    };
}

knobs! {
    "Size" {
        /// Exact number of events
        events: u64 = "N",
        /// Number of threads, all of which run
        threads: u32 = "N",
        /// Number of variables, all of which are accessed
        variables: u32 = "N",
        /// Number of locks, all of which are taken
        locks: u32 = "N",
        /// Cut the trace at its last event, with locks held and blocks open
        truncated: bool = "BOOL" "true",
        /// How threads are started
        start: StartName = "HOW",
        /// Mean number of events that a thread runs before another one does
        quantum: u32 = "N",
        /// What locations look like
        locations: LocationsName = "HOW",
    }
    "Accesses (a share is a number from 0 to 1)" {
        /// Approximate number of accesses [default: what is left of the events]
        accesses: u64 = "N",
        /// Share of accesses that read
        reads: f64 = "SHARE",
        /// Share of accesses that update; those that neither read nor update write
        updates: f64 = "SHARE",
        /// Share of accesses that are atomic
        atomic: f64 = "SHARE",
        /// Share of accesses that carry their value
        values: f64 = "SHARE",
        /// Share of variables that belong to one thread
        local: f64 = "SHARE",
        /// Share of shared accesses made without the variable's lock: this is where races are
        unguarded: f64 = "SHARE",
        /// Share of shared accesses that go to the hot variables
        hot: f64 = "SHARE",
        /// How many variables are hot
        hot_variables: u32 = "N",
    }
    "Locks" {
        /// Share of accesses made while holding a lock
        guarded: f64 = "SHARE",
        /// Mean number of accesses in a critical section
        section: u32 = "N",
        /// Approximate number of acquires and releases [default: as --guarded and --section need]
        lock_events: u64 = "N",
        /// How many locks a thread holds at once, at most
        nesting: u32 = "N",
        /// Nest locks in one global order only, so that nothing can deadlock
        ordered_locks: bool = "BOOL" "true",
        /// Share of releases that let go of the oldest lock first
        hand_over_hand: f64 = "SHARE",
        /// Share of acquires that take a lock which the thread already holds
        reentrant: f64 = "SHARE",
        /// Share of acquires that are shared
        shared: f64 = "SHARE",
        /// Share of events that are failed try-locks
        busy: f64 = "SHARE",
    }
    "Atomic blocks" {
        /// Number of atomic blocks that are run, in all
        blocks: u64 = "N",
        /// Share of the events that lie inside atomic blocks
        block_share: f64 = "SHARE",
    }
    "Waiting" {
        /// Number of condition variables
        conditions: u32 = "N",
        /// Share of events that sleep, notify or wake
        waits: f64 = "SHARE",
        /// Approximate number of sleeps, notifies and wakes [default: as --waits says]
        wait_events: u64 = "N",
        /// Share of notifies that wake all sleepers
        notify_all: f64 = "SHARE",
        /// Share of waits that end by time-out
        time_outs: f64 = "SHARE",
        /// Number of semaphores
        semaphores: u32 = "N",
        /// Share of events that are operations of semaphores
        semaphore_events: f64 = "SHARE",
        /// Number of latches
        latches: u32 = "N",
        /// Share of events that are operations of latches
        latch_events: f64 = "SHARE",
        /// Number of barriers, at which all threads meet
        barriers: u32 = "N",
        /// Share of events that arrive at or leave barriers
        barrier_events: f64 = "SHARE",
        /// Number of once objects
        once: u32 = "N",
        /// Number of explicit ordering tokens
        tokens: u32 = "N",
        /// Share of events that send or receive them
        token_events: f64 = "SHARE",
    }
    "Control flow" {
        /// Share of events that are branches
        branches: f64 = "SHARE",
        /// Share of reads that are directly followed by a branch [default: 0.3 if symbolic and no branches are asked for]
        read_branches: f64 = "SHARE",
        /// Give every write and branch a formula over what its thread has read, and every access its value
        symbolic: bool = "BOOL" "true",
        /// Share of events that are calls and returns
        calls: f64 = "SHARE",
    }
}

/// [`Start`] as a flag value.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum StartName {
    /// The first thread forks and joins all others
    Flat,
    /// Each thread forks and joins up to two others
    Tree,
    /// All threads exist from the start
    Unforked,
}

impl From<StartName> for Start {
    fn from(name: StartName) -> Self {
        match name {
            StartName::Flat => Start::Flat,
            StartName::Tree => Start::Tree,
            StartName::Unforked => Start::Unforked,
        }
    }
}

/// [`Locations`] as a flag value.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LocationsName {
    /// Plain numbers
    Numbers,
    /// file.c:LINE inside functions
    Named,
}

impl From<LocationsName> for Locations {
    fn from(name: LocationsName) -> Self {
        match name {
            LocationsName::Numbers => Locations::Numbers,
            LocationsName::Named => Locations::Named,
        }
    }
}

/// A value the way it would be given on the command line; empty for one that has none.
fn shown(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}").to_lowercase();
    if text == "none" { String::new() } else { text }
}
