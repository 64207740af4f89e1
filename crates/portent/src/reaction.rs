//! What is done when a bug is found while the program runs.

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Tell it, as everything is told.
    Log,
    /// Send the program a signal.
    Signal(i32),
    /// Run a command.
    Execute(String),
}

/// Reads `log`, `stop`, `signal=SIG` or `exec=CMD`.
pub(crate) fn parse(text: &str) -> Result<Reaction, String> {
    match text.split_once('=') {
        None if text == "log" => Ok(Reaction::Log),
        None if text == "stop" => signal("TERM"),
        Some(("signal", name)) => signal(name),
        Some(("exec", command)) if !command.trim().is_empty() => Ok(Reaction::Execute(command.to_owned())),
        _ => Err("expected log, stop, signal=SIG such as signal=USR1, or exec=CMD".to_owned()),
    }
}

#[cfg(target_os = "linux")]
fn signal(name: &str) -> Result<Reaction, String> {
    let number = portent_native::run::launch::signal_named(name);
    number.map(Reaction::Signal).ok_or_else(|| format!("there is no signal {name}"))
}

#[cfg(not(target_os = "linux"))]
fn signal(_: &str) -> Result<Reaction, String> {
    Err("programs are watched on Linux only".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_and_others_refused() {
        assert_eq!(parse("log"), Ok(Reaction::Log));
        assert_eq!(parse("stop"), Ok(Reaction::Signal(15)));
        assert_eq!(parse("signal=SIGINT"), Ok(Reaction::Signal(2)));
        assert_eq!(parse("exec=echo a=b"), Ok(Reaction::Execute("echo a=b".into())));
        for wrong in ["", "log=1", "signal=", "signal=NOPE", "exec= ", "kill"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
