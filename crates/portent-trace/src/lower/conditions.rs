//! Condition variables, and the `ntf`/`wai` tokens that share their names.
//!
//! A wake belongs to its thread's last sleep. Told with it is the earliest notify since then that is not used up; a notify-all
//! is never used up. Engines do not keep to that: any notify may wake any who sleeps. A wake that finds none woke by itself and waits for nobody. So did
//! one by time-out, unless a notify must have woken its thread, for nobody else was asleep: then it counts as woken.
//!
//! Whether `ntf(c)` is a notify or a token shows only when its name is used with `slp`, `wak` or `nta`, or with `wai`. Until
//! then it is a notify; a `wai` corrects what was emitted before.

use super::{Incoming, Lowering, condition, grown};
use crate::error::{Malformed, Problem};
use crate::event::{Meaning, Op, Reach};
use crate::ids::{EventId, TokenId};
use crate::names::ObjectClass;
use crate::sleepers::Sleepers;
use crate::trace::Pairing;
use std::collections::VecDeque;

/// What ends a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Notify,
    Itself,
}

#[derive(Clone, Debug, Default)]
enum Use {
    /// Only `ntf` so far: these.
    #[default]
    Undecided,
    Condition,
    /// A token; the one last sent, if any.
    Token(Option<TokenId>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ConditionState {
    used_as: Use,
    undecided: Vec<EventId>,
    sleepers: u32,
    /// Notifies that a sleeper could still take, in observed order.
    open: VecDeque<(EventId, Reach)>,
    /// Whom notifies may have woken. A sleep that its thread never wakes from stays.
    line: Sleepers<EventId>,
}

impl ConditionState {
    fn use_as_condition(&mut self, incoming: &Incoming<'_>) -> Result<(), Problem> {
        if matches!(self.used_as, Use::Token(_)) {
            return Err(Malformed::MixedUse { name: incoming.object_name(), now_token: false }.into());
        }
        self.used_as = Use::Condition;
        self.undecided = Vec::new();
        Ok(())
    }
}

impl Lowering {
    fn condition(&mut self, incoming: &Incoming<'_>) -> Result<&mut ConditionState, Problem> {
        grown(&mut self.conditions, incoming, ObjectClass::Condition)
    }

    pub(super) fn sleep(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        self.condition(incoming)?.use_as_condition(incoming)?;
        let event = self.emit(incoming, Op::Sleep(condition(incoming)))?;
        let thread = &mut self.threads[incoming.event.thread.index()];
        // A thread that sleeps again without waking leaves its old sleep unwoken for good.
        if let Some((old, _)) = thread.asleep.replace((condition(incoming), event)) {
            let old = &mut self.conditions[old.index()];
            old.sleepers -= 1;
        }
        let state = self.condition(incoming)?;
        state.sleepers += 1;
        state.line.sleep(event);
        Ok(())
    }

    pub(super) fn notify(&mut self, incoming: &mut Incoming<'_>, reach: Reach) -> Result<(), Problem> {
        let state = self.condition(incoming)?;
        if reach == Reach::All {
            state.use_as_condition(incoming)?;
        }
        if matches!(state.used_as, Use::Token(_)) {
            let token = self.fresh_token(incoming, Meaning::Notify(condition(incoming)))?;
            self.condition(incoming)?.used_as = Use::Token(Some(token));
            return self.emit(incoming, Op::Send(token)).map(drop);
        }
        let event = self.emit(incoming, Op::Notify(condition(incoming), reach))?;
        let state = self.condition(incoming)?;
        match reach {
            Reach::One => state.line.notify_one(),
            Reach::All => state.line.notify_all(),
        }
        match state.used_as {
            Use::Undecided => state.undecided.push(event),
            _ if state.sleepers > 0 => state.open.push_back((event, reach)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn wake(&mut self, incoming: &mut Incoming<'_>, by: By) -> Result<(), Problem> {
        self.condition(incoming)?.use_as_condition(incoming)?;
        let thread = &mut self.threads[incoming.event.thread.index()];
        let Some((_, sleep)) = thread.asleep.take_if(|(slept_on, _)| *slept_on == condition(incoming)) else {
            let (thread, condition) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::WakeWithoutSleep { thread, condition }.into());
        };
        let state = self.condition(incoming)?;
        let woken = if by == By::Notify { state.line.can_wake(sleep) } else { !state.line.can_leave(sleep) };
        match woken {
            true => state.line.wake(sleep),
            false => state.line.leave(sleep),
        }
        let mut notify = None;
        if woken && let Some(at) = state.open.iter().position(|(event, _)| *event > sleep) {
            notify = Some(state.open[at].0);
            if state.open[at].1 == Reach::One {
                state.open.remove(at);
            }
        }
        debug_assert_eq!(notify.is_some(), woken, "who was woken was woken by a notify");
        state.sleepers -= 1;
        if state.sleepers == 0 {
            state.open.clear();
        }
        let wake = self.emit(incoming, Op::Wake(condition(incoming)))?;
        if let Some(notify) = notify {
            incoming.out.pairings.push(Pairing { condition: condition(incoming), sleep, notify, wake });
        }
        Ok(())
    }

    /// `wai(c)`: receives the token of the latest earlier `ntf(c)`.
    pub(super) fn await_token(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = self.condition(incoming)?;
        if matches!(state.used_as, Use::Condition) {
            return Err(Malformed::MixedUse { name: incoming.object_name(), now_token: true }.into());
        }
        if matches!(state.used_as, Use::Undecided) {
            let sent = std::mem::take(&mut state.undecided);
            let mut last = None;
            for event in sent {
                let token = self.fresh_token(incoming, Meaning::Notify(condition(incoming)))?;
                incoming.out.corrections.push((event, Op::Send(token)));
                last = Some(token);
            }
            self.condition(incoming)?.used_as = Use::Token(last);
        }
        let Use::Token(Some(token)) = self.condition(incoming)?.used_as else {
            let token = format!("token {}", incoming.object_name());
            return Err(Malformed::NotSent { thread: incoming.thread_name(), token }.into());
        };
        self.emit(incoming, Op::Receive(token)).map(drop)
    }
}
