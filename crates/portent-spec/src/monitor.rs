//! Monitors: small machines that watch a run and say when it has gone wrong (Sen et al., §3).
//!
//! A monitor sees letters, not events: what an event means to it is worked out once, however many reorderings contain
//! the event. Its state is a few words, so that a lattice can hold millions of them. Deviation from the paper: monitors
//! are deterministic (both compilers make them so), and a third judgement says that a value was not known.

use portent_trace::Event;

/// What an event means to a monitor: events with the same letter are the same to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Letter(pub u32);

/// What a monitor says of a run so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Judgement {
    /// Nothing is wrong.
    Good,
    /// A value that is not known decides.
    Unknown,
    /// The property is broken, whatever follows: whoever runs the monitor stops here.
    Bad,
}

/// A machine that watches runs. Write your own, and the lattice explores every reordering with it.
///
/// ```
/// use portent_spec::{Judgement, Letter, Monitor};
/// use portent_trace::{Event, Op};
///
/// /// No more than `most` locks are held at once.
/// struct FewLocks { most: u64 }
///
/// impl Monitor for FewLocks {
///     fn words(&self) -> usize { 1 }
///     fn start(&self, state: &mut [u64]) { state[0] = 0; }
///     fn letter(&mut self, event: &Event) -> Option<Letter> {
///         match event.op {
///             Op::Acquire(..) => Some(Letter(1)),
///             Op::Release(..) => Some(Letter(0)),
///             _ => None,
///         }
///     }
///     fn step(&self, state: &mut [u64], letter: Letter) -> Judgement {
///         if letter.0 == 1 { state[0] += 1 } else { state[0] = state[0].saturating_sub(1) }
///         if state[0] > self.most { Judgement::Bad } else { Judgement::Good }
///     }
/// }
/// ```
pub trait Monitor {
    /// How many words a state takes.
    fn words(&self) -> usize;
    /// Sets the state before the first event.
    fn start(&self, state: &mut [u64]);
    /// What an event means; `None` if the monitor does not see it. Asked once for each event.
    fn letter(&mut self, event: &Event) -> Option<Letter>;
    /// What an event that reads means where it sees another write than in the trace, and is the last of its thread: what
    /// it recorded is not what it reads, and not what an update writes. Asked once for each such event that is seen.
    fn changed_letter(&mut self, event: &Event) -> Option<Letter> {
        self.letter(&Event { value: None, ..*event })
    }
    /// Takes an event into account. States must be equal wherever the future is.
    fn step(&self, state: &mut [u64], letter: Letter) -> Judgement;
    /// What it says when a complete run ends here.
    fn finish(&self, _state: &[u64]) -> Judgement {
        Judgement::Good
    }
    /// Whether the end of a complete run means something to it.
    fn cares_about_end(&self) -> bool {
        false
    }
}
