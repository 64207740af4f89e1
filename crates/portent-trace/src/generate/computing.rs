//! What the simulated program computes: with [`Config::symbolic`](super::Config::symbolic), every value that a thread writes and
//! every condition it branches on is a small formula over its last few reads.
//!
//! Formulas stay small and name recent reads only, so that a trace of any length costs so much per event. Values stay
//! below 256, so that different writes now and then write the same, and conditions hold for other values, too: in
//! programs they are rarely equalities. Formulas are made as events are and can be taken out at any time: whoever does
//! so with every few batches never holds those of the whole trace.

use super::random::Random;
use crate::symbolic::{Dag, ExprId, Formulas, Operator, Type, Untyped};

/// How many of a thread's last reads its formulas name.
const MEMORY: usize = 3;
const INT: Type = Type::DEFAULT;
const BYTE: Type = Type::Unsigned(8);
const ORDERS: [Operator; 4] = [Operator::Lt, Operator::Le, Operator::Gt, Operator::Ge];

type Made = Result<ExprId, Untyped>;

/// Every thread's last reads, and the formulas so far.
#[derive(Clone, Debug)]
pub(super) struct Computing {
    formulas: Formulas,
    threads: Vec<Reads>,
    /// Variables whose value the trace tells: those written before.
    known: Vec<bool>,
}

#[derive(Clone, Debug, Default)]
struct Reads {
    /// Reads made, updates included.
    made: u32,
    /// The last of those that saw a value that the trace tells, by number, newest last.
    last: Vec<(u32, i64)>,
}

impl Reads {
    fn saw(&mut self, value: Option<i64>) {
        if let Some(value) = value {
            if self.last.len() == MEMORY {
                self.last.remove(0);
            }
            self.last.push((self.made, value));
        }
        self.made += 1;
    }
    fn value(&self, read: u32) -> Option<i64> {
        self.last.iter().find(|(number, _)| *number == read).map(|&(_, value)| value)
    }
}

impl Computing {
    pub(super) fn new(threads: u32, variables: u32) -> Self {
        let known = vec![false; variables as usize];
        Self { formulas: Formulas::default(), threads: vec![Reads::default(); threads as usize], known }
    }

    /// Takes out the formulas of the events made since it was last done.
    pub(super) fn take(&mut self) -> Option<Formulas> {
        Some(std::mem::take(&mut self.formulas)).filter(|formulas| !formulas.of.is_empty())
    }

    /// The thread reads a value.
    pub(super) fn read(&mut self, t: u32, value: i64) {
        self.threads[t as usize].saw(Some(value));
    }

    /// What the thread writes with the event of this number.
    pub(super) fn write(&mut self, random: &mut Random, t: u32, x: u32, event: u64) -> i64 {
        self.known[x as usize] = true;
        let made = self.maker(random, t).value();
        self.settle(t, event, made)
    }

    /// What the thread writes where it has just read `old`.
    pub(super) fn update(&mut self, random: &mut Random, t: u32, x: u32, old: i64, event: u64) -> i64 {
        let known = std::mem::replace(&mut self.known[x as usize], true);
        let own = self.threads[t as usize].made;
        self.threads[t as usize].saw(known.then_some(old));
        let mut maker = self.maker(random, t);
        let made = if known { maker.updated(own) } else { maker.value() };
        self.settle(t, event, made)
    }

    /// The thread branches with the event of this number.
    pub(super) fn branch(&mut self, random: &mut Random, t: u32, event: u64) {
        let made = self.maker(random, t).condition();
        self.settle(t, event, made);
    }

    fn maker<'m>(&'m mut self, random: &'m mut Random, t: u32) -> Maker<'m> {
        Maker { dag: &mut self.formulas.dag, random, reads: &self.threads[t as usize].last }
    }

    /// Ties a formula to its event; its value. One that has none, as it divides by 0, becomes 0.
    fn settle(&mut self, t: u32, event: u64, made: Made) -> i64 {
        let dag = &mut self.formulas.dag;
        let reads = &self.threads[t as usize];
        let valued = made.and_then(|expr| match dag.evaluate(expr, &|read| reads.value(read)) {
            Some(value) => Ok((expr, value)),
            None => dag.constant(INT, 0).map(|zero| (zero, 0)),
        });
        // Only billions of formulas at once can fail, and then the event has none.
        let Ok((expr, value)) = valued else { return 0 };
        self.formulas.of.push((event as u32, false, expr));
        value
    }
}

/// Makes formulas at random.
struct Maker<'m> {
    dag: &'m mut Dag,
    random: &'m mut Random,
    reads: &'m [(u32, i64)],
}

