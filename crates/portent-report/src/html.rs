//! placeholder
use crate::report::Report;
/// p
pub fn page(_report: &Report) -> Result<String, serde_json::Error> { Ok(String::new()) }
