//! Ctrl-C: stop, and show what is known.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by Ctrl-C.
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C sets [`INTERRUPTED`] instead of ending the command; the second one ends it.
pub(crate) fn listen() {
    // Without the handler Ctrl-C still ends the command, only without results.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            // Asked twice: the user does not want to wait.
            std::process::exit(130);
        }
    });
}
