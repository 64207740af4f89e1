//! What a replay is to show.

/// What is to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every event as in the recording, with every value and object.
    Same,
    /// Whatever happens when the schedule is followed.
    Anything,
    /// Two threads at conflicting accesses.
    Race,
    /// Threads that wait for each other's locks.
    Deadlock,
    /// These threads wait for ever.
    Stuck {
        /// By number.
        threads: Vec<u32>,
    },
    /// A thread that sleeps and is never woken.
    LostWakeUp {
        /// Who.
        sleeper: u32,
    },
    /// These events of the recording, in the order of the schedule.
    Order {
        /// Their numbers in the recording.
        events: Vec<u32>,
    },
    /// The program fails in this way, there.
    Failure {
        /// The form of failure.
        form: String,
        /// Where, as places are written; anywhere if empty.
        place: String,
    },
    /// These events of the recording, in the order of the schedule, one of which reads another value.
    Values {
        /// Their numbers in the recording.
        events: Vec<u32>,
    },
    /// A run that breaks a property.
    Property {
        /// The property as a file of its own.
        source: String,
    },
    /// The last value of a variable.
    FinalValue {
        /// What the recording calls it.
        object: String,
    },
}
