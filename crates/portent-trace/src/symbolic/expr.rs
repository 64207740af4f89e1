//! Expressions: a hash-consed DAG of typed operations over what a thread has read.
//!
//! Values are bits, as wide as their type says; what a trace records is a signed 64-bit number, of which the low bits
//! count. Division by zero, and casts of floats that fit in no integer, have no value: a program does not go on from
//! there, and neither does a reordering. Of an `if` only the arm that is taken counts, as in a program: that the other one
//! is not known, or has no value, is of no importance.

use rustc_hash::FxHashMap;

/// An expression of a [`Dag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// The type of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// A signed integer of 1 to 64 bits.
    Signed(u8),
    /// An unsigned integer of 1 to 64 bits; of one bit, a truth value.
    Unsigned(u8),
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
}

impl Type {
    /// What comparisons give.
    pub const BOOL: Type = Type::Unsigned(1);
    /// What a number without a type is.
    pub const DEFAULT: Type = Type::Signed(64);

    /// How many bits a value has.
    pub fn bits(self) -> u32 {
        match self {
            Type::Signed(bits) | Type::Unsigned(bits) => u32::from(bits),
            Type::F32 => 32,
            Type::F64 => 64,
        }
    }
    /// A recorded number as bits of this type.
    pub fn truncate(self, number: i64) -> u64 {
        let bits = number as u64;
        if self.bits() >= 64 { bits } else { bits & ((1 << self.bits()) - 1) }
    }
    /// Bits of this type as a recorded number: signed integers keep their sign.
    pub fn extend(self, bits: u64) -> i64 {
        match self {
            Type::Signed(width) if width < 64 => ((bits << (64 - width)) as i64) >> (64 - width),
            _ => bits as i64,
        }
    }
    pub(super) fn float(self, bits: u64) -> Option<f64> {
        match self {
            Type::F32 => Some(f64::from(f32::from_bits(bits as u32))),
            Type::F64 => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
    fn of_float(self, value: f64) -> u64 {
        match self {
            Type::F32 => u64::from((value as f32).to_bits()),
            _ => value.to_bits(),
        }
    }
}

/// What an expression does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Operator {
    Neg,
    Not,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Of a truth value and two others, the first if it holds, and the second otherwise.
    Select,
    /// Converts the value, as C does.
    Cast,
    /// Takes the bits as they are.
    Bits,
}

impl Operator {
    /// Every operator with its name in text and its number of operands.
    pub const ALL: [(Operator, &'static str, usize); 21] = {
        use Operator::*;
        [
            (Neg, "neg", 1),
            (Not, "not", 1),
            (Add, "add", 2),
            (Sub, "sub", 2),
            (Mul, "mul", 2),
            (Div, "div", 2),
            (Rem, "rem", 2),
            (And, "and", 2),
            (Or, "or", 2),
            (Xor, "xor", 2),
            (Shl, "shl", 2),
            (Shr, "shr", 2),
            (Eq, "eq", 2),
            (Ne, "ne", 2),
            (Lt, "lt", 2),
            (Le, "le", 2),
            (Gt, "gt", 2),
            (Ge, "ge", 2),
            (Select, "if", 3),
            (Cast, "cast", 1),
            (Bits, "bits", 1),
        ]
    };
    fn known(self) -> (&'static str, usize) {
        Operator::ALL.iter().find(|(op, ..)| *op == self).map_or(("", 0), |&(_, word, arity)| (word, arity))
    }
    /// Its name in text.
    pub fn word(self) -> &'static str {
        self.known().0
    }
    /// How many operands it has.
    pub fn arity(self) -> usize {
        self.known().1
    }
    /// Whether it compares, so that its value is a truth value.
    pub fn compares(self) -> bool {
        matches!(self, Operator::Eq | Operator::Ne | Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge)
    }
}

/// One node of a [`Dag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// These bits.
    Constant(u64),
    /// What the thread's read of this number (from 0, updates included) saw.
    Read(u32),
    /// An operator with up to three operands; the others repeat the first.
    Apply(Operator, [ExprId; 3]),
}

/// Why an expression cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untyped {
    /// The types of the operands do not fit the operator.
    #[error("the operands' types do not fit")]
    Operands,
    /// An integer has 1 to 64 bits.
    #[error("an integer has 1 to 64 bits")]
    Width,
    /// There are too many.
    #[error("too many expressions")]
    TooMany,
}

/// What an expression comes out as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluated {
    /// This number, as it would be recorded.
    Number(i64),
    /// Something that depends on a read of which nobody knows what it saw.
    Unknown,
    /// It has no value: it divides by zero, or casts a float that does not fit.
    Nothing,
}

