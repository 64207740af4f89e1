//! What a property says, as it was written: names are numbers of its list of references.

use std::ops::Range;

/// What a name in a property stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefClass {
    /// A variable.
    Variable,
    /// A lock.
    Lock,
    /// A condition variable.
    Condition,
    /// A thread.
    Thread,
    /// A place in the source, `file:line`.
    Location,
}

impl RefClass {
    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            RefClass::Variable => "variable",
            RefClass::Lock => "lock",
            RefClass::Condition => "condition",
            RefClass::Thread => "thread",
            RefClass::Location => "location",
        }
    }
}

/// A name in a property file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRef {
    /// What it stands for.
    pub class: RefClass,
    /// The name.
    pub text: String,
    /// Where it first stands.
    pub span: Range<usize>,
}

/// The number of a name in [`Property::names`].
pub type NameIx = usize;

/// What one event may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventAtom {
    /// A write or an update of the variable.
    Write(NameIx),
    /// A read or an update.
    Read(NameIx),
    /// An atomic read-modify-write.
    Update(NameIx),
    /// Any of these.
    Access(NameIx),
    /// The lock is taken, exclusively or shared.
    Acquire(NameIx),
    /// The lock is given back.
    Release(NameIx),
    /// A wait on the condition begins.
    Sleep(NameIx),
    /// The condition is notified.
    Notify(NameIx),
    /// A wait on the condition ends.
    Wake(NameIx),
    /// The event is at this place in the source.
    At(NameIx),
    /// The event is this thread's.
    By(NameIx),
    /// Any event at all.
    Any,
    /// Any event that the property sees.
    Seen,
    /// The event and the one right before it are conflicting accesses of the variable by two threads (Sen et al., §7).
    Race(NameIx),
}

/// A comparison's sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Relation {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Expr {
    Number(i64),
    Variable(NameIx),
    Negate(Box<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Subtract(Box<Expr>, Box<Expr>),
    Multiply(Box<Expr>, Box<Expr>),
    Divide(Box<Expr>, Box<Expr>),
    Remainder(Box<Expr>, Box<Expr>),
}

/// A condition at a moment of a run, which may look back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Formula {
    /// Always or never true.
    Constant(bool),
    /// About the event that has just happened.
    Event(EventAtom),
    /// About the values after it.
    Compare(Expr, Relation, Expr),
    /// Not.
    Not(Box<Formula>),
    /// Both.
    And(Box<Formula>, Box<Formula>),
    /// At least one.
    Or(Box<Formula>, Box<Formula>),
    /// The second, if the first.
    Implies(Box<Formula>, Box<Formula>),
    /// Both or neither.
    Iff(Box<Formula>, Box<Formula>),
    /// At the moment before.
    Prev(Box<Formula>),
    /// Now or at some moment before.
    Once(Box<Formula>),
    /// Now and at every moment before.
    Historically(Box<Formula>),
    /// The second was true at some moment, and the first ever since then.
    Since(Box<Formula>, Box<Formula>),
    /// True now, and not at the moment before.
    Start(Box<Formula>),
    /// True at the moment before, and not now.
    End(Box<Formula>),
    /// `[p, q)`: p was true at some moment, and q not since then, that moment included.
    Interval(Box<Formula>, Box<Formula>),
}

/// A set of sequences of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Regex {
    /// One event; the formula does not look back.
    One(Formula),
    /// The end of a complete run.
    End,
    /// One after the other.
    Then(Box<Regex>, Box<Regex>),
    /// Either.
    Or(Box<Regex>, Box<Regex>),
    /// Both at once.
    And(Box<Regex>, Box<Regex>),
    /// Any number of times.
    Star(Box<Regex>),
    /// At least once.
    Plus(Box<Regex>),
    /// At most once.
    Maybe(Box<Regex>),
    /// Every sequence that is not in it.
    Complement(Box<Regex>),
}

/// What must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// After every event that the property sees.
    Always(Formula),
    /// At the end of every complete run.
    Final(Formula),
    /// No run has a part in the set; if `anchored`, no beginning of a run is in it.
    NeverSequence {
        /// The set.
        regex: Regex,
        /// Whether a match must start where the run starts.
        anchored: bool,
    },
}

