//! Formulas as text: `(gt r0:i32 (add:i32 …))`, docs/src/reference/std-format.md.
//!
//! A number or a read may carry a type (`5:u8`, `r0:f64`; without one it is `i64`), operations have that of their
//! operands, and only `cast` and `bits` name the type they are to. `$name` stands for an expression that was given a
//! name before, so that what is shared is written once.

use super::expr::{Dag, ExprId, Node, Operator, Type};
use crate::error::Problem;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// Formulas by the number of their input event, as a reader finds them.
#[derive(Clone, Debug, Default)]
pub struct Formulas {
    /// Their expressions.
    pub dag: Dag,
    /// Input event, whether it is the address, and the expression.
    pub of: Vec<(u32, bool, ExprId)>,
    /// Input event, and an event of the side that the branch did not take, in order.
    pub sides: Vec<(u32, SideText)>,
    named: FxHashMap<String, ExprId>,
}

/// An event of the side that a branch did not take, as it is written: `w(x)|loc|= formula`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideText {
    /// The operation and its object.
    pub call: String,
    /// Where in the source.
    pub location: String,
    /// What it writes, where that is known.
    pub written: Option<ExprId>,
}

/// Longer expressions get names, so that no text is long however deep the expression.
const LONG: usize = 120;

fn bad(why: impl std::fmt::Display) -> Problem {
    Problem::Formula(why.to_string())
}

