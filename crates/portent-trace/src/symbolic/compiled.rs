//! A formula as straight-line code: evaluated many times, it needs no look-ups.

use super::expr::{Bits, Dag, Evaluated, ExprId, Node, Operator, Type, apply, compute};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
enum Instruction {
    Constant(u64),
    /// An index into the formula's reads.
    Read(u32, Type),
    /// Operands are earlier instructions.
    Apply(Operator, Type, Type, [u32; 3]),
}

/// A formula, compiled by [`Dag::compile`].
#[derive(Clone, Debug)]
pub struct Compiled {
    instructions: Vec<Instruction>,
    reads: Vec<u32>,
    of: Type,
    /// Whether it chooses: then not all of it counts.
    chooses: bool,
}

/// Formulas of up to that many instructions are evaluated without allocating.
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
        self.instructions.iter().any(|instruction| match instruction {
            Instruction::Apply(Operator::Div | Operator::Rem, from, ..) => from.float(0).is_none(),
            Instruction::Apply(Operator::Cast, from, to, _) => from.float(0).is_some() && to.float(0).is_none(),
            _ => false,
        })
    }
    /// What it comes out as, where `seen` is what each of [`Compiled::reads`] saw, as far as that is known.
    pub fn outcome(&self, seen: impl Fn(usize) -> Option<i64>) -> Evaluated {
        if self.chooses {
            return self.choose(seen);
        }
        if (0..self.reads.len()).any(|read| seen(read).is_none()) {
            return Evaluated::Unknown;
        }
        self.compute(|read| seen(read).unwrap_or_default()).map_or(Evaluated::Nothing, Evaluated::Number)
    }

    /// The same instruction by instruction; what is wrong with an arm that is not taken goes no further.
    fn choose(&self, seen: impl Fn(usize) -> Option<i64>) -> Evaluated {
        let mut values: Vec<Bits> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let value = match *instruction {
                Instruction::Constant(bits) => Bits::Known(bits),
                Instruction::Read(read, of) => {
                    Bits::of(seen(read as usize).map(|number| of.truncate(number)), Bits::Unknown)
                }
                Instruction::Apply(Operator::Select, .., operands) => {
                    let [condition, then, otherwise] = operands.map(|operand| values[operand as usize]);
                    match condition {
                        Bits::Known(0) => otherwise,
                        Bits::Known(_) => then,
                        unsettled => unsettled,
                    }
                }
                Instruction::Apply(operator, from, to, operands) => {
                    apply(operator, from, to, operands.map(|operand| values[operand as usize]))
                }
            };
            values.push(value);
        }
        values.last().map_or(Evaluated::Nothing, |bits| bits.outcome(self.of))
    }

    /// The value of one without choices, all of whose reads are known.
    fn compute(&self, seen: impl Fn(usize) -> i64) -> Option<i64> {
        let mut few = [0; SMALL];
        let mut many = Vec::new();
        let values = match few.get_mut(..self.instructions.len()) {
            Some(few) => few,
            None => {
                many.resize(self.instructions.len(), 0);
                &mut many[..]
            }
        };
        for (at, instruction) in self.instructions.iter().enumerate() {
            values[at] = match *instruction {
                Instruction::Constant(bits) => bits,
                Instruction::Read(read, of) => of.truncate(seen(read as usize)),
                Instruction::Apply(operator, from, to, operands) => {
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
        let mut compiled = Compiled { instructions: Vec::new(), reads, of, chooses: false };
        let mut place: FxHashMap<ExprId, u32> = FxHashMap::default();
        let mut work = vec![expr];
        while let Some(&next) = work.last() {
            if place.contains_key(&next) {
                work.pop();
                continue;
            }
            let of = self.type_of(next);
            let instruction = match self.node(next) {
                Node::Constant(bits) => Instruction::Constant(bits),
                // All reads of the expression are among its reads.
                Node::Read(read) => Instruction::Read(compiled.reads.partition_point(|&r| r < read) as u32, of),
                Node::Apply(operator, operands) => {
                    let before = work.len();
                    work.extend(operands.iter().filter(|operand| !place.contains_key(operand)));
                    if work.len() > before {
                        continue;
                    }
                    compiled.chooses |= operator == Operator::Select;
                    Instruction::Apply(operator, self.type_of(operands[0]), of, operands.map(|operand| place[&operand]))
                }
            };
            place.insert(next, compiled.instructions.len() as u32);
            compiled.instructions.push(instruction);
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
