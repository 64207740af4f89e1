//! Which instances are one finding: those at the same source locations.

use crate::bug::Form;
use portent_trace::{EventId, Trace};

/// The source locations of an instance: instances with the same key are one finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    form: Form,
    head: [u64; 3],
    /// The rest of long cycles.
    more: Vec<u64>,
}

impl Key {
    /// In place of a source location, where there is none.
    pub(crate) const NOTHING: u64 = u64::MAX;

    pub(crate) fn new(form: Form, head: [u64; 3]) -> Key {
        Key { form, head, more: Vec::new() }
    }
    /// The key of a cycle, whichever of its places comes first.
    pub(crate) fn of_cycle(mut places: Vec<u64>) -> Key {
        rotate_to_least(&mut places);
        Key::of_places(Form::Cycle, places)
    }
    /// The key of some places.
    pub(crate) fn of_places(form: Form, mut places: Vec<u64>) -> Key {
        let head = std::array::from_fn(|i| places.get(i).copied().unwrap_or(Key::NOTHING));
        Key { form, head, more: places.split_off(places.len().min(3)) }
    }
    /// The source location of an event, as it stands in keys.
    pub(crate) fn at(trace: &Trace, event: EventId) -> u64 {
        u64::from(trace.event(event).loc.to_bits())
    }
}

/// Starts a cycle at its least rotation.
pub(crate) fn rotate_to_least<T: Ord + Clone>(cycle: &mut [T]) {
    let rotated = |by: usize| cycle[by..].iter().chain(&cycle[..by]);
    let least = (0..cycle.len()).min_by(|&a, &b| rotated(a).cmp(rotated(b))).unwrap_or(0);
    cycle.rotate_left(least);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_grouped_whatever_event_comes_first() {
        let mut cycle = [3, 1, 2];
        rotate_to_least(&mut cycle);
        assert_eq!(cycle, [1, 2, 3]);
        let mut twice = [2, 1, 1];
        rotate_to_least(&mut twice);
        assert_eq!(twice, [1, 1, 2]);
    }
}
