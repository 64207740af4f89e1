//! The reference semantics: what a property means on one finished run, written as the definitions are, slowly.
//!
//! It shares nothing with the compiled monitors but the parser and the meaning of names, and judges every witness before
//! it is reported. Moment 0 is before the first event; moment i is after the i-th event that the property sees. A formula
//! is a column of truths over all moments, by its definition (`start` and `end` are changes from the moment before, so both
//! are false at moment 0, as in Havelund and Roşu); a sequence matches a part of the run if it does by the
//! definition of its operators on all ways to cut that part. (Of runs with more than 400 such events only the end is judged
//! against sequences: the time grows with the fourth power.)

use crate::ast::{Body, EventAtom, Expr, Formula, Regex, Relation};
use crate::bind::{Bound, InitialFrom};
use portent_trace::Event;
use std::collections::HashMap;

/// What a run does to a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Nothing wrong.
    Holds,
    /// Not broken as far as values are known; at the event with this number some value was not known.
    Unknown(usize),
    /// Broken by the event with this number in the run; its length for the end of a complete run.
    Broken(usize),
}

/// Whether the initial values that are only assumed count as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// They do.
    Zero,
    /// They do not.
    Nothing,
}

/// True, false or unknown.
type Truth = Option<bool>;

struct Evaluator<'a> {
    bound: &'a Bound,
    /// The events that the property sees, with their numbers in the run.
    seen: Vec<(usize, &'a Event)>,
    /// For each moment, the value of each watched variable.
    values: Vec<Vec<Option<i64>>>,
}

/// What `run` does to a property; `complete` says whether it is a complete run, whose end means something.
pub fn evaluate(bound: &Bound, run: &[Event], complete: bool, assume: Assume) -> Ruling {
    evaluate_changed(bound, run, &|_| false, complete, assume)
}

/// The same for a run in which the events with these numbers read another write than in the trace: what an update among
/// them writes is not known.
pub fn evaluate_changed(
    bound: &Bound,
    run: &[Event],
    is_changed: &dyn Fn(usize) -> bool,
    complete: bool,
    assume: Assume,
) -> Ruling {
    let seen: Vec<(usize, &Event)> = run.iter().enumerate().filter(|(_, event)| bound.sees(event)).collect();
    let initial = bound.watched.iter().map(|watched| match (watched.from, assume) {
        (InitialFrom::Assumed, Assume::Nothing) => None,
        _ => Some(watched.initial),
    });
    let mut values: Vec<Vec<Option<i64>>> = vec![initial.collect()];
    for (at, event) in &seen {
        let mut now = values[values.len() - 1].clone();
        if let Some((slot, value)) = bound.change(event) {
            now[slot] = value.filter(|_| !is_changed(*at));
        }
        values.push(now);
    }
    let it = Evaluator { bound, seen, values };
    match bound.body() {
        Body::Always(formula) => {
            let column = it.column(formula);
            let broken = (1..column.len()).find(|&i| column[i] == Some(false));
            let unknown = (1..column.len()).find(|&i| column[i].is_none());
            match (broken, unknown) {
                (Some(i), _) => Ruling::Broken(it.seen[i - 1].0),
                (None, Some(i)) => Ruling::Unknown(it.seen[i - 1].0),
                (None, None) => Ruling::Holds,
            }
        }
        Body::Final(_) if !complete => Ruling::Holds,
        Body::Final(formula) => match it.column(formula).last().copied().flatten() {
            Some(true) => Ruling::Holds,
            Some(false) => Ruling::Broken(run.len()),
            None => Ruling::Unknown(run.len()),
        },
        Body::NeverSequence { regex, anchored } => it.sequence(regex, *anchored, complete, run.len()),
    }
}

