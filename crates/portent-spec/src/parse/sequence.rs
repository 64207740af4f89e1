//! Extended regular expressions over events.
//!
//! From the loosest to the tightest: `|`, `&`, `.`, the signs behind (`* + ?`), the signs before (`~` for a sequence, `!`
//! for one event). So `!release(l)*` is any number of events other than the release.

use super::formula::EVENTS;
use super::{Parsed, Parser};
use crate::ast::{Formula, Regex};
use crate::lex::Token;

impl Parser<'_> {
    pub(super) fn sequence(&mut self) -> Parsed<Regex> {
        self.deeper(|parser| {
            let mut left = parser.both()?;
            while parser.take("|") || parser.take_word("or") {
                left = joined(left, parser.both()?, Formula::Or, Regex::Or);
            }
            Ok(left)
        })
    }

    fn both(&mut self) -> Parsed<Regex> {
        let mut left = self.then()?;
        while self.take("&") || self.take_word("and") {
            left = joined(left, self.then()?, Formula::And, Regex::And);
        }
        Ok(left)
    }

    fn then(&mut self) -> Parsed<Regex> {
        let mut left = self.repeated()?;
        while self.take(".") {
            left = Regex::Then(Box::new(left), Box::new(self.repeated()?));
        }
        Ok(left)
    }

    fn repeated(&mut self) -> Parsed<Regex> {
        let mut inner = self.before()?;
        loop {
            let make: fn(Box<Regex>) -> Regex = match self.peek() {
                Token::Sign("*") => Regex::Star,
                Token::Sign("+") => Regex::Plus,
                Token::Sign("?") => Regex::Maybe,
                _ => return Ok(inner),
            };
            self.one_more()?;
            self.at += 1;
            inner = make(Box::new(inner));
        }
    }

    fn before(&mut self) -> Parsed<Regex> {
        self.one_more()?;
        if self.take("~") {
            return Ok(Regex::Complement(Box::new(self.deeper(Self::before)?)));
        }
        let span = self.span();
        if self.take("!") {
            return match self.deeper(Self::before)? {
                Regex::One(class) => Ok(Regex::One(Formula::Not(Box::new(class)))),
                _ => Err(crate::diagnostic::Diagnostic::new(span, "`!` is for one event, this is a sequence")
                    .help("`~` stands for every other sequence")),
            };
        }
        if self.is("(") {
            return self.either(
                |parser| {
                    parser.at += 1;
                    let inside = parser.sequence()?;
                    parser.require(")")?;
                    Ok(inside)
                },
                |parser| {
                    parser.at += 1;
                    let inside = parser.comparison()?;
                    parser.require(")")?;
                    Ok(Regex::One(inside))
                },
            );
        }
        let called = matches!(self.ahead(1), Token::Sign("("));
        if self.is_word("end") && !called {
            self.at += 1;
            return Ok(Regex::End);
        }
        match self.event_atom(false)? {
            Some(atom) => Ok(Regex::One(Formula::Event(atom))),
            None => Err(self.expected("an event such as `write(x)`, `end`, or a sequence in parentheses", &EVENTS)),
        }
    }
}

/// Two conditions on one event are one condition.
fn joined(
    left: Regex,
    right: Regex,
    one: fn(Box<Formula>, Box<Formula>) -> Formula,
    many: fn(Box<Regex>, Box<Regex>) -> Regex,
) -> Regex {
    match (left, right) {
        (Regex::One(a), Regex::One(b)) => Regex::One(one(Box::new(a), Box::new(b))),
        (a, b) => many(Box::new(a), Box::new(b)),
    }
}
