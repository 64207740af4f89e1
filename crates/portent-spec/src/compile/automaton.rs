//! Sequences of events as automata, by derivatives (Brzozowski; Sen and Roşu for monitors).
//!
//! A symbol says which of the conditions on one event hold; the end of a complete run is a symbol of its own. Expressions
//! are kept in a normal form (choices and intersections flat, sorted, without repetition), so there are finitely many
//! derivatives and complement and intersection cost nothing extra.

use super::TooLarge;
use crate::ast::{Formula, Regex};
use rustc_hash::FxHashMap;

/// Conditions on one event, at most: there is a symbol for each of their combinations.
const MOST_CLASSES: usize = 10;
/// States, at most.
const MOST_STATES: usize = 4096;

/// Terms and terms in them while it is made, at most.
const MOST_SIZE: usize = 1 << 25;

type Id = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Term {
    /// No sequence.
    Nothing,
    /// The empty sequence.
    Empty,
    /// One event that fulfils a condition; `None`: any event.
    One(Option<u8>),
    End,
    Then(Id, Id),
    Or(Vec<Id>),
    And(Vec<Id>),
    Star(Id),
    Not(Id),
}

#[derive(Clone, Copy)]
enum Symbol {
    Event(usize),
    End,
}

#[derive(Default)]
struct Terms {
    terms: Vec<Term>,
    known: FxHashMap<Term, Id>,
    /// How many terms there are, and terms in them.
    size: usize,
}

const NOTHING: Id = 0;
const EMPTY: Id = 1;

impl Terms {
    fn new() -> Self {
        let mut terms = Terms::default();
        terms.intern(Term::Nothing);
        terms.intern(Term::Empty);
        terms
    }
    fn intern(&mut self, term: Term) -> Id {
        if let Some(&known) = self.known.get(&term) {
            return known;
        }
        if let Term::Or(all) | Term::And(all) = &term {
            self.size += all.len();
        }
        self.size += 1;
        self.terms.push(term.clone());
        let id = self.terms.len() as Id - 1;
        self.known.insert(term, id);
        id
    }
    fn everything(&mut self) -> Id {
        self.not(NOTHING)
    }
    fn not(&mut self, a: Id) -> Id {
        match self.terms[a as usize] {
            Term::Not(inner) => inner,
            _ => self.intern(Term::Not(a)),
        }
    }
    fn then(&mut self, a: Id, b: Id) -> Id {
        match (a, b) {
            (NOTHING, _) | (_, NOTHING) => NOTHING,
            (EMPTY, other) | (other, EMPTY) => other,
            _ => match self.terms[a as usize] {
                // To the right, so that equal sequences look equal.
                Term::Then(first, rest) => {
                    let rest = self.then(rest, b);
                    self.then(first, rest)
                }
                _ => self.intern(Term::Then(a, b)),
            },
        }
    }
    fn star(&mut self, a: Id) -> Id {
        match self.terms[a as usize] {
            Term::Nothing | Term::Empty => EMPTY,
            Term::Star(_) => a,
            _ => self.intern(Term::Star(a)),
        }
    }
    fn many(&mut self, a: Id, b: Id, or: bool) -> Id {
        self.all_of(&[a, b], or)
    }
    fn all_of(&mut self, ids: &[Id], or: bool) -> Id {
        let mut all = Vec::new();
        for &id in ids {
            match (&self.terms[id as usize], or) {
                (Term::Or(inner), true) | (Term::And(inner), false) => all.extend(inner),
                _ => all.push(id),
            }
        }
        all.sort_unstable();
        all.dedup();
        let everything = self.everything();
        let (absorbing, neutral) = if or { (everything, NOTHING) } else { (NOTHING, everything) };
        if all.contains(&absorbing) {
            return absorbing;
        }
        all.retain(|&id| id != neutral);
        match all[..] {
            [] => neutral,
            [one] => one,
            _ => self.intern(if or { Term::Or(all) } else { Term::And(all) }),
        }
    }

    fn nullable(&self, id: Id) -> bool {
        match &self.terms[id as usize] {
            Term::Nothing | Term::One(_) | Term::End => false,
            Term::Empty | Term::Star(_) => true,
            Term::Then(a, b) => self.nullable(*a) && self.nullable(*b),
            Term::Or(all) => all.iter().any(|&id| self.nullable(id)),
            Term::And(all) => all.iter().all(|&id| self.nullable(id)),
            Term::Not(a) => !self.nullable(*a),
        }
    }

