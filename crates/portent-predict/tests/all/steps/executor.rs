//! An executor of input events: what a lock, a semaphore or a once does, by the words of the format's documentation.
//!
//! It knows neither kernel events nor lowering, and so shares nothing with what makes `witness.steps`. Formulas are not
//! executed, nor are values cut into bytes: with formulas or wide accesses, `values` is held to the rules of `sync`.

use portent_order::Model;
use portent_predict::{Bug, BugKind, Finding, Form, Role};
use portent_testing::traces;
use portent_trace::{InputEvent, InputOp, Names, Trace};
use std::collections::{BTreeMap, BTreeSet};

type Allowed = Result<(), String>;
/// Who may be asleep and who woken.
type Worlds = BTreeSet<(BTreeSet<usize>, BTreeSet<usize>)>;

fn nobody() -> Worlds {
    Worlds::from([(BTreeSet::new(), BTreeSet::new())])
}

/// The events of an input, and what each of them waits for.
pub(crate) struct Input {
    names: Names,
    events: Vec<InputEvent>,
    /// The events of each thread.
    program: Vec<Vec<usize>>,
    /// What must have happened before each event, locks, counts and condition variables aside.
    after: Vec<BTreeSet<usize>>,
    /// For each wake, the sleep, and whether a notify brought it about.
    woken: BTreeMap<usize, (usize, bool)>,
    /// The cells of each variable: one, or one for each byte.
    cells: Vec<Vec<usize>>,
    /// For each access, the last write of each cell before it.
    saw: Vec<Vec<Option<usize>>>,
    /// What variables held before their first write, as far as it was read.
    initial: Vec<Option<i64>>,
    branches: bool,
    /// Values are what they were recorded as: there are no formulas, and no wide accesses.
    plain_values: bool,
}

fn writes(op: InputOp) -> bool {
    matches!(op, InputOp::Write(_) | InputOp::Update(_))
}

fn reads(op: InputOp) -> bool {
    matches!(op, InputOp::Read(_) | InputOp::Update(_))
}

impl Input {
    pub(crate) fn from_std(text: &str) -> Input {
        let (names, events) = traces::from_std(text);
        let formulas = text.lines().any(|line| line.trim_start().starts_with("#!"));
        Input::new(names, events, formulas)
    }

    pub(crate) fn new(names: Names, events: Vec<InputEvent>, formulas: bool) -> Input {
        let threads = events.iter().map(|e| e.thread.index() + 1);
        let named =
            events.iter().filter(|e| matches!(e.op, InputOp::Fork | InputOp::Join)).map(|e| e.object as usize + 1);
        let mut program = vec![Vec::new(); threads.chain(named).max().unwrap_or(0)];
        for (i, event) in events.iter().enumerate() {
            program[event.thread.index()].push(i);
        }
        let branches = events.iter().any(|e| e.op == InputOp::Branch);
        let variables = events.iter().filter(|e| e.op.is_access()).map(|e| e.object as usize + 1).max().unwrap_or(0);
        let mut input = Input {
            names,
            program,
            after: vec![BTreeSet::new(); events.len()],
            woken: BTreeMap::new(),
            cells: Vec::new(),
            saw: vec![Vec::new(); events.len()],
            initial: vec![None; variables],
            branches,
            plain_values: !formulas,
            events,
        };
        input.lay_out();
        (0..input.events.len()).for_each(|i| input.find_needs(i));
        input.find_rounds();
        input.find_wakes();
        input.find_writers();
        input
    }

    /// The events before, or all events, that do one of these to the object of event `i`.
    fn alike(&self, i: usize, until: usize, ops: &[InputOp]) -> Vec<usize> {
        let object = self.events[i].object;
        (0..until).filter(|&j| self.events[j].object == object && ops.contains(&self.events[j].op)).collect()
    }

