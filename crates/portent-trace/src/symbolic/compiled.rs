//! A formula as straight-line code: evaluated many times, it needs no look-ups.

use super::expr::{Bits, Dag, ExprId, Node, Operator, Outcome, Type, apply, compute};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
enum Step {
    Constant(u64),
    /// An index into the formula's reads.
    Read(u32, Type),
    /// Operands are earlier steps.
    Apply(Operator, Type, Type, [u32; 3]),
}

/// A formula, compiled by [`Dag::compile`].
#[derive(Clone, Debug)]
pub struct Compiled {
    steps: Vec<Step>,
    reads: Vec<u32>,
    of: Type,
    /// Whether it chooses: then not all of it counts.
    chooses: bool,
}

/// Formulas of up to that many steps are evaluated without allocating.
const SMALL: usize = 24;

impl Compiled {
    /// The reads that it depends on, ascending.
    pub fn reads(&self) -> &[u32] {
        &self.reads
    }
    /// The type of its value.
    pub fn type_of(&self) -> Type {
        self.of
    }
    /// Whether there are reads for which it has no value.
    pub fn is_partial(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Apply(Operator::Div | Operator::Rem, from, ..) => from.float(0).is_none(),
            Step::Apply(Operator::Cast, from, to, _) => from.float(0).is_some() && to.float(0).is_none(),
            _ => false,
        })
    }
    /// What it comes out as, where `seen` is what each of [`Compiled::reads`] saw, as far as that is known.
    pub fn outcome(&self, seen: impl Fn(usize) -> Option<i64>) -> Outcome {
        if self.chooses {
            return self.choose(seen);
        }
        if (0..self.reads.len()).any(|read| seen(read).is_none()) {
            return Outcome::Unknown;
        }
        self.compute(|read| seen(read).unwrap_or_default()).map_or(Outcome::Nothing, Outcome::Number)
    }

    /// The same step by step; what is wrong with an arm that is not taken goes no further.
    fn choose(&self, seen: impl Fn(usize) -> Option<i64>) -> Outcome {
        let mut values: Vec<Bits> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = match *step {
                Step::Constant(bits) => Bits::Known(bits),
                Step::Read(read, of) => Bits::of(seen(read as usize).map(|number| of.truncate(number)), Bits::Unknown),
                Step::Apply(Operator::Select, .., operands) => {
                    let [condition, then, otherwise] = operands.map(|operand| values[operand as usize]);
                    match condition {
                        Bits::Known(0) => otherwise,
                        Bits::Known(_) => then,
                        unsettled => unsettled,
                    }
                }
                Step::Apply(operator, from, to, operands) => {
                    apply(operator, from, to, operands.map(|operand| values[operand as usize]))
                }
            };
            values.push(value);
        }
        values.last().map_or(Outcome::Nothing, |bits| bits.outcome(self.of))
    }

    /// The value of one without choices, all of whose reads are known.
    fn compute(&self, seen: impl Fn(usize) -> i64) -> Option<i64> {
        let mut few = [0; SMALL];
        let mut many = Vec::new();
        let values = match few.get_mut(..self.steps.len()) {
            Some(few) => few,
            None => {
                many.resize(self.steps.len(), 0);
                &mut many[..]
            }
        };
        for (at, step) in self.steps.iter().enumerate() {
            values[at] = match *step {
                Step::Constant(bits) => bits,
                Step::Read(read, of) => of.truncate(seen(read as usize)),
                Step::Apply(operator, from, to, operands) => {
                    compute(operator, from, to, operands.map(|operand| values[operand as usize]))?
                }
            };
        }
        values.last().map(|&bits| self.of.extend(bits))
    }
}

impl Dag {
    /// An expression as straight-line code.
    pub fn compile(&self, expr: ExprId) -> Compiled {
        let (reads, of) = (self.reads(expr), self.type_of(expr));
        let mut compiled = Compiled { steps: Vec::new(), reads, of, chooses: false };
        let mut place: FxHashMap<ExprId, u32> = FxHashMap::default();
        let mut work = vec![expr];
        while let Some(&next) = work.last() {
            if place.contains_key(&next) {
                work.pop();
                continue;
            }
            let of = self.type_of(next);
            let step = match self.node(next) {
                Node::Constant(bits) => Step::Constant(bits),
                // All reads of the expression are among its reads.
                Node::Read(read) => Step::Read(compiled.reads.partition_point(|&r| r < read) as u32, of),
                Node::Apply(operator, operands) => {
                    let before = work.len();
                    work.extend(operands.iter().filter(|operand| !place.contains_key(operand)));
                    if work.len() > before {
                        continue;
                    }
                    compiled.chooses |= operator == Operator::Select;
                    Step::Apply(operator, self.type_of(operands[0]), of, operands.map(|operand| place[&operand]))
                }
            };
            place.insert(next, compiled.steps.len() as u32);
            compiled.steps.push(step);
            work.pop();
        }
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_formulas_have_the_value_of_the_expression() {
        let mut dag = Dag::default();
        let of = Type::Signed(16);
        let (a, b) = (dag.read(of, 3).unwrap(), dag.read(of, 7).unwrap());
        let sum = dag.apply(Operator::Add, &[a, b], None).unwrap();
        let ratio = dag.apply(Operator::Div, &[sum, b], None).unwrap();
        let positive = dag.apply(Operator::Gt, &[ratio, a], None).unwrap();
        let mut chosen = dag.apply(Operator::Select, &[positive, sum, ratio], None).unwrap();
        for depth in 0..40 {
            let compiled = dag.compile(chosen);
            assert_eq!(compiled.reads(), [3, 7]);
            for (x, y) in [(0, 0), (1, 2), (-5, 1), (30_000, 30_000), (70_000, -1), (4, 0)] {
                let by_expression = dag.outcome(chosen, &|read| Some(if read == 3 { x } else { y }));
                let compiled = compiled.outcome(|read| Some([x, y][read]));
                assert_eq!(compiled, by_expression, "depth {depth}, {x} and {y}");
            }
            chosen = dag.apply(Operator::Sub, &[chosen, sum], None).unwrap();
        }
    }
}
