//! The choices of `values` in the search: which write each read that matters sees.
//!
//! Nothing is encoded beforehand. An order that the solver proposes is followed, and only reads that matter in it and do
//! not see what they expect get literals: K(r), "r sees what it expects", implies one of rf(w, r) over the sources w of
//! r; rf(w, r) implies w < r and, in a trace with branches, S(w), "the reads before w see what they expect". Z < b or
//! K(r) where a branch b follows r; S(w) implies K(r) where w follows r. That no write comes between w and r is added
//! when one does. So a question costs what its own cone costs, and all clauses hold for every question.

use super::formulas::Input;
use super::index::{Node, Source};
use super::rows::Cut;
use super::search::Search;
use super::symbolic::{Evaluation, Sees};
use super::target::Target;
use super::values::Sight;
use super::window::Window;
use batsat::Lit;
use portent_trace::symbolic::Evaluated;

/// Orders and literals of which one must hold.
type Alternatives = (Vec<(Node, Node)>, Vec<Lit>);

impl<'w, 't> Search<'w, 't> {
    /// Holds an order against the values: `None` if it is fine, otherwise whether clauses were made that forbid it.
    pub(super) fn faults(&mut self, target: &Target, order: &[Node]) -> Option<bool> {
        let w = self.w;
        let values = w.values.as_deref()?;
        if let Some(mut evaluation) = self.evaluation.take() {
            evaluation.follow(order.iter().copied());
            let found = self.symbolic_faults(target, &mut evaluation);
            self.evaluation = Some(evaluation);
            return found;
        }
        let mut cut = w.nothing();
        order.iter().for_each(|&node| cut[w.chain_of[node]] = w.place[node].next());
        let relied = target.relied();
        let faults = Sight::along(w, values, order.iter().copied()).faults(w, &cut, relied);
        (!faults.is_empty()).then(|| self.make_new(faults))
    }

    /// The same where there are formulas.
    fn symbolic_faults(&mut self, target: &Target, evaluation: &mut Evaluation<'w, 't>) -> Option<bool> {
        let z = self.theory.z();
        let mut found = false;
        for &event in evaluation.faults() {
            let other = self.one_sees_another(&evaluation.why(event));
            self.clause(&[(z, event)], &other);
            self.rule_out(event);
            found = true;
        }
        if let Some((x, last)) = target.last
            && !found
            && self.theory.simulator().last_write(x) == last
            && !evaluation.differs(x, target.value_to_change(self.w))
        {
            let mut other = self.one_sees_another(&evaluation.why_written(last));
            other.push(!self.changes(target));
            self.clause(&[], &other);
            found = true;
        }
        for &node in target.next.iter().filter(|&&node| self.w.is_guarded(node)) {
            if found {
                break;
            }
            if evaluation.would_fail(node) {
                evaluation.execute(node);
                let (orders, mut other) = self.why_now(node, evaluation);
                other.push(!self.is_possible(node));
                self.clause(&orders, &other);
                found = true;
            }
        }
        // Every refinement rules out one way to see; they count as conflicts, so that they are bounded.
        self.spend(u64::from(found));
        found.then_some(true)
    }

    /// An event with a condition on a single read: of the writes whose value is certain, the read sees none for which the
    /// condition comes out differently.
    fn rule_out(&mut self, event: Node) {
        let (w, z) = (self.w, self.theory.z());
        let Some(values) = w.values.as_deref() else { return };
        let Some(formulas) = values.formulas.as_deref().filter(|_| self.ruled_out.insert(event)) else { return };
        for (formula, outcome) in &formulas.guards[event] {
            let &[Input::Node(read)] = formula.inputs.as_slice() else { continue };
            let Some(x) = w.act[read].read() else { continue };
            for writer in w.any_sources(read).into_iter().filter(|&writer| values.writes_as_traced(writer)) {
                let traced = values.traced(w, x, writer);
                if formula.code.outcome(|_| traced) != Evaluated::Number(*outcome)
                    && let Some(&sees) = self.sources.get(&(writer, read))
                {
                    self.clause(&[(z, event)], &[!sees]);
                }
            }
        }
    }

    /// Why an event after an order went as it did: orders and literals one of which must hold for it to go otherwise.
    fn why_now(&mut self, node: Node, evaluation: &Evaluation<'_, '_>) -> Alternatives {
        let w = self.w;
        // What an update itself would see is the last write, which no choice is about.
        let (own, cone): (Vec<Sees>, Vec<Sees>) = evaluation.why(node).into_iter().partition(|&(read, _)| read == node);
        let (mut differs, mut either) = (Vec::new(), self.one_sees_another(&cone));
        if let (Some(&(_, source)), Some(x)) = (own.first(), w.act[node].read()) {
            let z = self.theory.z();
            for rival in w.writes_of(x).filter(|&d| Source::Write(d) != source && d != node) {
                match source {
                    Source::Base => differs.push((rival, z)),
                    Source::Write(writer) => {
                        let over = self.fresh();
                        self.clause(&[(writer, rival)], &[!over]);
                        self.clause(&[(rival, z)], &[!over]);
                        either.push(over);
                    }
                }
            }
            differs.extend(source.node().map(|writer| (z, writer)));
        }
        (differs, either)
    }

