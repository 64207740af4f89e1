//! What a recording says that a trace cannot: counted, told once, and made harmless.
//!
//! Code that is not instrumented changes memory, hands locks over and posts semaphores without being seen, so recorded events
//! can contradict each other. A trace must not: its readers refuse one that does. Every recorded event stays one event
//! of the trace; one that does not fit becomes a send that nobody receives, which orders nothing.

use portent_trace::LocId;

macro_rules! oddities {
    ($($name:ident, $one:literal, $many:literal;)*) => {
        /// A way in which a recording can contradict itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Oddity { $(#[allow(missing_docs)] $name,)* }

        impl Oddity {
            const ALL: &'static [Oddity] = &[$(Oddity::$name),*];
            /// What happened, for one and for several.
            fn text(self) -> (&'static str, &'static str) {
                match self { $(Oddity::$name => ($one, $many),)* }
            }
        }
    };
}

oddities! {
    StrangeRead, "read saw a value that no recorded write left there (code without instrumentation); its value is left out",
        "reads saw values that no recorded write left there (code without instrumentation); their values are left out";
    HandedOver, "lock changed hands without being released by its holder; from there on its recorded order is kept",
        "locks changed hands without being released by their holders; from there on their recorded order is kept";
    Once, "initialiser ran in a way that was not fully recorded; it is left out",
        "steps of initialisers that were not fully recorded are left out";
    Fork, "start of a thread came too late or twice; it is left out", "starts of threads came too late or twice; they are left out";
    Join, "join of a thread that was still running is left out", "joins of threads that were still running are left out";
    Token, "receipt of something that no recorded event sent is left out",
        "receipts of something that no recorded event sent are left out";
    Wake, "wake-up without a recorded wait is left out", "wake-ups without a recorded wait are left out";
    Semaphore, "use of a semaphore does not fit its recorded count and is left out",
        "uses of semaphores do not fit their recorded counts and are left out";
    Barrier, "departure from a barrier without a recorded arrival is left out",
        "departures from barriers without recorded arrivals are left out";
    Block, "end of a block that was not begun is left out", "ends of blocks that were not begun are left out";
    Unknown, "event of a kind that is not recorded is left out", "events of kinds that are not recorded are left out";
}

/// How often each happened, and where first.
#[derive(Clone, Debug, Default)]
pub struct Oddities {
    found: Vec<(Oddity, u64, LocId)>,
}

impl Oddities {
    pub(super) fn add(&mut self, oddity: Oddity, at: LocId) {
        match self.found.iter_mut().find(|(known, ..)| *known == oddity) {
            Some((_, count, _)) => *count += 1,
            None => self.found.push((oddity, 1, at)),
        }
    }

    /// How often something happened.
    #[cfg(test)]
    pub(super) fn count(&self, oddity: Oddity) -> u64 {
        self.found.iter().find(|(known, ..)| *known == oddity).map_or(0, |(_, count, _)| *count)
    }

    /// Each that happened, with how often and where first.
    pub fn iter(&self) -> impl Iterator<Item = Odd> + '_ {
        let of = |oddity: &Oddity| self.found.iter().find(|(known, ..)| known == oddity);
        Oddity::ALL.iter().filter_map(of).map(|&(oddity, count, at)| {
            let (one, many) = oddity.text();
            let text = if count == 1 { one } else { many };
            Odd { text, count, at, is_harmless: oddity == Oddity::StrangeRead }
        })
    }
}

/// Something odd that happened.
#[derive(Clone, Copy, Debug)]
pub struct Odd {
    /// What happened, behind the number.
    pub text: &'static str,
    /// How often.
    pub count: u64,
    /// Where first.
    pub at: LocId,
    /// Memory that libraries write is everywhere and does little harm.
    pub is_harmless: bool,
}
