//! Which groups a source location has to do with, and the best instance of each so far.

use crate::board::Candidate;
use portent_order::Goal;
use portent_trace::{EventId, LocId};
use rustc_hash::FxHashMap;

/// The best instance of a group so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Best {
    pub(super) kept: Option<(Rank, Goal)>,
    /// Whether there is no need to look for a better one.
    pub(super) full: bool,
    /// Whether there may be others that were not looked at.
    pub(super) given_up: bool,
}

impl Best {
    /// The instance to ask about.
    pub(super) fn goal(&self) -> Option<&Goal> {
        self.kept.as_ref().map(|(_, goal)| goal)
    }
    /// Whether there is none: the group is impossible.
    pub(super) fn is_none(&self) -> bool {
        self.kept.is_none() && !self.given_up
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

/// An instance that was met.
pub(super) struct Offer {
    pub(super) group: usize,
    pub(super) goal: Goal,
    /// Its first and its last event.
    pub(super) span: (EventId, EventId),
}

/// Which groups a place has to do with.
#[derive(Default)]
pub(super) struct GroupsAt {
    pub(super) races: FxHashMap<LocId, Vec<(LocId, usize)>>,
    /// For e2: place of e1, place of f.
    pub(super) seconds: FxHashMap<LocId, Vec<(LocId, LocId, usize)>>,
    /// For f: places of e1 and e2.
    pub(super) remotes: FxHashMap<LocId, Vec<(LocId, LocId, usize)>>,
    pub(super) firsts: FxHashMap<LocId, ()>,
    pub(super) cycles: FxHashMap<LocId, Vec<usize>>,
}

impl GroupsAt {
    pub(super) fn of(groups: &[Candidate], found: &[Best]) -> Self {
        let mut at = GroupsAt::default();
        for (g, group) in groups.iter().enumerate().filter(|(g, _)| !found[*g].full) {
            match (&group.goal, &group.places[..]) {
                (Goal::Race { .. }, &[a, b]) => {
                    at.races.entry(a).or_default().push((b, g));
                    if a != b {
                        at.races.entry(b).or_default().push((a, g));
                    }
                }
                (Goal::Atomicity { .. }, &[first, remote, second]) => {
                    at.seconds.entry(second).or_default().push((first, remote, g));
                    at.remotes.entry(remote).or_default().push((first, second, g));
                    at.firsts.insert(first, ());
                }
                (Goal::Deadlock { .. }, places) => {
                    let mut places = places.to_vec();
                    places.sort_unstable();
                    places.dedup();
                    places.into_iter().for_each(|place| at.cycles.entry(place).or_default().push(g));
                }
                _ => {}
            }
        }
        at
    }
}