impl Formulas {
    /// Reads a directive of STD text, what follows `#!`, behind the event of this number; whether it is one.
    pub(crate) fn directive(&mut self, line: &[u8], last: Option<u32>) -> Result<bool, Problem> {
        let Ok(text) = std::str::from_utf8(line) else { return Ok(false) };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, text) = text.split_at(digits);
        let (kind, rest) = match text.chars().next() {
            Some(kind @ ('=' | '@')) => (kind, text[1..].trim()),
            Some(':') if digits == 0 => (':', text[1..].trim()),
            Some('e') if text.strip_prefix("else").is_some_and(|rest| rest.starts_with(' ')) => ('e', text[5..].trim()),
            _ => return Ok(false),
        };
        let last = match number {
            "" => last,
            number => Some(number.parse().map_err(|_| bad("there is no event with that number"))?),
        };
        if kind == ':' {
            let (name, expr) =
                rest.split_once(char::is_whitespace).ok_or_else(|| bad("expected #!: name expression"))?;
            let expr = self.parse(expr)?;
            self.named.insert(name.to_owned(), expr);
            return Ok(true);
        }
        let event = last.ok_or_else(|| bad("no event comes before it"))?;
        if kind == 'e' {
            let side = self.parse_side(rest)?;
            self.sides.push((event, side));
            return Ok(true);
        }
        let expr = self.parse(rest)?;
        self.of.push((event, kind == '@', expr));
        Ok(true)
    }

    /// All formulas as directives with the numbers of their events, one per line, without `#!`: what `.portent` files attach.
    /// What is part of several is named and written once. The texts of several tables may follow each other.
    pub fn to_text(&self) -> String {
        let mut uses = vec![0u32; self.dag.len()];
        for at in 0..self.dag.len() as u32 {
            if let Node::Apply(operator, operands) = self.dag.node(ExprId(at)) {
                operands[..operator.arity()].iter().for_each(|e| uses[e.0 as usize] += 1);
            }
        }
        let sides = self.sides.iter().filter_map(|(_, side)| side.written);
        self.of.iter().map(|(.., expr)| *expr).chain(sides).for_each(|expr| uses[expr.0 as usize] += 1);
        let mut text = String::new();
        // Each expression where it is used: itself, or its name. Operands come before what they are part of.
        let mut named = 0u32..;
        let mut shown: Vec<String> = Vec::with_capacity(self.dag.len());
        for at in 0..self.dag.len() as u32 {
            let expr = self.shown(ExprId(at), &shown);
            let is_operation = matches!(self.dag.node(ExprId(at)), Node::Apply(..));
            shown.push(if is_operation && (uses[at as usize] > 1 || expr.len() > LONG) {
                let name = named.next().unwrap_or_default();
                let _ = writeln!(text, ":e{name} {expr}");
                format!("$e{name}")
            } else {
                expr
            });
        }
        for &(event, is_address, expr) in &self.of {
            let _ = writeln!(text, "{event}{} {}", if is_address { '@' } else { '=' }, shown[expr.0 as usize]);
        }
        for (event, side) in &self.sides {
            let written = side.written.map_or(String::new(), |expr| format!("= {}", shown[expr.0 as usize]));
            let _ = writeln!(text, "{event}else {}|{}|{written}", side.call, side.location);
        }
        text
    }

    /// An expression, given how its operands are shown.
    fn shown(&self, expr: ExprId, operands: &[String]) -> String {
        let of = self.dag.type_of(expr);
        let suffix = if of == Type::DEFAULT { String::new() } else { format!(":{}", name(of)) };
        match self.dag.node(expr) {
            Node::Constant(bits) => {
                let number = of.extend(bits);
                match of {
                    Type::F32 | Type::F64 if of.float(bits).is_some_and(f64::is_finite) => match of {
                        Type::F32 => format!("{:?}{suffix}", f32::from_bits(bits as u32)),
                        _ => format!("{:?}{suffix}", f64::from_bits(bits)),
                    },
                    Type::F32 => format!("(bits:f32 {number}:u32)"),
                    Type::F64 => format!("(bits:f64 {number})"),
                    Type::Unsigned(_) => format!("{}{suffix}", number as u64),
                    Type::Signed(_) => format!("{number}{suffix}"),
                }
            }
            Node::Read(read) => format!("r{read}{suffix}"),
            Node::Apply(operator, of_these) => {
                let mut text = format!("({}", operator.word());
                if matches!(operator, Operator::Cast | Operator::Bits) {
                    let _ = write!(text, ":{}", name(of));
                }
                for operand in &of_these[..operator.arity()] {
                    let _ = write!(text, " {}", operands[operand.0 as usize]);
                }
                text.push(')');
                text
            }
        }
    }

    /// Reads what [`Formulas::to_text`] wrote.
    pub fn from_text(text: &[u8]) -> Result<Formulas, Problem> {
        let mut formulas = Formulas::default();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if !formulas.directive(line, None)? {
                return Err(bad(format!("expected a directive, found {:?}", String::from_utf8_lossy(line))));
            }
        }
        Ok(formulas)
    }

    /// `op(object)|location|value`, where the value is a number or `= formula`; it and the location may be missing.
    fn parse_side(&mut self, text: &str) -> Result<SideText, Problem> {
        let mut fields = text.splitn(3, '|').map(str::trim);
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (call, location, value) = (field(), field(), field());
        let written = match value.strip_prefix('=') {
            Some(formula) => Some(self.parse(formula)?),
            None if value.is_empty() => None,
            None => Some(self.atom(&value)?),
        };
        Ok(SideText { call, location, written })
    }

    fn parse(&mut self, text: &str) -> Result<ExprId, Problem> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        // Operations that are not closed yet; no recursion, however deep.
        let mut open: Vec<(Operator, usize, Option<Type>, Vec<ExprId>)> = Vec::new();
        let mut words = spaced.split_whitespace();
        let mut done: Option<ExprId> = None;
        while let Some(word) = words.next() {
            if done.is_some() {
                return Err(bad(format!("expected the end of the formula, found {word:?}")));
            }
            let value = match word {
                "(" => {
                    let word = words.next().ok_or_else(|| bad("expected an operator, found the end"))?;
                    let (name, of) = typed(word)?;
                    let known = Operator::ALL.iter().find(|(_, text, _)| *text == name);
                    let &(operator, _, arity) = known.ok_or_else(|| bad(format!("unknown operator {name:?}")))?;
                    open.push((operator, arity, of, Vec::new()));
                    continue;
                }
                ")" => {
                    let (operator, arity, to, operands) = open.pop().ok_or_else(|| bad("unexpected )"))?;
                    if operands.len() != arity {
                        return Err(bad(format!("expected {arity} operands, found {}", operands.len())));
                    }
                    self.dag.apply(operator, &operands, to).map_err(bad)?
                }
                word => self.atom(word)?,
            };
            match open.last_mut() {
                Some((.., operands)) => operands.push(value),
                None => done = Some(value),
            }
        }
        match done {
            Some(expr) if open.is_empty() => Ok(expr),
            _ => Err(bad("expected an expression or ), found the end")),
        }
    }

    fn atom(&mut self, word: &str) -> Result<ExprId, Problem> {
        if let Some(name) = word.strip_prefix('$') {
            return self.named.get(name).copied().ok_or_else(|| bad(format!("${name} has no meaning yet")));
        }
        let (text, of) = typed(word)?;
        let of = of.unwrap_or(Type::DEFAULT);
        if let Some(read) = text.strip_prefix('r').and_then(|number| number.parse().ok()) {
            return self.dag.read(of, read).map_err(bad);
        }
        let number = match of {
            Type::F32 => text.parse::<f32>().map(|value| i64::from(value.to_bits())).ok(),
            Type::F64 => text.parse::<f64>().map(|value| value.to_bits() as i64).ok(),
            _ => text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|value| value as i64)),
        };
        let number = number.ok_or_else(|| bad(format!("expected a number, r0, $name or (, found {text:?}")))?;
        self.dag.constant(of, number).map_err(bad)
    }
}

