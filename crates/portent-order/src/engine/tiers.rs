//! Which tier settled how many questions.

/// What each tier did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Questions asked.
    pub queries: u64,
    /// Settled by clocks and locksets.
    pub filtered: u64,
    /// Found infeasible by saturation.
    pub saturated: u64,
    /// Found feasible by the observed order after saturation.
    pub observed: u64,
    /// Found feasible by executing the threads by a simple rule, where there are formulas.
    pub guessed: u64,
    /// Settled by search.
    pub searched: u64,
    /// Not settled within the budget.
    pub unknown: u64,
    /// Decisions of the search.
    pub decisions: u64,
    /// Conflicts of the search.
    pub conflicts: u64,
    /// Clauses the search holds, made for one question and used for all.
    pub clauses: u64,
    /// Questions for saturation and search that began with what earlier ones had found out.
    pub reused: u64,
    /// Pairs that needed no question, since an earlier answer settled them as well.
    pub implied: u64,
}

impl Tiers {
    /// Questions that a tier settled, or that ran out of budget.
    pub fn settled(&self) -> u64 {
        self.filtered + self.saturated + self.observed + self.guessed + self.searched + self.unknown
    }
    /// Adds the counts of another engine.
    pub fn add(&mut self, other: &Tiers) {
        self.queries += other.queries;
        self.filtered += other.filtered;
        self.saturated += other.saturated;
        self.observed += other.observed;
        self.guessed += other.guessed;
        self.searched += other.searched;
        self.unknown += other.unknown;
        self.decisions += other.decisions;
        self.conflicts += other.conflicts;
        self.clauses += other.clauses;
        self.reused += other.reused;
        self.implied += other.implied;
    }
}
