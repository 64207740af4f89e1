//! Which branches are tried, and what is behind each: the other side was recorded with it, or seen elsewhere.

use crate::facts::Facts;
use portent_trace::symbolic::{SideEvent, Symbols, Type};
use portent_trace::{EventId, LocId, LockId, Op, Trace, VarId};
use rustc_hash::FxHashMap;

/// Branches at one place, with one outcome, that are tried.
const PER_PLACE: usize = 8;
/// Branches that are tried in all.
const MOST: usize = 512;
/// Events of a side that was seen elsewhere.
const LONGEST: usize = 64;
/// A branch to try.
pub(super) struct Flip {
    pub(super) branch: EventId,
    pub(super) side: Vec<SideEvent>,
    /// The branch that showed the other side, if it was not recorded with this one.
    pub(super) seen: Option<EventId>,
}

/// The branches to try, in the order of the trace, and how many more there are.
pub(super) fn flips(facts: &Facts<'_>, symbols: &Symbols) -> (Vec<Flip>, usize) {
    let trace = facts.trace;
    let places = Places::of(trace, symbols);
    let mut of_place: FxHashMap<(LocId, bool), Vec<EventId>> = FxHashMap::default();
    for &(branch, outcome) in &places.branches {
        let seen = places.at.contains_key(&(trace.event(branch).loc, !outcome));
        if symbols.side(branch).is_some() || seen {
            of_place.entry((trace.event(branch).loc, outcome)).or_default().push(branch);
        }
    }
    let (mut flips, mut left) = (Vec::new(), 0);
    for ((loc, outcome), branches) in of_place {
        // Spread over the run: what threads have done by then differs.
        let tried = branches.len().min(PER_PLACE);
        left += branches.len() - tried;
        for branch in (0..tried).map(|i| branches[i * branches.len() / tried]) {
            let recorded = symbols.side(branch).map(|side| (side.to_vec(), None));
            let others = places.at.get(&(loc, !outcome)).into_iter().flatten();
            let mut seen = others.map(|&other| (places.side_after(facts, symbols, other, branch), Some(other)));
            let found = recorded.or_else(|| seen.find(|(side, _)| !side.is_empty()));
            flips.extend(found.map(|(side, seen)| Flip { branch, side, seen }));
        }
    }
    flips.sort_by_key(|flip| (flip.seen.is_some(), flip.branch));
    left += flips.len().saturating_sub(MOST);
    flips.truncate(MOST);
    (flips, left)
}

/// What a place in the source is about, if it is always about the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Variable(VarId),
    Lock(LockId),
    Many,
}

fn about(op: Op) -> Option<About> {
    match op {
        Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => Some(About::Variable(x)),
        Op::Acquire(lock, _) | Op::Release(lock, _) => Some(About::Lock(lock)),
        _ => None,
    }
}

/// The branches of a trace, and what its places are about.
struct Places {
    /// Branches with a condition that is true or false, and which way they went.
    branches: Vec<(EventId, bool)>,
    /// Some of them, by place and outcome.
    at: FxHashMap<(LocId, bool), Vec<EventId>>,
    about: FxHashMap<LocId, About>,
    /// How many reads the thread of a branch has made by then.
    reads: FxHashMap<EventId, u32>,
}

impl Places {
    fn of(trace: &Trace, symbols: &Symbols) -> Places {
        let mut places = Places {
            branches: Vec::new(),
            at: FxHashMap::default(),
            about: FxHashMap::default(),
            reads: FxHashMap::default(),
        };
        let mut made = vec![0; trace.threads()];
        for event in trace.events() {
            made[event.thread.index()] += u32::from(event.op.reads());
            if let Some(about) = about(event.op) {
                let known = places.about.entry(event.loc).or_insert(about);
                if *known != about {
                    *known = About::Many;
                }
            }
            if let (Op::Branch, &[(condition, outcome)]) = (event.op, symbols.guards(event.id))
                && symbols.dag().type_of(condition) == Type::BOOL
            {
                places.branches.push((event.id, outcome != 0));
                places.reads.insert(event.id, made[event.thread.index()]);
                let at = places.at.entry((event.loc, outcome != 0)).or_default();
                if at.len() < PER_PLACE {
                    at.push(event.id);
                }
            }
        }
        places
    }

    /// What followed one branch, as far as the thread of another could do the same.
    fn side_after(&self, facts: &Facts<'_>, symbols: &Symbols, seen: EventId, branch: EventId) -> Vec<SideEvent> {
        let trace = facts.trace;
        let program = facts.steps.program(trace.thread(seen));
        let after = program.partition_point(|&event| event <= seen);
        let (base, made) = (self.reads[&seen], self.reads[&branch]);
        let mut held: Vec<_> = facts.held(branch).to_vec();
        let mut side = Vec::new();
        for event in program[after..].iter().take(LONGEST).map(|&event| trace.event(event)) {
            let known = about(event.op).is_some_and(|about| self.about.get(&event.loc) == Some(&about));
            let fits = match event.op {
                Op::Acquire(lock, _) => held.iter().all(|(other, _)| *other != lock),
                Op::Release(lock, mode) => held.contains(&(lock, mode)),
                _ => true,
            };
            if !known || !fits || !symbols.guards(event.id).is_empty() {
                break;
            }
            match event.op {
                Op::Acquire(lock, mode) => held.push((lock, mode)),
                Op::Release(lock, mode) => held.retain(|h| *h != (lock, mode)),
                _ => {}
            }
            // What was computed from earlier reads of the other thread is not known here.
            let own = |&expr: &_| symbols.dag().reads(expr).first().is_none_or(|&read| read >= base);
            let written = symbols.written(event.id).filter(own);
            side.push(SideEvent { op: event.op, loc: event.loc, written, shift: i64::from(made) - i64::from(base) });
        }
        side
    }
}
