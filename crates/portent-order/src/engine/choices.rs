//! The choices of `values` in the search: which write each read that matters sees.
//!
//! Nothing is encoded beforehand. An order that the solver proposes is followed, and only reads that matter in it and do
//! not see what they expect get literals: K(r), "r sees what it expects", implies one of rf(w, r) over the sources w of
//! r; rf(w, r) implies w < r and, in a trace with branches, S(w), "the reads before w see what they expect". Z < b or
//! K(r) where a branch b follows r; S(w) implies K(r) where w follows r. That no write comes between w and r is added
//! when one does. So a question costs what its own cone costs, and all clauses hold for every question.

use super::search::Search;
use super::simulate::Obstacle;
use super::target::Target;
use super::values::Sight;
use super::window::{BASE, NONE, Node};
use batsat::Lit;

/// Orders and literals of which one must hold.
type Alternatives = (Vec<(Node, Node)>, Vec<Lit>);

impl Search<'_, '_> {
    /// Holds an order against the values: `None` if it is fine, otherwise whether clauses were made that forbid it.
    pub(super) fn faults(&mut self, target: &Target, order: &[Node]) -> Option<bool> {
        let w = self.w;
        let values = w.values.as_deref()?;
        let mut cut = vec![0; w.chains];
        order.iter().for_each(|&node| cut[w.chain_of[node as usize] as usize] += 1);
        let relied = target.relied();
        let faults = Sight::along(w, values, order.iter().copied()).faults(w, &cut, relied);
        (!faults.is_empty()).then(|| self.make_new(faults))
    }

    /// A read sees what it expects if what makes it matter is executed.
    pub(super) fn must_keep(&mut self, read: Node) {
        let (w, z) = (self.w, self.theory.z());
        let Some(values) = w.values.as_deref() else { return };
        let until = values.until[read as usize];
        debug_assert!(until != NONE, "a read that never matters is no obstacle");
        let kept = self.is_kept(read);
        self.clause(&[(z, until)], &[kept]);
    }

    /// A read before a write sees what it expects if the write is relied on.
    pub(super) fn must_keep_before(&mut self, write: Node, read: Node) {
        let kept = self.is_kept(read);
        if let Some(solid) = self.is_solid(write) {
            self.clause(&[], &[!solid, kept]);
        }
    }

    /// "All reads before this write see what they expect", where that is not certain.
    pub(super) fn is_solid(&mut self, write: u32) -> Option<Lit> {
        if write == BASE || !self.w.values.as_ref().is_some_and(|values| values.branches) {
            return None;
        }
        let known = self.solid.get(&write).copied();
        let lit = known.unwrap_or_else(|| self.fresh());
        self.solid.insert(write, lit);
        Some(lit)
    }

    /// "This read sees what it expects."
    fn is_kept(&mut self, read: Node) -> Lit {
        if let Some(&lit) = self.kept.get(&read) {
            return lit;
        }
        let kept = self.fresh();
        self.kept.insert(read, kept);
        let w = self.w;
        let Some(values) = w.values.as_deref() else { return kept };
        let mut any = vec![!kept];
        for source in w.sources(values, read) {
            // The solver tries false first; there lies what was observed.
            let fresh = self.fresh();
            let sees = if source == values.observed[read as usize] { !fresh } else { fresh };
            self.sources.insert((source, read), sees);
            self.theory.choices.push((sees, source, read));
            if source != BASE {
                self.clause(&[(source, read)], &[!sees]);
            }
            if let Some(solid) = self.is_solid(source) {
                self.clause(&[], &[!sees, solid]);
            }
            any.push(sees);
        }
        self.clause(&[], &any);
        kept
    }

    /// Why a branch that is next in an order can be taken as it was: orders and literals one of which must hold for it to be
    /// otherwise. `None` if it cannot be taken.
    pub(super) fn why_unspoiled(&mut self, branch: Node, order: &[Node]) -> Option<Alternatives> {
        let w = self.w;
        let values = w.values.as_deref()?;
        let sight = Sight::along(w, values, order.iter().copied());
        let chain = w.chain_of[branch as usize] as usize;
        if sight.is_spoiled(chain) {
            return None;
        }
        // The reads that decide it: those before the branch, those before the writes they see, and so on.
        let mut upto = vec![0; w.chains];
        let mut work = vec![(chain, w.place[branch as usize])];
        let (mut differs, mut either) = (Vec::new(), Vec::new());
        while let Some((chain, bound)) = work.pop() {
            for &read in &w.chain[chain][(upto[chain].min(bound) as usize)..bound as usize] {
                let (Some(x), Some(source)) = (w.act[read as usize].read(), sight.source(read)) else { continue };
                if source != BASE {
                    differs.push((read, source));
                    work.push((w.chain_of[source as usize] as usize, w.place[source as usize] + 1));
                }
                for list in &w.variables[x as usize].writes {
                    for &rival in list.nodes.iter().filter(|&&d| d != source && d != read) {
                        if source == BASE {
                            differs.push((rival, read));
                        } else {
                            let between = self.fresh();
                            self.clause(&[(source, rival)], &[!between]);
                            self.clause(&[(rival, read)], &[!between]);
                            either.push(between);
                        }
                    }
                }
            }
            upto[chain] = upto[chain].max(bound);
        }
        Some((differs, either))
    }
}

/// What is wrong in `values` with the observed order of the events below a cut.
pub(super) fn observed_faults(w: &super::window::Window<'_>, cut: &[u32], relied: Option<Node>) -> Vec<Obstacle> {
    let Some(values) = w.values.as_deref() else { return Vec::new() };
    let below = (0..w.len() as u32).filter(|&n| w.place[n as usize] < cut[w.chain_of[n as usize] as usize]);
    Sight::along(w, values, below).faults(w, cut, relied)
}
