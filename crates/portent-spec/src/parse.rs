//! From text to properties: items, and the cursor that all of the grammar shares.
//!
//! ```text
//! file     := (property | initial)*
//! property := 'property' NAME ':' ('always' formula | 'final' formula | 'never' ['prefix'] (sequence | formula)) [';']
//! initial  := 'initial' NAME '=' ['-'] NUMBER (',' NAME '=' ['-'] NUMBER)* [';']
//! ```
//! After `never`, a sequence is tried first, then a formula; if neither fits, the one that came further tells what is
//! wrong.

mod formula;
mod sequence;

use crate::ast::{Body, Formula, InitialValue, NameIx, NameRef, Property, PropertyFile, RefClass};
use crate::diagnostic::{Diagnostic, close_names, suggestion};
use crate::lex::{Token, tokens};
use std::ops::Range;

/// Parentheses inside each other, at most.
const DEPTH: usize = 100;

/// Terms of a property, at most: a chain of them is as deep as it is long for everything that looks at it later.
const MOST_TERMS: usize = 4096;

pub(crate) type Parsed<T> = Result<T, Diagnostic>;

/// Reads a property file.
pub fn parse(source: &str) -> Result<PropertyFile, Diagnostic> {
    let mut parser = Parser { source, tokens: tokens(source)?, at: 0, depth: 0, terms: 0, names: Vec::new() };
    let mut file = PropertyFile::default();
    loop {
        match parser.peek().clone() {
            Token::End => return Ok(file),
            Token::Sign(";") => parser.at += 1,
            Token::Word(word) if word == "property" => {
                let property = parser.property()?;
                if file.properties.iter().any(|known| known.name == property.name) {
                    let message = format!("there is a property called `{}` already", property.name);
                    return Err(Diagnostic::new(property.span, message).help("expected a name of its own"));
                }
                file.properties.push(property);
            }
            Token::Word(word) if word == "initial" => {
                parser.at += 1;
                loop {
                    file.initial.push(parser.initial()?);
                    if !parser.take(",") {
                        break;
                    }
                }
            }
            _ => return Err(parser.expected("`property` or `initial`", &["property", "initial"])),
        }
    }
}

pub(crate) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
    /// Of the property that is read.
    terms: usize,
    names: Vec<NameRef>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }
    fn ahead(&self, by: usize) -> &Token {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].0
    }
    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found == word)
    }
    /// Takes a sign if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }
    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }
    /// What stands here is not what was expected; words of the language that are close are suggested.
    fn expected(&self, what: &str, words: &[&str]) -> Diagnostic {
        let found = self.peek();
        let diagnostic = Diagnostic::new(self.span(), format!("expected {what}, found {}", found.text()));
        let Token::Word(word) = found else { return diagnostic };
        match suggestion(&close_names(word, words.iter().copied())) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
    fn require(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"), &[])) }
    }
    /// One level deeper, if that is not too deep.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return Err(Diagnostic::new(self.span(), format!("more than {DEPTH} levels inside each other")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
    /// One term more, if that is not too many.
    fn one_more(&mut self) -> Parsed<()> {
        if self.terms >= MOST_TERMS {
            let text = format!("more than {MOST_TERMS} terms in one property");
            return Err(Diagnostic::new(self.span(), text).help("split it into several"));
        }
        self.terms += 1;
        Ok(())
    }
    /// The first that fits of two ways to go on, or the complaint of the one that came further.
    fn either<T>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Parsed<T>,
        second: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let (at, depth, terms, names) = (self.at, self.depth, self.terms, self.names.len());
        let one = match first(self) {
            Ok(parsed) => return Ok(parsed),
            Err(one) => one,
        };
        self.at = at;
        self.depth = depth;
        self.terms = terms;
        self.names.truncate(names);
        second(self).map_err(|other| if one.span.start > other.span.start { one } else { other })
    }

    /// A name as an object of a class, noted in the property's list.
    fn name(&mut self, class: RefClass) -> Parsed<NameIx> {
        let span = self.span();
        let text = match self.peek() {
            Token::Word(text) | Token::Quoted(text) => text.clone(),
            Token::Number(number) if class == RefClass::Location => number.to_string(),
            _ => return Err(self.expected(&format!("the name of a {}", class.what()), &[])),
        };
        self.at += 1;
        let known = self.names.iter().position(|name| name.class == class && name.text == text);
        Ok(known.unwrap_or_else(|| {
            self.names.push(NameRef { class, text, span });
            self.names.len() - 1
        }))
    }

    fn property(&mut self) -> Parsed<Property> {
        self.at += 1;
        let named = self.span();
        let Token::Word(name) = self.next() else {
            self.at -= 1;
            return Err(self.expected("the name of the property", &[]));
        };
        self.require(":")?;
        self.names.clear();
        self.terms = 0;
        let start = self.span().start;
        const WORDS: [&str; 3] = ["always", "never", "final"];
        let body = if self.take_word("always") {
            Body::Always(self.formula()?)
        } else if self.take_word("final") {
            Body::Final(self.formula()?)
        } else if self.take_word("never") {
            let anchored = self.take_word("prefix");
            let sequence = |parser: &mut Self| {
                let regex = parser.sequence()?;
                parser.at_end_of_item()?;
                Ok(Body::NeverSequence { regex, anchored })
            };
            if anchored {
                sequence(self)?
            } else {
                self.either(sequence, |parser| {
                    let formula = parser.formula()?;
                    parser.at_end_of_item()?;
                    Ok(Body::Always(Formula::Not(Box::new(formula))))
                })?
            }
        } else {
            return Err(self.expected("`always`, `never` or `final`", &WORDS));
        };
        self.at_end_of_item()?;
        let end = self.tokens[self.at - 1].1.end;
        let text = self.source[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Property { name, text, span: named, body, names: std::mem::take(&mut self.names) })
    }

    fn at_end_of_item(&self) -> Parsed<()> {
        match self.peek() {
            Token::End | Token::Sign(";") => Ok(()),
            Token::Word(word) if word == "property" || word == "initial" => Ok(()),
            _ => Err(self.expected("an operator, or the end of the property", &["since"])),
        }
    }

    fn initial(&mut self) -> Parsed<InitialValue> {
        let at = self.name(RefClass::Variable)?;
        let name = self.names.swap_remove(at);
        self.names.clear();
        if !self.take("=") && !self.take("==") {
            return Err(self.expected("`=`", &[]));
        }
        let negative = self.take("-");
        match *self.peek() {
            Token::Number(number) => {
                self.at += 1;
                Ok(InitialValue { name, value: if negative { number.wrapping_neg() } else { number } })
            }
            _ => Err(self.expected("a number", &[])),
        }
    }
}
