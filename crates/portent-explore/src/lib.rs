//! The loop: from one run of a program to the bugs that its other interleavings contain, each shown by a replay.
//!
//! ```text
//! Program ──run──▶ Run ──▶ trace ──predict──▶ findings ──Script──▶ Replay: seen, or not
//!    ▲                                                               │
//!    └──────────── a replay that did something new is a run ─────────┘
//! ```
//!
//! [`Program`] is what a front end implements: run under a [`Plan`], give back a [`Run`]. [`explore`](explore()) is the loop; it tells
//! an [`Observer`] what happens as it happens and returns an [`Exploration`]. Nothing here prints, and nothing here knows
//! what a program is written in.

#![forbid(unsafe_code)]

mod error;
mod explore;
mod failure;
mod outcome;
mod program;
mod properties;
pub mod replay;
mod run;
mod said;
mod schedule;

pub use error::Error;
pub use explore::{
    Answer, Behaviours, Event, Examined, Exploration, Extent, Observer, Options, Phase, Reached, Replayed, RunId,
    SavedSearch, Stop, Strategy, explore,
};
pub use failure::Failed;
pub use outcome::{
    AtGoal, Counting, Crash, End, Fault, FaultKind, Moment, NotFollowed, Outcome, Output, Parked, Spin, SpinKind,
    Stuck, Thrown, WhyNotFollowed,
};
pub use program::{Pct, Plan, Policy, Program};
pub use properties::{Properties, Request, predict};
pub use run::{EventSink, Run};
pub use schedule::{Schedule, ScheduleGoal};
