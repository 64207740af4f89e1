//! Little programs by chance.

use super::machine::{Comparison, Condition, Instruction, Little, Value};
use portent_testing::dice::Dice;
use portent_trace::Mode;

/// What a program is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Mixed,
    Locks,
    Tries,
    Atomics,
    /// Locks that can be held shared.
    Shared,
}

impl Profile {
    pub(crate) const ALL: [Profile; 5] =
        [Profile::Mixed, Profile::Locks, Profile::Tries, Profile::Atomics, Profile::Shared];
}

/// The program of a seed; `size` operations or so.
pub(crate) fn program(seed: u64, profile: Profile, size: usize) -> Little {
    let mut dice = Dice::new(seed);
    let threads = dice.one_of(&[2, 2, 3, 3, 4]);
    let variables = dice.one_of(&[1, 2, 2, 3]);
    let locks = match profile {
        Profile::Mixed => dice.one_of(&[0, 1, 1, 2]),
        Profile::Locks => 2,
        Profile::Tries | Profile::Shared => dice.one_of(&[1, 2]),
        Profile::Atomics => 0,
    };
    let tries = profile == Profile::Tries || (matches!(profile, Profile::Mixed | Profile::Shared) && dice.percent(35));
    let atomics = profile == Profile::Atomics || dice.percent(30);
    let forks = dice.percent(40);
    let mut writer = Writer {
        dice,
        variables,
        locks,
        tries,
        atomics,
        shared: profile == Profile::Shared,
        left: size,
        loops: 0,
        in_loop: false,
        kept: Vec::new(),
    };
    let mut code: Vec<Vec<Instruction>> = Vec::new();
    let mut started: Vec<usize> = (0..threads).collect();
    for thread in 0..threads {
        let mut body = Vec::new();
        writer.kept.clear();
        if thread == 0 && forks {
            let mut others: Vec<usize> = (1..threads).filter(|_| writer.dice.percent(80)).collect();
            if others.is_empty() {
                others.push(1);
            }
            started.retain(|thread| !others.contains(thread));
            writer.statements(&mut body, 1, 0, &[]);
            for &other in &others {
                body.push(Instruction::Fork(other));
                let more = writer.dice.below(2);
                writer.statements(&mut body, more, 0, &[]);
            }
            for &other in &others {
                if writer.dice.percent(70) {
                    body.push(Instruction::Join(other));
                }
            }
            writer.statements(&mut body, 2, 0, &[]);
        } else if thread > 1 && writer.dice.percent(25) {
            // Threads with the same code.
            body = code[thread - 1].clone();
        } else {
            let count = 2 + writer.dice.below(3);
            writer.statements(&mut body, count, 0, &[]);
        }
        if writer.dice.percent(30) {
            let (one, other) = (writer.condition(), writer.condition());
            body.push(Instruction::Assert(one, other));
        }
        if !body.iter().any(|instruction| !matches!(instruction, Instruction::Assert(..))) {
            body.insert(0, Instruction::Read { variable: 0, register: 0, atomic: false });
        }
        code.push(body);
    }
    Little { code, variables, locks, started }
}

struct Writer {
    dice: Dice,
    variables: usize,
    locks: usize,
    tries: bool,
    atomics: bool,
    shared: bool,
    left: usize,
    loops: usize,
    in_loop: bool,
    /// Locks that the thread may hold to its end.
    kept: Vec<usize>,
}

