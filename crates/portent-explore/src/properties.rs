//! Predicting with properties: files of properties tied to a trace, and what came of them put beside everything else.

use crate::error::Error;
use portent_predict::{BugKind, Control, Options, Prediction, PropertyOptions, check_properties};
use portent_spec::{Bound, Diagnostic, Picture, PropertyFile, Scope, parse};
use portent_trace::{Trace, TraceError};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A property file, read but not yet tied to a trace.
#[derive(Clone, Debug)]
pub struct Properties {
    name: String,
    source: String,
    file: PropertyFile,
}

const HELP: &str = "the language of properties is described in the guide, under `Properties`";

impl Properties {
    /// Reads and parses a file.
    pub fn read(path: &Path) -> Result<Properties, Error> {
        let name = path.display().to_string();
        let source = std::fs::read_to_string(path).map_err(|error| TraceError::whole(error).in_input(&name))?;
        Self::parse(name, source)
    }

    /// Parses text that has a name.
    pub fn parse(name: String, source: String) -> Result<Properties, Error> {
        let file = parse(&source).map_err(|wrong| refused(&[wrong], &name, &source))?;
        if file.properties.is_empty() {
            let help = "a property is a line such as `property positive: always x > 0`";
            return Err(Error::refused(format!("{name}: it contains no property"), help));
        }
        Ok(Properties { name, source, file })
    }

    /// The monitors of the properties, to be drawn.
    pub fn pictures(&self) -> Result<Vec<Picture>, Error> {
        Picture::all(&self.file).map_err(|wrong| refused(&wrong, &self.name, &self.source))
    }

    /// The properties, about the names of a trace and about variables that are `declared` somewhere.
    pub fn bind(&self, trace: &Trace, declared: &BTreeMap<String, String>) -> Result<Vec<Bound>, Error> {
        let mut scope = Scope::of(trace);
        scope.declared.clone_from(declared);
        Bound::all(&self.file, &scope).map_err(|wrong| refused(&wrong, &self.name, &self.source))
    }
}

fn refused(wrong: &[Diagnostic], name: &str, source: &str) -> Error {
    let text: Vec<String> = wrong.iter().map(|wrong| wrong.render(name, source)).collect();
    Error::refused(text.join("\n").trim_end().to_owned(), HELP)
}

/// What to predict from a trace.
pub struct Request<'a> {
    /// Kinds, model, window and effort. The time is [`Request::budget`]'s.
    pub options: &'a Options,
    /// Properties to check as well.
    pub properties: &'a [Bound],
    /// Cuts per level of a property's lattice, at most.
    pub width: usize,
    /// How long the next step may take: asked before the kinds are looked for, and again before properties are checked.
    pub budget: &'a dyn Fn() -> Option<Duration>,
}

/// Predicts from a trace: bugs of all kinds that are asked for, and violations of properties.
pub fn predict(trace: &Trace, request: &Request<'_>, control: &Control<'_>) -> Prediction {
    // Properties are not examined window by window.
    let kinds = request.options.kinds.iter().copied().filter(|kind| *kind != BugKind::Property).collect();
    let options = Options { kinds, budget: (request.budget)(), ..request.options.clone() };
    let mut prediction = portent_predict::predict(trace, &options, control);
    if !request.properties.is_empty() {
        let usual = PropertyOptions::of(options.model);
        let options = PropertyOptions { width: request.width, budget: (request.budget)(), ..usual };
        let control = Control { progress: None, ..*control };
        merge(&mut prediction, check_properties(trace, request.properties, &options, &control));
    }
    prediction
}

/// Adds what came of properties to what else was predicted.
fn merge(prediction: &mut Prediction, properties: Prediction) {
    prediction.findings.extend(properties.findings);
    prediction.incomplete.extend(properties.incomplete);
    prediction.properties.extend(properties.properties);
    prediction.errors.extend(properties.errors);
    prediction.partial = prediction.partial.or(properties.partial);
    prediction.stats.time += properties.stats.time;
}
