//! Baselines: a JSON report of an earlier run, so that only what is new is reported.

use serde_json::Value;
use std::collections::BTreeSet;

/// A file that is no JSON report.
#[derive(Debug, thiserror::Error)]
pub enum BadBaseline {
    /// Not JSON at all.
    #[error("not JSON: {0}; expected a report written by --json")]
    Json(#[from] serde_json::Error),
    /// JSON, but something else.
    #[error("{0}; expected a report written by --json, with \"schema\": 1 or 2 and \"findings\"")]
    Other(String),
}

/// The ids that an earlier report knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    ids: BTreeSet<String>,
}

impl Baseline {
    /// Reads a JSON report. What it did not repeat because *its* baseline knew it counts as known.
    pub fn parse(text: &str) -> Result<Baseline, BadBaseline> {
        let document: Value = serde_json::from_str(text)?;
        match document.get("schema") {
            Some(schema) if matches!(schema.as_u64(), Some(1 | 2)) => {}
            Some(schema) => return Err(BadBaseline::Other(format!("its schema is {schema}"))),
            None => return Err(BadBaseline::Other("it has no schema".into())),
        }
        let Some(findings) = document.get("findings").and_then(Value::as_array) else {
            return Err(BadBaseline::Other("it has no list of findings".into()));
        };
        let mut ids = BTreeSet::new();
        for (at, finding) in findings.iter().enumerate() {
            match finding.get("id").and_then(Value::as_str) {
                Some(id) => drop(ids.insert(id.to_owned())),
                None => return Err(BadBaseline::Other(format!("finding {at} has no id"))),
            }
        }
        let known = document.get("known").and_then(Value::as_array);
        ids.extend(known.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        Ok(Baseline { ids })
    }
    /// Whether a finding was reported before.
    pub fn knows(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_and_what_was_known_before_count() {
        for schema in [1, 2] {
            let text = format!(r#"{{"schema": {schema}, "findings": [{{"id": "race-1"}}], "known": ["race-2"]}}"#);
            let baseline = Baseline::parse(&text).unwrap();
            assert!(baseline.knows("race-1") && baseline.knows("race-2") && !baseline.knows("race-3"));
        }
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let said = |text: &str| Baseline::parse(text).unwrap_err().to_string();
        assert!(said("hello").starts_with("not JSON: "));
        assert!(said("{}").starts_with("it has no schema; expected a report written by --json"));
        assert!(said(r#"{"schema": 3}"#).starts_with("its schema is 3"));
        assert!(said(r#"{"schema": 1}"#).starts_with("it has no list of findings"));
        assert!(said(r#"{"schema": 1, "findings": [{}]}"#).starts_with("finding 0 has no id"));
    }
}
