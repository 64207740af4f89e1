//! Little programs at random.

use super::{Expr, Little, OPERATORS, REGISTERS, Statement};
use crate::generate::random::Random;

struct Author {
    random: Random,
    variables: usize,
    locks: usize,
    held: Vec<usize>,
    in_block: bool,
    /// Expressions choose between others, and divide more often.
    chooses: bool,
}

impl Little {
    /// The program of a seed.
    pub fn new(seed: u64) -> Little {
        Self::write(seed, false)
    }

    /// The program of a seed in which expressions choose: some of them would have no value, had they chosen otherwise.
    pub fn choosing(seed: u64) -> Little {
        Self::write(seed, true)
    }

    fn write(seed: u64, chooses: bool) -> Little {
        let mut random = Random::new(seed);
        let variables = 1 + random.below(3) as usize;
        let (waits, crosses) = match random.below(8) {
            0 => (true, false),
            1..=2 => (false, true),
            _ => (false, false),
        };
        let locks = random.below(3).max(u32::from(waits)).max(if crosses { 2 } else { 0 }) as usize;
        let is_plain = !waits && !crosses;
        let count = if is_plain { 2 + random.below(2) } else { 2 };
        let mut author = Author { random, variables, locks, held: Vec::new(), in_block: false, chooses };
        let mut threads: Vec<Vec<Statement>> = (0..count)
            .map(|_| {
                let mut budget = if is_plain { 2 + author.random.below(5) } else { author.random.below(3) };
                author.block(&mut budget, 2)
            })
            .collect();
        if waits {
            author.add_wait(&mut threads);
        }
        if crosses {
            author.add_crossing(&mut threads);
        }
        Little { threads, variables, locks }
    }
}

impl Author {
    fn block(&mut self, budget: &mut u32, depth: u32) -> Vec<Statement> {
        let mut statements = Vec::new();
        while *budget > 0 {
            *budget -= 1;
            statements.push(self.statement(budget, depth));
        }
        statements
    }

    /// A part of what is left, to be spent inside a statement.
    fn part(budget: &mut u32, most: u32) -> u32 {
        let part = (*budget).min(most);
        *budget -= part;
        part
    }

    fn statement(&mut self, budget: &mut u32, depth: u32) -> Statement {
        let x = self.random.below(self.variables as u32) as usize;
        let register = self.random.below(REGISTERS as u32) as usize;
        let can_lock = self.locks > self.held.len() && *budget > 0;
        match self.random.below(14) {
            0..=3 => Statement::Read(x, register),
            4..=6 => Statement::Write(x, self.expr(2)),
            7 => Statement::Update(x, register, self.expr(1)),
            8 => match self.expr(2) {
                // A division that is never used leaves no event, and would stop the thread all the same.
                expr if expr.divides() => Statement::Compute(register, Expr::Number(2)),
                expr => Statement::Compute(register, expr),
            },
            9 if can_lock => self.guarded(budget),
            10..=11 if !self.in_block && *budget > 1 => {
                self.in_block = true;
                let inside = self.block(&mut Self::part(budget, 3), depth.min(1));
                self.in_block = false;
                Statement::Atomic(inside)
            }
            _ if depth > 0 && *budget > 0 => {
                let cond = self.expr(1);
                let then = self.block(&mut Self::part(budget, 2), depth - 1);
                Statement::If(cond, then, self.block(&mut 1, 0))
            }
            _ => Statement::Read(x, register),
        }
    }

    /// Straight statements under a lock that the thread does not hold yet.
    fn guarded(&mut self, budget: &mut u32) -> Statement {
        let free: Vec<usize> = (0..self.locks).filter(|lock| !self.held.contains(lock)).collect();
        let lock = free[self.random.below(free.len() as u32) as usize];
        self.held.push(lock);
        let inside = self.block(&mut Self::part(budget, 2), 0);
        self.held.pop();
        Statement::Guarded(lock, inside)
    }

    /// One thread waits, once, and another notifies, once: nobody else could be woken, or wake it. Mostly they use a
    /// variable as a flag, and not always under the lock.
    fn add_wait(&mut self, threads: &mut [Vec<Statement>]) {
        let lock = self.random.below(self.locks as u32) as usize;
        let sleeper = self.random.below(threads.len() as u32) as usize;
        let notifier = (sleeper + 1 + self.random.below(threads.len() as u32 - 1) as usize) % threads.len();
        let flag = self.random.below(self.variables as u32) as usize;
        let (mut wait, mut notify) = (vec![Statement::Wait(lock)], vec![Statement::Notify]);
        if !self.random.one_in(3) {
            let unset = Expr::Apply("eq", Box::new(Expr::Register(0)), Box::new(Expr::Number(0)));
            wait = vec![Statement::Read(flag, 0), Statement::If(unset, wait, Vec::new())];
            notify.insert(0, Statement::Write(flag, Expr::Number(1)));
        }
        if !self.random.one_in(3) {
            notify = vec![Statement::Guarded(lock, notify)];
        }
        self.insert(&mut threads[sleeper], vec![Statement::Guarded(lock, wait)]);
        self.insert(&mut threads[notifier], notify);
    }

    /// Two threads take two locks in opposite order; mostly the second only if the first has set a flag, before or after.
    fn add_crossing(&mut self, threads: &mut [Vec<Statement>]) {
        let nested = |outer: usize, inner: usize, inside: Statement| {
            Statement::Guarded(outer, vec![Statement::Guarded(inner, vec![inside])])
        };
        let flag = self.random.below(self.variables as u32) as usize;
        let (one, other) = (self.statement(&mut 0, 0), self.statement(&mut 0, 0));
        let (mut one, mut other) = (vec![nested(0, 1, one)], vec![nested(1, 0, other)]);
        if !self.random.one_in(3) {
            let at = self.random.below(2) as usize;
            one.insert(at, Statement::Write(flag, Expr::Number(1)));
            other = vec![Statement::Read(flag, 0), Statement::If(Expr::Register(0), other, Vec::new())];
        }
        self.insert(&mut threads[0], one);
        self.insert(&mut threads[1], other);
    }

    fn insert(&mut self, thread: &mut Vec<Statement>, statements: Vec<Statement>) {
        let at = self.random.below(thread.len() as u32 + 1) as usize;
        thread.splice(at..at, statements);
    }

    fn expr(&mut self, depth: u32) -> Expr {
        if self.chooses && depth > 0 && self.random.one_in(2) {
            let then = self.expr(depth - 1);
            let divisor = Box::new(Expr::Register(self.random.below(REGISTERS as u32) as usize));
            let otherwise = Expr::Apply("div", Box::new(self.expr(0)), divisor.clone());
            // Mostly what it divides by is what it asked about, as careful programs do.
            let condition = if self.random.one_in(3) { self.expr(0) } else { *divisor };
            let arms = if self.random.one_in(3) { [condition, then, otherwise] } else { [condition, otherwise, then] };
            return Expr::Choose(Box::new(arms));
        }
        let random = &mut self.random;
        match random.below(if depth == 0 { 4 } else { 8 }) {
            0 => Expr::Number(i64::from(random.below(4)) - 1),
            1..=3 => Expr::Register(random.below(REGISTERS as u32) as usize),
            4 => Expr::Byte(Box::new(self.expr(depth - 1))),
            _ => {
                let operator = OPERATORS[random.below(OPERATORS.len() as u32) as usize];
                let [a, b] = [(); 2].map(|()| Box::new(self.expr(depth - 1)));
                Expr::Apply(operator, a, b)
            }
        }
    }
}
