//! The descriptors that a program inherits: the same numbers in every run.
//!
//! A program gets the lowest free number for whatever it opens, and often allocates by it. So which numbers from 3 on are
//! taken when it starts is part of the recording, and a replay from another shell, or without what a build system handed
//! down, takes the same ones: those that are missing stand for `/dev/null`, those that are too many are not passed on.

use nix::fcntl::FcntlArg::{F_DUPFD_CLOEXEC, F_GETFD, F_SETFD};
use nix::fcntl::{FdFlag, fcntl};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Descriptors from 3 on that this process would hand down to a program, in order.
pub fn inherited() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let mut found: Vec<RawFd> = numbers.filter(|number| *number > 2 && is_handed_down(*number)).collect();
    found.sort_unstable();
    found
}

/// Lets a program inherit exactly these descriptors from 3 on.
pub(super) fn hand_down(command: &mut Command, wanted: &[RawFd]) -> io::Result<()> {
    let here = inherited();
    for extra in here.iter().filter(|number| !wanted.contains(number)) {
        // Nobody else is meant to have it: only programs inherit it.
        fcntl(borrowed(*extra), F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    let missing: Vec<RawFd> = wanted.iter().copied().filter(|number| *number > 2 && !here.contains(number)).collect();
    let Some(last) = missing.last() else { return Ok(()) };
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    // Above all of them: a duplicate of itself would be closed by exec.
    let above = fcntl(&nothing, F_DUPFD_CLOEXEC(last.saturating_add(1)))?;
    #[allow(unsafe_code)]
    // SAFETY: a new descriptor, which nobody else has.
    let nothing = unsafe { OwnedFd::from_raw_fd(above) };
    let fill = move || {
        for &number in &missing {
            #[allow(unsafe_code)]
            // SAFETY: between fork and exec nobody else uses the number; what may lie there is closed by exec anyway.
            let filled = unsafe { nix::unistd::dup2_raw(&nothing, number)? };
            // It stays open for the program.
            let _ = filled.into_raw_fd();
        }
        Ok(())
    };
    #[allow(unsafe_code)]
    // SAFETY: between fork and exec it only calls dup2, which may be called there; all memory was allocated before.
    unsafe {
        command.pre_exec(fill);
    }
    Ok(())
}

/// Lets a program inherit a descriptor under this number.
pub(super) fn hand_over(command: &mut Command, what: OwnedFd, number: RawFd) {
    let put = move || {
        #[allow(unsafe_code)]
        // SAFETY: between fork and exec nobody else uses the number; what may lie there is closed by exec anyway.
        let there = unsafe { nix::unistd::dup2_raw(&what, number)? };
        // It stays open for the program.
        let _ = there.into_raw_fd();
        Ok(())
    };
    #[allow(unsafe_code)]
    // SAFETY: between fork and exec it only calls dup2, which may be called there.
    unsafe {
        command.pre_exec(put);
    }
}

fn is_handed_down(number: RawFd) -> bool {
    fcntl(borrowed(number), F_GETFD).is_ok_and(|flags| !FdFlag::from_bits_truncate(flags).contains(FdFlag::FD_CLOEXEC))
}

/// A number as a descriptor, to ask about it.
fn borrowed(number: RawFd) -> BorrowedFd<'static> {
    #[allow(unsafe_code)]
    // SAFETY: used at once, and only to ask and to tell the kernel about its flags; a number that is not open is refused.
    unsafe {
        BorrowedFd::borrow_raw(number)
    }
}
