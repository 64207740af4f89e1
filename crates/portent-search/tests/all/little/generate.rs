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
    Semaphores,
    Conditions,
    /// Barriers, and latches.
    Rounds,
    /// Things that are initialised once.
    Once,
    /// Some of everything.
    All,
}

impl Profile {
    pub(crate) const ALL: [Profile; 10] = [
        Profile::Mixed,
        Profile::Locks,
        Profile::Tries,
        Profile::Atomics,
        Profile::Shared,
        Profile::Semaphores,
        Profile::Conditions,
        Profile::Rounds,
        Profile::Once,
        Profile::All,
    ];
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
        Profile::Semaphores | Profile::Rounds | Profile::Once => dice.one_of(&[0, 0, 1]),
        Profile::Conditions | Profile::All => 1,
    };
    let some = |dice: &mut Dice, alone: Profile, counts: &[usize]| match profile {
        Profile::All if dice.percent(50) => 1,
        _ if profile == alone => dice.one_of(counts),
        _ => 0,
    };
    let semaphores = some(&mut dice, Profile::Semaphores, &[1, 1, 2]);
    let conditions = some(&mut dice, Profile::Conditions, &[1, 1, 2]);
    let barriers = some(&mut dice, Profile::Rounds, &[0, 1, 1]);
    let latches = some(&mut dice, Profile::Rounds, &[0, 1, 1]);
    let once = some(&mut dice, Profile::Once, &[1, 1, 2]);
    let tries = profile == Profile::Tries || (matches!(profile, Profile::Mixed | Profile::Shared) && dice.percent(35));
    let atomics = profile == Profile::Atomics || dice.percent(30);
    let forks = dice.percent(40);
    let counts: Vec<i64> = (0..semaphores).map(|_| dice.one_of(&[0, 0, 1, 1, 2])).collect();
    // Those who meet at a barrier: at least two, and always the same.
    let meet: Vec<Vec<usize>> = (0..barriers)
        .map(|_| {
            let mut all: Vec<usize> = (0..threads).collect();
            while all.len() > 2 && dice.percent(40) {
                all.remove(dice.below(all.len()));
            }
            all
        })
        .collect();
    let mut writer = Writer {
        dice,
        variables,
        locks,
        semaphores,
        conditions,
        latches,
        once,
        meets: Vec::new(),
        counted: vec![0; latches],
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
        writer.meets = (0..barriers).filter(|&barrier| meet[barrier].contains(&thread)).collect();
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
        } else if thread > 1 && barriers + latches == 0 && writer.dice.percent(25) {
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
    let mut latches = writer.counted;
    for (latch, count) in latches.iter_mut().enumerate().filter(|(_, count)| **count == 0) {
        *count += 1;
        code[threads - 1].push(Instruction::CountDown(latch));
    }
    // The flag and the lock of what is done once come after the others.
    let (variables, locks) = (variables + once, locks + once);
    let barriers = meet.iter().map(Vec::len).collect();
    Little { code, variables, locks, semaphores: counts, conditions, barriers, latches, started }
}

struct Writer {
    dice: Dice,
    variables: usize,
    locks: usize,
    semaphores: usize,
    conditions: usize,
    latches: usize,
    once: usize,
    /// The barriers that the thread uses.
    meets: Vec<usize>,
    /// How often each latch is counted down.
    counted: Vec<usize>,
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
            if self.dice.percent(45) && self.other(body, depth, held) {
                continue;
            }
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

