//! The whole lattice of a small trace, without reduction: to count runs and cuts, and to draw it.
//!
//! Runs are reorderings in which every thread has done all it did, or has stopped at a changed read that the property sees
//! (for a property that sees no reads: the complete reorderings); cuts are the different position vectors on them. Prefixes
//! that no such run has are walked too, and kept apart.

use super::plan::Plan;
use super::slice::{Detail, slice};
use super::state::{Cut, Layout};
use portent_order::Model;
use portent_spec::{Judgement, Letter, Monitor};
use portent_trace::{Event, EventId, Trace};
use rustc_hash::FxHashMap;

/// A position vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// How many events of each thread of the trace have happened.
    pub positions: Vec<u32>,
    /// How many have happened in all.
    pub level: usize,
    /// Whether some run comes by.
    pub is_cut: bool,
}

/// An event that leads from one position vector to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where from.
    pub from: usize,
    /// Where to.
    pub to: usize,
    /// What happens.
    pub event: EventId,
    /// Whether some run does it here.
    pub is_cut: bool,
    /// Whether it can only be a read here that sees another write, and the last event of its thread.
    pub is_changed: bool,
}

/// A lattice, whole.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Position vectors, level by level.
    pub nodes: Vec<Node>,
    /// What leads from one to the next.
    pub edges: Vec<Edge>,
    /// Complete reorderings, and those that are complete but for threads that stopped at changed reads; `None` if there
    /// are more than 2¹²⁸.
    pub runs: Option<u128>,
}

impl Whole {
    /// How many different position vectors lie on runs.
    pub fn cuts(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_cut).count()
    }
    /// How many of them have each number of events.
    pub fn level_sizes(&self) -> Vec<usize> {
        let mut sizes = Vec::new();
        for node in self.nodes.iter().filter(|node| node.is_cut) {
            sizes.resize(sizes.len().max(node.level + 1), 0);
            sizes[node.level] += 1;
        }
        sizes
    }
    /// The node with these positions.
    pub fn find(&self, positions: &[u32]) -> Option<usize> {
        self.nodes.iter().position(|node| node.positions == positions)
    }
}

/// Sees some events, and thinks nothing of them.
struct Looker<'a>(&'a dyn Fn(&Event) -> bool);

impl Monitor for Looker<'_> {
    fn words(&self) -> usize {
        0
    }
    fn start(&self, _: &mut [u64]) {}
    fn letter(&mut self, event: &Event) -> Option<Letter> {
        (self.0)(event).then_some(Letter(0))
    }
    fn step(&self, _: &mut [u64], _: Letter) -> Judgement {
        Judgement::Good
    }
}

/// A step between two states, by their numbers.
#[derive(Clone, Copy)]
struct Taken {
    from: usize,
    to: usize,
    event: EventId,
    is_changed: bool,
}

/// A state of a level: its packed form, and in how many ways it is reached.
type States = FxHashMap<Vec<u64>, (usize, Option<u128>)>;

/// The whole lattice, every read kept, unless it has more than `most` states.
pub fn whole(trace: &Trace, model: Model, most: usize) -> Option<Whole> {
    whole_seen(trace, model, &|_| false, most)
}

/// The whole lattice for a property that sees these events: in `reads`, those that read may see another write, as the
/// last of their thread.
pub fn whole_seen(trace: &Trace, model: Model, sees: &dyn Fn(&Event) -> bool, most: usize) -> Option<Whole> {
    // Every event makes a level.
    if trace.len() >= most {
        return None;
    }
    let mut looker = Looker(sees);
    let slice = slice(trace, model, &mut looker, Detail::Everything);
    let plan: &Plan = &slice.plan;
    let layout = Layout::of(plan, 0);
    // Wide states are kept too: so many words in all.
    let most = most.min(16_000_000 / layout.words);
    let mut row = vec![0; layout.words];
    let mut cut = Cut::start(plan, &looker);
    let mut next = cut.clone();
    layout.pack(plan, &cut, &mut row);
    let mut level: States = FxHashMap::default();
    level.insert(row.clone(), (0, Some(1)));
    // All states, by number: their positions and level; and the steps between them.
    let mut states: Vec<(Vec<u32>, usize)> = vec![(cut.positions.clone(), 0)];
    let mut steps: Vec<Taken> = Vec::new();
    let mut runs: Option<u128> = Some(0);
    let mut complete: Vec<usize> = Vec::new();
    for number in 0.. {
        let mut after: States = FxHashMap::default();
        let mut rows: Vec<_> = level.into_iter().collect();
        rows.sort_by_key(|(_, (state, _))| *state);
        for (packed, (state, ways)) in rows {
            layout.unpack(&packed, &mut cut);
            if (0..plan.threads()).all(|t| cut.next(plan, t).is_none()) {
                runs = runs.zip(ways).and_then(|(a, b)| a.checked_add(b));
                complete.push(state);
            }
            for t in 0..plan.threads() {
                let Some(step) = cut.next(plan, t) else { continue };
                let is_changed = !cut.enabled(plan, t, step);
                if is_changed && cut.changed(plan, step).is_none() {
                    continue;
                }
                next.copy_from(&cut);
                if is_changed {
                    next.stop(plan, t, step);
                } else {
                    next.advance(plan, t, step);
                }
                layout.pack(plan, &next, &mut row);
                let fresh = states.len();
                let (to, known) = after.entry(row.clone()).or_insert((fresh, Some(0)));
                *known = known.zip(ways).and_then(|(a, b)| a.checked_add(b));
                if *to == fresh {
                    states.push((next.positions.clone(), number + 1));
                    if states.len() > most {
                        return None;
                    }
                }
                steps.push(Taken { from: state, to: *to, event: step.event, is_changed });
            }
        }
        if after.is_empty() {
            break;
        }
        level = after;
    }
    let mut reaches = vec![false; states.len()];
    complete.into_iter().for_each(|state| reaches[state] = true);
    for &Taken { from, to, .. } in steps.iter().rev() {
        reaches[from] |= reaches[to];
    }
    Some(picture(&slice.threads, trace.threads(), states, steps, reaches, runs))
}

/// States with the same positions become one node.
fn picture(
    of_plan: &[usize],
    threads: usize,
    states: Vec<(Vec<u32>, usize)>,
    steps: Vec<Taken>,
    reaches: Vec<bool>,
    runs: Option<u128>,
) -> Whole {
    let mut whole = Whole { runs, ..Whole::default() };
    let mut number: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    let mut node_of = Vec::with_capacity(states.len());
    for ((positions, level), reaches) in states.into_iter().zip(&reaches) {
        let mut all = vec![0; threads];
        of_plan.iter().zip(&positions).for_each(|(&t, &position)| all[t] = position);
        let node = *number.entry(positions).or_insert_with(|| {
            whole.nodes.push(Node { positions: all, level, is_cut: false });
            whole.nodes.len() - 1
        });
        whole.nodes[node].is_cut |= reaches;
        node_of.push(node);
    }
    let mut edges: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for Taken { from, to, event, is_changed } in steps {
        let is_cut = reaches[to];
        let (from, to) = (node_of[from], node_of[to]);
        let at = *edges.entry((from, to)).or_insert_with(|| {
            whole.edges.push(Edge { from, to, event, is_cut: false, is_changed: true });
            whole.edges.len() - 1
        });
        whole.edges[at].is_cut |= is_cut;
        whole.edges[at].is_changed &= is_changed;
    }
    whole
}
