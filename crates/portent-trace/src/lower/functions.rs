//! Functions as atomic blocks: a call begins a block and its return ends it, where that was asked for.
//!
//! Recorded programs mark no blocks; their authors mostly mean a function to be one. By default every call below the root
//! of its thread counts (`main`, a thread's routine: those are whole lives, not operations), until it waits for others or starts
//! a thread. As with marked blocks only the outermost stays; `blocks` says where it ends, and what happens where calls and marks
//! cross. A return that belongs to no call, as after
//! `longjmp`, is passed over.

use super::{Incoming, Lowering};
use crate::error::Problem;
use crate::ids::BlockId;
use crate::names::ObjectClass;

/// Which functions are atomic blocks.
#[derive(Default)]
pub enum FunctionBlocks {
    /// None: only what is marked.
    #[default]
    None,
    /// Every function but the roots of threads.
    BelowRoots,
    /// Those whose name is chosen, wherever they are called.
    Chosen(Box<dyn Fn(&str) -> bool + Send>),
}

impl std::fmt::Debug for FunctionBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FunctionBlocks::None => "None",
            FunctionBlocks::BelowRoots => "BelowRoots",
            FunctionBlocks::Chosen(_) => "Chosen",
        })
    }
}

/// What is known about functions as blocks.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) which: FunctionBlocks,
    /// Whether each function is chosen, once that was asked.
    chosen: Vec<Option<bool>>,
}

impl Functions {
    /// Whether functions are blocks that nobody declared.
    pub(super) fn are_guessed(&self) -> bool {
        matches!(self.which, FunctionBlocks::BelowRoots)
    }
    fn is_block(&mut self, incoming: &Incoming<'_>, depth: usize) -> bool {
        let function = incoming.event.object as usize;
        match &self.which {
            FunctionBlocks::None => false,
            FunctionBlocks::BelowRoots => depth > 0,
            FunctionBlocks::Chosen(choose) => {
                if function >= self.chosen.len() {
                    self.chosen.resize(function + 1, None);
                }
                let name = incoming.names.table(ObjectClass::Function).get(function);
                *self.chosen[function].get_or_insert_with(|| choose(name))
            }
        }
    }
}

impl Lowering {
    pub(super) fn call(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        super::check_defined(incoming, ObjectClass::Function)?;
        let depth = self.threads[incoming.event.thread.index()].blocks.depth();
        let is_block = self.functions.is_block(incoming, depth);
        self.enter(incoming, is_block.then(|| BlockId::of_function(incoming.event.object)))
    }

    pub(super) fn ret(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        super::check_defined(incoming, ObjectClass::Function)?;
        self.leave(incoming)
    }
}
