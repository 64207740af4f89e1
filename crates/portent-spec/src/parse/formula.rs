//! Formulas of past-time temporal logic.
//!
//! From the loosest to the tightest: `<->`, `->` (to the right), `|`, `&`, `since`, the words before a formula and `!`,
//! comparisons, `+ -`, `* / %`.

use super::{Parsed, Parser};
use crate::ast::{EventAtom, Expr, Formula, RefClass, Relation};
use crate::lex::Token;

const BEFORE: [&str; 6] = ["prev", "once", "historically", "start", "end", "not"];
pub(super) const EVENTS: [&str; 13] =
    ["write", "read", "update", "access", "acquire", "release", "sleep", "notify", "wake", "at", "by", "race", "any"];

impl Parser<'_> {
    pub(super) fn formula(&mut self) -> Parsed<Formula> {
        self.deeper(|parser| {
            let mut left = parser.implication()?;
            while parser.take("<->") {
                left = Formula::Iff(Box::new(left), Box::new(parser.implication()?));
            }
            Ok(left)
        })
    }

    fn implication(&mut self) -> Parsed<Formula> {
        let left = self.disjunction()?;
        if self.take("->") {
            let right = self.deeper(Self::implication)?;
            return Ok(Formula::Implies(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn disjunction(&mut self) -> Parsed<Formula> {
        let mut left = self.conjunction()?;
        while self.take("|") || self.take_word("or") {
            left = Formula::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed<Formula> {
        let mut left = self.since()?;
        while self.take("&") || self.take_word("and") {
            left = Formula::And(Box::new(left), Box::new(self.since()?));
        }
        Ok(left)
    }

    fn since(&mut self) -> Parsed<Formula> {
        let mut left = self.unary()?;
        while self.take_word("since") {
            left = Formula::Since(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Formula> {
        let wrap: Option<fn(Box<Formula>) -> Formula> = match self.peek() {
            Token::Sign("!") => Some(Formula::Not),
            Token::Word(word) => match word.as_str() {
                "not" => Some(Formula::Not),
                "prev" => Some(Formula::Prev),
                "once" => Some(Formula::Once),
                "historically" => Some(Formula::Historically),
                "start" => Some(Formula::Start),
                "end" => Some(Formula::End),
                _ => None,
            },
            _ => None,
        };
        match wrap {
            Some(wrap) => {
                self.at += 1;
                Ok(wrap(Box::new(self.deeper(Self::unary)?)))
            }
            None => self.primary(),
        }
    }

    fn primary(&mut self) -> Parsed<Formula> {
        self.one_more()?;
        if self.take("[") {
            let from = self.formula()?;
            self.require(",")?;
            let until = self.formula()?;
            self.require(")")?;
            return Ok(Formula::Interval(Box::new(from), Box::new(until)));
        }
        if self.is("(") {
            return self.either(Self::comparison, |parser| {
                parser.at += 1;
                let inside = parser.formula()?;
                parser.require(")")?;
                Ok(inside)
            });
        }
        if self.take_word("true") {
            return Ok(Formula::Constant(true));
        }
        if self.take_word("false") {
            return Ok(Formula::Constant(false));
        }
        match self.event_atom(true)? {
            Some(atom) => Ok(Formula::Event(atom)),
            None => self.comparison(),
        }
    }

    /// A condition on one event, if one begins here.
    pub(super) fn event_atom(&mut self, races: bool) -> Parsed<Option<EventAtom>> {
        let Token::Word(word) = self.peek().clone() else { return Ok(None) };
        let called = matches!(self.ahead(1), Token::Sign("("));
        match word.as_str() {
            "any" if !called => {
                self.at += 1;
                return Ok(Some(EventAtom::Any));
            }
            "_" => {
                self.at += 1;
                return Ok(Some(EventAtom::Seen));
            }
            _ if !called => return Ok(None),
            _ => {}
        }
        use RefClass::{Condition, Location, Lock, Thread, Variable};
        let (class, make): (RefClass, fn(usize) -> EventAtom) = match word.as_str() {
            "write" => (Variable, EventAtom::Write),
            "read" => (Variable, EventAtom::Read),
            "update" => (Variable, EventAtom::Update),
            "access" => (Variable, EventAtom::Access),
            "race" if races => (Variable, EventAtom::Race),
            "acquire" => (Lock, EventAtom::Acquire),
            "release" => (Lock, EventAtom::Release),
            "sleep" => (Condition, EventAtom::Sleep),
            "notify" => (Condition, EventAtom::Notify),
            "wake" => (Condition, EventAtom::Wake),
            "at" => (Location, EventAtom::At),
            "by" => (Thread, EventAtom::By),
            _ => return Err(self.expected("a kind of event", &EVENTS)),
        };
        self.at += 1;
        self.require("(")?;
        let name = self.name(class)?;
        self.require(")")?;
        Ok(Some(make(name)))
    }

    /// `expression relation expression`
    pub(super) fn comparison(&mut self) -> Parsed<Formula> {
        let left = self.sum()?;
        let relation = match self.peek() {
            Token::Sign("==") => Relation::Equal,
            Token::Sign("!=") => Relation::Different,
            Token::Sign("<") => Relation::Less,
            Token::Sign("<=") => Relation::LessOrEqual,
            Token::Sign(">") => Relation::Greater,
            Token::Sign(">=") => Relation::GreaterOrEqual,
            Token::Sign("=") => return Err(self.expected("a comparison", &[]).help("equal is `==`")),
            _ => return Err(self.expected("a comparison such as `== 1`", &["since"])),
        };
        self.at += 1;
        Ok(Formula::Compare(left, relation, self.sum()?))
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.product()?;
        loop {
            let make: fn(Box<Expr>, Box<Expr>) -> Expr = match self.peek() {
                Token::Sign("+") => Expr::Add,
                Token::Sign("-") => Expr::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            left = make(Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut left = self.term()?;
        loop {
            let make: fn(Box<Expr>, Box<Expr>) -> Expr = match self.peek() {
                Token::Sign("*") => Expr::Multiply,
                Token::Sign("/") => Expr::Divide,
                Token::Sign("%") => Expr::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            left = make(Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> Parsed<Expr> {
        self.one_more()?;
        match self.peek().clone() {
            Token::Number(number) => {
                self.at += 1;
                Ok(Expr::Number(number))
            }
            Token::Sign("-") => {
                self.at += 1;
                Ok(Expr::Negate(Box::new(self.deeper(Self::term)?)))
            }
            Token::Sign("(") => {
                self.at += 1;
                let inside = self.deeper(Self::sum)?;
                self.require(")")?;
                Ok(inside)
            }
            Token::Word(word) if BEFORE.contains(&word.as_str()) || word == "since" => {
                Err(self.expected("a variable or a number", &[]).help("put the formula in parentheses"))
            }
            Token::Word(_) | Token::Quoted(_) => Ok(Expr::Variable(self.name(RefClass::Variable)?)),
            _ => {
                let what = "a condition: a comparison, an event such as `write(x)`, or a formula in parentheses";
                Err(self.expected(what, &BEFORE))
            }
        }
    }
}