    fn find_needs(&mut self, i: usize) {
        use InputOp::*;
        let (all, event) = (self.events.len(), self.events[i]);
        let needs: Vec<usize> = match event.op {
            Receive => self.alike(i, all, &[Send]),
            HappensAfter => self.alike(i, i, &[HappensBefore]),
            Await => self.alike(i, i, &[Notify]).into_iter().next_back().into_iter().collect(),
            OncePass => self.alike(i, i, &[OnceEnd]),
            LatchWait => {
                let first = self.alike(i, all, &[LatchWait])[0];
                self.alike(i, first, &[CountDown])
            }
            Join => {
                let child = event.object as usize;
                let fork = self.alike(i, i, &[Fork]);
                fork.into_iter().chain(self.program[child].iter().copied()).collect()
            }
            _ => Vec::new(),
        };
        self.after[i].extend(needs);
        let is_fork = |e: &InputEvent| e.op == Fork && e.object == event.thread.index() as u32;
        let fork = self.events.iter().position(is_fork);
        self.after[i].extend(fork);
    }

    /// A round of a barrier is over with the first departure from it: whoever arrives then is in the next.
    fn find_rounds(&mut self) {
        // For each barrier, the round that fills; for each thread inside, its round.
        let mut filling: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut full: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
        for (i, event) in self.events.iter().enumerate() {
            let (barrier, thread) = (event.object, event.thread.index());
            match event.op {
                InputOp::Arrive => filling.entry(barrier).or_default().push(i),
                InputOp::Depart => {
                    let round = filling.entry(barrier).or_default();
                    if round.iter().any(|&a| self.events[a].thread == event.thread) {
                        let round = std::mem::take(round);
                        let inside = round.iter().map(|&a| ((barrier, self.events[a].thread.index()), round.clone()));
                        full.extend(inside);
                    }
                    self.after[i].extend(&full[&(barrier, thread)]);
                }
                _ => {}
            }
        }
    }

    /// The initial count of a semaphore.
    fn count(&self, semaphore: u32) -> i64 {
        let set = self.events.iter().find(|e| e.op == InputOp::SemaphoreInit && e.object == semaphore);
        set.and_then(|e| e.value).unwrap_or(0)
    }

    fn find_wakes(&mut self) {
        use InputOp::*;
        let mut on: BTreeMap<u32, Worlds> = BTreeMap::new();
        for i in 0..self.events.len() {
            let event = self.events[i];
            if let Wake | TimeOut = event.op {
                let earlier = self.alike(i, i, &[Sleep]);
                let slept = earlier.into_iter().rfind(|&j| self.events[j].thread == event.thread).unwrap();
                let worlds = on.entry(event.object).or_insert_with(nobody);
                let by_notify = match event.op {
                    Wake => worlds.iter().any(|(_, woken)| woken.contains(&slept)),
                    _ => !worlds.iter().any(|(asleep, _)| asleep.contains(&slept)),
                };
                self.woken.insert(i, (slept, by_notify));
            }
            if let Sleep | Notify | NotifyAll | Wake | TimeOut = event.op {
                let worlds = on.entry(event.object).or_insert_with(nobody);
                *worlds = self.happen(worlds, i);
            }
        }
    }

    /// Who may be asleep and who woken after an event, whomever notifies wake.
    fn happen(&self, worlds: &Worlds, i: usize) -> Worlds {
        let mut after = Worlds::new();
        for (asleep, woken) in worlds {
            let (mut still, mut up) = (asleep.clone(), woken.clone());
            match self.events[i].op {
                InputOp::Sleep => drop(still.insert(i)),
                InputOp::Notify if !asleep.is_empty() => {
                    after.extend(asleep.iter().map(|one| {
                        let (mut still, mut up) = (asleep.clone(), woken.clone());
                        still.remove(one);
                        up.insert(*one);
                        (still, up)
                    }));
                    continue;
                }
                InputOp::NotifyAll => up.append(&mut still),
                InputOp::Wake | InputOp::WakeInTime | InputOp::TimeOut | InputOp::WakeByItself => {
                    let (slept, by_notify) = self.woken[&i];
                    if !(if by_notify { &mut up } else { &mut still }).remove(&slept) {
                        continue;
                    }
                }
                _ => {}
            }
            after.insert((still, up));
        }
        after
    }

