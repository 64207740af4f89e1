//! The rarer objects: functions, semaphores, latches, tokens, once objects, and who opens a barrier round.
//!
//! Each function makes one possible step on a random object, or says that there is none now.

use super::FUNCTIONS;
use super::machine::{Machine, Phase};
use super::policy::DEPTH;
use crate::input::InputOp;

pub(super) fn call_or_return(m: &mut Machine, t: u32) -> bool {
    let depth = m.threads[t as usize].calls.len() as u32;
    if (depth == DEPTH || m.random.one_in(2))
        && let Some(function) = m.threads[t as usize].calls.pop()
    {
        m.debt -= 1;
        return m.emit(t, InputOp::Return, function);
    }
    if m.slack() < 2 {
        return false;
    }
    let function = m.random.below(FUNCTIONS);
    m.threads[t as usize].calls.push(function);
    m.debt += 1;
    m.emit(t, InputOp::Call, function)
}

pub(super) fn use_semaphore(m: &mut Machine, t: u32) -> bool {
    let s = m.random.below(m.config.semaphores);
    let Some(count) = m.semaphores[s as usize] else {
        let count = m.random.below(3);
        m.semaphores[s as usize] = Some(count);
        return m.emit_value(t, InputOp::SemaphoreInit, s, Some(count.into()));
    };
    match m.random.below(8) {
        0..=4 if count > 0 => {
            m.semaphores[s as usize] = Some(count - 1);
            m.emit(t, InputOp::SemaphoreWait, s)
        }
        0 => m.emit(t, InputOp::SemaphoreBusy, s),
        _ => {
            m.semaphores[s as usize] = Some(count + 1);
            m.emit(t, InputOp::Post, s)
        }
    }
}

pub(super) fn use_latch(m: &mut Machine, t: u32) -> bool {
    let f = m.random.below(m.config.latches);
    if m.latches[f as usize] == Phase::Done && m.random.one_in(2) {
        return m.emit(t, InputOp::LatchWait, f);
    }
    m.latches[f as usize] = Phase::Done;
    m.emit(t, InputOp::CountDown, f)
}

/// Sends a token until somebody has received it; from then on it can only be received.
pub(super) fn use_token(m: &mut Machine, t: u32) -> bool {
    let k = m.random.below(m.config.tokens);
    let phase = m.tokens[k as usize];
    if phase == Phase::Done || (phase == Phase::Begun && m.random.one_in(2)) {
        m.tokens[k as usize] = Phase::Done;
        return m.emit(t, InputOp::Receive, k);
    }
    m.tokens[k as usize] = Phase::Begun;
    m.emit(t, InputOp::Send, k)
}

pub(super) fn use_once(m: &mut Machine, t: u32) -> bool {
    let o = m.random.below(m.config.once);
    let guard = m.config.locks + o;
    match m.onces[o as usize] {
        Phase::Done => m.emit(t, InputOp::OncePass, guard),
        Phase::Fresh if m.threads[t as usize].once.is_none() && m.slack() >= 2 => {
            m.onces[o as usize] = Phase::Begun;
            m.threads[t as usize].once = Some(o);
            m.debt += 1;
            m.emit(t, InputOp::OnceBegin, guard)
        }
        _ => false,
    }
}

pub(super) fn end_once(m: &mut Machine, t: u32) -> bool {
    let Some(o) = m.threads[t as usize].once.take() else { return false };
    m.onces[o as usize] = Phase::Done;
    m.debt -= 1;
    m.emit(t, InputOp::OnceEnd, m.config.locks + o)
}

pub(super) fn open_round(m: &mut Machine, t: u32) -> bool {
    let free = m.threads[t as usize].held.is_empty() && m.threads[t as usize].once.is_none();
    let born = m.living == m.config.threads;
    if m.round.is_some() || !free || !born || m.awake() < 2 || m.slack() < 2 * u64::from(m.living) {
        return false;
    }
    let barrier = m.random.below(m.config.barriers);
    m.open_round(t, barrier)
}
