//! What a program writes to standard output and standard error: kept in files of its session, and shown while it runs.
//!
//! Files, not pipes: the recorded run and every replay then have descriptors of the same kind, a write never blocks, and
//! nobody has to read until the last process that inherited the other end is gone. The price is that a C program whose
//! output is a file writes it in blocks: what it prints is seen when it flushes, and not at all if it crashes before.
//!
//! Of each stream `KEPT` bytes are kept; what comes after them is given back to the file system as soon as it has been
//! shown, so that a program which prints without end does not fill the disk.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use portent_explore::Output;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Where Portent's own goes; nothing is kept.
    Inherited,
    /// To files of the session.
    Kept {
        /// It is copied to where Portent's own goes, too.
        shown: bool,
    },
}

/// So many bytes of each stream are kept.
const KEPT: u64 = 1 << 20;
/// So many bytes more than that lie in a file before they are given back.
const SLACK: u64 = 1 << 20;
/// What can be written without blocking to anything that says it is ready.
const AT_ONCE: usize = 4096;

/// The files of a session that a program's output goes to.
pub(super) struct Files {
    stdout: Stream,
    stderr: Stream,
    /// Whether it is shown, and if so, whether all of it on standard error.
    shown: Option<bool>,
}

/// One of them.
struct Stream {
    file: File,
    /// Bytes that have been shown.
    shown: u64,
    /// Bytes up to here have been given back, but for the first.
    returned: u64,
    /// Nobody reads what is shown any more.
    unwanted: bool,
}

impl Files {
    /// Empty files in a session's directory. `shown`: whether they are shown, and if so, whether both on standard error.
    pub(super) fn new(session: &Path, shown: Option<bool>) -> io::Result<Files> {
        let (stdout, stderr) = (Stream::new(&session.join("stdout"))?, Stream::new(&session.join("stderr"))?);
        // What Portent itself has printed comes first. Should nobody read it, nobody misses it.
        let _ = io::stdout().flush();
        Ok(Files { stdout, stderr, shown })
    }

    /// Files in memory, emptied; nothing is shown.
    pub(super) fn in_memory(files: [&File; 2]) -> io::Result<Files> {
        // As if each were opened for the first time: what a program sets on its own descriptors is for that run alone.
        let open = |file: &File| Stream::new(&Path::new("/proc/self/fd").join(file.as_raw_fd().to_string()));
        Ok(Files { stdout: open(files[0])?, stderr: open(files[1])?, shown: None })
    }

    /// Makes them the standard output and standard error of a program.
    pub(super) fn connect(&self, command: &mut Command) -> io::Result<()> {
        let [stdout, stderr] = self.for_program();
        command.stdout(Stdio::from(stdout.try_clone()?)).stderr(Stdio::from(stderr.try_clone()?));
        Ok(())
    }

    /// What is to be the standard output and the standard error of a program.
    pub(super) fn for_program(&self) -> [&File; 2] {
        [&self.stdout.file, &self.stderr.file]
    }

    /// Whether nothing was written to them.
    pub(super) fn is_untouched(&self) -> bool {
        self.stdout.length() == 0 && self.stderr.length() == 0
    }

    /// Shows what has been written meanwhile, as far as that does not block. A stream that fails is let be: the program
    /// is not to suffer from it.
    pub(super) fn keep_up(&mut self) {
        self.show(PollTimeout::ZERO);
        self.stdout.give_back(self.shown.is_some());
        self.stderr.give_back(self.shown.is_some());
    }

    fn show(&mut self, patience: PollTimeout) {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let Some(aside) = self.shown else { return };
        self.stdout.show(if aside { stderr.as_fd() } else { stdout.as_fd() }, patience);
        self.stderr.show(stderr.as_fd(), patience);
    }

    /// The program has ended: shows the rest, and returns what was kept.
    pub(super) fn finish(mut self) -> io::Result<Output> {
        self.show(PollTimeout::NONE);
        let ((stdout, all), (stderr, everything)) = (self.stdout.read()?, self.stderr.read()?);
        Ok(Output { stdout, stderr, whole: all && everything })
    }
}

impl Stream {
    fn new(path: &Path) -> io::Result<Stream> {
        // Appended to, as by several processes that have the same terminal.
        let file = File::options().read(true).append(true).create(true).mode(0o600).open(path)?;
        if file.metadata()?.len() > 0 {
            // Of an earlier run.
            file.set_len(0)?;
        }
        Ok(Stream { file, shown: 0, returned: 0, unwanted: false })
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len())
    }

    /// Shows what is new, waiting for whoever reads it no longer than `patience` at a time.
    fn show(&mut self, to: BorrowedFd<'_>, patience: PollTimeout) {
        let mut buffer = [0; AT_ONCE];
        // A program may cut its own output short (`fopen("/dev/stdout", "w")`): then it starts anew.
        if self.length() < self.shown {
            self.shown = 0;
        }
        while !self.unwanted {
            let Ok(length @ 1..) = self.file.read_at(&mut buffer, self.shown) else { return };
            match poll(&mut [PollFd::new(to, PollFlags::POLLOUT)], patience) {
                Ok(0) => return,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => self.unwanted = true,
            }
            match nix::unistd::write(to, &buffer[..length]) {
                Ok(written) => self.shown += written as u64,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) if patience == PollTimeout::NONE => {}
                Err(Errno::EAGAIN) => return,
                Err(_) => self.unwanted = true,
            }
        }
    }

    /// Gives back what is neither kept nor still to be shown.
    fn give_back(&mut self, shown: bool) {
        let to = if shown && !self.unwanted { self.shown } else { self.length() };
        let from = self.returned.max(KEPT);
        if to > from + SLACK {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            // Not every file system can; then the file just grows.
            let _ = fallocate(&self.file, flags, from as i64, (to - from) as i64);
            self.returned = to;
        }
    }

    /// What is kept, and whether that is all.
    fn read(&self) -> io::Result<(Vec<u8>, bool)> {
        let length = self.length();
        let mut kept = vec![0; length.min(KEPT) as usize];
        let mut filled = 0;
        while filled < kept.len() {
            match self.file.read_at(&mut kept[filled..], filled as u64)? {
                0 => break,
                more => filled += more,
            }
        }
        kept.truncate(filled);
        Ok((kept, length <= KEPT))
    }
}