    /// Adds something with what is no variable and no lock, if there is any.
    fn other(&mut self, body: &mut Vec<Instruction>, depth: usize, held: &[usize]) -> bool {
        let all = [self.semaphores, self.conditions, self.meets.len(), self.latches, self.once];
        let kinds: Vec<usize> = (0..all.len()).filter(|&kind| all[kind] > 0).collect();
        if kinds.is_empty() {
            return false;
        }
        let kind = self.dice.one_of(&kinds);
        let object = self.dice.below(all[kind]);
        self.left = self.left.saturating_sub(1);
        match kind {
            0 => self.semaphore(body, object),
            1 => self.condition_variable(body, object, depth, held),
            2 => {
                let barrier = self.meets[object];
                body.extend([Instruction::Arrive(barrier), Instruction::Depart(barrier)]);
            }
            3 if !self.in_loop && self.dice.percent(60) => {
                self.counted[object] += 1;
                body.push(Instruction::CountDown(object));
            }
            3 => body.push(Instruction::Await(object)),
            // Inside another it could wait for itself.
            _ if depth > 1 => return false,
            _ => self.once(body, object, depth, held),
        }
        true
    }

    fn semaphore(&mut self, body: &mut Vec<Instruction>, semaphore: usize) {
        match self.dice.below(10) {
            0..4 => body.push(Instruction::Post(semaphore)),
            4..8 => body.push(Instruction::Take(semaphore)),
            _ => {
                body.push(Instruction::TryTake { semaphore, register: 2 });
                if self.dice.percent(60) {
                    let at = body.len();
                    body.push(Instruction::Jump(0));
                    self.access(body);
                    body.push(Instruction::Post(semaphore));
                    body[at] = Instruction::Unless(Condition(Comparison::Equal, 2, 1), body.len());
                }
            }
        }
    }

    fn condition_variable(&mut self, body: &mut Vec<Instruction>, condition: usize, depth: usize, held: &[usize]) {
        let kind = self.dice.below(10);
        let timed = kind < 3;
        let wakes = |body: &mut Vec<Instruction>| {
            body.push(match kind {
                0..3 => Instruction::WakeInTime { condition, register: 2 },
                3..5 => Instruction::WakeAnyhow(condition),
                _ => Instruction::Wake(condition),
            });
        };
        let lock = (0..self.locks).find(|lock| !held.contains(lock) && !self.kept.contains(lock));
        match (self.dice.below(10), lock) {
            (0..2, _) => body.push(Instruction::NotifyAll(condition)),
            (2..6, _) => body.push(Instruction::Notify(condition)),
            (6..9, Some(lock)) if depth < 2 => {
                // With the lock that everybody gives back, once, or (but for those who wait in time) until it holds.
                let (mode, variable) = (Mode::Exclusive, self.dice.below(self.variables));
                body.push(Instruction::Lock(lock, mode));
                let again = body.len();
                body.push(Instruction::Read { variable, register: 0, atomic: false });
                let test = body.len();
                body.push(Instruction::Jump(0));
                body.extend([Instruction::Sleep(condition), Instruction::Unlock(lock, mode)]);
                wakes(body);
                body.push(Instruction::Lock(lock, mode));
                if !timed && self.dice.percent(60) {
                    body.push(Instruction::Jump(again));
                }
                body[test] = Instruction::Unless(Condition(Comparison::Equal, 0, 0), body.len());
                self.left = self.left.saturating_sub(2);
                let within: Vec<usize> = held.iter().copied().chain([lock]).collect();
                self.statements(body, 1, depth + 1, &within);
                body.push(Instruction::Unlock(lock, mode));
            }
            _ => {
                body.push(Instruction::Sleep(condition));
                wakes(body);
            }
        }
    }

    /// Does something unless it has been done: a lock, and a flag that says so.
    fn once(&mut self, body: &mut Vec<Instruction>, object: usize, depth: usize, held: &[usize]) {
        let (lock, flag, mode) = (self.locks + object, self.variables + object, Mode::Exclusive);
        body.push(Instruction::Lock(lock, mode));
        body.push(Instruction::Read { variable: flag, register: 2, atomic: true });
        let test = body.len();
        body.push(Instruction::Jump(0));
        self.statements(body, 1, depth + 2, held);
        body.push(Instruction::Write { variable: flag, value: Value::Number(1), atomic: true });
        body[test] = Instruction::Unless(Condition(Comparison::Equal, 2, 0), body.len());
        body.push(Instruction::Unlock(lock, mode));
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
