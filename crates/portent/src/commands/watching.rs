//! Following a program that runs: its recording is read as it grows, converted, and examined segment by segment; what is certain is told.
//!
//! This goes on beside the program, on a thread of its own, and the program does not wait for it. Whatever goes wrong here is told,
//! and the program and its recording are as they would be: the whole run is examined when it ends.

use crate::args::{LagName, WatchArgs};
use crate::failure::Failure;
use crate::reaction::Reaction;
use crate::reports::Filters;
use crate::terminal;
use portent_explore::Properties;
use portent_native::convert::Live;
use portent_native::run::launch::Running;
use portent_native::run::tail::Tail;
use portent_predict::online::{Look, Online};
use portent_predict::{BugKind, Control, Options, Prediction, PropertyOptions, check_properties};
use portent_report::{Extras, Level, Report, Settings, Story};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for more where nothing happens, at most.
const PAUSE: Duration = Duration::from_millis(50);
/// Part of a segment is examined when so much time has passed, and so many times as long as examining it took.
const EVERY: Duration = Duration::from_millis(200);
const TIMES: u32 = 8;
/// Properties of a segment may take so long.
const PROPERTIES: Duration = Duration::from_secs(5);

/// What came of following a program.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// What was told: by id, what it is and where.
    pub(super) told: BTreeMap<String, String>,
    /// Events that were examined while the program ran, or passed over on purpose.
    pub(super) examined: u64,
    /// Events that were passed over on purpose.
    pub(super) passed_over: u64,
    /// Segments that could not be examined, and why the first could not.
    pub(super) refused: (u64, Option<String>),
    /// Errors of the engine itself.
    pub(super) errors: Vec<String>,
}

/// What is followed, and how.
pub(super) struct Following<'a> {
    pub(super) args: &'a WatchArgs,
    pub(super) options: &'a Options,
    pub(super) spec: Option<&'a Properties>,
    pub(super) directory: &'a Path,
    pub(super) trace: &'a Path,
    pub(super) running: Running,
    /// The program has ended.
    pub(super) over: &'a AtomicBool,
}

impl Following<'_> {
    /// Follows the program until it has ended.
    pub(super) fn follow(&self) -> Result<Watched, Failure> {
        let mut watched = Watched::default();
        let mut filters = Filters::read(&self.args.report)?;
        let mut tail = Tail::open(&self.running.log)?;
        let mut live = Live::new(self.directory)?;
        let search = self.args.search.clone();
        let mut options = Options { jobs: 1, budget: None, ..self.options.clone() };
        if self.args.search.kind.is_empty() {
            // What is only observed can wait.
            options.kinds.retain(|kind| !matches!(kind, BugKind::Atomicity | BugKind::Nondeterminism));
        }
        let mut online = Online::new(options, Box::new(move || search.functions()), Online::LENGTH);
        let (mut looked, mut took) = (Instant::now(), Duration::ZERO);
        let mut seen_at_look = 0;
        while !self.is_over() {
            let records = tail.read()?;
            let is_idle = records.is_empty();
            live.feed(records, false, &mut |_, batch| online.take(batch))?;
            while online.is_full() && !self.is_over() {
                if self.args.lag == LagName::Sample && tail.is_behind() {
                    online.pass_over();
                } else {
                    self.look(&mut online, &live, &mut watched, &mut filters);
                    (looked, took) = (Instant::now(), Duration::ZERO);
                }
            }
            let is_time = looked.elapsed() >= EVERY.max(took * TIMES);
            if is_time && online.waiting() > 0 && online.events() > seen_at_look {
                let started = Instant::now();
                seen_at_look = online.events();
                self.look(&mut online, &live, &mut watched, &mut filters);
                (looked, took) = (Instant::now(), started.elapsed());
            }
            if is_idle {
                std::thread::sleep(PAUSE);
            }
        }
        watched.examined = online.events() - online.waiting() as u64;
        watched.passed_over = online.passed_over();
        Ok(watched)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Examines what there is, and tells what is new.
    fn look(&self, online: &mut Online, live: &Live, watched: &mut Watched, filters: &mut Filters) {
        let look = match online.look(live.names(), &Control::default()) {
            Ok(look) => look,
            Err(error) => {
                watched.refused.0 += 1;
                watched.refused.1.get_or_insert_with(|| error.to_string());
                return;
            }
        };
        watched.errors.extend(look.errors.iter().cloned());
        let events = online.events();
        let mut prediction = Prediction { findings: look.findings.clone(), ..Prediction::default() };
        if look.begins_the_run() {
            prediction.findings.extend(self.properties(&look));
        }
        if prediction.findings.is_empty() {
            return;
        }
        let settings = self.args.report.settings(&self.args.search, String::new(), self.trace);
        let mut report = Report::new(Settings { kinds: self.options.kinds.clone(), ..settings });
        report.add(Arc::clone(&look.trace), self.options.model, prediction, &Extras::default());
        filters.hide(&mut report);
        for story in report.stories.iter().filter(|story| story.level == Level::Failure) {
            if !watched.told.contains_key(&story.finding.id) {
                let what = in_words(story);
                let text = format!("{}  {what}, after {events} events", story.finding.id);
                terminal::message("found", &text);
                self.react(&story.finding.id, &what);
                watched.told.insert(story.finding.id.clone(), what);
            }
        }
    }

    /// Properties that the run breaks, or could, as far as it goes. A name that nobody used yet is none that is wrong.
    fn properties(&self, look: &Look) -> Vec<portent_predict::Finding> {
        let Some(spec) = self.spec else { return Vec::new() };
        let Ok(bound) = spec.bind(&look.trace, &BTreeMap::new()) else { return Vec::new() };
        let usual = PropertyOptions::of(self.options.model);
        let options = PropertyOptions { width: self.args.search.width, budget: Some(PROPERTIES), count: 0, ..usual };
        let found = check_properties(&look.trace, &bound, &options, &Control::default()).findings;
        // What breaks at the end of a run breaks when it is over.
        let is_certain =
            |finding: &portent_predict::Finding| finding.places().iter().all(|place| place.event.is_some());
        found.into_iter().filter(is_certain).collect()
    }

    fn react(&self, id: &str, what: &str) {
        let process = self.running.process();
        let failed = |error: std::io::Error, what: &str| {
            terminal::message("warning", &format!("--on-violation: {what}: {error}"));
        };
        match &self.args.on_violation {
            Reaction::Log => {}
            // It is waited for only after it is said to be over.
            Reaction::Signal(_) if self.is_over() => {}
            Reaction::Signal(number) => {
                if let Err(error) = self.running.signal(*number) {
                    failed(error, "the program gets no signal");
                }
            }
            Reaction::Execute(command) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(command).stdin(std::process::Stdio::null());
                shell.env("PORTENT_FINDING", id).env("PORTENT_WHAT", what).env("PORTENT_PID", process.to_string());
                match shell.status() {
                    Ok(status) if !status.success() => failed(std::io::Error::other(status.to_string()), command),
                    Ok(_) => {}
                    Err(error) => failed(error, command),
                }
            }
        }
    }
}

/// What a finding is, and where.
pub(super) fn in_words(story: &Story) -> String {
    let places: BTreeSet<&str> = story.places.iter().filter_map(|spot| Some(spot.at.as_ref()?.text.as_str())).collect();
    let places: Vec<&str> = places.into_iter().collect();
    format!("{}: {}", story.what(), places.join(", "))
}
