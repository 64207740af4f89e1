//! Every output of a report, tried from the outside.

mod browser;
mod common;
mod documents;
mod failures;
mod filters;
mod stories;