impl Writer {
    fn value(&mut self) -> Value {
        match self.dice.below(5) {
            0 | 1 => Value::Number(1),
            2 => Value::Number(2),
            3 => Value::Register(self.dice.below(2), 0),
            _ => Value::Register(self.dice.below(2), 1),
        }
    }
    fn condition(&mut self) -> Condition {
        let how = self.dice.one_of(&[Comparison::Equal, Comparison::Other, Comparison::Less, Comparison::More]);
        Condition(how, self.dice.below(2), self.dice.one_of(&[0, 0, 1, 2]))
    }
    fn access(&mut self, body: &mut Vec<Instruction>) {
        let (variable, register) = (self.dice.below(self.variables), self.dice.below(2));
        let atomic = self.atomics && self.dice.percent(50);
        let kind = self.dice.below(100);
        body.push(if kind < 45 {
            Instruction::Read { variable, register, atomic }
        } else if kind < 80 || !self.atomics {
            Instruction::Write { variable, value: self.value(), atomic }
        } else if kind < 90 {
            Instruction::Add { variable, number: 1, register }
        } else {
            let expected = self.dice.one_of(&[Value::Number(0), Value::Number(1), Value::Register(0, 0)]);
            let new = self.dice.one_of(&[Value::Number(1), Value::Number(2)]);
            Instruction::CompareExchange { variable, expected, new, register }
        });
        self.left = self.left.saturating_sub(1);
    }
    fn mode(&mut self) -> Mode {
        if self.shared && self.dice.percent(50) { Mode::Shared } else { Mode::Exclusive }
    }

    fn statements(&mut self, body: &mut Vec<Instruction>, count: usize, depth: usize, held: &[usize]) {
        for _ in 0..count {
            if self.left == 0 {
                return;
            }
            let kind = self.dice.below(100);
            let lock = self.dice.below(self.locks);
            if self.locks > 0 && kind >= 60 && !held.contains(&lock) && !self.kept.contains(&lock) && depth < 3 {
                self.critical(body, lock, depth, held);
            } else if (45..57).contains(&kind) && depth < 2 {
                let (condition, at) = (self.condition(), body.len());
                body.push(Instruction::Jump(0));
                let inner = 1 + self.dice.below(2);
                self.statements(body, inner, depth + 1, held);
                let mut end = body.len();
                if self.dice.percent(30) {
                    body.push(Instruction::Jump(0));
                    self.statements(body, 1, depth + 1, held);
                    body[end] = Instruction::Jump(body.len());
                    end += 1;
                }
                body[at] = Instruction::Unless(condition, end);
            } else if (57..60).contains(&kind) && depth < 1 {
                // At most twice.
                let counter = 3 + self.loops % 3;
                self.loops += 1;
                body.push(Instruction::Set { register: counter, value: Value::Number(0) });
                let (condition, at) = (self.condition(), body.len());
                body.push(Instruction::Jump(0));
                body.push(Instruction::Jump(0));
                self.in_loop = true;
                self.statements(body, 1, depth + 1, held);
                self.in_loop = false;
                body.push(Instruction::Set { register: counter, value: Value::Register(counter, 1) });
                body.push(Instruction::Jump(at));
                let end = body.len();
                body[at] = Instruction::Unless(Condition(Comparison::Less, counter, 2), end);
                body[at + 1] = Instruction::Unless(condition, end);
            } else {
                self.access(body);
            }
            if self.dice.percent(5) {
                let (one, other) = (self.condition(), self.condition());
                body.push(Instruction::Assert(one, other));
            }
        }
    }

    fn critical(&mut self, body: &mut Vec<Instruction>, lock: usize, depth: usize, held: &[usize]) {
        let mode = self.mode();
        let within: Vec<usize> = held.iter().copied().chain([lock]).collect();
        let inner = 1 + self.dice.below(2);
        if self.tries && self.dice.percent(50) {
            self.left = self.left.saturating_sub(1);
            body.push(Instruction::Try { lock, mode, register: 2 });
            let at = body.len();
            body.push(Instruction::Jump(0));
            self.statements(body, inner, depth + 1, &within);
            body.push(Instruction::Unlock(lock, mode));
            body[at] = Instruction::Unless(Condition(Comparison::Equal, 2, 1), body.len());
        } else {
            self.left = self.left.saturating_sub(2);
            body.push(Instruction::Lock(lock, mode));
            let second = 1 - lock.min(1);
            if second < self.locks && !within.contains(&second) && !self.kept.contains(&second) && self.dice.percent(45)
            {
                self.critical(body, second, depth + 1, &within);
            } else {
                self.statements(body, inner, depth + 1, &within);
            }
            // Now and then it is kept.
            if !self.in_loop && self.dice.percent(4) {
                self.kept.push(lock);
            } else {
                body.push(Instruction::Unlock(lock, mode));
            }
        }
    }
}
