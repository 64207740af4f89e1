//! The first pass over a recording: what must be known before the first event can be written.
//!
//! A thread's name is the last one it was given, a module can be used before it is noted, and a join means something only
//! if the thread it joins does nothing afterwards. Everything that the runtime said besides events is gathered on the way.

use crate::run::log_file::LogFile;
use crate::symbols::Module;
use portent_runtime::log::{self, Damaged, Scanned, note};
use portent_trace::{InputOp, Names, Object, ObjectName};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What the first pass found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Events that can be converted.
    pub events: u64,
    /// Bytes that all records take.
    pub bytes: u64,
    /// Every thread, by its number.
    pub threads: Vec<Thread>,
    /// Modules, in the order they were noted.
    pub modules: Vec<Module>,
    /// Where the recording is damaged.
    pub damage: Option<Damaged>,
    /// Assertions, aborts and warnings, in order.
    pub messages: Vec<Message>,
    /// The status that the program gave to `exit`.
    pub exit: Option<u64>,
    /// A signal that ended the program.
    pub fatal: Option<Fatal>,
    /// Events whose place in the run was lost.
    pub unrecorded: u32,
    /// There was no more room for the recording before the program ended.
    pub full: bool,
    /// How many steps of the plan were done at its end.
    pub plan_done: Option<u64>,
    /// What the threads of the plan's goal were about to do when the steps were done.
    pub goal: Option<Vec<AtGoal>>,
    /// Where the plan could not be followed.
    pub diverged: Option<Diverged>,
    /// What events wrote, by their numbers, of which another value was recorded: copies.
    pub(super) copied: BTreeMap<u64, u64>,
    /// Whether the program says of any memory that accesses of it may race.
    pub(super) has_benign: bool,
}

/// A thread of the program.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Who made it, and which child of that it is; for the main thread and for threads of which nothing is known, none.
    pub family: Option<(u64, u64)>,
    /// The last name that the program gave it.
    pub name: Option<String>,
    /// How many events it has.
    pub events: u64,
    /// The number of its last event, and of the one before that.
    pub last: u64,
    before_last: u64,
    /// Whether it ran to its end.
    pub ended: bool,
    /// What it asked the system, in order: kind and answer.
    pub answers: Vec<(u64, Vec<u8>)>,
}

/// Something that the runtime told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// See [`log::message`].
    pub kind: u64,
    /// Who ran.
    pub thread: usize,
    /// Where.
    pub pc: u64,
    /// What it says.
    pub text: String,
}

/// A signal that ended the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// Who ran.
    pub thread: usize,
    /// Its number.
    pub signal: u64,
    /// What was accessed.
    pub address: u64,
    /// The instruction.
    pub pc: u64,
}

/// What a thread of the goal was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtGoal {
    /// Its number.
    pub thread: u64,
    /// The operation, with the code of the trace format.
    pub pending: u64,
    /// On what.
    pub address: u64,
    /// How many bytes of it.
    pub size: u64,
    /// Where.
    pub pc: u64,
    /// Whether it can go on.
    pub enabled: bool,
}

/// Where a plan could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// Which step of the plan.
    pub step: u64,
    /// Whose step it is.
    pub thread: u64,
    /// Events of the step that were left.
    pub left: u64,
    /// See [`log::diverged`].
    pub why: u64,
    /// What the thread was about to do instead.
    pub pending: u64,
    /// On what.
    pub address: u64,
    /// Where.
    pub pc: u64,
}

/// What the runtime does not understand of the libraries that compilers of OpenMP use.
const OPENMP: &str = "OpenMP of clang: barriers, critical sections and tasks are not understood; races between threads of a team \
    may be false, and every parallel region takes long";

impl Survey {
    /// What could not be seen or understood, in sentences, each once.
    pub fn warnings(&self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        if let Some(text) = self.cut_in_words() {
            told.push(text);
        }
        if self.unrecorded > 0 {
            told.push(format!("{} events are missing: their place in the run is not known", self.unrecorded));
        }
        for message in self.messages.iter().filter(|message| message.kind == log::message::WARNING) {
            if !told.contains(&message.text) {
                told.push(message.text.clone());
            }
        }
        told
    }

    /// Where the recording is cut short, if it is: after so many events. Nothing is known of what the program did then.
    pub fn cut(&self) -> Option<u64> {
        (self.full || self.damage.is_some()).then_some(self.events)
    }

    /// The same in a sentence, with why.
    pub fn cut_in_words(&self) -> Option<String> {
        let why = match self.damage {
            Some(damage) => format!("the recording is damaged ({})", damage.what),
            None if self.full => "there was no more room for the recording (a full disk, or `ulimit -f`)".to_owned(),
            None => return None,
        };
        Some(format!("{why}: from event {} on nothing is known of what the program did", self.events))
    }

    /// Says what follows from what was loaded.
    fn look_at_modules(&mut self) {
        const LIBRARIES: [&str; 2] = ["libomp.so", "libiomp5.so"];
        let is_openmp = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            LIBRARIES.iter().any(|library| name.starts_with(library))
        };
        if self.threads.len() > 1 && self.modules.iter().any(|module| is_openmp(&module.path)) {
            self.messages.push(Message { kind: log::message::WARNING, thread: 0, pc: 0, text: OPENMP.to_owned() });
        }
    }
}

/// The numbers of a note; those it should have and has not are zero.
pub(super) fn numbers<const N: usize>(payload: &[u8]) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(payload.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    numbers
}

