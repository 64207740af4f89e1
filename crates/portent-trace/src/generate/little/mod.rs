//! Little programs, and what they do under any schedule: the ground truth of symbolic traces.
//!
//! A program is a few threads of reads, writes, computations and branches on a few shared variables, with locks, atomic
//! blocks and at most one wait. Running it once gives a trace with a formula for everything it computed; a [`Machine`]
//! runs it under any other schedule, from the program and not from the formulas. A thread whose branch would go another
//! way than in the recorded run stops before it.

mod author;

use super::random::Random;
use std::fmt::Write as _;

/// An expression over a thread's registers.
#[derive(Clone, Debug)]
enum Expr {
    Number(i64),
    Register(usize),
    Apply(&'static str, Box<Expr>, Box<Expr>),
    /// The second if the first is not 0, otherwise the third; the other one is not computed.
    Choose(Box<[Expr; 3]>),
    /// Through a byte and back.
    Byte(Box<Expr>),
}

#[derive(Clone, Debug)]
enum Statement {
    Read(usize, usize),
    Write(usize, Expr),
    /// In one step: the register gets what the variable held, the variable what the expression then is.
    Update(usize, usize, Expr),
    Compute(usize, Expr),
    Guarded(usize, Vec<Statement>),
    Atomic(Vec<Statement>),
    /// Gives this lock, which it holds, back until it is notified.
    Wait(usize),
    Notify,
    If(Expr, Vec<Statement>, Vec<Statement>),
}

/// What a thread does next: its statements, with guards and blocks spelled out.
#[derive(Clone, Debug)]
enum Action {
    Read(usize, usize),
    Write(usize, Expr),
    Update(usize, usize, Expr),
    Compute(usize, Expr),
    Acquire(usize),
    Release(usize),
    Begin,
    End,
    Sleep,
    Wake,
    Notify,
    Branch(Expr, Vec<Statement>, Vec<Statement>),
}

/// What an action did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// Read a variable and saw a value.
    Read(usize, i64),
    /// Wrote a value.
    Write(usize, i64),
    /// Read a value and wrote another.
    Update(usize, i64, i64),
    /// Took a lock.
    Acquire(usize),
    /// Gave it back.
    Release(usize),
    /// Began an atomic block.
    Begin,
    /// Ended it.
    End,
    /// Began to wait to be notified.
    Sleep,
    /// Was notified.
    Wake,
    /// Notified whoever waits.
    Notify,
    /// Took a branch.
    Branch(bool),
}

/// A little program.
#[derive(Clone, Debug)]
pub struct Little {
    threads: Vec<Vec<Statement>>,
    variables: usize,
    locks: usize,
}

const REGISTERS: usize = 2;
const OPERATORS: [&str; 9] = ["add", "sub", "mul", "and", "xor", "lt", "eq", "div", "gt"];

impl Expr {
    fn value(&self, registers: &[i64; REGISTERS]) -> Option<i64> {
        Some(match self {
            Expr::Number(number) => *number,
            Expr::Register(at) => registers[*at],
            Expr::Byte(inner) => inner.value(registers)? & 255,
            Expr::Choose(parts) => {
                let taken = if parts[0].value(registers)? != 0 { &parts[1] } else { &parts[2] };
                taken.value(registers)?
            }
            Expr::Apply(operator, a, b) => {
                let (a, b) = (a.value(registers)?, b.value(registers)?);
                match *operator {
                    "add" => a.wrapping_add(b),
                    "sub" => a.wrapping_sub(b),
                    "mul" => a.wrapping_mul(b),
                    "and" => a & b,
                    "xor" => a ^ b,
                    "lt" => i64::from(a < b),
                    "gt" => i64::from(a > b),
                    "eq" => i64::from(a == b),
                    _ if b == 0 => return None,
                    _ => a.wrapping_div(b),
                }
            }
        })
    }

    fn divides(&self) -> bool {
        match self {
            Expr::Number(_) | Expr::Register(_) => false,
            Expr::Byte(inner) => inner.divides(),
            Expr::Choose(parts) => parts.iter().any(Expr::divides),
            Expr::Apply(operator, a, b) => *operator == "div" || a.divides() || b.divides(),
        }
    }

    /// The formula, given those of the registers.
    fn formula(&self, registers: &[String; REGISTERS]) -> String {
        match self {
            Expr::Number(number) => number.to_string(),
            Expr::Register(at) => registers[*at].clone(),
            Expr::Choose(parts) => {
                let [condition, then, otherwise] = [0, 1, 2].map(|part: usize| parts[part].formula(registers));
                format!("(if (ne {condition} 0) {then} {otherwise})")
            }
            Expr::Byte(inner) => format!("(cast:i64 (cast:u8 {}))", inner.formula(registers)),
            Expr::Apply(operator, a, b) => {
                let applied = format!("({operator} {} {})", a.formula(registers), b.formula(registers));
                let compares = ["lt", "gt", "eq"].contains(operator);
                if compares { format!("(cast:i64 {applied})") } else { applied }
            }
        }
    }
}

