//! Directories that belong to this user alone: for the runtime on disk, and for what is known of recordings that were made here.
//!
//! Whoever can write into one can put a library there for us to load, or vouch for a trace. So what somebody else prepared is refused:
//! a link, another's directory, one that others can write to.

use std::ffi::OsString;
use std::fs;
use std::io::{Error, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The effective user, without a call into C.
pub(crate) fn user() -> Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// A directory that may hold private things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// Others can write beside it.
    pub(crate) in_public: bool,
}

/// Where to have private things, best first: what `own` names has no alternative; else the place that the XDG rules give by `xdg`
/// and `below` the home directory; else one in the directory for temporary files.
pub(crate) fn folders(
    variable: impl Fn(&str) -> Option<OsString>,
    [own, xdg, below]: [&str; 3],
) -> Result<Vec<Folder>> {
    let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = variable(own) {
        return Ok(vec![Folder { path: std::path::absolute(&path)?, in_public: false }]);
    }
    // The XDG rules: a relative path is to be ignored.
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = variable(xdg).filter(absolute);
    let home = home.or_else(|| variable("HOME").filter(absolute).map(|home| home.join(below)));
    let mut folders: Vec<_> =
        home.into_iter().map(|home| Folder { path: home.join("portent"), in_public: false }).collect();
    if let Ok(user) = user() {
        let temporary = variable("TMPDIR").filter(absolute).unwrap_or_else(|| "/tmp".into());
        folders.push(Folder { path: temporary.join(format!("portent-of-{user}")), in_public: true });
    }
    Ok(folders)
}

/// Makes a directory that only this user can enter, if there is none, with those above it.
pub(crate) fn create(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// What others may do to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They may look.
    Read,
    /// So may the group, and write.
    GroupWrites,
    /// They may not even write; it is ours and not root's.
    Nothing,
}

/// Refuses a directory that others can write to, or that is not ours.
pub(crate) fn check(directory: &Path, others: Others) -> Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let is_ours = found.uid() == user()? || (found.uid() == 0 && others != Others::Nothing);
    let refused = if others == Others::GroupWrites { 0o002 } else { 0o022 };
    if !found.is_dir() || !is_ours || found.mode() & refused != 0 {
        let name = directory.display();
        return Err(Error::other(format!("{name} is not a directory that only this user can write to")));
    }
    Ok(())
}