/// The text of a note, after its numbers.
fn text(payload: &[u8], numbers: usize) -> String {
    let bytes = payload.get(8 * numbers..).unwrap_or_default();
    String::from_utf8_lossy(bytes).trim_end_matches(['\0', '\n']).to_owned()
}

impl Survey {
    /// Reads all of a recording once.
    pub fn of(file: &LogFile, mut progress: impl FnMut(u64)) -> Survey {
        let mut survey = Survey { unrecorded: file.header().unrecorded, full: file.is_full(), ..Survey::default() };
        let (mut scanner, mut records) = (file.scanner(), file.records());
        let mut running;
        survey.thread(0);
        loop {
            match records.at(scanner.offset()).and_then(|bytes| scanner.next_record(bytes)) {
                Ok(Some(record)) => {
                    running = scanner.thread();
                    if let Err(what) = survey.take(record, running) {
                        survey.damage = Some(Damaged { offset: survey.bytes as usize, what });
                        break;
                    }
                    if survey.events.is_multiple_of(1 << 20) && matches!(record, Scanned::Event(_)) {
                        progress(scanner.offset() as u64);
                    }
                }
                Ok(None) => break,
                Err(damage) => {
                    survey.damage = Some(damage);
                    break;
                }
            }
            survey.bytes = scanner.offset() as u64;
        }
        survey.look_at_modules();
        survey
    }

    /// Takes in a record of a thread; what is wrong with it, if anything is.
    #[inline]
    pub(super) fn take(&mut self, record: Scanned<'_>, running: usize) -> Result<(), &'static str> {
        static IS_EVENT: LazyLock<[bool; 512]> =
            LazyLock::new(|| std::array::from_fn(|code| InputOp::from_code(code as u16).is_some()));
        match record {
            Scanned::Event(op) => {
                if !IS_EVENT[usize::from(op) % IS_EVENT.len()] {
                    return Err("an event has an impossible operation");
                }
                let thread = &mut self.threads[running];
                thread.events += 1;
                thread.before_last = std::mem::replace(&mut thread.last, self.events);
                self.events += 1;
            }
            Scanned::Note(kind, payload) => self.note(kind, payload, running),
        }
        Ok(())
    }

    pub(super) fn thread(&mut self, number: u64) -> &mut Thread {
        let number = (number as usize).min(log::MAX_THREADS - 1);
        if number >= self.threads.len() {
            self.threads.resize(number + 1, Thread::default());
        }
        &mut self.threads[number]
    }

    fn note(&mut self, kind: u16, payload: &[u8], running: usize) {
        match kind {
            note::SWITCH => drop(self.thread(running as u64)),
            note::THREAD => {
                let [thread, parent, child, ..]: [u64; 6] = numbers(payload);
                self.thread(parent);
                self.thread(thread).family = (thread != parent).then_some((parent, child));
            }
            note::THREAD_NAME => {
                let [thread] = numbers(payload);
                self.thread(thread).name = Some(text(payload, 1)).filter(|name| !name.is_empty());
            }
            note::THREAD_END => self.thread(numbers::<1>(payload)[0]).ended = true,
            note::SIGNAL => {
                self.thread(running as u64).answers.push((log::input::SIGNAL, payload.to_vec()));
            }
            note::MODULE => {
                let [bias, start, end] = numbers(payload);
                let module = Module { bias, start, end, path: text(payload, 3) };
                if start < end && !self.modules.contains(&module) {
                    self.modules.push(module);
                }
            }
            note::INPUT => {
                let [kind] = numbers(payload);
                let answer = payload.get(8..).unwrap_or_default().to_vec();
                self.thread(running as u64).answers.push((kind, answer));
            }
            note::MESSAGE => {
                let [kind, pc] = numbers(payload);
                self.messages.push(Message { kind, thread: running, pc, text: text(payload, 2) });
            }
            note::GOAL => {
                let rows = payload.chunks_exact(48).map(numbers);
                let at = |[thread, pending, address, size, pc, enabled]: [u64; 6]| AtGoal {
                    thread,
                    pending,
                    address,
                    size,
                    pc,
                    enabled: enabled != 0,
                };
                self.goal = Some(rows.map(at).collect());
            }
            note::DIVERGED => {
                let [step, thread, left, why, pending, address, pc] = numbers(payload);
                self.diverged = Some(Diverged { step, thread, left, why, pending, address, pc });
            }
            note::COPIED => {
                let before_last = self.thread(running as u64).before_last;
                self.copied.insert(before_last, numbers::<1>(payload)[0]);
            }
            note::BENIGN => self.has_benign = true,
            note::EXIT => self.exit = Some(numbers::<1>(payload)[0]),
            note::FULL => self.full = true,
            note::FATAL => {
                let [signal, address, pc] = numbers(payload);
                self.fatal = Some(Fatal { thread: running, signal, address, pc });
            }
            note::PLAN_DONE => self.plan_done = Some(numbers::<1>(payload)[0]),
            _ => {}
        }
    }

    /// What the trace calls a thread.
    pub fn thread_name(&self, thread: usize) -> String {
        // Which needs no other names.
        Names::default().describe(&ObjectName::of(self.thread_object(thread)))
    }

    /// What a thread is to the trace.
    pub(super) fn thread_object(&self, thread: usize) -> Object<'_> {
        let name = self.threads.get(thread).and_then(|thread| thread.name.as_deref());
        Object::Thread { number: thread as u32, name, start: None }
    }
}
