//! Symbolic traces: what reads see, what formulas come out as and what variables hold are bit-vectors, which the solver is
//! free to choose as the order allows. The engine instead executes one order after the other.
//!
//! Generated values stay below 256 whatever the order, so integers of 64 bits are computed in [`WIDTH`] bits (with 64 the
//! answers are the same and take seven times as long), and floats, which are multiples of a half, as twice their value.
//! Formulas of any other kind are refused.

use super::order::{Facts, all, any, at, complete, facts, last, lt, order, p, sees};
use portent_order::{Goal, Writer};
use portent_trace::symbolic::{ExprId, Node, Operator, Type};
use portent_trace::{EventId, Op, Trace};
use std::fmt::Write as _;

const WIDTH: u32 = 16;

/// The number that a read saw, and whether it is one.
fn seen(read: EventId) -> String {
    format!("v{}", read.index())
}
fn is_known(read: EventId) -> String {
    format!("k{}", read.index())
}
/// The number that a write wrote, and whether it is one.
fn written(write: EventId) -> String {
    format!("w{}", write.index())
}
fn is_solid(write: EventId) -> String {
    format!("s{}", write.index())
}

fn not(fact: String) -> String {
    format!("(not {fact})")
}
fn equal(a: impl AsRef<str>, b: impl AsRef<str>) -> String {
    format!("(= {} {})", a.as_ref(), b.as_ref())
}
fn constant(number: i64, bits: u32) -> String {
    let modulus = 1i64 << bits;
    assert!(-modulus < 2 * number && number < modulus, "{number} does not fit");
    format!("(_ bv{} {bits})", number.rem_euclid(modulus))
}

fn bits(of: Type) -> u32 {
    match of {
        Type::Signed(64) | Type::F32 | Type::F64 => WIDTH,
        Type::Unsigned(bits @ (1 | 8)) => u32::from(bits),
        other => panic!("formulas of {other:?} are not encoded"),
    }
}

/// The formulas of a trace as terms over what its reads saw.
pub(super) struct Encoding<'t> {
    trace: &'t Trace,
    f: Facts,
    /// The reads of each thread by number.
    reads: Vec<Vec<EventId>>,
}

