//! What of a program's environment is written into a trace.
//!
//! A trace is shown to others, and environments hold secrets. A replay needs what the program asks for, which nobody can know: so all is
//! written but what by its name or its look is a secret, or is about somebody's desk or machine and not about programs. Of that, names and
//! lengths are written: a replay gives the program a value of the same length, its own one if it has one, because the places of
//! everything on the stack depend on it. docs/src/reference/environment.md lists it.

use crate::text::Text;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// In names of secrets.
const SECRET: [&str; 18] = [
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTH",
    "COOKIE",
    "SESSION",
    "SIGNING",
    "DSN",
    "CONNECTION_STRING",
    "LICENSE_KEY",
    "JWT",
    "OTP",
];
/// Ends of names of secrets.
const SECRET_ENDS: [&str; 3] = ["_KEY", "_PAT", "_PW"];
/// Beginnings of names that say something about a desk, a machine or a service.
const ELSEWHERE: [&str; 26] = [
    "SSH_",
    "GPG_",
    "DBUS_",
    "XDG_",
    "XAUTH",
    "SUDO_",
    "LS_COLORS",
    "LESS",
    "PS1",
    "PROMPT",
    "HIST",
    "MAIL",
    "WINDOWID",
    "VSCODE_",
    "TERM_",
    "GITHUB_",
    "GITLAB_",
    "CI_",
    "RUNNER_",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "GCP_",
    "KUBERNETES_",
    "DOCKER_",
    "NPM_",
];
/// All that is written where the environment is not to be: what loader, C library and OpenMP look at.
const BARE: [&str; 16] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    "LD_PRELOAD",
    "LANG",
    "LANGUAGE",
    "LC_",
    "TZ",
    "TMPDIR",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MALLOC_",
    "GLIBC_TUNABLES",
    "TSAN_OPTIONS",
    "RUST_BACKTRACE",
];

/// An environment as a trace has it: what is written, and of the rest names and lengths.
pub(crate) type Written = (Vec<(Text, Text)>, Vec<(Text, u64)>);

/// What is written of an environment; with `bare`, hardly anything.
pub(crate) fn written(environment: &[(OsString, OsString)], bare: bool) -> Written {
    let (kept, withheld): (Vec<_>, Vec<_>) =
        environment.iter().partition(|(name, value)| if bare { is_bare(name) } else { !is_private(name, value) });
    let text = |text: &OsString| Text::from(text.as_os_str());
    (
        kept.into_iter().map(|(name, value)| (text(name), text(value))).collect(),
        withheld.into_iter().map(|(name, value)| (text(name), value.len() as u64)).collect(),
    )
}

fn is_bare(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    BARE.iter().any(|known| *name == **known || (known.ends_with('_') && name.starts_with(known)))
}

fn is_private(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    SECRET.iter().any(|part| name.contains(part))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || ELSEWHERE.iter().any(|begin| name.starts_with(begin))
        || has_password(value.as_bytes())
}

/// Whether a value is an address with a password in it (`scheme://user:password@host`), or a private key.
fn has_password(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let in_address = |rest: &str| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    };
    text.contains("-----BEGIN ") || text.split("://").skip(1).any(in_address)
}

/// Longer values than any system takes are of no recording.
const LONGEST: u64 = 1 << 17;

/// The environment of a replay: what was written, and in place of the rest something of the same length.
pub(crate) fn restored(environment: &[(Text, Text)], withheld: &[(Text, u64)]) -> Vec<(OsString, OsString)> {
    let mut all: Vec<_> = environment.iter().map(|(name, value)| (name.to_os(), value.to_os())).collect();
    for (name, length) in withheld {
        let name = name.to_os();
        let own = own(&name, *length).unwrap_or_else(|| "x".repeat((*length).min(LONGEST) as usize).into());
        all.push((name, own));
    }
    all
}

/// The value that a variable has here, if it can be the one that was withheld.
fn own(name: &OsStr, length: u64) -> Option<OsString> {
    // Asking for such a name panics.
    if name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0)) {
        return None;
    }
    std::env::var_os(name).filter(|own| own.len() as u64 == length)
}

/// The variables that have something else in place of their values.
pub(crate) fn missing(withheld: &[(Text, u64)]) -> Vec<String> {
    let gone = withheld.iter().filter(|(name, length)| own(&name.to_os(), *length).is_none());
    gone.map(|(name, _)| name.to_os().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bare: bool, pairs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let (kept, withheld) = written(&pairs, bare);
        let name = |name: &Text| name.to_os().into_string().unwrap();
        (kept.iter().map(|(n, _)| name(n)).collect(), withheld.iter().map(|(n, _)| name(n)).collect())
    }

    #[test]
    fn secrets_are_not_written_and_what_programs_read_is() {
        let pairs = [
            ("PATH", "/bin"),
            ("WORKERS", "8"),
            ("GITHUB_TOKEN", "x"),
            ("my_password", "x"),
            ("STRIPE_KEY", "x"),
            ("DATABASE_URL", "postgres://me:secret@db/x"),
            ("HOMEPAGE", "https://example.org/a:b@c"),
            ("SSH_AUTH_SOCK", "/tmp/x"),
            ("CERT", "-----BEGIN PRIVATE KEY-----"),
            ("KEYBOARD", "us"),
        ];
        let (kept, withheld) = names(false, &pairs);
        assert_eq!(kept, ["PATH", "WORKERS", "HOMEPAGE", "KEYBOARD"]);
        assert_eq!(withheld.len(), 6);
        let (kept, withheld) = names(true, &pairs);
        assert_eq!((kept, withheld.len()), (vec!["PATH".to_owned()], 9));
    }

    #[test]
    fn a_replay_gets_values_of_the_same_length() {
        let withheld = [
            (Text::Plain("NO_SUCH_TOKEN_HERE".into()), 5),
            (Text::Plain("A=B".into()), 2),
            (Text::Plain("".into()), 1),
        ];
        let restored = restored(&[], &withheld);
        assert_eq!(restored[0].1, "xxxxx");
        assert_eq!(restored[1].1, "xx");
        assert_eq!(missing(&withheld).len(), 3);
    }
}