impl Little {
    /// How many variables there are.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// How many locks there are.
    pub fn locks(&self) -> usize {
        self.locks
    }

    /// One run of it, as STD text with formulas, and which thread did what after `main` had started them all.
    pub fn run(&self, seed: u64) -> (String, Vec<(usize, Did)>) {
        let mut random = Random::new(seed);
        let mut text = String::new();
        for x in 0..self.variables {
            let _ = writeln!(text, "main|w(x{x})|init:{x}|0");
        }
        for t in 0..self.threads.len() {
            let _ = writeln!(text, "main|fork(T{t})|fork:{t}");
        }
        let mut machine = Machine::new(self);
        let mut run = Vec::new();
        let mut registers = vec![[(); REGISTERS].map(|()| "0".to_owned()); self.threads.len()];
        let mut reads = vec![0; self.threads.len()];
        let mut idle = 0;
        while idle < 40 {
            let t = random.below(self.threads.len() as u32) as usize;
            // What it is about to do, before it does it: the formulas are over what it has read so far.
            let computed = machine.computed(t);
            let action = machine.peek(t);
            let rest = machine.rest(t);
            let (Some(did), Some(action)) = (machine.step(t, None), action) else {
                idle += 1;
                continue;
            };
            idle = 0;
            for (register, expr) in computed {
                registers[t][register] = expr.formula(&registers[t]);
            }
            let at = run.len();
            let mut line = |op: String, value: Option<i64>| {
                let _ = write!(text, "T{t}|{op}|{at}");
                let _ = value.map(|value| write!(text, "|{value}"));
                text.push('\n');
            };
            match did {
                Did::Read(x, value) => line(format!("r(x{x})"), Some(value)),
                Did::Write(x, value) => line(format!("w(x{x})"), Some(value)),
                Did::Update(x, _, value) => line(format!("u(x{x})"), Some(value)),
                Did::Acquire(lock) => line(format!("acq(l{lock})"), None),
                Did::Release(lock) => line(format!("rel(l{lock})"), None),
                Did::Begin => line("begin(b)".into(), None),
                Did::End => line("end(b)".into(), None),
                Did::Sleep => line("slp(c)".into(), None),
                Did::Wake => line("wak(c)".into(), None),
                Did::Notify => line("ntf(c)".into(), None),
                Did::Branch(_) => line("branch".into(), None),
            }
            if let Action::Read(_, register) | Action::Update(_, register, _) = action {
                registers[t][register] = format!("r{}", reads[t]);
                reads[t] += 1;
            }
            if let Action::Write(_, expr) | Action::Update(_, _, expr) = &action {
                let _ = writeln!(text, "#!= {}", expr.formula(&registers[t]));
            }
            if let Action::Branch(expr, ..) = &action {
                let _ = writeln!(text, "#!= (ne {} 0)", expr.formula(&registers[t]));
            }
            if let (Action::Branch(_, then, other), Did::Branch(taken)) = (&action, did) {
                let mut todo = rest;
                todo.append(&mut actions(if taken { other } else { then }));
                text.push_str(&side(todo, registers[t].clone(), reads[t], at));
            }
            run.push((t, did));
        }
        (text, run)
    }
}

/// What a thread would do up to its next branch, as the other side of the branch at a place.
fn side(mut todo: Vec<Action>, mut registers: [String; REGISTERS], mut reads: usize, at: usize) -> String {
    let mut text = String::new();
    while let Some(action) = todo.pop() {
        let line = match &action {
            Action::Compute(register, expr) => {
                registers[*register] = expr.formula(&registers);
                continue;
            }
            Action::Branch(..) | Action::Begin | Action::End | Action::Sleep | Action::Wake | Action::Notify => break,
            Action::Read(x, _) => format!("r(x{x})|{at}.else|"),
            Action::Write(x, _) => format!("w(x{x})|{at}.else|"),
            Action::Update(x, ..) => format!("u(x{x})|{at}.else|"),
            Action::Acquire(lock) => format!("acq(l{lock})|{at}.else|"),
            Action::Release(lock) => format!("rel(l{lock})|{at}.else|"),
        };
        if let Action::Read(_, register) | Action::Update(_, register, _) = action {
            registers[register] = format!("r{reads}");
            reads += 1;
        }
        let written = match &action {
            Action::Write(_, expr) | Action::Update(_, _, expr) => format!("= {}", expr.formula(&registers)),
            _ => String::new(),
        };
        let _ = writeln!(text, "#!else {line}{written}");
    }
    text
}

/// A program while it runs.
#[derive(Clone, Debug)]
pub struct Machine {
    memory: Vec<i64>,
    holder: Vec<Option<usize>>,
    /// Somebody waits, or did; and was notified.
    asleep: bool,
    notified: bool,
    threads: Vec<Thread>,
}

#[derive(Clone, Debug)]
struct Thread {
    registers: [i64; REGISTERS],
    /// What is still to do, the next thing last.
    todo: Vec<Action>,
}