fn name(of: Type) -> String {
    match of {
        Type::Signed(width) => format!("i{width}"),
        Type::Unsigned(width) => format!("u{width}"),
        Type::F32 => "f32".into(),
        Type::F64 => "f64".into(),
    }
}

/// A word without its type, and the type.
fn typed(word: &str) -> Result<(&str, Option<Type>), Problem> {
    let Some((text, name)) = word.split_once(':') else { return Ok((word, None)) };
    let unknown = || bad(format!("unknown type {name:?}; expected i1 to i64, u1 to u64, bool, f32 or f64"));
    let of = match name {
        "f32" => Type::F32,
        "f64" => Type::F64,
        "bool" => Type::BOOL,
        _ => {
            let width: u8 = name.get(1..).and_then(|width| width.parse().ok()).ok_or_else(unknown)?;
            match name.as_bytes()[0] {
                b'i' if (1..=64).contains(&width) => Type::Signed(width),
                b'u' if (1..=64).contains(&width) => Type::Unsigned(width),
                _ => return Err(unknown()),
            }
        }
    };
    Ok((text, Some(of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, reads: &[i64]) -> Option<i64> {
        let mut formulas = Formulas::default();
        let expr = formulas.parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        formulas.dag.evaluate(expr, &|read| reads.get(read as usize).copied())
    }

    #[test]
    fn formulas_are_computed_in_the_width_of_their_types() {
        assert_eq!(value("(add r0 1)", &[41]), Some(42));
        assert_eq!(value("(add r0:u8 1:u8)", &[255]), Some(0));
        assert_eq!(value("(add r0:i8 1:i8)", &[127]), Some(-128));
        assert_eq!(value("(mul r0:i32 r1:i32)", &[1 << 20, 1 << 12]), Some(0));
        assert_eq!(value("(lt r0:i8 0:i8)", &[255]), Some(1));
        assert_eq!(value("(lt r0:u8 0:u8)", &[255]), Some(0));
        assert_eq!(value("(shr r0:i8 9:i8)", &[-1]), Some(-1));
        assert_eq!(value("(shr r0:u8 8:u8)", &[255]), Some(0));
        assert_eq!(value("(shl r0:u8 1:u8)", &[129]), Some(2));
        assert_eq!(value("(not r0:bool)", &[1]), Some(0));
        assert_eq!(value("(neg r0:i16)", &[-32768]), Some(-32768));
        assert_eq!(value("(div r0 r1)", &[7, -2]), Some(-3));
        assert_eq!(value("(rem r0:u64 10:u64)", &[-1]), Some(5));
        assert_eq!(value("(div r0 r1)", &[7, 0]), None);
        assert_eq!(value("(if (gt r0 2) 10 20)", &[3]), Some(10));
        assert_eq!(value("(cast:i64 (cast:u8 r0))", &[-1]), Some(255));
        assert_eq!(value("(cast:i32 (add 1.5:f64 2.25:f64))", &[]), Some(3));
        assert_eq!(value("(cast:i8 1000.0:f32)", &[]), None);
        assert_eq!(value("(gt (cast:f32 r0) 0.5:f32)", &[1]), Some(1));
        assert_eq!(value("(bits:u32 1.0:f32)", &[]), Some(0x3f80_0000));
        assert_eq!(value("r3", &[1]), None);
    }

    #[test]
    fn what_is_shared_is_stored_once() {
        let mut formulas = Formulas::default();
        assert!(formulas.directive(b": t (add r0 1)", None).unwrap());
        assert!(formulas.directive(b"= (mul $t $t)", Some(0)).unwrap());
        assert!(formulas.directive(b"@ (mul (add r0 1) (add r0 1))", Some(1)).unwrap());
        assert_eq!(formulas.of[0].2, formulas.of[1].2);
        assert_eq!(formulas.dag.len(), 4);
        assert!(!formulas.directive(b"/usr/bin/env", None).unwrap());
    }

    #[test]
    fn formulas_come_back_from_their_text() {
        let mut formulas = Formulas::default();
        let all = [
            "(if (lt r0:u8 200:u8) -1:i7 r1:i7)",
            "(cast:f32 (add 1.5:f64 -0.0:f64))",
            "(bits:u32 -1.25:f32)",
            "(bits:i64 1e300:f64)",
            "(bits:u32 NaN:f32)",
            "(bits:i64 -inf:f64)",
            "(add (mul r0 r0) (mul r0 r0))",
            &format!("{}r0{}", "(neg ".repeat(999), ")".repeat(999)),
        ];
        for (i, text) in all.iter().enumerate() {
            assert!(formulas.directive(format!("= {text}").as_bytes(), Some(i as u32)).unwrap());
        }
        assert!(formulas.directive(b"7@ 18446744073709551615:u64", None).unwrap());
        let again = Formulas::from_text(formulas.to_text().as_bytes()).unwrap();
        assert_eq!(again.of.len(), 9);
        assert_eq!(again.to_text(), formulas.to_text());
        for (one, two) in formulas.of.iter().zip(&again.of) {
            let value = |formulas: &Formulas, expr| formulas.dag.evaluate(expr, &|read| Some(i64::from(read) + 100));
            assert_eq!((one.0, one.1, value(&formulas, one.2)), (two.0, two.1, value(&again, two.2)));
        }
        assert!(Formulas::from_text(b"what?").is_err());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let why = |text: &str| Formulas::default().parse(text).unwrap_err().to_string();
        assert_eq!(why("(add r0)"), "bad formula: expected 2 operands, found 1");
        assert_eq!(why("(add r0:i8 1)"), "bad formula: the operands' types do not fit");
        assert_eq!(why("(pow r0 2)"), "bad formula: unknown operator \"pow\"");
        assert_eq!(why("r0:i65"), "bad formula: unknown type \"i65\"; expected i1 to i64, u1 to u64, bool, f32 or f64");
        assert_eq!(why("(add r0 1"), "bad formula: expected an expression or ), found the end");
        assert_eq!(why("1 2"), "bad formula: expected the end of the formula, found \"2\"");
        assert_eq!(why("$t"), "bad formula: $t has no meaning yet");
        assert_eq!(why(&"(neg ".repeat(10_000)), "bad formula: expected an expression or ), found the end");
    }
}
