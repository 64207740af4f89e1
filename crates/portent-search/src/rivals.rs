//! What a cut must contain so that no run covers it already.
//!
//! The *rivals* of a goal are the runs in which the operation has the outcome, after the same history. A cut of T is covered by a
//! rival if it leaves T nowhere inside the cut. So of each rival: the cut contains the first event of some thread at which the rival
//! leaves T. A rival that stays with T longer, in every thread, asks for more; only those count.

use crate::histories::Node;

/// For each thread, after how many operations another run leaves this one; `None` where it has all that this one has.
type Leaves = Vec<Option<usize>>;

/// What the cut must contain, by thread and number of the operation: one of each list. `None` if some run covers every cut.
pub(crate) fn clauses<'r>(
    own: &[Vec<Node>],
    thread: usize,
    rivals: impl Iterator<Item = &'r Vec<Vec<Node>>>,
) -> Option<Vec<Vec<(usize, usize)>>> {
    let mut strongest: Vec<Leaves> = Vec::new();
    for rival in rivals {
        let leaves: Leaves = (0..own.len()).map(|u| if u == thread { None } else { leaves(own, rival, u) }).collect();
        if strongest.iter().any(|other| asks_for_no_less(other, &leaves)) {
            continue;
        }
        strongest.retain(|other| !asks_for_no_less(&leaves, other));
        strongest.push(leaves);
    }
    let events = |leaves: &Leaves| -> Vec<(usize, usize)> {
        leaves.iter().enumerate().filter_map(|(thread, after)| Some((thread, (*after)?))).collect()
    };
    let clauses: Vec<_> = strongest.iter().map(events).collect();
    clauses.iter().all(|clause| !clause.is_empty()).then_some(clauses)
}

fn leaves(own: &[Vec<Node>], rival: &[Vec<Node>], thread: usize) -> Option<usize> {
    let nodes = &own[thread];
    let agree = |other: &Vec<Node>| nodes.iter().zip(other).take_while(|(a, b)| a == b).count();
    // Paths begin with the root, which all runs share, also those without the thread: a node fewer than operations is common.
    let common = rival.get(thread).map_or(1, agree);
    (common < nodes.len()).then(|| common - 1)
}

/// Whether a run that leaves here leaves nowhere earlier than one that leaves there.
fn asks_for_no_less(here: &Leaves, there: &Leaves) -> bool {
    here.iter().zip(there).all(|(here, there)| match (here, there) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(here), Some(there)) => here >= there,
    })
}
