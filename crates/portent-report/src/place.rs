//! Which line of the source a reader is sent to. Every output asks here, so that all of them name the same line.
//!
//! What happens inside a library is told by the line of the user's code that called it; the rest is in the stack.

use crate::lookup::Lookup;
use crate::report::{At, Spot};
use crate::source::Sources;
use crate::words::{function, line};
use portent_predict::StackFrame;
use portent_trace::{EventId, Trace, is_user_file, without_address};

/// The line for an event of a trace.
pub(crate) fn of_event(trace: &Trace, event: EventId) -> At {
    let frames = trace.stack_of(event);
    let own = frames.iter().find(|frame| frame.user).map(|frame| (frame.location, &frame.function));
    match own {
        Some((location, function)) => {
            let at = At::of(trace, location);
            At { function: at.function.or_else(|| Some(function.clone()).filter(|name| !name.is_empty())), ..at }
        }
        None => At::of(trace, trace.event(event).loc),
    }
}

/// The same, or the user's line that started the thread, if that is in libraries only.
pub(crate) fn of_event_or_start(trace: &Trace, lookup: &Lookup, event: EventId) -> At {
    let at = of_event(trace, event);
    let is_library = at.file.as_deref().is_none_or(|file| !is_user_file(file));
    let fork = is_library.then(|| lookup.fork_of(trace, trace.thread(event))).flatten();
    match fork.map(|fork| of_event(trace, fork)).filter(|start| start.file.as_deref().is_some_and(is_user_file)) {
        Some(start) => At { function: start.function.as_deref().map(started_in), ..start },
        None => at,
    }
}

/// Instead of a function of the user's, the one that started the thread.
pub(crate) fn started_in(name: &str) -> String {
    format!("(started in {})", function(name))
}

/// The line for a place of a finding: its own, or the innermost of the user's if that is a library's.
pub(crate) fn of_spot(spot: &Spot) -> Option<At> {
    let innermost = spot.stack.first();
    let own = spot.at.as_ref().filter(|_| innermost.is_none_or(|frame| frame.user));
    match own {
        Some(at) => {
            let known = at.function.clone().or_else(|| innermost.map(|frame| frame.function.clone()));
            Some(At { function: known.filter(|name| !name.is_empty()), ..at.clone() })
        }
        None => spot.stack.iter().find(|frame| frame.user).map(of_frame).or_else(|| spot.at.clone()),
    }
}

/// The line of a frame.
pub(crate) fn of_frame(frame: &StackFrame) -> At {
    let file = Some(frame.file.clone()).filter(|file| !file.is_empty());
    At {
        text: match frame.line {
            Some(number) if file.is_some() => format!("{}:{number}", frame.file),
            _ => frame.file.clone(),
        },
        file,
        line: frame.line,
        function: Some(frame.function.clone()).filter(|name| !name.is_empty()),
    }
}

/// A line as people write it, its file relative to the sources: `pool.cpp:41`.
pub(crate) fn written(sources: &Sources, at: &At) -> String {
    line(&match (&at.file, at.line) {
        (Some(file), Some(number)) => format!("{}:{number}", sources.told(file)),
        // Of code without lines, in which module it is.
        _ => without_address(&at.text).to_owned(),
    })
}

/// A text that names the files of these places by their whole paths, with the paths that people write.
pub(crate) fn nearer<'a>(sources: &Sources, spots: impl IntoIterator<Item = &'a Spot>, text: &str) -> String {
    let mut text = text.to_owned();
    for file in spots.into_iter().filter_map(of_spot).filter_map(|at| at.file) {
        let told = sources.told(&file);
        if told != file && text.contains(&file) {
            text = text.replace(&file, &told);
        }
    }
    text
}

/// Function and line: `worker() pool.cpp:41`.
pub(crate) fn full(sources: &Sources, at: &At) -> String {
    match &at.function {
        Some(name) => format!("{} {}", function(name), written(sources, at)),
        None => written(sources, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_predict::Role;

    fn frame(function: &str, file: &str, line: u32, user: bool) -> StackFrame {
        StackFrame { function: function.into(), file: file.into(), line: Some(line), user }
    }

    fn spot(stack: Vec<StackFrame>) -> Spot {
        let at = At { text: "stl_vector.h:9".into(), file: Some("stl_vector.h".into()), line: Some(9), function: None };
        Spot {
            role: Role::Failure,
            thread: None,
            event: None,
            op: "read",
            object: String::new(),
            value: None,
            at: Some(at),
            stack,
        }
    }

    #[test]
    fn a_place_in_a_library_is_told_by_the_line_that_called_it() {
        let told = |stack| full(&Sources::default(), &of_spot(&spot(stack)).unwrap());
        let library = frame("std::vector<int>::at", "stl_vector.h", 9, false);
        let user = frame("worker(int)", "./pool.cpp", 41, true);
        assert_eq!(told(vec![library.clone(), user.clone()]), "worker() pool.cpp:41");
        assert_eq!(
            told(vec![frame("f", "stl_vector.h", 9, true), user]),
            "f() stl_vector.h:9",
            "its own is the user's"
        );
        assert_eq!(told(vec![library]), "stl_vector.h:9", "nobody's code but the library's");
        assert_eq!(told(Vec::new()), "stl_vector.h:9");
    }
}
