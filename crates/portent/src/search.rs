//! What `predict` and `check` are asked to look for, in the words of the engines.

use crate::args::{KindName, ModelName, SearchArgs};
use crate::failure::Failure;
use portent_order::Model;
use portent_predict::{BugKind, Options};
use portent_trace::FunctionBlocks;
use std::time::Duration;

impl SearchArgs {
    /// Options for a prediction in the default model.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        if self.kind.contains(&KindName::Property) && self.spec.is_none() {
            let help = "name a file of properties: --spec FILE";
            return Err(Failure::usage("--kind property needs properties", help));
        }
        let asked: Vec<BugKind> = self.kind.iter().map(|kind| kind.bug_kind()).collect();
        let wanted = |kind: &BugKind| asked.is_empty() || asked.contains(kind);
        let mut kinds: Vec<BugKind> = BugKind::ALL.into_iter().filter(wanted).collect();
        kinds.extend(self.spec.is_some().then_some(BugKind::Property));
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or_else(cores, |jobs| usize::from(jobs.get()));
        let window = self.window.unwrap_or(Options::WINDOW);
        Ok(Options { kinds, window, reach: self.reach, budget: self.budget()?, jobs, ..Options::default() })
    }

    /// How long to search.
    pub(crate) fn budget(&self) -> Result<Option<Duration>, Failure> {
        let Some(seconds) = self.budget else { return Ok(None) };
        Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
            let help = "give seconds, such as --budget 60 or --budget 0.5";
            Failure::usage(format!("--budget {seconds} is not a time"), help)
        })
    }

    /// Which functions are atomic blocks.
    pub(crate) fn functions(&self) -> FunctionBlocks {
        match self.atomic.clone() {
            Some(pattern) => FunctionBlocks::Chosen(Box::new(move |name| pattern.is_match(name))),
            None => FunctionBlocks::BelowRoots,
        }
    }
}

impl ModelName {
    /// The model by the engines' name.
    pub(crate) fn model(self) -> Model {
        match self {
            ModelName::Reads => Model::Reads,
            ModelName::Sync => Model::Sync,
            ModelName::Values => Model::Values,
        }
    }
}
