//! Writing to people: messages and progress on standard error, and text that is safe to show.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portent_trace::Progress;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A job that is done before this long needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) use portent_report::words::printable;

/// Writes results to standard output.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    print_as_it_is(&printable(text))
}

/// Writes results that may hold colours, and names only as [`printable`] text, to standard output.
pub(crate) fn print_as_it_is(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether a stream is a terminal that wants colours.
fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How findings look on standard output: as wide as the terminal, and in colour if it wants that.
pub(crate) fn look() -> portent_report::text::Look {
    let out = std::io::stdout();
    let width = terminal_size::terminal_size_of(&out).map(|(width, _)| usize::from(width.0));
    let mut look = portent_report::text::Look { colours: colours(&out), ..Default::default() };
    look.width = width.filter(|&width| width > 0).unwrap_or(look.width);
    look
}

/// Writes `label: text` to standard error. A standard error that is gone is nobody's problem.
pub(crate) fn message(label: &str, text: &str) {
    let text = printable(text);
    let colour = match label {
        "error" => "1;31",
        "warning" => "1;33",
        _ => "1;36",
    };
    let mut out = std::io::stderr().lock();
    let label = if colours(&out) { format!("\x1b[{colour}m{label}:\x1b[0m") } else { format!("{label}:") };
    // At once: standard error has no buffer, and what another process writes meanwhile would come in between.
    let _ = out.write_all(format!("{label} {text}\n").as_bytes());
}

/// What the numbers of a [`Progress`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Events,
    Findings,
    Runs,
    /// Nobody knows how many there are.
    Behaviours,
}

/// A progress bar on standard error: only on a terminal, and only for jobs that last.
pub(crate) struct Bar {
    label: String,
    unit: Unit,
    started: Instant,
    on_terminal: bool,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new(label: impl Into<String>, unit: Unit) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        Self { label: label.into(), unit, started: Instant::now(), on_terminal, bar: None }
    }

    pub(crate) fn update(&mut self, progress: Progress) {
        if !self.on_terminal {
            return;
        }
        if self.bar.is_none() && self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| draw(&self.label, self.unit, progress.total));
        bar.set_position(progress.done);
    }

    /// Says how far a job is of which nobody knows how long it is.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        self.update(Progress { done: 0, total: None });
        if let Some(bar) = &self.bar {
            bar.set_message(printable(&text()).into_owned());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn draw(label: &str, unit: Unit, total: Option<u64>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(total, target);
    let template = match (unit, total) {
        (Unit::Bytes, Some(_)) => "{msg} {wide_bar} {bytes} of {total_bytes}, {eta} left",
        (Unit::Bytes, None) => "{msg} {spinner} {bytes}, {elapsed}",
        (Unit::Events, Some(_)) => "{msg} {wide_bar} {human_pos} of {human_len} events, {eta} left",
        (Unit::Runs, _) => "{msg} {wide_bar} {human_pos} of {human_len} runs",
        (Unit::Behaviours, _) => "{msg} {spinner} {elapsed}",
        (Unit::Findings, _) => "{msg} {wide_bar} {human_pos} of {human_len} findings",
        (Unit::Events, None) => "{msg} {spinner} {human_pos} events, {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar.set_message(printable(label).into_owned());
    bar
}
