//! How many of each kind of event a trace gets.
//!
//! Shares become counts once, beforehand. The generator then draws kinds without replacement, so the counts come out as
//! asked, but for what turns out to be impossible (a failed try where no lock is ever contended).

use super::config::Config;

/// What a thread can decide to do, other than access memory or take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Branch,
    Call,
    Busy,
    Wait,
    Notify,
    Semaphore,
    Latch,
    Token,
    Once,
    Barrier,
}

pub(super) const KINDS: [Kind; 10] = [
    Kind::Branch,
    Kind::Call,
    Kind::Busy,
    Kind::Wait,
    Kind::Notify,
    Kind::Semaphore,
    Kind::Latch,
    Kind::Token,
    Kind::Once,
    Kind::Barrier,
];

/// Decisions still to be made, per kind.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) accesses: u64,
    pub(super) acquires: u64,
    others: [u64; KINDS.len()],
    /// Sum of `others`.
    pub(super) left: u64,
}

impl Plan {
    pub(super) fn new(config: &Config) -> Self {
        let n = config.events;
        let mut room = n.saturating_sub(2 * u64::from(config.children()) + 2 * config.blocks);
        let mut others = [0; KINDS.len()];
        // `unit` is how many events one decision becomes.
        let mut reserve = |kind: Kind, events: u64, unit: u64, room: &mut u64| {
            let count = events.min(*room) / unit;
            *room -= count * unit;
            others[kind as usize] = count;
            count
        };
        let of_all = |share: f64| (n as f64 * share) as u64;
        let waiting = config.wait_events.unwrap_or(of_all(config.waits)).min(n);
        let threads = u64::from(config.threads);
        // A wait is a sleep, a release, a wake and an acquire; its notify is planned apart.
        let waits = if threads > 1 { reserve(Kind::Wait, waiting / 3 * 4, 4, &mut room) } else { 0 };
        reserve(Kind::Notify, waits - (waits as f64 * config.time_outs) as u64, 1, &mut room);
        reserve(Kind::Semaphore, of_all(config.semaphore_events), 1, &mut room);
        reserve(Kind::Latch, of_all(config.latch_events), 1, &mut room);
        reserve(Kind::Token, of_all(config.token_events), 1, &mut room);
        reserve(Kind::Once, 5 * u64::from(config.once), 1, &mut room);
        if threads > 1 {
            let rounds = of_all(config.barrier_events);
            reserve(Kind::Barrier, if rounds > 0 { rounds.max(2 * threads) } else { 0 }, 2 * threads, &mut room);
            reserve(Kind::Busy, of_all(config.busy), 1, &mut room);
        }
        if config.accesses.is_none() {
            reserve(Kind::Branch, of_all(config.branches), 1, &mut room);
            reserve(Kind::Call, of_all(config.calls), 1, &mut room);
        }

        let acquires = match config.lock_events {
            _ if config.locks == 0 => 0,
            Some(events) => (events / 2).saturating_sub(waits).min(room / 2),
            None => {
                let per_access = config.guarded / f64::from(config.section);
                (room as f64 * per_access / (1.0 + 2.0 * per_access)) as u64
            }
        };
        room -= 2 * acquires;
        // Branches that follow reads come with the accesses.
        let followed = config.read_branches() * config.reads;
        let most = (room as f64 / (1.0 + followed)) as u64;
        let accesses = config.accesses.unwrap_or(room).min(most);
        // What a fixed number of accesses leaves over is control flow, in the same proportion.
        let spare = match config.accesses {
            Some(_) => (room - accesses).saturating_sub((accesses as f64 * followed) as u64),
            None => 0,
        };
        let calls = if config.calls > 0.0 { config.calls / (config.calls + config.branches) } else { 0.0 };
        let spare_calls = (spare as f64 * calls) as u64;
        others[Kind::Call as usize] += spare_calls;
        others[Kind::Branch as usize] += spare - spare_calls;
        let left = others.iter().sum();
        Self { accesses, acquires, others, left }
    }

    /// The kind of the `at`-th decision left.
    pub(super) fn kind(&self, mut at: u64) -> Kind {
        for kind in KINDS {
            let count = self.others[kind as usize];
            if at < count {
                return kind;
            }
            at -= count;
        }
        Kind::Branch
    }

    /// One decision of this kind is made.
    #[inline]
    pub(super) fn spend(&mut self, kind: Kind) {
        let count = &mut self.others[kind as usize];
        if *count > 0 {
            *count -= 1;
            self.left -= 1;
        }
    }
}
