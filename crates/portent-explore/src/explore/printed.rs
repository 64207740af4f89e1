//! What runs print, compared: a schedule after which the program prints something else, not just in another order, is worth
//! knowing even where nothing crashes.
//!
//! Compared as multisets of lines, since threads may print in any order. A program whose output differs from run to run under
//! one and the same schedule (times, addresses, random numbers) is left alone.

use crate::outcome::Output;
use std::collections::BTreeMap;

/// How the output of a run differs from that of another: lines that are missing, lines that are new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) missing: Vec<String>,
    pub(super) new: Vec<String>,
}

impl Difference {
    /// Between what was printed before and now; `None` if there is none, or if something is not known.
    pub(super) fn between(before: &Output, now: &Output) -> Option<Difference> {
        if !before.whole || !now.whole {
            return None;
        }
        let mut counts: BTreeMap<(u8, &[u8]), i64> = BTreeMap::new();
        for (output, sign) in [(before, 1), (now, -1)] {
            for (stream, bytes) in [(1, &output.stdout), (2, &output.stderr)] {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    *counts.entry((stream, line)).or_default() += sign;
                }
            }
        }
        let mut difference = Difference::default();
        for ((_, line), count) in counts {
            let text = || String::from_utf8_lossy(line).into_owned();
            match count {
                0 => {}
                1.. => difference.missing.push(text()),
                _ => difference.new.push(text()),
            }
        }
        (difference != Difference::default()).then_some(difference)
    }

    /// In a line.
    pub(super) fn sentence(&self) -> String {
        let quoted = |lines: &[String]| {
            let shown: Vec<String> = lines.iter().take(2).map(|line| format!("`{}`", shortened(line))).collect();
            let more = match lines.len().saturating_sub(2) {
                0 => String::new(),
                1 => " and 1 more line".to_owned(),
                more => format!(" and {more} more lines"),
            };
            shown.join(", ") + &more
        };
        match (self.new.is_empty(), self.missing.is_empty()) {
            (false, false) => format!("prints {} instead of {}", quoted(&self.new), quoted(&self.missing)),
            (false, true) => format!("prints {} as well", quoted(&self.new)),
            _ => format!("does not print {}", quoted(&self.missing)),
        }
    }

    /// What stays the same where only numbers differ.
    pub(super) fn shape(&self) -> String {
        let lines = self.missing.iter().chain(&self.new);
        let mut shapes: Vec<String> =
            lines.map(|line| line.chars().filter(|c| !c.is_ascii_digit() && *c != '-').collect()).collect();
        shapes.sort_unstable();
        shapes.dedup();
        shapes.join("\n")
    }
}

fn shortened(line: &str) -> String {
    const MOST: usize = 60;
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stdout: &str) -> Output {
        Output { stdout: stdout.into(), stderr: Vec::new(), whole: true }
    }

    #[test]
    fn another_order_is_no_difference() {
        assert_eq!(Difference::between(&output("a\nb\n"), &output("b\na\n")), None);
    }

    #[test]
    fn another_line_is_one_and_the_number_of_times_counts() {
        let found = Difference::between(&output("balance 200\n"), &output("balance 150\n")).unwrap();
        assert_eq!(found.sentence(), "prints `balance 150` instead of `balance 200`");
        assert_eq!(found.shape(), "balance ");
        let found = Difference::between(&output("x\nx\n"), &output("x\n")).unwrap();
        assert_eq!(found.sentence(), "does not print `x`");
        let found = Difference::between(&output("x\n"), &output("x\ny\n")).unwrap();
        assert_eq!(found.sentence(), "prints `y` as well");
    }

    #[test]
    fn what_is_not_whole_is_not_compared() {
        let part = Output { whole: false, ..output("a\n") };
        assert_eq!(Difference::between(&part, &output("b\n")), None);
    }
}
