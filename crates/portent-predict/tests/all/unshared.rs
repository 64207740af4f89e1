//! What no two threads contend for is left out: nothing that is found changes. The fast way is held against the slow one, and
//! against brute force, on random programs that make, hand over, share and give back their variables.

use portent_order::{Goal, Model, check};
use portent_predict::{BugKind, Control, Evidence, Finding, InputSteps, Options, Prediction, predict};
use portent_testing::dice::Dice;
use portent_testing::goals::{candidates, feasible};
use portent_testing::parallel::each_seed;
use portent_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A random run of a program, as STD text: a first thread that works, starts others, works beside them, joins them, and starts over;
/// all on a few variables, some of which only one of them comes to use.
struct Program {
    dice: Dice,
    text: String,
    /// What variables hold.
    memory: [i64; 6],
    /// Whether accesses have values, and threads branch.
    values: bool,
    branches: bool,
    /// Whether each event has a place of its own.
    apart: bool,
    lines: u32,
    /// Locks: who holds them.
    holders: [Option<usize>; 2],
    /// Whether a thread is in a block.
    blocks: Vec<bool>,
}

impl Program {
    fn run(seed: u64, events: usize, apart: bool) -> String {
        let mut dice = Dice::new(seed);
        let (values, branches) = (dice.percent(60), dice.percent(30));
        let (memory, holders) = ([0; 6], [None; 2]);
        let mut program = Program {
            dice,
            text: String::new(),
            memory,
            values,
            branches,
            apart,
            lines: 0,
            holders,
            blocks: vec![false],
        };
        let mut alive: Vec<usize> = Vec::new();
        while (program.lines as usize) < events {
            let actors = 1 + alive.len();
            match program.dice.below(14) {
                0 | 3 | 4 if program.blocks.len() < 4 && alive.len() < 2 && program.lines > 1 => {
                    let child = program.blocks.len();
                    program.event(0, &format!("fork(T{child})"));
                    program.blocks.push(false);
                    alive.push(child);
                }
                1 if !alive.is_empty() => {
                    let child = alive.remove(program.dice.below(alive.len()));
                    program.leave(child);
                    program.event(0, &format!("join(T{child})"));
                }
                _ => {
                    let at = program.dice.below(actors);
                    let thread = if at == 0 { 0 } else { alive[at - 1] };
                    program.step(thread);
                }
            }
        }
        program.text
    }

    fn event(&mut self, thread: usize, what: &str) {
        self.lines += 1;
        let place = if self.apart { self.lines as usize } else { 1 + self.dice.below(7) };
        let _ = writeln!(self.text, "T{thread}|{}", what.replacen(')', &format!(")|{place}"), 1));
    }

    /// Gives back what a thread holds, since it ends.
    fn leave(&mut self, thread: usize) {
        for lock in 0..self.holders.len() {
            if self.holders[lock] == Some(thread) {
                self.holders[lock] = None;
                self.event(thread, &format!("rel(l{lock})"));
            }
        }
        if std::mem::take(&mut self.blocks[thread]) {
            self.event(thread, "end(b)");
        }
    }

    fn step(&mut self, thread: usize) {
        match self.dice.below(10) {
            0 => {
                let lock = self.dice.below(2);
                match self.holders[lock] {
                    None => {
                        self.holders[lock] = Some(thread);
                        self.event(thread, &format!("acq(l{lock})"));
                    }
                    Some(holder) => {
                        self.holders[lock] = None;
                        self.event(holder, &format!("rel(l{lock})"));
                    }
                }
            }
            1 => {
                self.blocks[thread] = !self.blocks[thread];
                let what = if self.blocks[thread] { "begin(b)" } else { "end(b)" };
                self.event(thread, what);
            }
            2 if self.branches => self.event(thread, "branch(c)"),
            _ => {
                // The first is everybody's, and each thread has a favourite among the others.
                let x =
                    if self.dice.percent(30) { 0 } else { 1 + (thread + self.dice.below(2) * self.dice.below(3)) % 5 };
                let op = self.dice.one_of(&["r", "r", "w", "w", "u"]);
                if op != "r" {
                    self.memory[x] += self.dice.one_of(&[0, 1, 1, 2]);
                }
                let value = if self.values { format!("|{}", self.memory[x]) } else { String::new() };
                self.lines += 1;
                let place = if self.apart { self.lines as usize } else { 1 + self.dice.below(7) };
                let _ = writeln!(self.text, "T{thread}|{op}(x{x})|{place}{value}");
            }
        }
    }
}