/// A property of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// What it is called.
    pub name: String,
    /// What it says, as written, in one line.
    pub text: String,
    /// Where that is in the file.
    pub span: Range<usize>,
    /// What must hold.
    pub body: Body,
    /// The names in it.
    pub names: Vec<NameRef>,
}

/// What a variable holds before its first write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialValue {
    /// The variable.
    pub name: NameRef,
    /// The value.
    pub value: i64,
}

/// A property file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertyFile {
    /// The properties, in order.
    pub properties: Vec<Property>,
    /// Declared initial values.
    pub initial: Vec<InitialValue>,
}

impl Formula {
    /// Calls `f` for this formula and all inside it.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Formula)) {
        f(self);
        match self {
            Formula::Constant(_) | Formula::Event(_) | Formula::Compare(..) => {}
            Formula::Not(a)
            | Formula::Prev(a)
            | Formula::Once(a)
            | Formula::Historically(a)
            | Formula::Start(a)
            | Formula::End(a) => a.visit(f),
            Formula::And(a, b)
            | Formula::Or(a, b)
            | Formula::Implies(a, b)
            | Formula::Iff(a, b)
            | Formula::Since(a, b)
            | Formula::Interval(a, b) => {
                a.visit(f);
                b.visit(f);
            }
        }
    }
}

impl Expr {
    /// The variables in it.
    pub fn variables(&self, found: &mut Vec<NameIx>) {
        match self {
            Expr::Number(_) => {}
            Expr::Variable(x) => found.push(*x),
            Expr::Negate(a) => a.variables(found),
            Expr::Add(a, b)
            | Expr::Subtract(a, b)
            | Expr::Multiply(a, b)
            | Expr::Divide(a, b)
            | Expr::Remainder(a, b) => {
                a.variables(found);
                b.variables(found);
            }
        }
    }
}

impl Regex {
    /// Calls `f` for every formula on one event in it.
    pub fn visit_classes<'a>(&'a self, f: &mut impl FnMut(&'a Formula)) {
        match self {
            Regex::One(class) => f(class),
            Regex::End => {}
            Regex::Then(a, b) | Regex::Or(a, b) | Regex::And(a, b) => {
                a.visit_classes(f);
                b.visit_classes(f);
            }
            Regex::Star(a) | Regex::Plus(a) | Regex::Maybe(a) | Regex::Complement(a) => a.visit_classes(f),
        }
    }
}

impl Property {
    /// Calls `f` for every formula in it.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Formula)) {
        match &self.body {
            Body::Always(formula) | Body::Final(formula) => formula.visit(f),
            Body::NeverSequence { regex, .. } => regex.visit_classes(&mut |class| class.visit(f)),
        }
    }
    /// Whether only complete runs can break it.
    pub fn is_final(&self) -> bool {
        matches!(self.body, Body::Final(_))
    }
    /// Whether it is about nothing but what variables hold at the end of complete runs.
    pub fn is_about_final_values(&self) -> bool {
        let mut only_values = self.is_final();
        self.visit(&mut |formula| {
            only_values &= match formula {
                Formula::Constant(_) | Formula::Compare(..) | Formula::Not(_) => true,
                Formula::And(..) | Formula::Or(..) | Formula::Implies(..) | Formula::Iff(..) => true,
                Formula::Event(_) | Formula::Prev(_) | Formula::Once(_) | Formula::Historically(_) => false,
                Formula::Since(..) | Formula::Start(_) | Formula::End(_) | Formula::Interval(..) => false,
            };
        });
        only_values
    }
    /// Whether the end of a complete run means something to it.
    pub fn cares_about_end(&self) -> bool {
        fn has_end(regex: &Regex) -> bool {
            match regex {
                Regex::One(_) => false,
                Regex::End => true,
                Regex::Then(a, b) | Regex::Or(a, b) | Regex::And(a, b) => has_end(a) || has_end(b),
                Regex::Star(a) | Regex::Plus(a) | Regex::Maybe(a) | Regex::Complement(a) => has_end(a),
            }
        }
        match &self.body {
            Body::Always(_) => false,
            Body::Final(_) => true,
            Body::NeverSequence { regex, .. } => has_end(regex),
        }
    }
}