    fn lay_out(&mut self) {
        let mut known = BTreeMap::new();
        let variables = self.initial.len() as u32;
        self.plain_values &= (0..variables).all(|x| self.names.range(x).is_none());
        let mut cell = |region: Option<u64>, at: u64| {
            let fresh = known.len();
            *known.entry((region, at)).or_insert(fresh)
        };
        for x in 0..variables {
            self.cells.push(match self.names.range(x) {
                Some(range) => {
                    let bytes = range.start..range.start + u64::from(range.len);
                    bytes.map(|byte| cell(Some(range.region.into()), byte)).collect()
                }
                None => vec![cell(None, x.into())],
            });
        }
    }

    fn cell_count(&self) -> usize {
        self.cells.iter().flatten().max().map_or(0, |most| most + 1)
    }

    fn cells_of(&self, i: usize) -> &[usize] {
        &self.cells[self.events[i].object as usize]
    }

    fn find_writers(&mut self) {
        let mut last: Vec<Option<usize>> = vec![None; self.cell_count()];
        let mut recorded: Vec<BTreeSet<i64>> = vec![BTreeSet::new(); self.initial.len()];
        for (i, event) in self.events.iter().enumerate().filter(|(_, e)| e.op.is_access()) {
            let saw: Vec<_> = self.cells_of(i).iter().map(|&cell| last[cell]).collect();
            if saw[0].is_none() && !writes(event.op) {
                recorded[event.object as usize].extend(event.value);
            }
            if writes(event.op) {
                self.cells_of(i).iter().for_each(|&cell| last[cell] = Some(i));
            }
            self.saw[i] = saw;
        }
        self.initial =
            recorded.into_iter().map(|all| if all.len() == 1 { all.first().copied() } else { None }).collect();
    }