fn all(trace: &Trace, options: &Options) -> Prediction {
    let prediction = predict(trace, options, &Control::default());
    assert_eq!(prediction.errors, [] as [String; 0]);
    prediction
}

/// Findings by what makes them one: what they are, and at which places.
fn told(prediction: &Prediction) -> BTreeSet<(BugKind, Vec<u64>)> {
    let told = prediction.findings.iter().map(|finding| {
        let place = |place: &portent_predict::Place| place.location.map_or(0, |loc| 1 + u64::from(loc.to_bits()));
        let mut places: Vec<u64> = finding.places().into_iter().map(place).collect();
        // Which place of a race or a cycle comes first depends on the instance.
        if matches!(finding.kind(), BugKind::Race | BugKind::Deadlock) {
            places.sort_unstable();
        }
        (finding.kind(), places)
    });
    told.collect()
}

/// Every witness is one in the whole trace, and its steps are those of its schedule.
fn witnesses_hold(trace: &Trace, model: Model, findings: &[Finding], text: &str) -> usize {
    let steps = InputSteps::new(trace);
    let mut checked = 0;
    for finding in findings.iter().filter(|finding| finding.evidence == Evidence::Predicted) {
        let (goal, witness) = (finding.goal().unwrap(), finding.witness.as_ref().unwrap());
        let verdict = check(trace, model, &goal, &witness.schedule);
        verdict.unwrap_or_else(|why| panic!("{why}: {goal:?} in {model}\n{text}"));
        let whole = steps.convert(trace, &goal, &witness.schedule);
        let count = |steps: &portent_predict::Steps| {
            let mut of_thread: BTreeMap<usize, u64> = BTreeMap::new();
            steps.in_full(trace).for_each(|step| *of_thread.entry(step.thread.index()).or_default() += step.events);
            of_thread
        };
        let full: Vec<_> = witness.steps.in_full(trace).collect();
        let switches = full.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count();
        assert_eq!(witness.steps.switches(), switches, "{goal:?}: {full:?}\n{text}");
        let (whole, own) = (count(&whole), count(&witness.steps));
        let less = |(thread, events): (&usize, &u64)| whole.get(thread).copied().unwrap_or(0) >= *events;
        assert!(own.iter().all(less), "{goal:?}: {own:?} of {whole:?}\n{text}");
        checked += 1;
    }
    checked
}

