//! Whether a trace was recorded by this user on this machine: only then what it says is run without being asked for.
//!
//! Each recording bears a keyed digest of what a replay starts: program, arguments, directory, environment, input. The key is a
//! file of the user's own (`key`, in `$XDG_STATE_HOME/portent` or `~/.local/state/portent`), made when it is first needed, and nobody
//! who does not know it can make such a digest. A trace may be renamed, moved and converted; one of another machine, or one that
//! was changed, is not vouched for. Where there is no place for a key, no trace is.

use super::digest::{keyed, same};
use super::recording::Recording;
use crate::private;
use crate::text::{Text, from_hex};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where the key is: what names its directory, and else where the XDG rules have it.
const PLACES: [&str; 3] = ["PORTENT_STATE", "XDG_STATE_HOME", ".local/state"];

/// The digest of what a replay of a recording starts, if there is a key.
pub(super) fn seal(recording: &Recording) -> Option<String> {
    /// Runs of a check start the same.
    static LAST: Mutex<Option<(Vec<u8>, String)>> = Mutex::new(None);
    let key = key()?;
    let what = what_is_started(recording);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, seal)) = &*last
        && *of == what
    {
        return Some(seal.clone());
    }
    let seal: String = keyed(key, &what).iter().map(|byte| format!("{byte:02x}")).collect();
    *last = Some((what, seal.clone()));
    Some(seal)
}

/// Whether a recording was made here, by this user.
pub(super) fn is_ours(recording: &Recording) -> bool {
    let Some(key) = key() else { return false };
    let given = recording.seal.as_deref().and_then(from_hex).and_then(|seal| seal.try_into().ok());
    given.is_some_and(|given: [u8; 32]| same(&given, &keyed(key, &what_is_started(recording))))
}

/// Everything of a recording that decides what is run, so that no two read the same.
fn what_is_started(recording: &Recording) -> Vec<u8> {
    let Recording { program, arguments, working_directory, environment, withheld, input, lineage, .. } = recording;
    let mut bytes = b"portent recording 1\0".to_vec();
    let mut add = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    let text = |text: &Text| text.to_os().as_bytes().to_vec();
    let number = |number: usize| (number as u64).to_le_bytes();
    add(&std::fs::read("/etc/machine-id").unwrap_or_default());
    add(&text(program));
    add(&text(working_directory));
    add(&number(arguments.len()));
    arguments.iter().for_each(|argument| add(&text(argument)));
    add(&number(environment.len()));
    for (name, value) in environment {
        add(&text(name));
        add(&text(value));
    }
    add(&number(withheld.len()));
    for (name, length) in withheld {
        add(&text(name));
        add(&length.to_le_bytes());
    }
    add(&input.as_ref().map(text).unwrap_or_default());
    add(&lineage.to_le_bytes());
    bytes
}

/// The key of this user; `None` where there is no place for one.
fn key() -> Option<&'static [u8; 32]> {
    static KEY: OnceLock<Option<[u8; 32]>> = OnceLock::new();
    let find = || {
        let folders = private::folders(|name| std::env::var_os(name), PLACES).ok()?;
        folders.iter().find_map(|folder| key_in(&folder.path).ok())
    };
    KEY.get_or_init(find).as_ref()
}

/// The key in a directory; made if there is none.
fn key_in(folder: &Path) -> io::Result<[u8; 32]> {
    private::create(folder)?;
    private::check(folder, private::Others::Nothing)?;
    let path = folder.join("key");
    match read_key(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    // Should another process have been first, its key is the one.
    let _ = file.persist_noclobber(&path);
    read_key(&path)
}

fn read_key(path: &Path) -> io::Result<[u8; 32]> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != private::user()? || found.mode() & 0o077 != 0 || found.len() != 32 {
        return Err(io::Error::other("others can read the key: it is no secret"));
    }
    let mut key = [0; 32];
    file.read_exact(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_key_is_made_once_and_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let key = key_in(&state).unwrap();
        assert_eq!(key_in(&state).unwrap(), key);
        assert_eq!(fs::metadata(state.join("key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(state.join("key"), fs::Permissions::from_mode(0o644)).unwrap();
        key_in(&state).unwrap_err();
    }

    #[test]
    fn a_key_that_somebody_else_prepared_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        key_in(folder.path()).unwrap_err();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(folder.path().join("elsewhere"), [7; 32]).unwrap();
        fs::set_permissions(folder.path().join("elsewhere"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("elsewhere", folder.path().join("key")).unwrap();
        key_in(folder.path()).unwrap_err();
    }
}
