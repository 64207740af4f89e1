//! Call stacks in a few lines: the user's frames, what libraries did in between folded.

use crate::place;
use crate::source::Sources;
use crate::words::{counted, function};
use portent_predict::StackFrame;

/// Lines of a stack.
const LINES: usize = 8;
/// Frames in a chain.
const CHAIN: usize = 4;

/// A stack, a line per frame of the user's. Nothing if it says no more than its innermost place.
pub(crate) fn stack(sources: &Sources, frames: &[StackFrame]) -> Vec<String> {
    let Some(first) = frames.iter().position(|frame| frame.user) else { return Vec::new() };
    let mut lines = Vec::new();
    if frames.len() > 1 {
        let called = frames[..first].last().map(|frame| format!("   … in {}", function(&frame.function)));
        lines.push(format!("#{first} {}{}", told(sources, &frames[first]), called.unwrap_or_default()));
    }
    let mut at = first + 1;
    while at < frames.len() {
        let library = frames[at..].iter().take_while(|frame| !frame.user).count();
        if library == 0 {
            lines.push(format!("#{at} {}", told(sources, &frames[at])));
        } else if at + library < frames.len() {
            lines.push(format!("#{at} … {}", counted(library as u64, "library frame")));
        }
        // What only libraries called says nothing to the user: how threads are started.
        at += library.max(1);
    }
    if lines.len() > LINES {
        let more = lines.len() - (LINES - 1);
        lines.truncate(LINES - 1);
        lines.push(format!("… {}", counted(more as u64, "more frame")));
    }
    if lines.len() > 1 || first > 0 { lines } else { Vec::new() }
}

/// A stack in a line: `drop() pool.cpp:33 ← stop() pool.cpp:60`. Nothing if there is only one frame of the user's.
pub(crate) fn chain(sources: &Sources, frames: &[StackFrame]) -> Option<String> {
    let users: Vec<String> = frames.iter().filter(|frame| frame.user).map(|frame| told(sources, frame)).collect();
    let more = if users.len() > CHAIN { " ← …" } else { "" };
    (users.len() > 1).then(|| users[..users.len().min(CHAIN)].join(" ← ") + more)
}

fn told(sources: &Sources, frame: &StackFrame) -> String {
    place::full(sources, &place::of_frame(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(told: &[(&str, bool)]) -> Vec<StackFrame> {
        let frame = |(i, (name, user)): (usize, &(&str, bool))| StackFrame {
            function: (*name).into(),
            file: "a.cpp".into(),
            line: Some(i as u32 + 1),
            user: *user,
        };
        told.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn the_users_frames_come_first_and_libraries_are_folded() {
        let all = frames(&[("std::at", false), ("f", true), ("std::x", false), ("std::y", false), ("main", true)]);
        let told = stack(&Sources::default(), &all);
        assert_eq!(told, ["#1 f() a.cpp:2   … in std::at()", "#2 … 2 library frames", "#4 main() a.cpp:5"]);
        assert_eq!(chain(&Sources::default(), &all).as_deref(), Some("f() a.cpp:2 ← main() a.cpp:5"));
    }

    #[test]
    fn a_stack_that_says_nothing_new_is_not_shown_and_long_ones_end() {
        let sources = Sources::default();
        assert_eq!(stack(&sources, &frames(&[("f", true), ("std::invoke", false)])), [] as [&str; 0]);
        assert_eq!(stack(&sources, &frames(&[("std::invoke", false)])), [] as [&str; 0]);
        assert_eq!(chain(&sources, &frames(&[("f", true)])), None);
        let deep: Vec<(&str, bool)> = vec![("f", true); 30];
        let told = stack(&sources, &frames(&deep));
        assert_eq!((told.len(), told[7].as_str()), (8, "… 23 more frames"));
    }
}