impl<'t> Encoding<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut reads = vec![Vec::new(); trace.threads()];
        for event in trace.events().filter(|event| event.op.reads()) {
            reads[event.thread.index()].push(event.id);
        }
        Encoding { trace, f: facts(trace), reads }
    }

    /// The term of a formula of an event; the terms that must not be 0 for it to have a value.
    fn term(&self, event: EventId, expr: ExprId, divisors: &mut Vec<String>) -> String {
        let dag = self.trace.symbols().unwrap().dag();
        let of = dag.type_of(expr);
        match dag.node(expr) {
            Node::Constant(raw) => match of {
                Type::F32 => constant((f32::from_bits(raw as u32) * 2.0) as i64, WIDTH),
                Type::F64 => constant((f64::from_bits(raw) * 2.0) as i64, WIDTH),
                Type::Unsigned(width) => format!("(_ bv{raw} {width})"),
                Type::Signed(_) => constant(of.extend(raw), bits(of)),
            },
            Node::Read(read) => {
                let value = seen(self.reads[self.trace.thread(event).index()][read as usize]);
                if bits(of) == WIDTH { value } else { format!("((_ extract {} 0) {value})", bits(of) - 1) }
            }
            Node::Apply(operator, operands) => {
                let from = dag.type_of(operands[0]);
                let operands = &operands[..operator.arity()];
                let terms: Vec<String> = operands.iter().map(|&e| self.term(event, e, divisors)).collect();
                self.apply(operator, (from, of), &terms, divisors)
            }
        }
    }

    fn apply(&self, operator: Operator, types: (Type, Type), terms: &[String], divisors: &mut Vec<String>) -> String {
        let is_float = |of: Type| matches!(of, Type::F32 | Type::F64);
        let (from, to) = types;
        let two = constant(2, WIDTH);
        match operator {
            Operator::Cast => {
                return match (is_float(from), is_float(to)) {
                    (false, true) => format!("(bvmul {two} {})", terms[0]),
                    (true, false) => format!("(bvsdiv {} {two})", terms[0]),
                    (false, false) if bits(from) < bits(to) => {
                        assert!(matches!(from, Type::Unsigned(_)), "only unsigned integers are made longer");
                        format!("((_ zero_extend {}) {})", bits(to) - bits(from), terms[0])
                    }
                    _ => panic!("a cast from {from:?} to {to:?} is not encoded"),
                };
            }
            Operator::Mul if is_float(from) => return format!("(bvsdiv (bvmul {} {}) {two})", terms[0], terms[1]),
            Operator::Select => return format!("(ite (= {} #b1) {} {})", terms[0], terms[1], terms[2]),
            Operator::Div | Operator::Rem => divisors.push(terms[1].clone()),
            _ => {}
        }
        let signed = !matches!(from, Type::Unsigned(_));
        let word = match operator {
            Operator::Add => "bvadd",
            Operator::Sub => "bvsub",
            Operator::Mul => "bvmul",
            Operator::And => "bvand",
            Operator::Or => "bvor",
            Operator::Xor => "bvxor",
            Operator::Div if signed => "bvsdiv",
            Operator::Rem if signed => "bvsrem",
            Operator::Eq => "=",
            Operator::Ne => "distinct",
            Operator::Lt if signed => "bvslt",
            Operator::Le if signed => "bvsle",
            Operator::Gt if signed => "bvsgt",
            Operator::Ge if signed => "bvsge",
            other => panic!("{other:?} of {from:?} is not encoded"),
        };
        let applied = format!("({word} {})", terms.join(" "));
        if operator.compares() { format!("(ite {applied} #b1 #b0)") } else { applied }
    }

    /// Whether every read in a formula of an event saw a number.
    fn all_known(&self, event: EventId, expr: ExprId) -> String {
        let reads = self.trace.symbols().unwrap().dag().reads(expr);
        let of = &self.reads[self.trace.thread(event).index()];
        all(reads.into_iter().map(|read| is_known(of[read as usize])).collect())
    }

    /// That a read sees what this write left.
    fn takes(&self, read: EventId, writer: Writer) -> String {
        let x = self.trace.op(read).variable().unwrap().index();
        match (writer, self.f.initial[x]) {
            (Writer::Event(w), _) => all(vec![equal(is_known(read), is_solid(w)), equal(seen(read), written(w))]),
            (Writer::Init, Some(number)) => all(vec![is_known(read), equal(seen(read), constant(number, WIDTH))]),
            (Writer::Init, None) => not(is_known(read)),
        }
    }

    fn sources(&self, read: EventId) -> impl Iterator<Item = Writer> + '_ {
        let writes = &self.f.writes[self.trace.op(read).variable().unwrap().index()];
        writes.iter().filter(move |&&w| w != read).map(|&w| Writer::Event(w)).chain([Writer::Init])
    }

    /// Whether the event happens, given what its thread has read: its condition comes out as in the trace, and what it
    /// writes comes out at all.
    fn told(&self, event: EventId) -> String {
        let symbols = self.trace.symbols().unwrap();
        let mut parts = Vec::new();
        for &(expr, value) in symbols.guards(event) {
            assert_eq!(symbols.dag().type_of(expr), Type::BOOL, "a condition");
            let mut divisors = Vec::new();
            parts.push(equal(self.term(event, expr, &mut divisors), format!("#b{value}")));
            parts.push(self.all_known(event, expr));
            assert!(divisors.is_empty(), "no condition divides");
        }
        if let Some(expr) = symbols.written(event) {
            let mut divisors = Vec::new();
            self.term(event, expr, &mut divisors);
            let whole = divisors.into_iter().map(|term| not(equal(term, constant(0, WIDTH)))).collect();
            parts.push(any(vec![not(self.all_known(event, expr)), all(whole)]));
        }
        all(parts)
    }

    pub(super) fn constraints(&self) -> String {
        let (trace, f) = (self.trace, &self.f);
        let symbols = trace.symbols().unwrap();
        let mut s = order(trace, f, "ALL");
        for event in trace.events() {
            let mut declare = |number: String, known: String| {
                let _ = writeln!(s, "(declare-const {number} (_ BitVec {WIDTH}))\n(declare-const {known} Bool)");
            };
            if event.op.reads() {
                declare(seen(event.id), is_known(event.id));
            }
            if event.op.writes() {
                declare(written(event.id), is_solid(event.id));
            }
        }
        for event in trace.events() {
            let e = event.id;
            let mut say = |fact: String| {
                let _ = writeln!(s, "(assert {fact})");
            };
            if event.op.reads() {
                let choices = self.sources(e).map(|w| all(vec![sees(trace, f, e, w), self.takes(e, w)]));
                say(any([lt("z", p(e))].into_iter().chain(choices).collect()));
            }
            if event.op.writes() {
                let expr = symbols.written(e).expect("every write has a formula");
                assert_eq!(symbols.dag().type_of(expr), Type::DEFAULT, "what is written");
                say(equal(written(e), self.term(e, expr, &mut Vec::new())));
                say(equal(is_solid(e), self.all_known(e, expr)));
            }
            if event.op.writes() || event.op == Op::Branch {
                say(any(vec![lt("z", p(e)), self.told(e)]));
            }
        }
        s
    }

    /// The event is next, and would happen.
    fn next(&self, event: EventId) -> String {
        let mut parts = vec![at(self.trace, &self.f, event), self.told(event)];
        if let Op::Read(x, _) | Op::Update(x, _) = self.trace.op(event) {
            let sees = |w| all(vec![last(&self.f, x, w), self.takes(event, w)]);
            parts.push(any(self.sources(event).map(sees).collect()));
        }
        all(parts)
    }

    /// A write has left a number, and another than this where there is one.
    fn leaves_another(&self, write: EventId, than: Option<i64>) -> String {
        let differs = than.map(|number| not(equal(written(write), constant(number, WIDTH))));
        all([is_solid(write)].into_iter().chain(differs).collect())
    }

    pub(super) fn goal(&self, goal: &Goal) -> String {
        let (trace, f) = (self.trace, &self.f);
        match *goal {
            Goal::Race { first, second } => all(vec![self.next(first), self.next(second)]),
            Goal::Nondeterminism { read, challenger } => {
                let x = trace.op(read).variable().unwrap();
                let expected = match (trace.op(read), f.saw[read.index()]) {
                    (Op::Read(..), _) => trace.value(read),
                    (_, Writer::Event(w)) => trace.value(w),
                    (_, Writer::Init) => f.initial[x.index()],
                };
                let differs = match challenger {
                    Writer::Event(c) => self.leaves_another(c, expected),
                    Writer::Init if expected.is_some() && f.initial[x.index()] == expected => "false".into(),
                    Writer::Init => "true".into(),
                };
                all(vec![self.next(read), last(f, x, challenger), differs])
            }
            Goal::FinalValue { variable, challenger } => {
                let ended = f.writes[variable.index()].last().and_then(|&w| trace.value(w));
                let another = self.leaves_another(challenger, ended);
                all(vec![complete(f), last(f, variable, Writer::Event(challenger)), another])
            }
            Goal::Atomicity { first, remote, second } => {
                all(vec![lt(p(first), p(remote)), lt(p(remote), p(second)), lt(p(second), "z")])
            }
            Goal::Deadlock { ref waiting } => all(waiting.iter().map(|&e| at(trace, f, e)).collect()),
            Goal::LostWakeup { .. } | Goal::LostUpdate { .. } | Goal::Stuck { .. } => {
                unreachable!("not asked of the SMT solver")
            }
        }
    }
}
