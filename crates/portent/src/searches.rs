//! A search for all behaviours as a file beside the recorded run, for `check --resume`: which program it is about, and what was
//! run (`portent-explore` knows how to go on from there).

use crate::args::{CheckArgs, StrategyName};
use crate::failure::Failure;
use crate::runs;
use portent_explore::{Error, SavedSearch};
use portent_native::record::NativeProgram;
use portent_native::run::examine::{self, Nature};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// What is written now. Others are refused.
const VERSION: u64 = 1;

/// The whole file.
#[derive(Serialize, Deserialize)]
struct Document {
    /// The version of the format.
    search: u64,
    /// The version of Portent: runs are counted in operations, and which those are may change.
    portent: String,
    #[serde(flatten)]
    about: About,
    runs: SavedSearch,
}

/// The program that a search is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    program: PathBuf,
    /// What tells its builds apart.
    build: String,
    arguments: Vec<String>,
    input: Option<PathBuf>,
}

/// The searches of a program.
pub(crate) struct Search {
    about: About,
    instrumented: bool,
}

impl Search {
    /// Those of a program as it is now.
    pub(crate) fn of(program: &NativeProgram) -> Search {
        let invocation = &program.invocation;
        let arguments = invocation.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let about = About {
            program: invocation.program.clone(),
            build: build(&invocation.program),
            arguments,
            input: invocation.input.clone(),
        };
        Search { about, instrumented: program.nature == Nature::Instrumented }
    }

    /// The search to go on with, if the command line asks for that.
    pub(crate) fn earlier(&self, args: &CheckArgs) -> Result<Option<SavedSearch>, Failure> {
        if !args.resume {
            return Ok(None);
        }
        let name = self.about.program.display();
        if !self.instrumented {
            let help = "name the program whose search is to go on";
            return Err(Failure::usage(format!("--resume: {name} has no instrumentation"), help));
        }
        if args.strategy != StrategyName::Explore {
            let text = format!("--resume: there is nothing to go on with by --strategy {}", args.strategy.name());
            return Err(Failure::usage(text, "only --strategy explore knows what is left"));
        }
        let path = match &args.output {
            Some(output) => Some(beside(output)).filter(|path| path.is_file()),
            None => runs::last_with(&self.about.program, |trace| beside(trace).is_file()).map(|trace| beside(&trace)),
        };
        let Some(path) = path else {
            let help = "a check leaves it in PROGRAM.checks in the current directory, or beside what --output names: run one first";
            return Err(Failure::usage(format!("--resume: there is no search of {name} to go on with"), help));
        };
        self.read(&path).map(Some)
    }

    fn read(&self, path: &Path) -> Result<SavedSearch, Failure> {
        let anew = "without --resume the search begins anew";
        let refused = |why: String| Failure::usage(format!("{}: {why}", path.display()), anew);
        let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| {
            refused(match error.is_eof() {
                true => "the search is cut: the end of the file is missing".into(),
                false => format!("this is no search of `portent check`: {error}"),
            })
        })?;
        match value["search"].as_u64() {
            Some(VERSION) => {}
            Some(other) => return Err(refused(format!("a search of version {other}: version {VERSION} is expected"))),
            None => return Err(refused("this is no search of `portent check`".into())),
        }
        let document: Document = serde_json::from_value(value)
            .map_err(|error| refused(format!("this is no search of `portent check`: {error}")))?;
        let Document { portent, about, runs, .. } = document;
        if portent != env!("CARGO_PKG_VERSION") {
            return Err(refused(format!("a search of Portent {portent}, not of this one")));
        }
        let words = |about: &About| {
            let input = about.input.as_ref().map(|input| format!(" < {}", input.display())).unwrap_or_default();
            about.arguments.join(" ") + &input
        };
        if (&about.program, words(&about)) != (&self.about.program, words(&self.about)) {
            return Err(refused(format!("a search of `{}`, not of `{}`", words(&about), words(&self.about))));
        }
        if about.build != self.about.build {
            return Err(refused(format!("{} was built anew since the search began", about.program.display())));
        }
        if !runs.is_sound() {
            return Err(refused("the search does not fit together: the file was changed".into()));
        }
        Ok(runs)
    }

    /// Leaves a search beside a trace; one that is there is replaced as a whole.
    pub(crate) fn save(&self, trace: &Path, runs: &SavedSearch) -> Result<(), Error> {
        let document = Document {
            search: VERSION,
            portent: env!("CARGO_PKG_VERSION").into(),
            about: self.about.clone(),
            runs: runs.clone(),
        };
        let path = beside(trace);
        let half = path.with_extension("half");
        let written = serde_json::to_vec(&document)
            .map_err(std::io::Error::from)
            .and_then(|text| std::fs::write(&half, text))
            .and_then(|()| std::fs::rename(&half, &path));
        written.map_err(|error| {
            let _ = std::fs::remove_file(&half);
            Error::refused(format!("{}: {error}", path.display()), "the search is left beside the trace: see --output")
        })
    }
}

/// Where the search is that began with a recorded run.
fn beside(trace: &Path) -> PathBuf {
    trace.with_extension("search.json")
}

/// What tells builds of a program apart: the linker's mark, or all that is in the file.
fn build(program: &Path) -> String {
    examine::build_id(program).unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        std::fs::read(program).unwrap_or_default().hash(&mut hasher);
        format!("contents {:016x}", hasher.finish())
    })
}
