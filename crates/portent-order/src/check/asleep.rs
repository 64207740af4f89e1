//! Who sleeps on a condition while a schedule is replayed.

use portent_trace::{EventId, Reach};

/// The sleeps that are not over, and the notifies that have woken somebody of them, nobody in particular.
#[derive(Clone, Debug, Default)]
pub(super) struct Asleep {
    /// With the steps at which they began.
    pub(super) sleeping: Vec<(EventId, u64)>,
    /// Steps of notifies, each of which has woken one who slept before it.
    notified: Vec<u64>,
    /// Whom a notify-all has woken.
    woken: Vec<EventId>,
}

impl Asleep {
    pub(super) fn notify(&mut self, reach: Reach, step: u64) {
        match reach {
            // Each notify so far has taken one: is there another?
            Reach::One if self.sleeping.len() > self.notified.len() => self.notified.push(step),
            Reach::One => {}
            Reach::All => {
                self.woken.extend(self.sleeping.drain(..).map(|(sleep, _)| sleep));
                self.notified.clear();
            }
        }
    }

    /// Whether some notify can have woken it.
    pub(super) fn can_be_woken(&self, sleep: EventId) -> bool {
        self.woken.contains(&sleep) || self.first_notify(sleep).is_some()
    }

    /// Whether all notifies can have woken others.
    pub(super) fn can_be_left(&self, sleep: EventId) -> bool {
        let others = || self.sleeping.iter().filter(|(other, _)| *other != sleep);
        let enough = |(before, &notified): (usize, &u64)| others().filter(|(_, at)| *at < notified).count() > before;
        self.sleeping.iter().any(|(other, _)| *other == sleep) && self.notified.iter().enumerate().all(enough)
    }

    /// A sleep is over, and a notify was used for it or not.
    pub(super) fn end(&mut self, sleep: EventId, by_notify: bool) {
        if let (true, Some(at)) = (by_notify, self.first_notify(sleep)) {
            self.notified.remove(at);
        }
        self.sleeping.retain(|(other, _)| *other != sleep);
        self.woken.retain(|other| *other != sleep);
    }

    /// The first notify that can have woken it: later ones may have woken more others.
    fn first_notify(&self, sleep: EventId) -> Option<usize> {
        let (_, slept) = self.sleeping.iter().find(|(other, _)| *other == sleep)?;
        self.notified.iter().position(|notified| notified > slept)
    }
}