    /// "The goal's value changes", for the read and the write of the target.
    pub(super) fn changes(&mut self, target: &Target) -> Lit {
        let key = (target.tail.first().copied(), target.last.map(|(_, last)| last));
        let known = self.changes.get(&key).copied();
        let lit = known.unwrap_or_else(|| self.fresh());
        self.changes.insert(key, lit);
        lit
    }

    /// "This event is possible after the set", where formulas decide that.
    pub(super) fn is_possible(&mut self, node: Node) -> Lit {
        let known = self.possible.get(&node).copied();
        let lit = known.unwrap_or_else(|| self.fresh());
        self.possible.insert(node, lit);
        lit
    }

    /// Literals of which one must hold for one of the reads to see another write.
    pub(super) fn one_sees_another(&mut self, cone: &[Sees]) -> Vec<Lit> {
        let mut other = Vec::new();
        for &(read, writer) in cone {
            if self.chosen.insert(read) {
                self.give_choice(read);
            }
            if let Some(&sees) = self.sources.get(&(writer, read)) {
                other.push(!sees);
            }
        }
        other
    }

    /// A read that is executed sees one of the writes that it could see.
    fn give_choice(&mut self, read: Node) {
        let (w, z) = (self.w, self.theory.z());
        let observed = w.values.as_ref().and_then(|values| values.observed[read]);
        let mut any = Vec::new();
        for source in w.any_sources(read) {
            let fresh = self.fresh();
            let sees = if Some(source) == observed { !fresh } else { fresh };
            self.sources.insert((source, read), sees);
            self.theory.choices.push((sees, source, read));
            if let Source::Write(write) = source {
                self.clause(&[(write, read)], &[!sees]);
            }
            any.push(sees);
        }
        self.clause(&[(z, read)], &any);
    }

    /// A read sees what it expects if what makes it matter is executed.
    pub(super) fn must_keep(&mut self, read: Node) {
        let (w, z) = (self.w, self.theory.z());
        let Some(values) = w.values.as_deref() else { return };
        let Some(until) = values.until[read] else {
            debug_assert!(false, "a read that never matters is no obstacle");
            return;
        };
        let kept = self.is_kept(read);
        self.clause(&[(z, until)], &[kept]);
    }

    /// A read before a write sees what it expects if the write is relied on.
    pub(super) fn must_keep_before(&mut self, write: Node, read: Node) {
        let kept = self.is_kept(read);
        if let Some(trusted) = self.is_trusted(Source::Write(write)) {
            self.clause(&[], &[!trusted, kept]);
        }
    }

    /// "All reads before this write see what they expect", where that is not certain.
    pub(super) fn is_trusted(&mut self, source: Source) -> Option<Lit> {
        let write = source.node()?;
        if !self.w.rule.taints() {
            return None;
        }
        let known = self.trusted.get(&write).copied();
        let lit = known.unwrap_or_else(|| self.fresh());
        self.trusted.insert(write, lit);
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
            let sees = if Some(source) == values.observed[read] { !fresh } else { fresh };
            self.sources.insert((source, read), sees);
            self.theory.choices.push((sees, source, read));
            if let Source::Write(write) = source {
                self.clause(&[(write, read)], &[!sees]);
            }
            if let Some(trusted) = self.is_trusted(source) {
                self.clause(&[], &[!sees, trusted]);
            }
            any.push(sees);
        }
        self.clause(&[], &any);
        kept
    }
}

/// Whether an order of the events below a cut keeps to the values, and reaches the value that the target wants.
pub(super) fn keeps_values(
    w: &Window<'_>,
    evaluation: Option<&mut Evaluation<'_, '_>>,
    order: impl Iterator<Item = Node>,
    cut: &Cut,
    target: &Target,
) -> bool {
    let Some(values) = w.values.as_deref() else { return true };
    let Some(evaluation) = evaluation else {
        return Sight::along(w, values, order).faults(w, cut, target.relied()).is_empty();
    };
    evaluation.follow(order);
    evaluation.faults().is_empty() && reaches_values(w, evaluation, target)
}

/// Whether, after the events of a evaluation, the values are what the target wants.
pub(super) fn reaches_values(w: &Window<'_>, evaluation: &mut Evaluation<'_, '_>, target: &Target) -> bool {
    target.last.is_none_or(|(x, _)| evaluation.differs(x, target.value_to_change(w)))
        && !target.next.iter().any(|&node| w.is_guarded(node) && evaluation.would_fail(node))
}
