//! Properties on final values, in `values`: a complete order after which variables hold what they must not.
//!
//! What variables hold at the end follows from which write of each is the last, and from what the reads saw that its
//! value comes from. An end that is fine is ruled out with all that: another write must be the last, or a read see another.

use super::index::{Node, Source, Variable};
use super::search::{Found, Search};
use super::symbolic::Held;
use super::target::Target;
use super::{Effort, Engine};
use crate::goal::{Unknown, Verdict};
use crate::read_rule::ReadRule;
use batsat::Lit;
use portent_trace::VarId;

/// Whether values of variables are bad.
type IsBad<'a> = &'a mut dyn FnMut(&[Option<i64>]) -> bool;

impl Engine<'_, '_> {
    /// Looks for a complete reordering in `values` after which these variables hold something bad. A value is `None` where
    /// it is not known, or nothing accesses the variable. The window must be the whole trace.
    pub fn decide_final(&mut self, variables: &[VarId], is_bad: IsBad<'_>, effort: Effort) -> Verdict {
        self.tiers.queries += 1;
        let w = self.window;
        let told = matches!(w.rule, ReadRule::SameValue | ReadRule::SameFormulas);
        if w.first > 0 || !w.reaches_the_end() || !told {
            self.tiers.unknown += 1;
            return Verdict::Unknown(if told { Unknown::Window } else { Unknown::Values });
        }
        let mut target = Target::new(w);
        target.cut.clone_from(&target.stop);
        let variables: Vec<Option<Variable>> = variables.iter().map(|&x| w.variable_index(x)).collect();
        let search = self.search.get_or_insert_with(|| Search::new(w));
        let goal = search.fresh();
        let mut ends_well =
            |search: &mut Search<'_, '_>, order: &[Node]| search.ends_well(goal, &variables, order, is_bad);
        match search.solve_judged(&target, effort, Some((goal, &mut ends_well))) {
            Found::Order(order) => {
                self.tiers.searched += 1;
                Verdict::Feasible(self.schedule(&target, &w.nothing(), &order))
            }
            Found::Impossible => {
                self.tiers.searched += 1;
                Verdict::Infeasible
            }
            Found::Unknown(why) => {
                self.tiers.unknown += 1;
                Verdict::Unknown(why)
            }
        }
    }
}

impl Search<'_, '_> {
    /// Whether a complete order ends well; if so, clauses rule out every order that ends like it.
    fn ends_well(&mut self, goal: Lit, variables: &[Option<Variable>], order: &[Node], is_bad: IsBad<'_>) -> bool {
        let w = self.w;
        let Some(values) = w.values.as_deref() else { return false };
        let mut evaluation = self.evaluation.take();
        if let Some(evaluation) = &mut evaluation {
            evaluation.follow(order.iter().copied());
        }
        let last = |x: Variable| self.theory.simulator().last_write(x);
        let held = |x: Variable| match &evaluation {
            Some(evaluation) => match evaluation.would_see(x) {
                Held::Number(number) => Some(number),
                Held::AsTraced | Held::Tainted => None,
            },
            None => values.traced(w, x, last(x)),
        };
        let ends: Vec<Option<i64>> = variables.iter().map(|&x| x.and_then(held)).collect();
        if is_bad(&ends) {
            self.evaluation = evaluation;
            return false;
        }
        let lasts: Vec<(Variable, Source)> = variables.iter().flatten().map(|&x| (x, last(x))).collect();
        let (mut orders, mut other) = (Vec::new(), vec![!goal]);
        for &(x, source) in &lasts {
            let Source::Write(last) = source else { continue };
            orders.extend(w.writes_of(x).filter(|&write| write != last).map(|write| (last, write)));
            if let Some(evaluation) = &evaluation {
                other.extend(self.one_sees_another(&evaluation.why_written(source)));
            }
        }
        self.clause(&orders, &other);
        self.spend(1);
        self.evaluation = evaluation;
        true
    }
}