fn not(a: Truth) -> Truth {
    a.map(|a| !a)
}
fn and(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
fn or(a: Truth, b: Truth) -> Truth {
    not(and(not(a), not(b)))
}
/// What has been so far, at every moment.
fn running(column: Vec<Truth>, start: Truth, join: fn(Truth, Truth) -> Truth) -> Vec<Truth> {
    let so_far = |known: &mut Truth, now: Truth| {
        *known = join(*known, now);
        Some(*known)
    };
    column.into_iter().scan(start, so_far).collect()
}

/// Whether at some moment up to `i` there was a `start`, and `kept` at all moments since then (that one `included`).
fn looking_back(i: usize, start: impl Fn(usize) -> Truth, kept: impl Fn(usize) -> Truth, included: bool) -> Truth {
    let mut found = Some(false);
    let mut since = Some(true);
    for j in (0..=i).rev() {
        if included {
            since = and(since, kept(j));
        }
        found = or(found, and(start(j), since));
        if !included {
            since = and(since, kept(j));
        }
        if since == Some(false) {
            break;
        }
    }
    found
}

impl Evaluator<'_> {
    /// The truth of a formula at every moment.
    fn column(&self, formula: &Formula) -> Vec<Truth> {
        let moments = 0..self.values.len();
        let pointwise = |a: &Formula, b: &Formula, f: fn(Truth, Truth) -> Truth| {
            let (a, b) = (self.column(a), self.column(b));
            a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect()
        };
        match formula {
            Formula::Constant(truth) => moments.map(|_| Some(*truth)).collect(),
            Formula::Event(atom) => moments.map(|i| Some(self.event(*atom, i))).collect(),
            Formula::Compare(a, relation, b) => moments.map(|i| self.compare(a, *relation, b, i)).collect(),
            Formula::Not(a) => self.column(a).into_iter().map(not).collect(),
            Formula::And(a, b) => pointwise(a, b, and),
            Formula::Or(a, b) => pointwise(a, b, or),
            Formula::Implies(a, b) => pointwise(a, b, |a, b| or(not(a), b)),
            Formula::Iff(a, b) => pointwise(a, b, |a, b| Some(a? == b?)),
            Formula::Prev(a) => {
                let a = self.column(a);
                moments.map(|i| if i == 0 { Some(false) } else { a[i - 1] }).collect()
            }
            Formula::Start(a) => {
                let a = self.column(a);
                moments.map(|i| if i == 0 { Some(false) } else { and(a[i], not(a[i - 1])) }).collect()
            }
            Formula::End(a) => {
                let a = self.column(a);
                moments.map(|i| if i == 0 { Some(false) } else { and(not(a[i]), a[i - 1]) }).collect()
            }
            Formula::Once(a) => running(self.column(a), Some(false), or),
            Formula::Historically(a) => running(self.column(a), Some(true), and),
            Formula::Since(a, b) => {
                let (a, b) = (self.column(a), self.column(b));
                moments.map(|i| looking_back(i, |j| b[j], |j| a[j], false)).collect()
            }
            Formula::Interval(p, q) => {
                let (p, q) = (self.column(p), self.column(q));
                moments.map(|i| looking_back(i, |j| p[j], |j| not(q[j]), true)).collect()
            }
        }
    }

    fn event(&self, atom: EventAtom, moment: usize) -> bool {
        let Some((at, event)) = moment.checked_sub(1).map(|i| self.seen[i]) else { return false };
        match atom {
            EventAtom::Race(_) => {
                let Some((before_at, before)) = moment.checked_sub(2).map(|i| self.seen[i]) else { return false };
                at == before_at + 1
                    && self.bound.holds(atom, event)
                    && self.bound.holds(atom, before)
                    && event.thread != before.thread
                    && (event.op.writes() || before.op.writes())
                    && !(event.op.is_atomic() && before.op.is_atomic())
            }
            atom => self.bound.holds(atom, event),
        }
    }

    fn compare(&self, a: &Expr, relation: Relation, b: &Expr, moment: usize) -> Truth {
        let (a, b) = (self.number(a, moment)?, self.number(b, moment)?);
        Some(match relation {
            Relation::Equal => a == b,
            Relation::Different => a != b,
            Relation::Less => a < b,
            Relation::LessOrEqual => a <= b,
            Relation::Greater => a > b,
            Relation::GreaterOrEqual => a >= b,
        })
    }

    fn number(&self, expr: &Expr, moment: usize) -> Option<i64> {
        let of = |expr: &Expr| self.number(expr, moment).map(i128::from);
        let wide = match expr {
            Expr::Number(number) => i128::from(*number),
            Expr::Variable(name) => i128::from(self.values[moment][self.bound.slot(*name)?]?),
            Expr::Negate(a) => -of(a)?,
            Expr::Add(a, b) => of(a)? + of(b)?,
            Expr::Subtract(a, b) => of(a)? - of(b)?,
            Expr::Multiply(a, b) => of(a)? * of(b)?,
            Expr::Divide(a, b) => of(a)?.checked_div(of(b)?)?,
            Expr::Remainder(a, b) => of(a)?.checked_rem(of(b)?)?,
        };
        i64::try_from(wide).ok()
    }

    fn sequence(&self, regex: &Regex, anchored: bool, complete: bool, length: usize) -> Ruling {
        let mut classes: Vec<&Formula> = Vec::new();
        regex.visit_classes(&mut |class| classes.push(class));
        let columns: HashMap<*const Formula, Vec<Truth>> =
            classes.iter().map(|&class| (std::ptr::from_ref(class), self.column(class))).collect();
        // The first event at which a condition cannot be decided: nothing is known from there on.
        let lost = (1..self.values.len()).find(|&i| columns.values().any(|column| column[i].is_none()));
        let known = lost.map_or(self.seen.len(), |i| i - 1);
        let ends = complete && lost.is_none() && self.bound.cares_about_end();
        let symbols = known + usize::from(ends);
        let mut matcher = Matcher { columns: &columns, events: known, known: HashMap::new() };
        // A long run is judged at its end only: had it gone wrong before, it would have ended there.
        const LONG: usize = 400;
        let first = if symbols > LONG { symbols } else { 1 };
        for to in first..=symbols {
            // The shortest part first: what breaks a property is mostly near.
            let from = if anchored { 0..1 } else { 0..to };
            if from.rev().any(|from| matcher.matches(regex, from, to)) {
                return Ruling::Broken(if to > known { length } else { self.seen[to - 1].0 });
            }
        }
        lost.map_or(Ruling::Holds, |i| Ruling::Unknown(self.seen[i - 1].0))
    }
}