#[test]
fn brute_force_agrees_where_everything_that_can_be_is_left_out() {
    let counts = each_seed(0..3_000, |seed| {
        let text = Program::run(seed, 12, true);
        let trace = Trace::from_std(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let model = Model::ALL[seed as usize % 3];
        let kinds = BugKind::ALL.into_iter().filter(|&kind| kind != BugKind::LostUpdate).collect();
        let prediction = all(&trace, &Options { model, window: 2, kinds, ..Options::default() });
        let truth: BTreeSet<Goal> = feasible(&trace, model, candidates(&trace)).into_iter().collect();
        let found = prediction.findings.iter().filter(|finding| finding.evidence == Evidence::Predicted);
        let found: BTreeSet<Goal> = found.filter_map(Finding::goal).collect();
        assert_eq!(found, truth, "{model}, {:?}\n{text}", prediction.incomplete);
        witnesses_hold(&trace, model, &prediction.findings, &text);
        (prediction.stats.unshared, truth.len())
    });
    let left_out = counts.iter().filter(|(left_out, _)| *left_out > 0).count();
    let found: usize = counts.iter().map(|(_, found)| found).sum();
    println!("{left_out} traces without some events, {found} goals");
    assert!(left_out > 1_000 && found > 2_000);
}

#[test]
fn leaving_out_what_nobody_contends_for_changes_no_finding() {
    let counts = each_seed(0..600, |seed| {
        let apart = seed % 2 == 0;
        let text = Program::run(seed + 10_000, 30 + seed as usize % 70, apart);
        let trace = Trace::from_std(&text).unwrap();
        let model = Model::ALL[seed as usize % 3];
        let (mut left_out, mut found) = (0, 0);
        for window in [6, 40] {
            let options = Options { model, window, ..Options::default() };
            let fast = all(&trace, &options);
            // Everything at once is exact, and leaves nothing out.
            let slow = all(&trace, &Options { window: 1 << 20, ..options.clone() });
            assert_eq!(slow.stats.unshared, 0);
            assert!(slow.incomplete.is_empty(), "{:?}\n{text}", slow.incomplete);
            let (mine, whole) = (told(&fast), told(&slow));
            for key in &mine {
                assert!(whole.contains(key), "{key:?} is not there, window {window}, {model}\n{text}");
            }
            if fast.incomplete.is_empty() {
                assert_eq!(mine, whole, "window {window}, {model}\n{text}");
            }
            // The same passes on the whole trace.
            let same = all(&trace, &Options { unshared: true, ..options });
            assert_eq!(same.stats.unshared, 0);
            for key in &told(&same) {
                assert!(mine.contains(key) || !fast.incomplete.is_empty(), "{key:?} is lost, {model}\n{text}");
            }
            witnesses_hold(&trace, model, &fast.findings, &text);
            left_out += u64::from(fast.stats.unshared > 0);
            found += mine.len();
        }
        (left_out, found)
    });
    let left_out: u64 = counts.iter().map(|(left_out, _)| left_out).sum();
    let found: usize = counts.iter().map(|(_, found)| found).sum();
    println!("{left_out} times something was left out, {found} findings");
    assert!(left_out > 300 && found > 1_000);
}

/// What is left out of a trace, and the findings.
fn left_out(text: &str) -> (u64, Vec<String>) {
    let trace = Trace::from_std(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let prediction = all(&trace, &Options { window: 2, ..Options::default() });
    let slow = all(&trace, &Options { window: 2, unshared: true, ..Options::default() });
    assert_eq!(told(&prediction), told(&slow), "{text}");
    (prediction.stats.unshared, prediction.findings.iter().map(|finding| finding.id.clone()).collect())
}

#[test]
fn what_is_made_before_a_fork_and_read_by_all_threads_is_left_out() {
    let text =
        "M|w(table)|1\nM|fork(A)|2\nM|fork(B)|3\nA|r(table)|4\nB|r(table)|5\nM|join(A)|6\nM|join(B)|7\nM|r(table)|8\n";
    assert_eq!(left_out(text), (4, Vec::new()));
}

#[test]
fn what_goes_to_a_thread_and_comes_back_is_left_out() {
    let text = "M|w(x)|1\nM|fork(A)|2\nA|r(x)|3\nA|w(x)|4\nM|join(A)|5\nM|r(x)|6\nM|w(x)|7\n";
    assert_eq!(left_out(text), (5, Vec::new()));
}

#[test]
fn what_comes_back_within_a_block_is_an_atomicity_violation() {
    let text = "M|begin(b)|1\nM|w(x)|2\nM|fork(A)|3\nA|w(x)|4\nM|join(A)|5\nM|r(x)|6\nM|end(b)|7\n";
    let (left_out, found) = left_out(text);
    assert_eq!((left_out, found.len()), (0, 1), "{found:?}");
}

#[test]
fn a_write_after_others_began_to_read_is_contended() {
    let text = "M|w(x)|1\nM|fork(A)|2\nA|r(x)|3\nM|w(x)|4\nM|join(A)|5\n";
    let (left_out, found) = left_out(text);
    assert_eq!(left_out, 0);
    assert!(found.iter().any(|id| id.starts_with("race")), "{found:?}");
}

#[test]
fn counting_up_ones_own_is_evidence_for_what_is_lost_of_others() {
    // Both threads count at line 10: each once in the shared variable, and A again in one of its own.
    let text = "A|acq(m)|9\nA|r(x)|10|0\nA|rel(m)|11\nA|acq(m)|12\nA|w(x)|13|5\nA|rel(m)|14\n\
                B|acq(m)|9\nB|r(x)|10|5\nB|rel(m)|11\nB|acq(m)|12\nB|w(x)|13|5\nB|rel(m)|14\n\
                A|r(own)|10|7\nA|w(own)|13|9\nA|r(own)|10|9\nA|w(own)|13|11\n";
    let (left_out, found) = left_out(text);
    assert_eq!(left_out, 4);
    assert!(found.iter().any(|id| id.starts_with("failure")), "{found:?}");
}
