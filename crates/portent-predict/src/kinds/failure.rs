//! Failures: what a person calls a bug without being taught a theory. They are not predicted but *seen*, in a recorded run or
//! in a replay: the loop finds them, and says by which schedule. What each is called and what it means is here.

use crate::bug::{Harm, Place, Severity, Words};
use portent_trace::{Names, short_function, without_address};

/// What a failure is called and what it means.
pub(super) fn words(harm: Harm) -> &'static Words {
    macro_rules! words {
        ($title:literal, $rule:literal, $identifier:literal, $meaning:literal) => {
            const {
                &Words {
                    title: $title,
                    rule: $rule,
                    identifier: $identifier,
                    meaning: $meaning,
                    severity: Severity::Error,
                }
            }
        };
    }
    match harm {
        Harm::UseAfterFree => {
            words!("use after free", "use-after-free", "UseAfterFree", "A thread uses memory that was freed before.")
        }
        Harm::DoubleFree => words!("double free", "double-free", "DoubleFree", "Memory is freed a second time."),
        Harm::BadFree => words!(
            "bad free",
            "bad-free",
            "BadFree",
            "Memory is freed in a way that does not fit how it was allocated, or was never allocated."
        ),
        Harm::DestroyedInUse => words!(
            "destroyed while used",
            "destroyed-in-use",
            "DestroyedInUse",
            "A mutex, condition variable or the like is destroyed or freed while it is used, or used afterwards."
        ),
        Harm::Assertion => {
            words!("failed assertion", "assertion", "FailedAssertion", "An assertion of the program fails.")
        }
        Harm::Exception => words!(
            "uncaught exception",
            "exception",
            "UncaughtException",
            "An exception leaves a thread that nobody catches it in: the program is terminated."
        ),
        Harm::Crash => words!("crash", "crash", "Crash", "The program is ended by a fatal signal."),
        Harm::Abort => words!("abort", "abort", "Abort", "The program gives up: abort() is called."),
        Harm::DeadlockReached => words!(
            "deadlock reached",
            "deadlock-reached",
            "DeadlockReached",
            "The program comes to a point where no thread can move."
        ),
        Harm::ClosedInUse => words!(
            "closed while used",
            "closed-in-use",
            "ClosedInUse",
            "A descriptor is closed by one thread while another uses it, or used afterwards."
        ),
        Harm::Hang => words!("hang", "hang", "Hang", "The program does not end in time."),
        Harm::Exit => {
            words!("wrong exit status", "exit", "WrongExit", "The program ends with a status that says it failed.")
        }
        Harm::Output => words!(
            "different output",
            "output",
            "DifferentOutput",
            "The program prints something else than in the recorded run, not only in another order."
        ),
    }
}

/// A failure that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the program failed.
    pub harm: Harm,
    /// What it said about that, or what there is to say: the assertion's text, the exception's, who waits for whom.
    pub message: String,
    /// Where it failed.
    pub at: Place,
    /// What else belongs to it: where memory was allocated and freed, where other threads wait.
    pub others: Vec<Place>,
    /// The call stack of `at` and of each of `others`, innermost first.
    pub stacks: Vec<Vec<StackFrame>>,
    /// The operation whose outcome decides between failing and passing, where a run that passes is known.
    pub decisive: Option<Deciding>,
    /// The end of what the failing run wrote to standard error.
    pub stderr: String,
}

/// A frame of a call stack, as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The function.
    pub function: String,
    /// Where in it: a file, where there is one, or whatever names the place.
    pub file: String,
    /// The line, where it is known.
    pub line: Option<u32>,
    /// Whether it is the user's own code, not a library's.
    pub user: bool,
}

impl StackFrame {
    /// A frame of a trace's stack, with its names.
    pub fn of(names: &Names, frame: &portent_trace::StackFrame) -> StackFrame {
        let location = names.location(frame.location);
        StackFrame {
            function: without_address(&short_function(&frame.function)).to_owned(),
            file: location.file.map_or_else(|| without_address(&location.to_string()).to_owned(), str::to_owned),
            line: location.line,
            user: frame.user,
        }
    }
}

/// The operation that decides whether a run fails, and its two outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The operation, in the run that fails.
    pub operation: Place,
    /// The operation of another thread that it depends on there: the write that is read, the notify that wakes. `None` if it is
    /// the initial value, or nothing.
    pub because: Option<Place>,
    /// Its outcome in the run that fails, in words.
    pub fails: String,
    /// Its outcome in the nearest run that passes, in words.
    pub passes: String,
}