    /// The sequences that `id` has behind a symbol.
    fn derivative(&mut self, id: Id, symbol: Symbol) -> Id {
        match self.terms[id as usize].clone() {
            Term::Nothing | Term::Empty => NOTHING,
            Term::One(class) => match (symbol, class) {
                (Symbol::Event(_), None) => EMPTY,
                (Symbol::Event(holds), Some(class)) if holds >> class & 1 != 0 => EMPTY,
                _ => NOTHING,
            },
            Term::End => match symbol {
                Symbol::End => EMPTY,
                Symbol::Event(_) => NOTHING,
            },
            Term::Then(a, b) => {
                let head = self.derivative(a, symbol);
                let head = self.then(head, b);
                if !self.nullable(a) {
                    return head;
                }
                let rest = self.derivative(b, symbol);
                self.many(head, rest, true)
            }
            Term::Or(all) => {
                let all: Vec<Id> = all.into_iter().map(|id| self.derivative(id, symbol)).collect();
                self.all_of(&all, true)
            }
            Term::And(all) => {
                let all: Vec<Id> = all.into_iter().map(|id| self.derivative(id, symbol)).collect();
                self.all_of(&all, false)
            }
            Term::Star(a) => {
                let head = self.derivative(a, symbol);
                self.then(head, id)
            }
            Term::Not(a) => {
                let inner = self.derivative(a, symbol);
                self.not(inner)
            }
        }
    }

    fn of(&mut self, regex: &Regex, class: &mut impl FnMut(&Formula) -> usize) -> Id {
        match regex {
            Regex::One(formula) => {
                let class = class(formula) as u8;
                self.intern(Term::One(Some(class)))
            }
            Regex::End => self.intern(Term::End),
            Regex::Then(..) => {
                // From the right, so that no beginning of a long chain is made that is not needed.
                let (mut parts, mut first) = (Vec::new(), regex);
                while let Regex::Then(before, last) = first {
                    parts.push(&**last);
                    first = before;
                }
                parts.push(first);
                let ids: Vec<Id> = parts.into_iter().rev().map(|part| self.of(part, class)).collect();
                ids.into_iter().rev().reduce(|rest, id| self.then(id, rest)).unwrap_or(EMPTY)
            }
            Regex::Or(a, b) => {
                let (a, b) = (self.of(a, class), self.of(b, class));
                self.many(a, b, true)
            }
            Regex::And(a, b) => {
                let (a, b) = (self.of(a, class), self.of(b, class));
                self.many(a, b, false)
            }
            Regex::Star(a) => {
                let a = self.of(a, class);
                self.star(a)
            }
            Regex::Plus(a) => {
                let a = self.of(a, class);
                let star = self.star(a);
                self.then(a, star)
            }
            Regex::Maybe(a) => {
                let a = self.of(a, class);
                self.many(a, EMPTY, true)
            }
            Regex::Complement(a) => {
                let a = self.of(a, class);
                self.not(a)
            }
        }
    }
}

/// A deterministic automaton.
pub(crate) struct Automaton {
    symbols: usize,
    next: Vec<u32>,
    accepting: Vec<bool>,
    at_end: Vec<bool>,
}

impl Automaton {
    pub(crate) fn states(&self) -> usize {
        self.accepting.len()
    }
    #[inline]
    pub(crate) fn next(&self, state: u32, symbol: usize) -> u32 {
        self.next[state as usize * self.symbols + symbol]
    }
    #[inline]
    pub(crate) fn accepts(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }
    pub(crate) fn accepts_at_end(&self, state: u32) -> bool {
        self.at_end[state as usize]
    }
}

/// The automaton that accepts as soon as the run so far ends with (if `anchored`: is) one of the sequences.
pub(crate) fn build(
    regex: &Regex,
    anchored: bool,
    classes: usize,
    mut class: impl FnMut(&Formula) -> usize,
) -> Result<Automaton, TooLarge> {
    if classes > MOST_CLASSES {
        let text = format!(
            "the sequence tells {classes} kinds of event apart, more than {MOST_CLASSES}: split it into several"
        );
        return Err(TooLarge(text));
    }
    let mut terms = Terms::new();
    let mut start = terms.of(regex, &mut class);
    if terms.nullable(start) {
        return Err(TooLarge("the sequence may be empty, so every run would break the property".into()));
    }
    if !anchored {
        let any = terms.intern(Term::One(None));
        let before = terms.star(any);
        start = terms.then(before, start);
    }
    let symbols = 1 << classes;
    let mut states = vec![start];
    let mut number: FxHashMap<Id, u32> = FxHashMap::default();
    number.insert(start, 0);
    let mut automaton = Automaton { symbols, next: Vec::new(), accepting: Vec::new(), at_end: Vec::new() };
    let mut at = 0;
    while at < states.len() {
        let state = states[at];
        automaton.accepting.push(at > 0 && terms.nullable(state));
        let ended = terms.derivative(state, Symbol::End);
        automaton.at_end.push(terms.nullable(ended));
        for symbol in 0..symbols {
            let next = terms.derivative(state, Symbol::Event(symbol));
            let next = *number.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() as u32 - 1
            });
            automaton.next.push(next);
        }
        if states.len() > MOST_STATES || terms.size > MOST_SIZE {
            return Err(TooLarge(format!("the sequence needs more than {MOST_STATES} states: split it into several")));
        }
        at += 1;
    }
    Ok(automaton)
}
