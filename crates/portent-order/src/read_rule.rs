//! What a kept read may see: the one thing in which the models differ (docs/src/internals/semantics.md §2).
//!
//! Checker, oracle, engine and lattice name the rule alike and match on it; each implements it with code of its own.
//!
//! # Words
//! A read (or an update, which reads and writes) *saw* in the trace the last write of its variable before it, or INIT, the
//! implicit first write. A *free* read is one that the goal itself changes (the read of a nondeterminism, the remote access
//! and the later one of an atomicity violation): it may see any write, and is the last event of its thread if that is not
//! what the rule asks for. Every other read that is executed is *kept*.
//!
//! A read *expects* its recorded value; an update, which records what it wrote, the value of the write that it saw. The value
//! of INIT is what the reads that saw it recorded, if they all recorded the same. A read *sees the same* if the last write is
//! the one it saw, or if the value it expects and the last write's are known and equal.
//!
//! A thread that read something else, and what it writes from then on, is *tainted*: it may depend on what was read (the
//! rule of maximal causality, Huang et al.).

use crate::goal::Model;
use portent_trace::{Op, Trace};

/// What a kept read may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadRule {
    /// `sync`: anything.
    AnyWrite,
    /// `reads`: the write that it saw.
    ///
    /// What a free update writes that did not see it is nothing that a kept read may see, where a property frees the last
    /// read of each thread ([`ReadRule::frees_last_reads`]).
    ObservedWrite,
    /// `values`, where no branch is recorded: every event counts as a branch, so it must see the same.
    ///
    /// A read without a value thus keeps its writer. What a free update writes that did not see the same is nothing that a
    /// kept read may see.
    SameValue,
    /// `values`, where branches are recorded without formulas: anything. But one that does not see the same, or sees a tainted
    /// write, taints its thread, and a tainted thread executes no branch.
    ///
    /// (Such traces are to record a branch, too, where an address depends on a read.)
    SameBranches,
    /// `values`, where formulas are recorded: anything. A write with a formula writes what that comes out as, and an event with a
    /// condition or an address happens only if that comes out as in the trace, which is all that a branch with a formula
    /// needs. Everything else is as with [`ReadRule::SameBranches`].
    ///
    /// A formula over a tainted value is tainted; one without a value (a division by zero) does not happen. Of an `if`, the arm
    /// that is not taken is no part of that.
    SameFormulas,
}

impl ReadRule {
    /// Whether a read that the goal frees stops its thread when it sees what a kept read may not see. Where it may see
    /// anything, no goal needs to free one.
    pub fn frees_reads(self) -> bool {
        matches!(self, ReadRule::ObservedWrite | ReadRule::SameValue)
    }
    /// Whether, for a property, the last executed read of each thread is free: nothing depends on it, and a property about
    /// what a read sees can be violated.
    pub fn frees_last_reads(self) -> bool {
        self == ReadRule::ObservedWrite
    }
    /// Whether values are compared, and not writes. A challenger is then one only if its value is not tainted, and not known to
    /// be the expected one: a value that was not recorded counts as another one, a tainted one never.
    pub fn compares_values(self) -> bool {
        matches!(self, ReadRule::SameValue | ReadRule::SameBranches | ReadRule::SameFormulas)
    }
    /// Whether a thread goes on after it read something else.
    pub fn taints(self) -> bool {
        matches!(self, ReadRule::SameBranches | ReadRule::SameFormulas)
    }
}

/// How much a trace says about what threads do with what they read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// Nothing beside values.
    #[default]
    Values,
    /// Where threads branch.
    Branches,
    /// How values, conditions and addresses follow from it.
    Formulas,
}

impl Recorded {
    /// What a trace records.
    pub fn of(trace: &Trace) -> Self {
        if trace.symbols().is_some() {
            Recorded::Formulas
        } else if trace.events().any(|event| event.op == Op::Branch) {
            Recorded::Branches
        } else {
            Recorded::Values
        }
    }
}

impl Model {
    /// The model's rule for a trace that records so much.
    pub fn read_rule(self, recorded: Recorded) -> ReadRule {
        match (self, recorded) {
            (Model::Sync, _) => ReadRule::AnyWrite,
            (Model::Reads, _) => ReadRule::ObservedWrite,
            (Model::Values, Recorded::Values) => ReadRule::SameValue,
            (Model::Values, Recorded::Branches) => ReadRule::SameBranches,
            (Model::Values, Recorded::Formulas) => ReadRule::SameFormulas,
        }
    }
}
