//! Properties as monitors: past-time formulas with a bit (two, as a value may be unknown) per subformula that looks back,
//! sequences as automata, and the values of the compared variables as part of the state.
//!
//! The rules are those of Havelund and Roşu: each operator at a moment is a function of its operands at that moment and of
//! bits from the moment before. Deviations: the moment before the first event counts (variables hold their initial values,
//! no event has happened), and truth has three values. Of a value only what the property can tell apart is state: if all
//! comparisons of a variable involve no other, the value is replaced by which of them it fulfils.

mod automaton;
mod letters;
mod nodes;
mod values;

use crate::ast::{Body, Formula};
use crate::bind::Bound;
use crate::monitor::{Judgement, Letter, Monitor};
use automaton::Automaton;
use letters::Letters;
use nodes::{Nodes, Truth};
use portent_trace::Event;
use values::Values;

/// Why a property has no monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge(pub String);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLarge {}

/// Some bits of a state.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    word: u32,
    shift: u32,
    mask: u64,
}

impl Field {
    #[inline]
    fn get(self, state: &[u64]) -> u64 {
        (state[self.word as usize] >> self.shift) & self.mask
    }
    #[inline]
    fn set(self, state: &mut [u64], value: u64) {
        let word = &mut state[self.word as usize];
        *word = *word & !(self.mask << self.shift) | (value & self.mask) << self.shift;
    }
}

/// Hands out bits of a state; no field crosses a word.
#[derive(Default)]
struct Packing {
    words: u32,
    used: u32,
}

impl Packing {
    fn field(&mut self, bits: u32) -> Field {
        if self.words == 0 || self.used + bits > 64 {
            self.words += 1;
            self.used = 0;
        }
        let field = Field { word: self.words - 1, shift: self.used, mask: u64::MAX >> (64 - bits.clamp(1, 64)) };
        self.used += bits.max(1);
        field
    }
}

enum Kind {
    Always(u8),
    Final { truth: [Field; 2], root: u8 },
    Sequence { automaton: Automaton, state: Field, lost: Field, classes: Vec<u8> },
}

/// The monitor of a property.
pub struct Compiled {
    bound: Bound,
    letters: Letters,
    nodes: Nodes,
    values: Values,
    kind: Kind,
    words: usize,
}

impl Compiled {
    /// Compiles a property; refused if it has too many parts.
    pub fn new(bound: &Bound) -> Result<Compiled, TooLarge> {
        let mut packing = Packing::default();
        let mut letters = Letters::default();
        let mut values = Values::new(bound);
        let mut nodes = Nodes::default();
        let mut node = |formula: &Formula, nodes: &mut Nodes| nodes.add(formula, bound, &mut letters, &mut values);
        enum Roots {
            Always(u8),
            Final(u8),
            Sequence(Vec<u8>, Automaton),
        }
        let roots = match bound.body() {
            Body::Always(formula) => Roots::Always(node(formula, &mut nodes)?),
            Body::Final(formula) => Roots::Final(node(formula, &mut nodes)?),
            Body::NeverSequence { regex, anchored } => {
                let mut classes: Vec<u8> = Vec::new();
                let mut wrong = None;
                regex.visit_classes(&mut |class| match node(class, &mut nodes) {
                    Ok(root) if !classes.contains(&root) => classes.push(root),
                    Ok(_) => {}
                    Err(why) => wrong = Some(why),
                });
                if let Some(why) = wrong {
                    return Err(why);
                }
                let class = |formula: &Formula| {
                    let root = nodes.find(formula, bound, &mut letters, &mut values);
                    root.and_then(|root| classes.iter().position(|&known| known == root)).unwrap_or(0)
                };
                let automaton = automaton::build(regex, *anchored, classes.len(), class)?;
                Roots::Sequence(classes, automaton)
            }
        };
        values.pack(&mut packing);
        letters.pack(&mut packing);
        nodes.pack(&mut packing);
        let kind = match roots {
            Roots::Always(root) => Kind::Always(root),
            Roots::Final(root) => Kind::Final { truth: [packing.field(1), packing.field(1)], root },
            Roots::Sequence(classes, automaton) => {
                let bits = 32 - (automaton.states() as u32).leading_zeros();
                Kind::Sequence { state: packing.field(bits), lost: packing.field(1), automaton, classes }
            }
        };
        let words = packing.words.max(1) as usize;
        Ok(Compiled { bound: bound.clone(), letters, nodes, values, kind, words })
    }

