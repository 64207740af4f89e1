//! The plan: what the command tells the runtime, in a mapped file that is only read.
//!
//! All numbers are `u64`, little-endian. A [`Header`], then for each thread that the schedule knows its parent and which
//! child of its parent it is, then the steps (thread, events), then the threads of the goal, then the answers that the
//! program got from the system, for each thread one block.
//!
//! Threads are known by their place in the family, not by the order of their creation, which another schedule changes.

/// First number of a plan: `PORTPLN1`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PORTPLN1");

/// How to choose who runs next where the plan has no steps (left).
#[allow(missing_docs)]
pub mod policy {
    /// Go on with the running thread as long as it can run.
    pub const STAY: u64 = 0;
    pub const ROUND_ROBIN: u64 = 1;
    pub const RANDOM: u64 = 2;
    /// Strict priorities, by chance; they change at a few of the run's steps, by chance as well (Burckhardt et al.).
    pub const PCT: u64 = 3;
    /// Threads have priorities, by chance; who runs goes on as long as it can.
    pub const PRIORITY: u64 = 4;
}

/// What to look for when the steps are done.
pub mod goal {
    /// Nothing.
    pub const NONE: u64 = 0;
    /// Both threads are at conflicting accesses. Afterwards the second goes first, then the first.
    pub const RACE: u64 = 1;
    /// Every thread of the goal waits at a lock.
    pub const DEADLOCK: u64 = 2;
}

/// The fixed part.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// [`MAGIC`]
    pub magic: u64,
    /// See [`policy`].
    pub policy: u64,
    /// For the random policies.
    pub seed: u64,
    /// Lines of the family table.
    pub threads: u64,
    /// Steps.
    pub steps: u64,
    /// See [`goal`].
    pub goal: u64,
    /// Threads of the goal.
    pub goal_threads: u64,
    /// Numbers in all blocks of answers.
    pub answers: u64,
    /// 1: stop for a debugger, where the goal is reached or as the next two say.
    pub trap: u64,
    /// Not 0: the plan is for the child with this lineage, which one of the processes forks; the others run unrecorded.
    pub lineage: u64,
    /// The thread, plus one, and the number of the event, among all, before which to stop; 0 and 0: at the goal.
    pub stop: [u64; 2],
    /// Not 0: no run yet. The process waits for orders at this descriptor, and every run is a copy of it (inside/server.rs).
    pub serve: u64,
    /// 1: the run stays on the core where it begins.
    pub one_core: u64,
    /// 1: when the program was recorded, nobody outside of its process connected to it, sent to it or signalled it.
    pub alone: u64,
    /// For PCT: how deep a bug is looked for, which is one more than the points at which priorities change,
    pub depth: u64,
    /// and over how many events of all threads these are spread.
    pub length: u64,
    /// 1: waits on conditions that have no time limit may end by themselves, where the plan or chance says so.
    pub spurious: u64,
    /// 1: a thread that fails ends the process only when no other can go on.
    pub parks: u64,
}

/// The first number that a fork server writes to the descriptor of its orders, before a number that is 0 if it can serve:
/// `PORTSRV1`.
pub const SERVES: u64 = u64::from_le_bytes(*b"PORTSRV1");

/// Why a process cannot serve, as it says itself.
#[allow(missing_docs)]
pub mod unfit {
    /// The system does not say where the C library keeps the number of the thread.
    pub const NO_THREAD_NUMBER: u64 = 1;
    /// Something asked for the number of the process already, and may keep it.
    pub const KNOWS_ITS_NUMBER: u64 = 2;
}

/// A plan, as the command makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// See [`policy`].
    pub policy: u64,
    /// For the random policies.
    pub seed: u64,
    /// Parent, and which child of it, for every thread; thread 0 is main.
    pub family: Vec<(u64, u64)>,
    /// Which thread runs how many events, in order.
    pub steps: Vec<(u64, u64)>,
    /// See [`goal`].
    pub goal: u64,
    /// Threads of the goal.
    pub goal_threads: Vec<u64>,
    /// For every thread, the system's answers in the order it asked: kind ([`crate::log::input`]) and bytes.
    pub answers: Vec<Vec<(u64, Vec<u8>)>>,
    /// Whether to stop for a debugger when the goal is reached.
    pub trap: bool,
    /// Which forked child it is for; 0: the process that begins as a program.
    pub lineage: u64,
    /// Where to stop instead: a thread, and the number of an event of its, among those of all.
    pub stop: Option<(u64, u64)>,
    /// The descriptor at which a fork server waits for orders; 0: this is a plan of a run.
    pub serve: u64,
    /// Whether it stays on the core where it begins: switches take less time then.
    pub one_core: bool,
    /// For PCT: how deep a bug is looked for, and among how many events.
    pub depth: u64,
    /// See `depth`.
    pub length: u64,
    /// Whether the program was recorded talking to nobody outside of its process: what it waits for then has to come from itself.
    pub alone: bool,
    /// Whether waits on conditions may end by themselves.
    pub spurious: bool,
    /// Whether a thread that fails ends the process only when no other can go on.
    pub parks: bool,
}

impl Plan {
    /// The plan as bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut answers: Vec<u64> = Vec::new();
        for (thread, given) in self.answers.iter().enumerate() {
            for (kind, bytes) in given {
                answers.extend([thread as u64, *kind, bytes.len() as u64]);
                for chunk in bytes.chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    answers.push(u64::from_le_bytes(word));
                }
            }
        }
        let header = [
            MAGIC,
            self.policy,
            self.seed,
            self.family.len() as u64,
            self.steps.len() as u64,
            self.goal,
            self.goal_threads.len() as u64,
            answers.len() as u64,
            u64::from(self.trap),
            self.lineage,
            self.stop.map_or(0, |(thread, _)| thread + 1),
            self.stop.map_or(0, |(_, event)| event),
            self.serve,
            u64::from(self.one_core),
            u64::from(self.alone),
            self.depth,
            self.length,
            u64::from(self.spurious),
            u64::from(self.parks),
        ];
        let pairs = self.family.iter().chain(&self.steps).flat_map(|&(a, b)| [a, b]);
        let words = header.into_iter().chain(pairs).chain(self.goal_threads.iter().copied()).chain(answers);
        words.flat_map(u64::to_le_bytes).collect()
    }
}
