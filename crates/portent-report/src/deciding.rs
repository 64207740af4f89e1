//! Failures in words: what happened, to what that had been made and ended where, and which operation decided.

use crate::place::{full, nearer, of_spot};
use crate::report::Spot;
use crate::source::Sources;
use crate::words::line;
use portent_predict::{Failure, Harm, Role};

/// The operation that decides between failing and passing, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The operation, in the run that fails.
    pub operation: Spot,
    /// What it depends on there: another thread's operation.
    pub because: Option<Spot>,
    /// Its outcome there, in words.
    pub fails: String,
    /// Its outcome in the nearest run that passes, in words.
    pub passes: String,
}

impl Decided {
    /// In a sentence.
    pub(crate) fn sentence(&self, sources: &Sources) -> String {
        let who = self.operation.thread.as_deref().unwrap_or("somebody");
        let object = match self.operation.object.as_str() {
            "" => String::new(),
            object => format!(" of {object}"),
        };
        let spots = || std::iter::once(&self.operation).chain(&self.because);
        let [fails, passes] = [&self.fails, &self.passes].map(|text| nearer(sources, spots(), text));
        // What the outcome says already is not said again.
        let because = self.because.as_ref().map(|spot| {
            let (who, at) = (spot.thread.as_deref().unwrap_or_default(), at(sources, spot));
            let place = at.rsplit(' ').next().unwrap_or_default();
            match (fails.contains(who), fails.contains(place)) {
                (_, true) => String::new(),
                (true, false) => at.trim().to_owned(),
                (false, false) => format!("{who}{at}").trim().to_owned(),
            }
        });
        let because = because.filter(|text| !text.is_empty());
        line(&format!(
            "{who}'s {}{object}{}: {}{}; in the run that passes: {}",
            act(self.operation.op),
            at(sources, &self.operation),
            fails,
            because.map_or_else(String::new, |text| format!(" ({text})")),
            passes
        ))
    }
}

/// What an operation is to the one who does it: "T1's wake-up".
pub(crate) fn act(op: &str) -> &str {
    match op {
        "acq" | "acqs" | "acqa" | "try" | "trys" => "lock",
        "rel" | "rels" | "rela" => "unlock",
        "busy" | "busys" => "failed try to lock",
        "slp" | "wai" | "lwt" | "semw" => "wait",
        "ntf" | "nta" => "notify",
        "wak" => "wake-up",
        "tmo" => "time-out",
        "semf" => "failed try to pass",
        "cdn" => "count-down",
        "arr" => "arrival",
        "dep" => "departure",
        "onceb" | "oncee" | "oncep" => "call of a once",
        "ret" => "return",
        other => other,
    }
}

/// ` in worker() pool.cpp:41`, ` at pool.cpp:41`, or nothing.
pub(crate) fn at(sources: &Sources, spot: &Spot) -> String {
    let Some(place) = of_spot(spot) else { return String::new() };
    let preposition = if place.function.is_some() { "in" } else { "at" };
    match full(sources, &place) {
        text if text.is_empty() => text,
        text => format!(" {preposition} {text}"),
    }
}

/// What was done at a place in the life of what the failure is about.
pub(crate) fn verb(harm: Harm, role: Role) -> Option<&'static str> {
    let (made, ended) = match harm {
        Harm::UseAfterFree | Harm::DoubleFree | Harm::BadFree => ("allocated", "freed"),
        Harm::DestroyedInUse => ("made", "destroyed"),
        Harm::ClosedInUse => ("opened", "closed"),
        _ => return None,
    };
    match role {
        Role::Made => Some(made),
        Role::Ended => Some(ended),
        _ => None,
    }
}

/// What happened, in one or two sentences. `places` are those of the failure, the first where it failed.
pub(crate) fn sentences(sources: &Sources, failure: &Failure, places: &[Spot]) -> String {
    let message = failure.message.trim();
    let mut text = message.to_owned();
    if !text.is_empty() && !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    if let Some(history) = history(sources, failure.harm, places) {
        text.push_str(&format!(" {history}"));
    }
    line(text.trim())
}

/// The life of what it happened to: who made it, who ended it, who used it, each with the place.
fn history(sources: &Sources, harm: Harm, places: &[Spot]) -> Option<String> {
    let of = |role: Role| places.iter().find(|spot| spot.role == role);
    let ended = of(Role::Ended).is_some();
    let end = verb(harm, Role::Ended)?;
    let last = match harm {
        Harm::DoubleFree if ended => "freed again",
        Harm::UseAfterFree => "used",
        // Without an end before, it is ended here.
        _ if ended => "used",
        _ => end,
    };
    let last = if harm == Harm::BadFree { end } else { last };
    let parts = [(verb(harm, Role::Made)?, of(Role::Made)), (end, of(Role::Ended)), (last, places.first())];
    let told: Vec<String> = parts
        .into_iter()
        .filter_map(|(verb, spot)| {
            let spot = spot?;
            let who = spot.thread.as_deref().map_or_else(String::new, |thread| format!(" by {thread}"));
            Some(format!("{verb}{who}{}", at(sources, spot)))
        })
        .collect();
    if told.len() < 2 {
        return None;
    }
    let text = told.join(", ");
    let mut chars = text.chars();
    let first = chars.next()?;
    Some(format!("{}{}.", first.to_uppercase(), chars.as_str()))
}