    /// The property.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// The names of the watched variables whose values are not known in a state.
    pub fn unknown_values(&self, state: &[u64]) -> Vec<&str> {
        let slots = 0..self.bound.watched.len();
        slots.filter(|&slot| self.values.is_unknown(slot, state)).map(|slot| &*self.bound.watched[slot].name).collect()
    }
}

impl Monitor for Compiled {
    fn words(&self) -> usize {
        self.words
    }

    fn start(&self, state: &mut [u64]) {
        state.fill(0);
        // Class 0 of every variable is that of its initial value.
        let truth = self.nodes.evaluate(state, None, &self.values, true);
        self.nodes.keep(state, truth);
        if let Kind::Final { truth: [yes, no], root } = self.kind {
            yes.set(state, u64::from(truth.yes(root)));
            no.set(state, u64::from(truth.no(root)));
        }
    }

    fn letter(&mut self, event: &Event) -> Option<Letter> {
        self.bound.sees(event).then(|| {
            let change = self.bound.change(event);
            self.letters.letter(&self.bound, event, change, &mut self.values)
        })
    }

    fn changed_letter(&mut self, event: &Event) -> Option<Letter> {
        self.bound.sees(event).then(|| {
            let change = self.bound.changed_change(event);
            self.letters.letter(&self.bound, event, change, &mut self.values)
        })
    }

    fn step(&self, state: &mut [u64], letter: Letter) -> Judgement {
        let letter = self.letters.get(letter);
        if let Some((slot, class)) = letter.change {
            self.values.set(slot, state, class);
        }
        let events = letter.events | self.letters.races(state, letter);
        let truth: Truth = self.nodes.evaluate(state, Some(events), &self.values, false);
        self.nodes.keep(state, truth);
        self.letters.keep(state, letter);
        match &self.kind {
            Kind::Always(root) if truth.no(*root) => Judgement::Bad,
            Kind::Always(root) if truth.yes(*root) => Judgement::Good,
            Kind::Always(_) => Judgement::Unknown,
            Kind::Final { truth: [yes, no], root } => {
                yes.set(state, u64::from(truth.yes(*root)));
                no.set(state, u64::from(truth.no(*root)));
                Judgement::Good
            }
            Kind::Sequence { automaton, state: at, lost, classes } => {
                let mut symbol = 0;
                for (i, &class) in classes.iter().enumerate() {
                    symbol |= usize::from(truth.yes(class)) << i;
                    if !truth.yes(class) && !truth.no(class) {
                        lost.set(state, 1);
                    }
                }
                if lost.get(state) != 0 {
                    // From here on nobody knows.
                    at.set(state, 0);
                    return Judgement::Unknown;
                }
                let next = automaton.next(at.get(state) as u32, symbol);
                at.set(state, u64::from(next));
                if automaton.accepts(next) { Judgement::Bad } else { Judgement::Good }
            }
        }
    }

    fn finish(&self, state: &[u64]) -> Judgement {
        match &self.kind {
            Kind::Always(_) => Judgement::Good,
            Kind::Final { truth: [_, no], .. } if no.get(state) != 0 => Judgement::Bad,
            Kind::Final { truth: [yes, _], .. } if yes.get(state) != 0 => Judgement::Good,
            Kind::Final { .. } => Judgement::Unknown,
            Kind::Sequence { .. } if !self.bound.cares_about_end() => Judgement::Good,
            Kind::Sequence { lost, .. } if lost.get(state) != 0 => Judgement::Unknown,
            Kind::Sequence { automaton, state: at, .. } => {
                if automaton.accepts_at_end(at.get(state) as u32) {
                    Judgement::Bad
                } else {
                    Judgement::Good
                }
            }
        }
    }

    fn cares_about_end(&self) -> bool {
        self.bound.cares_about_end()
    }
}
