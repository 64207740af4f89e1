//! Atomic blocks: marked by `begin` and `end`, or calls of functions that are taken for blocks.
//!
//! Only the outermost block stays. Marks are properly nested among themselves: an `end` belongs to the last `begin` that has
//! none, and a trace in which it names another block, or in which there is no such `begin`, is refused, whatever functions
//! are taken for blocks. Calls among themselves are nested, too: a return belongs to the last call that has none.
//!
//! A mark and a call may cross (`begin`, `call`, `end`, `ret`): an author may begin a block in one function and end it in
//! another, and a recording may lack a return. Then the block that ends first cuts the other: **what ends a block also ends
//! every block that was begun inside it and is still open**. What would have ended those later ends nothing.
//!
//! A function that nobody chose ([`FunctionBlocks::BelowRoots`](super::FunctionBlocks)) is a guess, and gives way to what says more:
//!
//! - a **mark** inside it: from there on only what is marked is a block;
//! - an operation at which its thread **gives way** to others on purpose: it waits (on a condition, for a thread, a semaphore, a
//!   latch, a barrier, a token, the system) or starts a thread. What comes before and after is not meant to be one step.
//!
//! Either ends the block for good. Blocks that were declared, by marks or by choosing functions, stay whole: who marks a block
//! that waits says that it is meant to be atomic all the same.

use super::{Incoming, Lowering, check_defined};
use crate::error::{Malformed, Problem};
use crate::event::Op;
use crate::ids::BlockId;
use crate::names::ObjectClass;

/// The number of a block in the life of its thread.
type Begun = u64;

/// The blocks of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// How many were begun.
    begun: Begun,
    /// Those that are open, outermost first.
    open: Vec<(Begun, BlockId)>,
    /// Marks without an end: what they name, and the block, which may have been cut since.
    marks: Vec<(BlockId, Begun)>,
    /// Calls that have not returned, and the block of each, if it began one.
    calls: Vec<Option<Begun>>,
}

impl Blocks {
    pub(super) fn outermost(&self) -> Option<BlockId> {
        self.open.first().map(|&(_, block)| block)
    }
    /// How many calls have not returned.
    pub(super) fn depth(&self) -> usize {
        self.calls.len()
    }

    /// Opens a block; the second is whether it is the outermost.
    fn open(&mut self, block: BlockId) -> (Begun, bool) {
        self.begun += 1;
        self.open.push((self.begun, block));
        (self.begun, self.open.len() == 1)
    }

    /// Ends a block and all that were begun inside it; it is returned if it was the outermost.
    fn close(&mut self, begun: Begun) -> Option<BlockId> {
        let at = self.open.iter().rposition(|&(open, _)| open == begun)?;
        let block = self.open[at].1;
        self.open.truncate(at);
        (at == 0).then_some(block)
    }
}

impl Lowering {
    fn blocks(&mut self, incoming: &Incoming<'_>) -> &mut Blocks {
        &mut self.threads[incoming.event.thread.index()].blocks
    }

    pub(super) fn begin(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        check_defined(incoming, ObjectClass::Block)?;
        let block = BlockId(incoming.event.object);
        self.give_way(incoming)?;
        let blocks = self.blocks(incoming);
        let (begun, outermost) = blocks.open(block);
        blocks.marks.push((block, begun));
        self.mark(incoming, outermost.then_some(Op::Begin(block)))
    }

    pub(super) fn end(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        check_defined(incoming, ObjectClass::Block)?;
        let Some((mark, begun)) = self.blocks(incoming).marks.pop() else {
            return Err(
                Malformed::EndWithoutBegin { thread: incoming.thread_name(), block: incoming.object_name() }.into()
            );
        };
        let expected = incoming.names.block(mark);
        let found = incoming.names.block(BlockId(incoming.event.object));
        // A missing argument matches anything: RAPID writes `begin()` and `end()`.
        if expected != found && !expected.is_empty() && !found.is_empty() {
            let (found, expected) = (found.into_owned(), expected.into_owned());
            return Err(Malformed::WrongEnd { thread: incoming.thread_name(), found, expected }.into());
        }
        let ended = self.blocks(incoming).close(begun);
        self.mark(incoming, ended.map(Op::End))
    }

    /// Enters a function, which may be a block.
    pub(super) fn enter(&mut self, incoming: &mut Incoming<'_>, block: Option<BlockId>) -> Result<(), Problem> {
        let blocks = self.blocks(incoming);
        let opened = block.map(|block| (block, blocks.open(block)));
        blocks.calls.push(opened.map(|(_, (begun, _))| begun));
        let outermost = opened.filter(|(_, (_, outermost))| *outermost);
        self.mark(incoming, outermost.map(|(block, _)| Op::Begin(block)))
    }

    /// Leaves the function that was entered last, if there is one.
    pub(super) fn leave(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let blocks = self.blocks(incoming);
        let ended = blocks.calls.pop().flatten().and_then(|begun| blocks.close(begun));
        self.mark(incoming, ended.map(Op::End))
    }

    /// Ends the functions that are blocks only because they are functions.
    pub(super) fn give_way(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        if !self.functions.are_guessed() {
            return Ok(());
        }
        let blocks = self.blocks(incoming);
        let Some(outermost) = blocks.outermost().filter(|block| block.function().is_some()) else { return Ok(()) };
        blocks.open.clear();
        self.emit(incoming, Op::End(outermost)).map(drop)
    }

    fn mark(&mut self, incoming: &mut Incoming<'_>, op: Option<Op>) -> Result<(), Problem> {
        match op {
            Some(op) => self.emit(incoming, op).map(drop),
            None => {
                self.skip(incoming);
                Ok(())
            }
        }
    }
}
