//! The order of the reports, and where reads may read from.

use super::ids::name_findings;
use crate::finding::{Finding, MayRead};
use crate::kinds::{Bug, Nondeterminism};
use portent_trace::{LocId, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// In the order of the reports, with ids.
pub(crate) fn sort_and_name(trace: &Trace, findings: &mut [Finding]) {
    findings.sort_by_cached_key(|finding| {
        let events: Vec<Option<u32>> = finding.places().iter().map(|place| place.event).collect();
        (finding.bug.form(), finding.flags.needs_other_branch, events, finding.object.clone())
    });
    name_findings(trace, findings);
}

/// For each read location, where its values come from and could come from.
pub(crate) fn may_read(findings: &[Finding]) -> Vec<MayRead> {
    let mut from: BTreeMap<LocId, (BTreeSet<LocId>, bool)> = BTreeMap::new();
    for finding in findings {
        let Bug::Nondeterminism(
            Nondeterminism::Read { read, writer, challenger, .. }
            | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
        ) = &finding.bug
        else {
            continue;
        };
        let Some(read) = read.location else { continue };
        let (locations, initial) = from.entry(read).or_default();
        for source in [writer, challenger] {
            match source.location {
                Some(location) => drop(locations.insert(location)),
                None => *initial = true,
            }
        }
    }
    let rows = from.into_iter();
    rows.map(|(read, (from, initial))| MayRead { read, from: from.into_iter().collect(), initial }).collect()
}
