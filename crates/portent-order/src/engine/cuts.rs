//! Sets of events of a window that can be taken in observed order.

use super::index::{Node, Place, Variable};
use super::rows::Cut;
use super::window::Window;
use crate::read_rule::ReadRule;

impl Window<'_> {
    /// The last write of a variable in each chain, of those in a set.
    pub(crate) fn last_writes<'a>(&'a self, variable: Variable, cut: &'a Cut) -> impl Iterator<Item = Node> + 'a {
        self.variables[variable].writes.iter().filter_map(|list| {
            let bound = cut[list.chain];
            let count = list.nodes.partition_point(|&n| self.place[n] < bound);
            count.checked_sub(1).map(|at| list.nodes[at])
        })
    }

    /// The last lock-free cut below `cut` and below `cap`, closed under the past: in `sync`, what is reachable at all is
    /// reachable from there, and the cut itself by the observed order (docs/src/internals/semantics.md §4). In `reads` that
    /// does not hold.
    pub(crate) fn lock_free_cut(&self, cut: &Cut, cap: &Cut) -> Cut {
        // A failed try needs its holder beside it; rare enough to do without a cut.
        if self.rule != ReadRule::AnyWrite || self.tries {
            return self.nothing();
        }
        self.find_lock_free_cut(cut, cap).unwrap_or_else(|| self.nothing())
    }

    /// `None` where a chain holds a lock from the start of the window on.
    fn find_lock_free_cut(&self, cut: &Cut, cap: &Cut) -> Option<Cut> {
        let free = |chain, place: Place| self.free_at[chain][place];
        let mut floor = self.nothing();
        for chain in self.chains() {
            // What it does to a semaphore may have to come later, or let others through that come earlier.
            let mut top =
                if self.counters.is_empty() { cap[chain] } else { cap[chain].min(self.before_counting(chain)) };
            // Likewise, whom a notify wakes depends on all that is done to its condition.
            if !self.conditions.is_empty() {
                top = top.min(self.before_waiting(chain));
            }
            floor[chain] = free(chain, cut[chain].min(top))?;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for chain in self.chains() {
                while let Some(last) = floor[chain].previous() {
                    if self.past_of(self.chain[chain][last]).is_within(&floor) {
                        break;
                    }
                    changed = true;
                    floor[chain] = free(chain, last)?;
                }
            }
        }
        Some(floor)
    }

    /// Whether the events below `cut` (closed under the past), taken in observed order, are a reordering.
    ///
    /// They are unless a scope that stays open comes before another of its lock: leaving out events takes no value from a
    /// kept read and no token from a receive; but perhaps a post from a wait, or a notify from a wake. Failed tries are left to others.
    pub(crate) fn projects(&self, cut: &Cut) -> bool {
        !self.tries
            && self.counts_project(cut)
            && self.conditions_project(cut)
            && self.chains().all(|chain| {
                self.open_before(chain, cut[chain]).iter().all(|&id| {
                    let scope = self.scopes[id];
                    let lists = self.locks[scope.lock].iter();
                    let mut rivals = lists.filter(|l| l.chain != chain && l.mode.conflicts_with(scope.mode));
                    rivals.all(|list| {
                        let bound = cut[list.chain];
                        let begun = list.scopes.partition_point(|&s| self.begins_before(s, bound));
                        let last = begun.checked_sub(1).and_then(|at| self.scopes[list.scopes[at]].acquire);
                        last.is_none_or(|last| scope.acquire.is_some_and(|acquire| last < acquire))
                    })
                })
            })
    }
}