    /// What a write of a variable wrote in the trace, where known.
    fn value(&self, x: usize, writer: Option<usize>) -> Option<i64> {
        writer.map_or(self.initial[x], |write| self.events[write].value)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Holding {
    thread: usize,
    shared: bool,
    depth: u32,
}

/// A run of input events.
struct Execution<'i> {
    input: &'i Input,
    model: Model,
    /// When each event was executed.
    when: Vec<Option<usize>>,
    executed: usize,
    position: Vec<usize>,
    holders: BTreeMap<u32, Vec<Holding>>,
    /// Depths at which threads will take locks back.
    given_back: Vec<(usize, u32, u32)>,
    counts: BTreeMap<u32, i64>,
    /// The last write of each cell.
    last: Vec<Option<usize>>,
    /// Threads that have read something else and go no further.
    stopped: Vec<bool>,
    /// In `values`: threads that read another value, and variables that hold what such threads wrote.
    tainted: Vec<bool>,
    tainted_variables: Vec<bool>,
}

/// Executes the steps of a finding's witness, and looks whether they lead where the finding says.
pub(crate) fn execute(trace: &Trace, input: &Input, model: Model, finding: &Finding) -> Allowed {
    let mut run = Execution {
        input,
        model,
        when: vec![None; input.events.len()],
        executed: 0,
        position: vec![0; input.program.len()],
        holders: BTreeMap::new(),
        given_back: Vec::new(),
        counts: BTreeMap::new(),
        last: vec![None; input.cell_count()],
        stopped: vec![false; input.program.len()],
        tainted: vec![false; input.program.len()],
        tainted_variables: vec![false; input.initial.len()],
    };
    for step in finding.witness.as_ref().ok_or("there is no witness")?.steps.in_full(trace) {
        for _ in 0..step.events {
            run.step(step.thread.index(), finding)?;
        }
    }
    run.arrived(finding)
}

fn place(finding: &Finding, role: Role) -> Option<usize> {
    let place = finding.places().into_iter().find(|place| place.role == role)?;
    place.event.map(|event| event as usize)
}

fn ensure(holds: bool, otherwise: &str) -> Allowed {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

impl Execution<'_> {
    fn next(&self, thread: usize) -> Option<usize> {
        self.input.program[thread].get(self.position[thread]).copied()
    }

    fn done(&self, event: usize) -> bool {
        self.when[event].is_some()
    }

    /// Whether another thread's holding of a lock keeps `thread` from taking it.
    fn excluded(&self, thread: usize, lock: u32, shared: bool) -> bool {
        let holders = self.holders.get(&lock).into_iter().flatten();
        holders.into_iter().any(|h| h.thread != thread && !(h.shared && shared))
    }

    fn holding(&mut self, thread: usize, lock: u32, shared: bool) -> Option<&mut Holding> {
        self.holders.entry(lock).or_default().iter_mut().find(|h| h.thread == thread && h.shared == shared)
    }

    /// Why the next event of a thread is not possible now, what it reads aside.
    fn forbidden(&self, i: usize) -> Allowed {
        use InputOp::*;
        let event = self.input.events[i];
        let (thread, object) = (event.thread.index(), event.object);
        if let Some(&missing) = self.input.after[i].iter().find(|&&j| !self.done(j)) {
            return Err(format!("event {missing} has not happened"));
        }
        match event.op {
            Acquire | TryAcquire | AcquireAll | OnceBegin => {
                ensure(!self.excluded(thread, object, false), "the lock is held")
            }
            AcquireShared | TryAcquireShared => ensure(!self.excluded(thread, object, true), "the lock is held"),
            Busy => ensure(self.excluded(thread, object, false), "nobody else holds the lock"),
            BusyShared => ensure(self.excluded(thread, object, true), "nobody else holds the lock alone"),
            Wake | WakeInTime | TimeOut | WakeByItself => {
                let can = !self.input.happen(&self.asleep(object), i).is_empty();
                ensure(can, if self.input.woken[&i].1 { "nobody has woken it" } else { "it is woken" })
            }
            SemaphoreWait | SemaphoreTry => ensure(self.in_semaphore(object) > 0, "the semaphore is empty"),
            SemaphoreBusy => ensure(self.in_semaphore(object) == 0, "the semaphore is not empty"),
            _ => Ok(()),
        }
    }

    fn in_semaphore(&self, semaphore: u32) -> i64 {
        self.input.count(semaphore) + self.counts.get(&semaphore).copied().unwrap_or(0)
    }

    /// The last write of each cell of an access.
    fn would_see(&self, i: usize) -> Vec<Option<usize>> {
        self.input.cells_of(i).iter().map(|&cell| self.last[cell]).collect()
    }

    /// Whether a read would see another value than it did, or one that nobody knows.
    fn reads_anew(&self, i: usize) -> bool {
        let event = self.input.events[i];
        let x = event.object as usize;
        let (now, saw) = (self.would_see(i)[0], self.input.saw[i][0]);
        let expected = if writes(event.op) { self.input.value(x, saw) } else { event.value };
        let same = now == saw || (expected.is_some() && self.input.value(x, now) == expected);
        !same || self.tainted_variables[x]
    }

    /// Why an event would not go as it did because of what its thread reads.
    fn misread(&self, i: usize) -> Allowed {
        let event = self.input.events[i];
        match self.model {
            Model::Sync => Ok(()),
            Model::Values if !self.input.plain_values => Ok(()),
            Model::Values if self.input.branches => {
                let tainted = event.op == InputOp::Branch && self.tainted[event.thread.index()];
                ensure(!tainted, "the branch would go another way")
            }
            _ if !reads(event.op) => Ok(()),
            Model::Reads => ensure(self.would_see(i) == self.input.saw[i], "it would see another write"),
            Model::Values => ensure(!self.reads_anew(i), "it would see another value"),
        }
    }

    fn step(&mut self, thread: usize, finding: &Finding) -> Allowed {
        let name = self.input.names.thread(portent_trace::ThreadId::new(thread)).to_owned();
        let i = self.next(thread).ok_or_else(|| format!("{name} has no further event"))?;
        let said = |why: String| format!("step {}, event {i} of {name}: {why}", self.executed);
        if self.stopped[thread] {
            return Err(said("the thread goes on after it read something else".into()));
        }
        self.forbidden(i).map_err(said)?;
        if let Err(why) = self.misread(i) {
            let is = |role| place(finding, role) == Some(i);
            let free = match finding.kind() {
                BugKind::Nondeterminism => is(Role::Read),
                BugKind::Atomicity => is(Role::Remote) || is(Role::Second),
                BugKind::Property => true,
                BugKind::LostUpdate => {
                    matches!(&finding.bug, Bug::LostUpdate { read, .. } if read.event == u32::try_from(i).ok())
                }
                _ => false,
            };
            ensure(free, &said(why))?;
            // An update in two steps goes on to its write; what may come after that, `check` says.
            self.stopped[thread] = finding.kind() != BugKind::LostUpdate;
        }
        if finding.kind() == BugKind::Nondeterminism && place(finding, Role::Read) == Some(i) {
            let challenger = place(finding, Role::Challenger);
            let news = self.would_see(i).into_iter().zip(&self.input.saw[i]).filter(|(now, saw)| now != *saw);
            ensure(news.into_iter().any(|(now, _)| now == challenger), &said("it does not see the challenger".into()))?;
        }
        self.change(i).map_err(|why| format!("event {i} of {name}: {why}"))?;
        self.when[i] = Some(self.executed);
        self.executed += 1;
        self.position[thread] += 1;
        Ok(())
    }

    /// What an event leaves behind.
    fn change(&mut self, i: usize) -> Allowed {
        use InputOp::*;
        let event = self.input.events[i];
        let (thread, object) = (event.thread.index(), event.object);
        match event.op {
            Acquire | TryAcquire | OnceBegin => self.take(thread, object, false, 1),
            AcquireShared | TryAcquireShared => self.take(thread, object, true, 1),
            Release | OnceEnd => return self.give_back(thread, object, false),
            ReleaseShared => return self.give_back(thread, object, true),
            ReleaseAll => {
                let depth = self.holding(thread, object, false).ok_or("it does not hold the lock")?.depth;
                self.given_back.push((thread, object, depth));
                self.holders.entry(object).or_default().retain(|h| h.thread != thread || h.shared);
            }
            AcquireAll => {
                let mine = self.given_back.iter().rposition(|&(t, lock, _)| (t, lock) == (thread, object));
                let (.., depth) = self.given_back.remove(mine.ok_or("it has not given the lock back")?);
                self.take(thread, object, false, depth);
            }
            Post => *self.counts.entry(object).or_default() += 1,
            SemaphoreWait | SemaphoreTry => *self.counts.entry(object).or_default() -= 1,
            Read(_) | Write(_) | Update(_) => {
                self.tainted[thread] |= reads(event.op) && self.reads_anew(i);
                if writes(event.op) {
                    self.input.cells_of(i).iter().for_each(|&cell| self.last[cell] = Some(i));
                    self.tainted_variables[object as usize] = self.tainted[thread];
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, thread: usize, lock: u32, shared: bool, depth: u32) {
        match self.holding(thread, lock, shared) {
            Some(holding) => holding.depth += depth,
            None => self.holders.entry(lock).or_default().push(Holding { thread, shared, depth }),
        }
    }

    fn give_back(&mut self, thread: usize, lock: u32, shared: bool) -> Allowed {
        self.holding(thread, lock, shared).ok_or("it does not hold the lock")?.depth -= 1;
        self.holders.entry(lock).or_default().retain(|h| h.depth > 0);
        Ok(())
    }

    /// Whether the run has led where the finding says.
    fn arrived(&self, finding: &Finding) -> Allowed {
        let at = |role| place(finding, role).ok_or("a place has no event");
        let thread = |i: usize| self.input.events[i].thread.index();
        let is_next = |i: usize| self.next(thread(i)) == Some(i);
        match finding.kind() {
            BugKind::Race => {
                for i in [at(Role::First)?, at(Role::Second)?] {
                    ensure(is_next(i), "an access of the race is not next")?;
                    self.forbidden(i).map_err(|why| format!("an access of the race is not possible: {why}"))?;
                }
                Ok(())
            }
            BugKind::Deadlock if finding.bug.form() == Form::LostWakeup => {
                self.is_lost(at(Role::Waiting)?, at(Role::Notify)?)
            }
            BugKind::Deadlock if finding.bug.form() == Form::Stuck => {
                for place in finding.places() {
                    let i = place.event.ok_or("a place has no event")? as usize;
                    ensure(is_next(i), "a thread is not where it is to wait")?;
                }
                for i in (0..self.position.len()).filter_map(|thread| self.next(thread)) {
                    ensure(self.forbidden(i).is_err(), &format!("event {i} is possible"))?;
                }
                Ok(())
            }
            BugKind::Deadlock => {
                let waiting: Vec<usize> = finding.places().iter().filter_map(|p| Some(p.event? as usize)).collect();
                for (k, &i) in waiting.iter().enumerate() {
                    ensure(is_next(i), "a thread of the cycle is not at its lock")?;
                    ensure(
                        matches!(
                            self.input.events[i].op,
                            InputOp::Acquire
                                | InputOp::AcquireShared
                                | InputOp::AcquireAll
                                | InputOp::OnceBegin
                                | InputOp::OncePass
                        ),
                        "nobody waits there",
                    )?;
                    let (event, holder) = (self.input.events[i], thread(waiting[(k + 1) % waiting.len()]));
                    let shared = event.op == InputOp::AcquireShared;
                    let mut holders = self.holders.get(&event.object).into_iter().flatten();
                    let held = holders.any(|h| h.thread == holder && !(h.shared && shared));
                    ensure(held, "the next thread of the cycle does not hold the lock")?;
                }
                Ok(())
            }
            BugKind::Atomicity | BugKind::LostUpdate => {
                let when = [at(Role::First)?, at(Role::Remote)?, at(Role::Second)?].map(|i| self.when[i]);
                ensure(when[0].is_some() && when[0] < when[1] && when[1] < when[2], "the accesses are in another order")
            }
            BugKind::Nondeterminism => match place(finding, Role::Read) {
                Some(read) => {
                    let last =
                        self.position[thread(read)].checked_sub(1).map(|at| self.input.program[thread(read)][at]);
                    ensure(last == Some(read), "the read is not the last event of its thread")
                }
                None => {
                    let challenger = at(Role::Challenger)?;
                    ensure(self.executed == self.input.events.len(), "the run is not complete")?;
                    ensure(self.would_see(challenger).contains(&Some(challenger)), "another write is the last")
                }
            },
            BugKind::Property => match place(finding, Role::Violation) {
                // A join is also the end of the thread that it waits for.
                Some(i) if finding.places()[0].thread.is_some_and(|t| t.index() != thread(i)) => {
                    ensure(self.next(self.input.events[i].object as usize).is_none(), "the thread has not ended")
                }
                // A thread starts with its first event; passing a once begins with its lock. Both may have to wait then.
                Some(i) if !self.done(i) => {
                    let starts = self.position[thread(i)] == 0 || self.input.events[i].op == InputOp::OncePass;
                    ensure(is_next(i) && starts, "the violation is not next")
                }
                Some(i) => ensure(self.when[i] == self.executed.checked_sub(1), "the violation is not the last event"),
                None => ensure(self.executed == self.input.events.len(), "the run is not complete"),
            },
            BugKind::Failure => Err("a failure is seen, not predicted".into()),
        }
    }

    /// Who may be asleep and who woken on a condition.
    fn asleep(&self, condition: u32) -> Worlds {
        use InputOp::*;
        let events = self.input.events.iter().enumerate().filter(|(_, e)| e.object == condition);
        let of = events.filter(|(_, e)| matches!(e.op, Sleep | Notify | NotifyAll | Wake | TimeOut));
        let mut done: Vec<(usize, usize)> = of.filter_map(|(i, _)| Some((self.when[i]?, i))).collect();
        done.sort_unstable();
        done.iter().fold(nobody(), |worlds, &(_, i)| self.input.happen(&worlds, i))
    }

    fn is_lost(&self, wake: usize, notify: usize) -> Allowed {
        let events = &self.input.events;
        let (sleeper, condition) = (events[wake].thread.index(), events[wake].object);
        ensure(self.next(sleeper) == Some(wake), "the sleeper is not at its wake")?;
        ensure(self.done(notify), "its notify did not come")?;
        let woken = !self.input.happen(&self.asleep(condition), wake).is_empty();
        ensure(!woken, "a notify has woken it")?;
        for other in (0..self.position.len()).filter(|&t| t != sleeper) {
            let Some(i) = self.next(other) else { continue };
            let stuck = self.stopped[other] || self.forbidden(i).is_err() || self.misread(i).is_err();
            ensure(stuck, &format!("event {i} of another thread is possible"))?;
        }
        Ok(())
    }
}