fn around(first: Action, block: &[Statement], last: Action) -> Vec<Action> {
    std::iter::once(first).chain(actions(block).into_iter().rev()).chain([last]).collect()
}

/// The actions of a block, the first one last.
fn actions(block: &[Statement]) -> Vec<Action> {
    let action = |statement: &Statement| match statement.clone() {
        Statement::Read(x, register) => vec![Action::Read(x, register)],
        Statement::Write(x, expr) => vec![Action::Write(x, expr)],
        Statement::Update(x, register, expr) => vec![Action::Update(x, register, expr)],
        Statement::Compute(register, expr) => vec![Action::Compute(register, expr)],
        Statement::Guarded(lock, inner) => around(Action::Acquire(lock), &inner, Action::Release(lock)),
        Statement::Atomic(inner) => around(Action::Begin, &inner, Action::End),
        Statement::Wait(lock) => vec![Action::Sleep, Action::Release(lock), Action::Wake, Action::Acquire(lock)],
        Statement::Notify => vec![Action::Notify],
        Statement::If(cond, then, other) => vec![Action::Branch(cond, then, other)],
    };
    let mut all: Vec<Action> = block.iter().flat_map(action).collect();
    all.reverse();
    all
}

impl Machine {
    /// The program before its threads have done anything.
    pub fn new(program: &Little) -> Machine {
        let thread = |block: &Vec<Statement>| Thread { registers: [0; REGISTERS], todo: actions(block) };
        Machine {
            memory: vec![0; program.variables],
            holder: vec![None; program.locks],
            asleep: false,
            notified: false,
            threads: program.threads.iter().map(thread).collect(),
        }
    }
    /// What a variable holds.
    pub fn holds(&self, variable: usize) -> i64 {
        self.memory[variable]
    }
    /// The thread that holds a lock.
    pub fn holder(&self, lock: usize) -> Option<usize> {
        self.holder[lock]
    }
    /// What the future depends on beside the positions: memory, registers and whether a sleeper was notified.
    pub fn state(&self) -> (Vec<i64>, Vec<[i64; REGISTERS]>, bool) {
        (self.memory.clone(), self.threads.iter().map(|thread| thread.registers).collect(), self.notified)
    }

    /// Registers that a thread computes before its next action.
    fn computed(&self, t: usize) -> Vec<(usize, Expr)> {
        let actions = self.threads[t].todo.iter().rev();
        let computes = actions.map_while(|action| match action {
            Action::Compute(register, expr) => Some((*register, expr.clone())),
            _ => None,
        });
        computes.collect()
    }
    /// What a thread does after its next action, the next thing last.
    fn rest(&self, t: usize) -> Vec<Action> {
        let todo = &self.threads[t].todo;
        let next = todo.iter().rposition(|action| !matches!(action, Action::Compute(..)));
        todo[..next.unwrap_or(0)].to_vec()
    }
    fn peek(&self, t: usize) -> Option<Action> {
        self.threads[t].todo.iter().rev().find(|action| !matches!(action, Action::Compute(..))).cloned()
    }

    /// Lets a thread do its next action, unless it is over, waits for a lock or to be notified, divides by zero, or would take a branch in
    /// another direction than `only`.
    pub fn step(&mut self, t: usize, only: Option<bool>) -> Option<Did> {
        let mut thread = self.threads[t].clone();
        let action = loop {
            match thread.todo.pop()? {
                Action::Compute(register, expr) => thread.registers[register] = expr.value(&thread.registers)?,
                action => break action,
            }
        };
        let did = match action {
            Action::Read(x, register) => {
                thread.registers[register] = self.memory[x];
                Did::Read(x, self.memory[x])
            }
            Action::Write(x, expr) => {
                self.memory[x] = expr.value(&thread.registers)?;
                Did::Write(x, self.memory[x])
            }
            Action::Update(x, register, expr) => {
                let before = self.memory[x];
                thread.registers[register] = before;
                self.memory[x] = expr.value(&thread.registers)?;
                Did::Update(x, before, self.memory[x])
            }
            Action::Acquire(lock) if self.holder[lock].is_some() => return None,
            Action::Acquire(lock) => {
                self.holder[lock] = Some(t);
                Did::Acquire(lock)
            }
            Action::Release(lock) => {
                self.holder[lock] = None;
                Did::Release(lock)
            }
            Action::Begin => Did::Begin,
            Action::End => Did::End,
            Action::Sleep => {
                self.asleep = true;
                Did::Sleep
            }
            Action::Notify => {
                self.notified |= self.asleep;
                Did::Notify
            }
            Action::Wake if !self.notified => return None,
            Action::Wake => Did::Wake,
            Action::Branch(cond, then, other) => {
                let taken = cond.value(&thread.registers)? != 0;
                if only.is_some_and(|only| only != taken) {
                    return None;
                }
                thread.todo.append(&mut actions(if taken { &then } else { &other }));
                Did::Branch(taken)
            }
            Action::Compute(..) => return None,
        };
        self.threads[t] = thread;
        Some(did)
    }
}
