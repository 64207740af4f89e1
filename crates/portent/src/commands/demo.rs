//! `portent demo`, which waits for the trace generator.
use crate::args::DemoArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
pub(crate) fn run(_: &DemoArgs) -> Result<ExitCode, Failure> {
    Err(crate::not_built("demo"))
}