impl Evaluated {
    /// The number, if it is known and there is one.
    pub fn number(self) -> Option<i64> {
        match self {
            Evaluated::Number(number) => Some(number),
            Evaluated::Unknown | Evaluated::Nothing => None,
        }
    }
}

/// An [`Evaluated`] as bits of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    Known(u64),
    Unknown,
    Nothing,
}

impl Bits {
    pub(super) fn of(value: Option<u64>, otherwise: Bits) -> Bits {
        value.map_or(otherwise, Bits::Known)
    }
    pub(super) fn outcome(self, of: Type) -> Evaluated {
        match self {
            Bits::Known(bits) => Evaluated::Number(of.extend(bits)),
            Bits::Unknown => Evaluated::Unknown,
            Bits::Nothing => Evaluated::Nothing,
        }
    }
}

/// What expressions come out as whose reads have been made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo(FxHashMap<ExprId, Bits>);

/// Expressions that share what they have in common.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    nodes: Vec<(Node, Type)>,
    /// For each of them, the reads that its thread must have made: one more than the last that it depends on.
    needs: Vec<u32>,
    known: FxHashMap<(Node, Type), ExprId>,
}

impl Dag {
    /// How many different expressions there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    /// What an expression is.
    pub fn node(&self, expr: ExprId) -> Node {
        self.nodes[expr.0 as usize].0
    }
    /// The type of its value.
    pub fn type_of(&self, expr: ExprId) -> Type {
        self.nodes[expr.0 as usize].1
    }

    /// How many reads a thread must have made before the expression means anything.
    pub(crate) fn needs(&self, expr: ExprId) -> usize {
        self.needs[expr.0 as usize] as usize
    }

    fn intern(&mut self, node: Node, of: Type) -> Result<ExprId, Untyped> {
        if let Some(&known) = self.known.get(&(node, of)) {
            return Ok(known);
        }
        if !(1..=64).contains(&of.bits()) {
            return Err(Untyped::Width);
        }
        let id = ExprId(u32::try_from(self.nodes.len()).map_err(|_| Untyped::TooMany)?);
        self.needs.push(match node {
            Node::Constant(_) => 0,
            Node::Read(read) => read.saturating_add(1),
            Node::Apply(_, operands) => operands.iter().map(|e| self.needs[e.0 as usize]).max().unwrap_or(0),
        });
        self.nodes.push((node, of));
        self.known.insert((node, of), id);
        Ok(id)
    }
    /// A number.
    pub fn constant(&mut self, of: Type, number: i64) -> Result<ExprId, Untyped> {
        self.intern(Node::Constant(of.truncate(number)), of)
    }
    /// What a read saw.
    pub fn read(&mut self, of: Type, read: u32) -> Result<ExprId, Untyped> {
        self.intern(Node::Read(read), of)
    }
    /// An operation. `to` is the type that a cast is to; others have that of their operands.
    pub fn apply(&mut self, operator: Operator, operands: &[ExprId], to: Option<Type>) -> Result<ExprId, Untyped> {
        let &first = operands.first().ok_or(Untyped::Operands)?;
        if operands.len() != operator.arity() {
            return Err(Untyped::Operands);
        }
        let types: Vec<Type> = operands.iter().map(|&e| self.type_of(e)).collect();
        let of = match operator {
            Operator::Cast => to.ok_or(Untyped::Operands)?,
            Operator::Bits => to.filter(|to| to.bits() == types[0].bits()).ok_or(Untyped::Operands)?,
            Operator::Select if types[0] == Type::BOOL && types[1] == types[2] => types[1],
            Operator::Shl | Operator::Shr if types.iter().all(|t| t.float(0).is_none()) => types[0],
            Operator::Select | Operator::Shl | Operator::Shr => return Err(Untyped::Operands),
            Operator::And | Operator::Or | Operator::Xor | Operator::Not | Operator::Rem
                if types[0].float(0).is_some() =>
            {
                return Err(Untyped::Operands);
            }
            _ if types.iter().any(|t| *t != types[0]) => return Err(Untyped::Operands),
            _ if operator.compares() => Type::BOOL,
            _ => types[0],
        };
        let mut all = [first; 3];
        all[..operands.len()].copy_from_slice(operands);
        self.intern(Node::Apply(operator, all), of)
    }

