//! What is known of groups while their instances are looked for, and which places have to do with which groups.

use super::Candidate;
use portent_order::Goal;
use portent_trace::{EventId, LocId};
use rustc_hash::FxHashMap;

/// What is known of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Instances {
    /// The best first, with what must differ between them.
    pub(super) kept: Vec<(Rank, Signature, Goal)>,
    pub(super) full: bool,
    /// Whether there may be others that were not looked at.
    pub(super) given_up: bool,
}

impl Instances {
    /// The instances to ask about, the best first.
    pub(super) fn goals(&self) -> impl Iterator<Item = &Goal> {
        self.kept.iter().map(|(_, _, goal)| goal)
    }
    /// Whether there are none: the group is impossible.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.given_up
    }
}

/// How good an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It happened so; earlier is better, because checking a schedule takes as long as it is.
    Observed(usize),
    /// Its events are near each other, or (in `sync`) distance does not matter.
    Near(usize),
    /// By distance.
    Far(usize),
}
/// Threads, locks and variable.
pub(super) type Signature = [u32; 5];

/// An instance that was met.
pub(super) struct Offer {
    pub(super) group: usize,
    pub(super) signature: Signature,
    pub(super) goal: Goal,
    /// Its first and its last event.
    pub(super) span: (EventId, EventId),
}

/// Which groups a place has to do with.
#[derive(Default)]
pub(super) struct Spots {
    pub(super) races: FxHashMap<LocId, Vec<(LocId, usize)>>,
    /// For e2: place of e1, place of f.
    pub(super) seconds: FxHashMap<LocId, Vec<(LocId, LocId, usize)>>,
    /// For f: places of e1 and e2.
    pub(super) remotes: FxHashMap<LocId, Vec<(LocId, LocId, usize)>>,
    pub(super) firsts: FxHashMap<LocId, ()>,
    pub(super) cycles: FxHashMap<LocId, Vec<usize>>,
}

impl Spots {
    pub(super) fn of(groups: &[Candidate], found: &[Instances]) -> Self {
        let mut spots = Spots::default();
        for (g, group) in groups.iter().enumerate().filter(|(g, _)| !found[*g].full) {
            match (&group.goal, &group.places[..]) {
                (Goal::Race { .. }, &[a, b]) => {
                    spots.races.entry(a).or_default().push((b, g));
                    if a != b {
                        spots.races.entry(b).or_default().push((a, g));
                    }
                }
                (Goal::Atomicity { .. }, &[first, remote, second]) => {
                    spots.seconds.entry(second).or_default().push((first, remote, g));
                    spots.remotes.entry(remote).or_default().push((first, second, g));
                    spots.firsts.insert(first, ());
                }
                (Goal::Deadlock { .. }, places) => {
                    let mut places = places.to_vec();
                    places.sort_unstable();
                    places.dedup();
                    places.into_iter().for_each(|place| spots.cycles.entry(place).or_default().push(g));
                }
                _ => {}
            }
        }
        spots
    }
}
