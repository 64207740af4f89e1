//! Closing what a target needs: saturation, the wish for a last write, and scopes that are open where the set ends.
//!
//! A scope whose release is outside the set must be last on its lock, or the set grows by its release. Growth that is *forced*
//! happens in [`Saturation::close`]; growth that is a choice is made by the others, as it was observed, and otherwise left to
//! the search: on a cycle after a choice, nothing is proven.

use super::index::{Node, ScopeId, Source};
use super::rows::Cut;
use super::saturate::{Cycle, Saturation};
use super::target::Target;
use super::window::ScopesInChain;

impl Saturation<'_, '_> {
    /// Closes `target` under all rules, growing the set where open scopes force it.
    ///
    /// Call on a set that contains nothing the target does not need.
    pub(crate) fn close(&mut self, target: &Target) -> Result<(), Cycle> {
        if target.is_contradictory() {
            return Err(Cycle);
        }
        self.grow(target.cut.row())?;
        for &(before, after) in &target.edges {
            self.add(before, after)?;
        }
        self.fixpoint(target)
    }

    /// Applies the rules, the goal's wish for a last write and forced growth until nothing changes.
    pub(super) fn fixpoint(&mut self, target: &Target) -> Result<(), Cycle> {
        loop {
            if let Some((x, last)) = target.last {
                let others = self.w.last_writes(x, &self.cut).filter(|&d| Source::Write(d) != last);
                for other in others.collect::<Vec<Node>>() {
                    let Source::Write(last) = last else { return Err(Cycle) };
                    self.add(other, last)?;
                }
            }
            self.saturate()?;
            let grown = self.grow_open(target)?;
            let counted = self.count(target)?;
            if !self.rouse(target)? && !counted && !grown {
                return Ok(());
            }
        }
    }

    /// Lets the threads run on to the releases of the scopes that are open in the set, where the target allows it; whether
    /// there were any. A choice: on a cycle, nothing is proven.
    pub(crate) fn close_open_scopes(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut grown = self.cut.clone();
        for chain in w.chains() {
            for &id in w.open_before(chain, self.cut[chain]) {
                if let Some(release) = w.scopes[id].release
                    && w.past_of(release).is_within(&target.stop)
                {
                    grown.join(w.past_of(release));
                }
            }
        }
        if grown == self.cut {
            return Ok(false);
        }
        self.grow(grown.row())?;
        self.fixpoint(target)?;
        Ok(true)
    }

    /// Lets one event happen of each list that the target wants one of, the first that it allows. A choice: on a cycle, nothing
    /// is proven.
    pub(crate) fn choose_contained(&mut self, target: &Target) -> Result<(), Cycle> {
        let w = self.w;
        for one_of in &target.one_of {
            if one_of.iter().any(|&node| self.contains(node)) {
                continue;
            }
            let allowed = one_of.iter().find(|&&node| w.past_of(node).is_within(&target.stop));
            let Some(&first) = allowed else { return Err(Cycle) };
            let mut grown = self.cut.clone();
            grown.join(w.past_of(first));
            self.grow(grown.row())?;
            self.fixpoint(target)?;
        }
        Ok(())
    }

    /// In `values`: lets the writers happen that the reads of the set saw, where the target allows it; whether there were any.
    /// A choice: on a cycle, nothing is proven.
    pub(crate) fn assume_observed_writers(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let Some(values) = &w.values else { return Ok(false) };
        let mut grown = self.cut.clone();
        for chain in w.chains() {
            if let Some(last) = self.cut[chain].previous() {
                grown.join(values.seen_past_of(w.chain[chain][last]));
            }
        }
        if grown == self.cut || !grown.row().is_within(&target.stop) {
            return Ok(false);
        }
        self.grow(grown.row())?;
        self.fixpoint(target)?;
        Ok(true)
    }

    /// Adds what the set is to contain, as it is then, and closes it, until nothing more is added. A choice: on a cycle, nothing is proven.
    pub(super) fn grow_by(&mut self, target: &Target, more: impl Fn(&Self, &mut Cut)) -> Result<(), Cycle> {
        loop {
            let mut grown = self.cut.clone();
            more(self, &mut grown);
            if !grown.row().is_within(&target.stop) {
                return Err(Cycle);
            }
            if grown == self.cut {
                return Ok(());
            }
            self.grow(grown.row())?;
            self.fixpoint(target)?;
        }
    }

    /// Puts every failed try into the scope that it was observed in, which may make the set grow. A choice: on a cycle,
    /// nothing is proven.
    pub(crate) fn assume_observed_holders(&mut self, target: &Target) -> Result<(), Cycle> {
        let w = self.w;
        if !w.counters.is_empty() {
            self.assume_observed_counts(target)?;
        }
        if !w.conditions.is_empty() {
            self.assume_observed_notifies(target)?;
        }
        if w.busy.is_empty() {
            return Ok(());
        }
        self.grow_by(target, |set, grown| {
            for &(node, holder) in &w.busy {
                if let Some(acquire) = w.scopes[holder].acquire
                    && set.contains(node)
                {
                    grown.join(w.past_of(acquire));
                }
            }
        })?;
        for &(node, holder) in &w.busy {
            if !self.contains(node) {
                continue;
            }
            let scope = w.scopes[holder];
            if let Some(acquire) = scope.acquire {
                self.add(acquire, node)?;
            }
            if let Some(release) = scope.release.filter(|&release| self.contains(release)) {
                self.add(node, release)?;
            }
        }
        self.fixpoint(target)
    }

    /// Open scopes: whether the set had to grow.
    fn grow_open(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut grown = self.cut.clone();
        let mut edges = Vec::new();
        for chain in w.chains() {
            for &id in w.open_before(chain, self.cut[chain]) {
                let scope = w.scopes[id];
                let release = scope.release.filter(|_| !w.is_open_at(&scope, target.stop[chain]));
                for list in &w.locks[scope.lock] {
                    if list.chain == chain || !list.mode.conflicts_with(scope.mode) {
                        continue;
                    }
                    let Some((rival, open)) = self.last_scope(list) else { continue };
                    let rival = w.scopes[rival];
                    let rival_stays = open && w.is_open_at(&rival, target.stop[list.chain]);
                    let rival_end = if open { rival.acquire } else { rival.release };
                    // A rival held since before the window and still open cannot come after anything.
                    let first = scope
                        .acquire
                        .is_none_or(|acquire| rival_end.is_some_and(|rival_end| self.is_before(acquire, rival_end)));
                    if first || rival_stays {
                        grown.join(w.past_of(release.ok_or(Cycle)?));
                    } else if release.is_none() {
                        // It stays open, so it is last on its lock: every scope of the rival that is over comes before it.
                        let over = self.closed(list).checked_sub(1).and_then(|at| w.scopes[list.scopes[at]].release);
                        edges.extend(over.zip(scope.acquire));
                    }
                }
            }
        }
        if !grown.row().is_within(&target.stop) {
            return Err(Cycle);
        }
        let mut changed = grown != self.cut;
        if changed {
            self.grow(grown.row())?;
        }
        for (before, after) in edges {
            if !self.is_before(before, after) {
                self.add(before, after)?;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// The last scope of a list that has begun in the set, and whether it is still open.
    fn last_scope(&self, list: &ScopesInChain) -> Option<(ScopeId, bool)> {
        let bound = self.cut[list.chain];
        let begun = list.scopes.partition_point(|&s| self.w.begins_before(s, bound));
        let id = list.scopes[begun.checked_sub(1)?];
        Some((id, self.w.is_open_at(&self.w.scopes[id], bound)))
    }
}