    /// The reads that an expression depends on, ascending.
    pub fn reads(&self, expr: ExprId) -> Vec<u32> {
        let mut work = vec![expr];
        let mut seen = rustc_hash::FxHashSet::default();
        let mut reads = Vec::new();
        while let Some(expr) = work.pop() {
            if seen.insert(expr) {
                match self.node(expr) {
                    Node::Constant(_) => {}
                    Node::Read(read) => reads.push(read),
                    Node::Apply(_, operands) => work.extend(operands),
                }
            }
        }
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// The expression with the numbers of its reads moved; `None` if one of them would be negative.
    pub(crate) fn shifted(&mut self, expr: ExprId, by: i64) -> Option<ExprId> {
        if by == 0 {
            return Some(expr);
        }
        let mut moved: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut work = vec![expr];
        while let Some(&next) = work.last() {
            let node = match self.node(next) {
                Node::Read(read) => Node::Read(u32::try_from(i64::from(read) + by).ok()?),
                Node::Apply(operator, operands) => {
                    let before = work.len();
                    work.extend(operands.iter().filter(|e| !moved.contains_key(e)));
                    if work.len() > before {
                        continue;
                    }
                    Node::Apply(operator, operands.map(|e| moved[&e]))
                }
                constant => constant,
            };
            let id = self.intern(node, self.type_of(next)).ok()?;
            moved.insert(next, id);
            work.pop();
        }
        moved.get(&expr).copied()
    }

    /// The value of an expression as a recorded number, given what reads saw; `None` if it has none, or is not known.
    pub fn evaluate(&self, expr: ExprId, read: &impl Fn(u32) -> Option<i64>) -> Option<i64> {
        self.outcome(expr, read).number()
    }

    /// What an expression comes out as, given what reads saw, where that is known.
    pub fn outcome(&self, expr: ExprId, read: &impl Fn(u32) -> Option<i64>) -> Evaluated {
        self.outcome_with(&mut Memo::default(), expr, read)
    }

    /// The same, with what is known of other expressions of the same reads.
    pub(crate) fn outcome_with(
        &self,
        Memo(values): &mut Memo,
        expr: ExprId,
        read: &impl Fn(u32) -> Option<i64>,
    ) -> Evaluated {
        // Operands come before what they are part of: no recursion, however deep.
        let mut work = vec![expr];
        while let Some(&next) = work.last() {
            if values.contains_key(&next) {
                work.pop();
                continue;
            }
            let of = self.type_of(next);
            let value = match self.node(next) {
                Node::Constant(bits) => Bits::Known(bits),
                Node::Read(number) => Bits::of(read(number).map(|number| of.truncate(number)), Bits::Unknown),
                Node::Apply(Operator::Select, [condition, then, otherwise]) => {
                    let arm = match values.get(&condition) {
                        None => condition,
                        Some(Bits::Known(0)) => otherwise,
                        Some(Bits::Known(_)) => then,
                        // Neither arm is taken.
                        Some(Bits::Unknown | Bits::Nothing) => condition,
                    };
                    match values.get(&arm) {
                        Some(&value) => value,
                        None => {
                            work.push(arm);
                            continue;
                        }
                    }
                }
                Node::Apply(operator, operands) => {
                    let missing = operands.iter().filter(|e| !values.contains_key(e));
                    let before = work.len();
                    work.extend(missing);
                    if work.len() > before {
                        continue;
                    }
                    apply(operator, self.type_of(operands[0]), of, operands.map(|e| values[&e]))
                }
            };
            values.insert(next, value);
            work.pop();
        }
        values[&expr].outcome(self.type_of(expr))
    }
}

/// What an operator makes of all its operands; what is not known comes before what has no value.
pub(super) fn apply(operator: Operator, from: Type, to: Type, operands: [Bits; 3]) -> Bits {
    match operands {
        [Bits::Known(a), Bits::Known(b), Bits::Known(c)] => {
            Bits::of(compute(operator, from, to, [a, b, c]), Bits::Nothing)
        }
        _ if operands.contains(&Bits::Unknown) => Bits::Unknown,
        _ => Bits::Nothing,
    }
}

pub(super) fn compute(operator: Operator, from: Type, to: Type, [a, b, c]: [u64; 3]) -> Option<u64> {
    use Operator::*;
    match operator {
        Select => return Some(if a != 0 { b } else { c }),
        Bits => return Some(a),
        Cast => return cast(from, to, a),
        _ => {}
    }
    if let (Some(x), Some(y)) = (from.float(a), from.float(b)) {
        return Some(match operator {
            Neg => from.of_float(-x),
            Add => from.of_float(x + y),
            Sub => from.of_float(x - y),
            Mul => from.of_float(x * y),
            Div => from.of_float(x / y),
            Eq => u64::from(x == y),
            Ne => u64::from(x != y),
            Lt => u64::from(x < y),
            Le => u64::from(x <= y),
            Gt => u64::from(x > y),
            Ge => u64::from(x >= y),
            _ => return None,
        });
    }
    let signed = matches!(from, Type::Signed(_));
    let (x, y) = (from.extend(a), from.extend(b));
    let order = if signed { x.cmp(&y) } else { a.cmp(&b) };
    let number = match operator {
        Neg => x.wrapping_neg(),
        Not => !x,
        Add => x.wrapping_add(y),
        Sub => x.wrapping_sub(y),
        Mul => x.wrapping_mul(y),
        Div | Rem if b == 0 => return None,
        Div if signed => x.wrapping_div(y),
        Div => (a / b) as i64,
        Rem if signed => x.wrapping_rem(y),
        Rem => (a % b) as i64,
        And => x & y,
        Or => x | y,
        Xor => x ^ y,
        // Shifting by the width or more leaves nothing, or only signs.
        Shl => x.checked_shl(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(0),
        Shr if signed => x >> b.min(63),
        Shr => a.checked_shr(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(0) as i64,
        Eq => return Some(u64::from(order.is_eq())),
        Ne => return Some(u64::from(order.is_ne())),
        Lt => return Some(u64::from(order.is_lt())),
        Le => return Some(u64::from(order.is_le())),
        Gt => return Some(u64::from(order.is_gt())),
        Ge => return Some(u64::from(order.is_ge())),
        Select | Bits | Cast => return None,
    };
    Some(to.truncate(number))
}

fn cast(from: Type, to: Type, bits: u64) -> Option<u64> {
    match (from.float(bits), to) {
        (Some(value), Type::F32 | Type::F64) => Some(to.of_float(value)),
        (Some(value), _) => {
            let whole = value.trunc();
            let (least, most) = match to {
                Type::Signed(width) => (-(2f64.powi(i32::from(width) - 1)), 2f64.powi(i32::from(width) - 1)),
                _ => (0.0, 2f64.powi(to.bits() as i32)),
            };
            if !(whole >= least && whole < most) {
                return None;
            }
            Some(if whole < 0.0 { to.truncate(whole as i64) } else { to.truncate(whole as u64 as i64) })
        }
        (None, Type::F32 | Type::F64) => match from {
            Type::Signed(_) if to == Type::F32 => Some(u64::from((from.extend(bits) as f32).to_bits())),
            Type::Signed(_) => Some((from.extend(bits) as f64).to_bits()),
            _ if to == Type::F32 => Some(u64::from((bits as f32).to_bits())),
            _ => Some((bits as f64).to_bits()),
        },
        (None, _) => Some(to.truncate(from.extend(bits))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_if_only_the_arm_that_is_taken_counts() {
        let mut dag = Dag::default();
        let of = Type::DEFAULT;
        let [flag, x, y] = [0, 1, 2].map(|read| dag.read(of, read).unwrap());
        let [zero, one] = [0, 1].map(|number| dag.constant(of, number).unwrap());
        let is_set = dag.apply(Operator::Ne, &[flag, zero], None).unwrap();
        let ratio = dag.apply(Operator::Div, &[one, y], None).unwrap();
        let chosen = dag.apply(Operator::Select, &[is_set, x, ratio], None).unwrap();
        let more = dag.apply(Operator::Add, &[chosen, one], None).unwrap();
        let compiled = dag.compile(more);
        let case = |flag: Option<i64>, x: Option<i64>, y: Option<i64>, expected: Evaluated| {
            let reads = [flag, x, y];
            assert_eq!(dag.outcome(more, &|read| reads[read as usize]), expected, "{reads:?}");
            assert_eq!(compiled.outcome(|read| reads[read]), expected, "{reads:?}, compiled");
        };
        case(Some(1), Some(7), None, Evaluated::Number(8));
        case(Some(1), Some(7), Some(0), Evaluated::Number(8));
        case(Some(0), None, Some(1), Evaluated::Number(2));
        case(Some(1), None, Some(1), Evaluated::Unknown);
        case(Some(0), Some(7), None, Evaluated::Unknown);
        case(Some(0), None, Some(0), Evaluated::Nothing);
        case(None, Some(7), Some(0), Evaluated::Unknown);
        case(None, Some(7), Some(1), Evaluated::Unknown);
    }

    #[test]
    fn what_is_not_known_comes_before_what_has_no_value() {
        let mut dag = Dag::default();
        let [x, y] = [0, 1].map(|read| dag.read(Type::DEFAULT, read).unwrap());
        let ratio = dag.apply(Operator::Div, &[x, x], None).unwrap();
        let sum = dag.apply(Operator::Add, &[ratio, y], None).unwrap();
        let compiled = dag.compile(sum);
        for (reads, expected) in [
            ([Some(0), None], Evaluated::Unknown),
            ([None, Some(0)], Evaluated::Unknown),
            ([Some(0), Some(1)], Evaluated::Nothing),
            ([Some(2), Some(1)], Evaluated::Number(2)),
        ] {
            assert_eq!(dag.outcome(sum, &|read| reads[read as usize]), expected);
            assert_eq!(compiled.outcome(|read| reads[read]), expected);
        }
    }
}