struct Matcher<'a> {
    columns: &'a HashMap<*const Formula, Vec<Truth>>,
    /// How many symbols are events; one more is the end.
    events: usize,
    known: HashMap<(*const Regex, usize, usize), bool>,
}

impl Matcher<'_> {
    /// Whether the symbols from `from` up to but excluding `to` are one of the sequences.
    fn matches(&mut self, regex: &Regex, from: usize, to: usize) -> bool {
        let key = (std::ptr::from_ref(regex), from, to);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let is = match regex {
            Regex::One(class) => {
                to == from + 1
                    && from < self.events
                    && self.columns.get(&std::ptr::from_ref(class)).is_some_and(|c| c[from + 1] == Some(true))
            }
            Regex::End => to == from + 1 && from == self.events,
            Regex::Then(a, b) => (from..=to).any(|cut| self.matches(a, from, cut) && self.matches(b, cut, to)),
            Regex::Or(a, b) => self.matches(a, from, to) || self.matches(b, from, to),
            Regex::And(a, b) => self.matches(a, from, to) && self.matches(b, from, to),
            Regex::Maybe(a) => from == to || self.matches(a, from, to),
            Regex::Star(a) => from == to || self.repeats(regex, a, from, to),
            Regex::Plus(a) => self.matches(a, from, to) || self.repeats(regex, a, from, to),
            Regex::Complement(a) => !self.matches(a, from, to),
        };
        self.known.insert(key, is);
        is
    }

    /// One `a`, not empty, and then what `whole` (`a*` or `a+`) has.
    fn repeats(&mut self, whole: &Regex, a: &Regex, from: usize, to: usize) -> bool {
        (from + 1..=to).any(|cut| self.matches(a, from, cut) && self.matches(whole, cut, to))
    }
}