impl Maker<'_> {
    fn number(&mut self, of: Type, below: u32) -> Made {
        let number = i64::from(self.random.below(below));
        self.dag.constant(of, number)
    }

    fn apply(&mut self, operator: Operator, a: ExprId, b: ExprId) -> Made {
        self.dag.apply(operator, &[a, b], None)
    }

    fn cast(&mut self, expr: ExprId, to: Type) -> Made {
        self.dag.apply(Operator::Cast, &[expr], Some(to))
    }

    /// The number of one of the last reads, and what it saw. Asked only where there is one.
    fn pick(&mut self) -> (u32, i64) {
        let at = self.random.below(self.reads.len() as u32) as usize;
        self.reads.get(at).copied().unwrap_or_default()
    }

    fn read(&mut self, of: Type) -> Made {
        let (read, _) = self.pick();
        self.dag.read(of, read)
    }

    fn byte(&mut self, expr: ExprId) -> Made {
        let mask = self.dag.constant(INT, 255)?;
        self.apply(Operator::And, expr, mask)
    }

    fn low_bits(&mut self) -> i64 {
        (2 << self.random.below(3)) - 1
    }

    /// A value to be written.
    fn value(&mut self) -> Made {
        if self.reads.is_empty() {
            return self.number(INT, 16);
        }
        match self.random.below(20) {
            0..=4 => self.number(INT, 16),
            5..=7 => self.read(INT),
            8..=10 => {
                let (a, b) = (self.read(INT)?, self.number(INT, 8)?);
                let sum = self.apply(Operator::Add, a, b)?;
                self.byte(sum)
            }
            11..=12 => {
                let operator = [Operator::Add, Operator::Sub, Operator::Xor][self.random.below(3) as usize];
                let (a, b) = (self.read(INT)?, self.read(INT)?);
                let both = self.apply(operator, a, b)?;
                self.byte(both)
            }
            13 => {
                let bits = self.low_bits();
                let (a, mask) = (self.read(INT)?, self.dag.constant(INT, bits)?);
                self.apply(Operator::And, a, mask)
            }
            14..=15 => {
                let operator = [Operator::Add, Operator::Mul][self.random.below(2) as usize];
                let (a, b) = (self.read(BYTE)?, self.number(BYTE, 8)?);
                let wrapped = self.apply(operator, a, b)?;
                self.cast(wrapped, INT)
            }
            16 => {
                let holds = self.ordered()?;
                self.cast(holds, INT)
            }
            17 => {
                let operands = [self.ordered()?, self.read(INT)?, self.read(INT)?];
                self.dag.apply(Operator::Select, &operands, None)
            }
            18 => {
                let half = self.dag.constant(Type::F64, 0.5f64.to_bits() as i64)?;
                let a = self.read(INT)?;
                let float = self.cast(a, Type::F64)?;
                let halved = self.apply(Operator::Mul, float, half)?;
                self.cast(halved, INT)
            }
            _ => {
                let operator = [Operator::Div, Operator::Rem][self.random.below(2) as usize];
                let (a, b) = (self.read(INT)?, self.read(INT)?);
                self.apply(operator, a, b)
            }
        }
    }

    /// What an update writes that read as its thread's read of this number.
    fn updated(&mut self, own: u32) -> Made {
        let old = self.dag.read(INT, own)?;
        match self.random.below(8) {
            0..=3 => {
                let one = self.dag.constant(INT, 1)?;
                let next = self.apply(Operator::Add, old, one)?;
                self.byte(next)
            }
            4 => {
                let bits = self.number(INT, 16)?;
                self.apply(Operator::Or, old, bits)
            }
            5..=6 => {
                // Compares and exchanges.
                let expected = self.number(INT, 8)?;
                let equal = self.apply(Operator::Eq, old, expected)?;
                let new = self.value()?;
                self.dag.apply(Operator::Select, &[equal, new, old], None)
            }
            _ => self.value(),
        }
    }

    /// A number that a condition compares with a read that saw this: often near it.
    fn bound(&mut self, seen: i64) -> i64 {
        match self.random.one_in(2) {
            true => i64::from(self.random.below(32)),
            false => (seen + i64::from(self.random.below(9)) - 4).max(0),
        }
    }

    fn order(&mut self) -> Operator {
        ORDERS[self.random.below(ORDERS.len() as u32) as usize]
    }

    /// Some read less than some number, or the like.
    fn ordered(&mut self) -> Made {
        let (read, seen) = self.pick();
        let bound = self.bound(seen);
        let (a, b) = (self.dag.read(INT, read)?, self.dag.constant(INT, bound)?);
        let order = self.order();
        self.apply(order, a, b)
    }

    /// A condition to branch on. Some do not hold: what counts is that they come out the same again.
    fn condition(&mut self) -> Made {
        if self.reads.is_empty() {
            return self.dag.constant(Type::BOOL, 1);
        }
        match self.random.below(16) {
            0..=5 => self.ordered(),
            6..=7 => {
                let (read, seen) = self.pick();
                let bound = self.bound(seen);
                let (a, b) = (self.dag.read(INT, read)?, self.dag.constant(INT, bound)?);
                self.apply(Operator::Ne, a, b)
            }
            8 => {
                let (read, seen) = self.pick();
                let (a, b) = (self.dag.read(INT, read)?, self.dag.constant(INT, seen)?);
                self.apply(Operator::Eq, a, b)
            }
            9..=10 => {
                let bits = self.low_bits();
                let (read, seen) = self.pick();
                let (a, mask) = (self.dag.read(INT, read)?, self.dag.constant(INT, bits)?);
                let low = self.apply(Operator::And, a, mask)?;
                let same = self.dag.constant(INT, seen & bits)?;
                self.apply(Operator::Eq, low, same)
            }
            11..=12 => {
                let (a, b, order) = (self.read(INT)?, self.read(INT)?, self.order());
                self.apply(order, a, b)
            }
            13 => {
                let (a, b) = (self.read(INT)?, self.read(INT)?);
                let sum = self.apply(Operator::Add, a, b)?;
                let bound = self.number(INT, 64)?;
                let order = self.order();
                self.apply(order, sum, bound)
            }
            14 => {
                let (one, other) = (self.ordered()?, self.ordered()?);
                let operator = [Operator::And, Operator::Or][self.random.below(2) as usize];
                self.apply(operator, one, other)
            }
            _ => {
                let (read, seen) = self.pick();
                let bound = self.bound(seen) as f32 + 0.5;
                let a = self.dag.read(INT, read)?;
                let float = self.cast(a, Type::F32)?;
                let bound = self.dag.constant(Type::F32, i64::from(bound.to_bits()))?;
                let order = self.order();
                self.apply(order, float, bound)
            }
        }
    }
}
