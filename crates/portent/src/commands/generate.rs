//! `portent gen`, which waits for the trace generator.
use crate::exit::ExitCode;
use crate::failure::Failure;
#[derive(Debug, clap::Args)]
pub(crate) struct GenArgs {}
pub(crate) fn run(_: &GenArgs) -> Result<ExitCode, Failure> {
    Err(crate::not_built("gen"))
}
