//! What was read from files, kept for as long as the files stay as they are.
//!
//! A check runs a program hundreds of times, and every run loads the same program and libraries: their symbols, debug
//! information and build ids are read once. What is kept belongs to a thread, so that nothing here has to be shared. A file
//! that is replaced or written to is read anew; one that is written to while it is read is nobody's business.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program or library, without reading more of it than is looked at.
pub(crate) fn mapped(path: &Path) -> std::io::Result<memmap2::Mmap> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(nix::errno::Errno::EISDIR.into());
    }
    #[allow(unsafe_code)]
    // SAFETY: programs and libraries are replaced, not written to, by everything that builds or installs them. Were one cut
    // short all the same, reading it would end this process with a signal, not with wrong data.
    let bytes = unsafe { memmap2::Mmap::map(&file)? };
    Ok(bytes)
}

/// Which file a path names, and in what state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    file: (u64, u64),
    size: u64,
    /// Whoever sets the time of modification back cannot set this one.
    changed: (i64, i64),
    modified: (i64, i64),
}

impl FileState {
    pub(crate) fn of(path: &Path) -> Option<FileState> {
        let found = path.metadata().ok()?;
        Some(FileState {
            file: (found.dev(), found.ino()),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// More files than programs load; should there be more, everything is read anew.
const MOST: usize = 256;

/// What is known about files.
#[derive(Debug)]
pub(crate) struct Kept<K, T> {
    known: FxHashMap<K, (FileState, T)>,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Kept { known: FxHashMap::default() }
    }
}

impl<K: Eq + Hash, T: Clone> Kept<K, T> {
    /// What is known by `key` about the file at `path`; what `read` finds out, if that is nothing yet.
    pub(crate) fn get(&mut self, key: K, path: &Path, read: impl FnOnce() -> T) -> T {
        // Looked at before it is read: a change while it is read is then seen the next time.
        let Some(now) = FileState::of(path) else { return read() };
        if let Some((then, known)) = self.known.get(&key)
            && *then == now
        {
            return known.clone();
        }
        let found = read();
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(key, (now, found.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_once_until_it_is_replaced_or_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut kept = Kept::default();
        let mut reads = 0;
        let mut look = |path: &Path| {
            kept.get("file", path, || {
                reads += 1;
                fs::read_to_string(path).unwrap_or_default()
            })
        };
        assert_eq!(look(&path), "", "there is none");
        fs::write(&path, "one").unwrap();
        assert_eq!((look(&path), look(&path)), ("one".to_owned(), "one".to_owned()));
        let beside = folder.path().join("beside");
        fs::write(&beside, "two").unwrap();
        fs::rename(&beside, &path).unwrap();
        assert_eq!(look(&path), "two");
        fs::write(&path, "longer").unwrap();
        assert_eq!(look(&path), "longer");
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&path), "", "it is gone");
        assert_eq!(reads, 5);
    }
}
