//! A deadlock that happened: who waits for what, and who holds it.

use portent_explore::Stuck;
use portent_runtime::log::op;
use portent_trace::InputOp;
use serde::{Deserialize, Serialize};

/// A thread that cannot move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The thread's number.
    pub thread: u64,
    /// What the trace calls it.
    pub name: String,
    /// What it is about to do, with the code of the trace format.
    pub pending: u64,
    /// The lock, thread or whatever it waits for.
    pub object: Option<String>,
    /// Its number in the trace, for locks, conditions and semaphores.
    #[serde(default)]
    pub number: Option<u32>,
    /// Where.
    pub location: String,
    /// In which function.
    pub function: Option<String>,
    /// Who holds the lock that it waits for.
    pub holders: Vec<Holder>,
}

/// A thread that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// What the trace calls it.
    pub name: String,
    /// Where it took the lock; empty if that is in a library.
    pub location: String,
}

impl Waiting {
    /// The same in the terms of all front ends.
    pub(crate) fn stuck(&self) -> Stuck {
        let asleep = self.pending == u64::from(op::WAKE);
        let (thread, place) = (self.thread as u32, self.location.clone());
        let op = u16::try_from(self.pending).ok().and_then(InputOp::from_code);
        Stuck {
            thread,
            asleep,
            spins: self.spins(),
            waits: op.map(|op| (op, self.number)),
            place,
            sentence: self.sentence(),
        }
    }

    /// Whether it waits in a loop: accesses and tries never wait by themselves.
    fn spins(&self) -> bool {
        let op = u16::try_from(self.pending).unwrap_or(u16::MAX);
        op < op::ACCESSES || matches!(op, op::BUSY | op::BUSY_SHARED | op::SEMAPHORE_BUSY)
    }

    /// What the thread waits for, in words.
    pub fn sentence(&self) -> String {
        let object = self.object.as_deref().unwrap_or("?");
        let what = match u16::try_from(self.pending).unwrap_or(u16::MAX) {
            op if op < op::ACCESSES => format!("loops for ever until {object} changes"),
            op::BUSY | op::BUSY_SHARED => format!("tries for ever to take lock {object}"),
            op::SEMAPHORE_BUSY => format!("tries for ever to pass semaphore {object}"),
            op::ACQUIRE | op::TRY_ACQUIRE | op::ACQUIRE_ALL => format!("waits for lock {object}"),
            op::ACQUIRE_SHARED | op::TRY_ACQUIRE_SHARED => format!("waits to share lock {object}"),
            op::ONCE_BEGIN | op::ONCE_PASS => format!("waits for the initialiser of {object}"),
            op::JOIN => format!("waits for {object} to end"),
            op::WAKE | op::TIME_OUT | op::WAKE_BY_ITSELF => format!("waits to be notified on {object}"),
            op::SEMAPHORE_WAIT | op::SEMAPHORE_TRY => format!("waits for a post of semaphore {object}"),
            op::DEPART => format!("waits for the others at barrier {object}"),
            op::RECEIVE => format!("waits for something to be sent through {object}"),
            op::EXIT => "waits to end the process".to_owned(),
            op::RESUME => "waits in the system for what only another thread can send".to_owned(),
            _ => "waits".to_owned(),
        };
        let mut text = format!("{} {what} at {}", self.name, self.location);
        if let Some(function) = &self.function {
            text.push_str(&format!(" ({function})"));
        }
        let mut holders = self.holders.iter().peekable();
        if holders.peek().is_some() {
            let told = |holder: &Holder| match holder.location.as_str() {
                "" => holder.name.clone(),
                place => format!("{}, which took it at {place}", holder.name),
            };
            let holders: Vec<_> = holders.map(told).collect();
            text.push_str(&format!("; it is held by {}", holders.join(" and ")));
        }
        text
    }
}
