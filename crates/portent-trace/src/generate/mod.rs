//! Trace generators: large configurable traces shaped like real programs, and tiny dense ones for tests.
//!
//! [`Generator`] simulates a program with the knobs of a [`Config`] and streams what it does; [`tiny()`] makes small dense traces
//! for testing engines against brute force. Both are deterministic from their seed, on every machine and for ever, and
//! both are well-formed because they simulate: a lock is taken only when it is free, a read returns what was last written.
//!
//! ```
//! use portent_trace::generate::{Config, Generator};
//! use portent_trace::Trace;
//!
//! let config = Config { seed: 7, threads: 3, events: 1000, ..Config::default() };
//! let trace = Trace::from_input(&mut Generator::new(config)?)?;
//! assert_eq!((trace.input_len(), trace.threads()), (1000, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How it works: `plan` turns shares into counts; `policy` picks a thread and draws what it does from the plan; `machine`,
//! `memory`, `waiting` and `objects` hold the simulated state and make the step; `sites` gives it a place in the source.
//! `computing` makes formulas for symbolic traces. No other step allocates.
//! Not modelled: values that decide control flow, and threads that end before the rest of the program does.

mod computing;
mod config;
mod little;
mod machine;
mod memory;
mod objects;
mod plan;
mod policy;
mod presets;
mod random;
mod sites;
mod tiny;
mod waiting;

pub use config::{Config, ConfigError, Locations, Start};
pub use little::{Did, Little, Machine as LittleMachine};
pub use presets::PRESETS;
pub use tiny::{TinyShape, tiny, tiny_events, tiny_std};

use crate::error::{Problem, TraceError};
use crate::input::{BatchPlace, InputBatch, InputSource, Progress};
use crate::names::{Names, ObjectClass};
use crate::symbolic::Formulas;
use machine::Machine;
use policy::Policy;
use sites::Sites;

/// How many functions `call` and `ret` name.
const FUNCTIONS: u32 = 16;

/// How many names atomic blocks have: a block of code runs many times.
fn block_names(config: &Config) -> u32 {
    config.blocks.min(16) as u32
}

/// A simulated program that streams its events.
#[derive(Debug)]
pub struct Generator {
    machine: Machine,
    policy: Policy,
    names: Names,
}

impl Generator {
    /// A program with these knobs; the error says which knob is wrong and what it allows.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let (names, sites) = names_and_sites(&config).map_err(|problem| ConfigError {
            knob: "variables",
            given: config.variables.to_string(),
            allowed: format!("fewer objects ({problem})"),
        })?;
        let machine = Machine::new(config, sites);
        let policy = Policy::new(&machine);
        Ok(Self { machine, policy, names })
    }

    /// The knobs it was made with.
    pub fn config(&self) -> &Config {
        &self.machine.config
    }
}

fn names_and_sites(config: &Config) -> Result<(Names, Sites), Problem> {
    let mut names = Names::default();
    let calls = config.calls > 0.0;
    let tables = [
        (ObjectClass::Thread, "T", config.threads),
        (ObjectClass::Variable, "x", config.variables),
        (ObjectClass::Lock, "l", config.locks),
        (ObjectClass::Lock, "once", config.once),
        (ObjectClass::Condition, "c", config.conditions),
        (ObjectClass::Semaphore, "s", config.semaphores),
        (ObjectClass::Latch, "f", config.latches),
        (ObjectClass::Barrier, "r", config.barriers),
        (ObjectClass::Token, "k", config.tokens),
        (ObjectClass::Block, "b", block_names(config)),
        (ObjectClass::Function, "fn", if calls { FUNCTIONS } else { 0 }),
    ];
    for (class, prefix, count) in tables {
        for i in 0..count {
            names.intern(class, format!("{prefix}{i}").as_bytes())?;
        }
    }
    let sites = Sites::new(config, &mut names)?;
    Ok((names, sites))
}

impl InputSource for Generator {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        let Self { machine, policy, .. } = self;
        batch.restart(machine.emitted, BatchPlace::Memory);
        std::mem::swap(&mut machine.out, batch);
        while machine.emitted < machine.config.events && machine.out.len() < InputBatch::TARGET {
            if !policy.step(machine) {
                debug_assert!(false, "no thread can step after {} events of {:?}", machine.emitted, machine.config);
                break;
            }
        }
        std::mem::swap(&mut machine.out, batch);
        Ok(!batch.is_empty())
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
    fn progress(&self) -> Progress {
        Progress { done: self.machine.emitted, total: Some(self.machine.config.events) }
    }
    fn expected_events(&self) -> Option<u64> {
        Some(self.machine.config.events)
    }
    /// Those of the events made since the last time it was asked, which may be before the end.
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        Ok(self.machine.computing.as_mut().and_then(|computing| computing.take()))
    }
}

#[cfg(test)]
mod tests;
