//! Who sleeps on a condition, and which notifies somebody of them has yet to use (docs/src/internals/semantics.md §2).
//!
//! A notify wakes one of those who are asleep, whoever that is. So nothing is decided when it comes: it leaves a *permit* that any who
//! slept by then may use. Sleepers and permits stand in one line, in the order in which they came. A sleeper can wake if there is a
//! permit behind it, and takes the first: that one is of use to the fewest others. Where the line, up to some permit, has as
//! many permits as sleepers, these are woken for certain, and leave it. So everybody in the line may still be asleep, and may time out.

/// The sleepers of a condition. It can be compared and hashed: two that are equal allow the same from here on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sleepers<S> {
    /// Sleepers, and permits (`None`). Between two permits, sleepers are sorted: their order there does not matter.
    line: Vec<Option<S>>,
    /// Who is woken for certain and has not gone on, sorted.
    woken: Vec<S>,
}

impl<S> Default for Sleepers<S> {
    fn default() -> Self {
        Sleepers { line: Vec::new(), woken: Vec::new() }
    }
}

impl<S: Copy + Ord> Sleepers<S> {
    /// Whether nobody sleeps or is about to go on.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && self.woken.is_empty()
    }
    /// Sleepers, and permits (`None`), in the order in which they came.
    pub fn line(&self) -> &[Option<S>] {
        &self.line
    }
    /// Who is woken for certain and has not gone on.
    pub fn woken(&self) -> &[S] {
        &self.woken
    }

    /// Falls asleep.
    pub fn sleep(&mut self, sleeper: S) {
        let from = self.line.iter().rposition(Option::is_none).map_or(0, |permit| permit + 1);
        let at = from + self.line[from..].partition_point(|other| *other < Some(sleeper));
        self.line.insert(at, Some(sleeper));
    }
    /// Wakes one of those who are asleep, if there are any.
    pub fn notify_one(&mut self) {
        if !self.line.is_empty() {
            self.line.push(None);
            self.settle();
        }
    }
    /// Wakes all who are asleep.
    pub fn notify_all(&mut self) {
        self.woken.extend(self.line.drain(..).flatten());
        self.woken.sort_unstable();
    }
    /// Whether a notify may have woken a sleeper.
    pub fn can_wake(&self, sleeper: S) -> bool {
        let may = || self.place(sleeper).is_some_and(|at| self.line[at..].contains(&None));
        self.woken.binary_search(&sleeper).is_ok() || may()
    }
    /// Goes on because a notify woke it; nothing if none can have.
    pub fn wake(&mut self, sleeper: S) {
        if let Ok(at) = self.woken.binary_search(&sleeper) {
            self.woken.remove(at);
        } else if let Some(at) = self.place(sleeper)
            && let Some(permit) = self.line[at..].iter().position(Option::is_none)
        {
            self.line.remove(at + permit);
            self.line.remove(at);
            self.settle();
        }
    }
    /// Whether no notify need have woken a sleeper, so that it may go on by itself.
    pub fn can_leave(&self, sleeper: S) -> bool {
        self.place(sleeper).is_some()
    }
    /// Goes on by itself: by time-out, or for no reason at all; nothing if a notify must have woken it.
    pub fn leave(&mut self, sleeper: S) {
        if let Some(at) = self.place(sleeper) {
            self.line.remove(at);
            self.settle();
        }
    }

    /// Those who may be asleep, each with how many permits came before it; how many permits there are; and who is woken for certain.
    pub fn of(asleep: impl Iterator<Item = (S, usize)>, permits: usize, woken: impl Iterator<Item = S>) -> Self {
        let mut asleep: Vec<(usize, S)> = asleep.map(|(sleeper, before)| (before, sleeper)).collect();
        asleep.sort_unstable();
        let mut line = Vec::with_capacity(asleep.len() + permits);
        let mut asleep = asleep.into_iter().peekable();
        for before in 0..=permits {
            line.extend(std::iter::from_fn(|| asleep.next_if(|(at, _)| *at <= before)).map(|(_, one)| Some(one)));
            line.extend((before < permits).then_some(None));
        }
        let mut all = Sleepers { line, woken: woken.collect() };
        all.woken.sort_unstable();
        all
    }

    /// The same, by other names.
    pub fn map<T: Copy + Ord>(&self, name: impl Fn(S) -> T) -> Sleepers<T> {
        let line = self.line.iter().map(|item| item.map(&name)).collect();
        let mut mapped = Sleepers { line, woken: self.woken.iter().map(|&sleeper| name(sleeper)).collect() };
        mapped.woken.sort_unstable();
        mapped.settle();
        mapped
    }

    fn place(&self, sleeper: S) -> Option<usize> {
        self.line.iter().position(|&other| other == Some(sleeper))
    }

    /// Lets those go who are woken for certain, and sorts those whom no permit keeps apart any more.
    fn settle(&mut self) {
        let (mut asleep, mut permits, mut certain) = (0, 0, 0);
        for (at, item) in self.line.iter().enumerate() {
            match item {
                Some(_) => asleep += 1,
                None => permits += 1,
            }
            if asleep == permits {
                certain = at + 1;
            }
        }
        if certain > 0 {
            self.woken.extend(self.line.drain(..certain).flatten());
            self.woken.sort_unstable();
        }
        self.line.split_mut(Option::is_none).for_each(|between| between.sort_unstable());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// By definition: the environment chooses whom a notify wakes. All (asleep, woken) that its choices can lead to.
    type Worlds = BTreeSet<(BTreeSet<u32>, BTreeSet<u32>)>;

    fn notified(worlds: &Worlds) -> Worlds {
        let mut after = Worlds::new();
        for (asleep, woken) in worlds {
            if asleep.is_empty() {
                after.insert((asleep.clone(), woken.clone()));
            }
            for &one in asleep {
                let (mut asleep, mut woken) = (asleep.clone(), woken.clone());
                asleep.remove(&one);
                woken.insert(one);
                after.insert((asleep, woken));
            }
        }
        after
    }

    #[test]
    fn permits_are_choices_of_whom_a_notify_wakes() {
        let mut seed = 7u64;
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let (mut wakes, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut sleepers = Sleepers::default();
            let mut worlds = Worlds::from([(BTreeSet::new(), BTreeSet::new())]);
            let mut in_wait: Vec<u32> = Vec::new();
            for next in 0..14 {
                match below(8) {
                    0..3 if in_wait.len() < 5 => {
                        sleepers.sleep(next);
                        in_wait.push(next);
                        worlds = worlds.into_iter().map(|(mut a, w)| (a.insert(next), (a, w)).1).collect();
                    }
                    3 | 4 => {
                        sleepers.notify_one();
                        worlds = notified(&worlds);
                    }
                    5 if below(3) == 0 => {
                        sleepers.notify_all();
                        worlds = worlds.into_iter().map(|(a, mut w)| (w.extend(a), (BTreeSet::new(), w)).1).collect();
                    }
                    _ => {}
                }
                for &one in &in_wait {
                    assert_eq!(sleepers.can_wake(one), worlds.iter().any(|(_, woken)| woken.contains(&one)));
                    assert_eq!(sleepers.can_leave(one), worlds.iter().any(|(asleep, _)| asleep.contains(&one)));
                }
                if in_wait.is_empty() || below(3) > 0 {
                    continue;
                }
                let one = in_wait[below(in_wait.len() as u64) as usize];
                let by_notify = below(2) == 0;
                let can = if by_notify { sleepers.can_wake(one) } else { sleepers.can_leave(one) };
                wakes += u32::from(can);
                refused += u32::from(!can);
                if !can {
                    continue;
                }
                in_wait.retain(|other| *other != one);
                if by_notify {
                    sleepers.wake(one);
                    worlds = worlds.into_iter().filter_map(|(a, mut w)| w.remove(&one).then_some((a, w))).collect();
                } else {
                    sleepers.leave(one);
                    worlds = worlds.into_iter().filter_map(|(mut a, w)| a.remove(&one).then_some((a, w))).collect();
                }
            }
        }
        assert!(wakes > 10_000 && refused > 5_000, "{wakes} {refused}");
    }
}
